/* SPDX-License-Identifier: MIT
 *
 * rope_rules.c - the cases
 *
 * Real settings and edge settings; lists are short formulas so that they can be read. */
#include "support/rope_rules.h"

#define SPEC(dim, ...)                                      \
  {                                                         \
    .struct_size = sizeof(pe_rope_spec), .head_dim = (dim), \
    .pairs = {.pairing = PE_HALF_SPLIT}, .freqs = {         \
        __VA_ARGS__                                         \
    }                                                       \
  }

static const double stretch[16] = {1,    1.03, 1.05, 1.23, 1.45, 1.65, 2.86, 5.42,
                                   9.09, 15.7, 22.0, 32.4, 35.6, 53.8, 61.2, 64.8};
static const double custom[8] = {1, 0.5, 0.3, 1e-2, 1e-3, 3e-5, 1e-9, 0};

static const rope_rule_case cases[] = {
    {"default 1e4", SPEC(128, .rope_theta = 1e4)},
    {"default 5e5", SPEC(64, .rope_theta = 5e5)},
    {"default 1e7", SPEC(256, .rope_theta = 1e7)},
    {"default 2.5", SPEC(10, .rope_theta = 2.5)},
    {"linear 8",
     SPEC(128, .rope_type = PE_ROPE_LINEAR, .rope_theta = 1e6, .factor = 8)},
    {"ntk 1000",
     SPEC(128, .rope_type = PE_ROPE_NTK, .rope_theta = 1e4, .factor = 1000)},
    {"dynamic 2 at 16384",
     SPEC(128, .rope_type = PE_ROPE_DYNAMIC, .rope_theta = 1e4, .factor = 2,
          .max_position_embeddings = 4096, .seq_len = 16384)},
    {"dynamic 2 as trained", SPEC(64, .rope_type = PE_ROPE_DYNAMIC, .rope_theta = 1e4,
                                  .factor = 2, .max_position_embeddings = 4096)},
    {"yarn 4", SPEC(128, .rope_type = PE_ROPE_YARN, .rope_theta = 1e6, .factor = 4,
                    .original_max_position_embeddings = 32768)},
    {"yarn 40 mscale", SPEC(64, .rope_type = PE_ROPE_YARN, .rope_theta = 1e4,
                            .factor = 40, .original_max_position_embeddings = 4096,
                            .mscale = 1, .mscale_all_dim = 0.707)},
    {"yarn 32 not truncated",
     SPEC(64, .rope_type = PE_ROPE_YARN, .rope_theta = 150000, .factor = 32,
          .original_max_position_embeddings = 4096, .no_truncate = 1)},
    {"yarn 32 beta 1 1",
     SPEC(64, .rope_type = PE_ROPE_YARN, .rope_theta = 5e4, .factor = 32,
          .original_max_position_embeddings = 4096, .beta_fast = 1, .beta_slow = 1)},
    {"yarn implied factor",
     SPEC(64, .rope_type = PE_ROPE_YARN, .rope_theta = 1e4,
          .original_max_position_embeddings = 3000, .max_position_embeddings = 10000)},
    {"longrope short",
     SPEC(32, .rope_type = PE_ROPE_LONGROPE, .rope_theta = 1e4,
          .max_position_embeddings = 131072, .original_max_position_embeddings = 4096,
          .short_factor = stretch, .long_factor = stretch)},
    {"longrope long, stated factor",
     SPEC(32, .rope_type = PE_ROPE_LONGROPE, .rope_theta = 1e4, .factor = 32,
          .original_max_position_embeddings = 4096, .seq_len = 4097,
          .short_factor = stretch, .long_factor = stretch, .attention_factor = 1.19)},
    {"llama3 8", SPEC(128, .rope_type = PE_ROPE_LLAMA3, .rope_theta = 5e5, .factor = 8,
                      .low_freq_factor = 1, .high_freq_factor = 4,
                      .original_max_position_embeddings = 8192)},
    {"llama3 low equals high",
     SPEC(128, .rope_type = PE_ROPE_LLAMA3, .rope_theta = 5e5, .factor = 16,
          .low_freq_factor = 1, .high_freq_factor = 1,
          .original_max_position_embeddings = 8192)},
    {"proportional 0.25", SPEC(512, .rope_type = PE_ROPE_PROPORTIONAL,
                               .rope_theta = 1e6, .partial_rotary_factor = 0.25)},
    {"custom", SPEC(16, .rope_type = PE_ROPE_CUSTOM, .inv_freq = custom)},
    {"custom, freq_factors", SPEC(16, .rope_type = PE_ROPE_CUSTOM, .inv_freq = custom,
                                  .freq_factors = stretch, .attention_factor = 0.7)},
};

const rope_rule_case *rope_rules(int *count)
{
    *count = (int)(sizeof cases / sizeof cases[0]);
    return cases;
}

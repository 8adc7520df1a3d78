/* SPDX-License-Identifier: MIT
 *
 * abi_tail.c - growable structs end in their last field
 *
 * A field appended later must make the struct larger on every target; in old padding,
 * whose bytes a caller need not zero, it could not be told from unset.  Compiled, never
 * run.
 */
#include "posenc/attention.h"
#include "posenc/env.h"
#include "posenc/model.h"
#include "posenc/posenc.h"
#include "posenc/positions.h"

#define TAIL(type, last)                                                           \
  _Static_assert(offsetof(type, last) + sizeof(((type *)0)->last) == sizeof(type), \
                 #type)

TAIL(pe_attention_args, scores_start);
TAIL(pe_attention_grads, dsinks);
TAIL(pe_attention_spec, bias);
TAIL(pe_bias_spec, max_distance);
TAIL(pe_env, executor);
TAIL(pe_freqs, reserved);
TAIL(pe_kv_spec, capacity);
TAIL(pe_learned_spec, embed_scale);
TAIL(pe_rope_spec, freqs);
TAIL(pe_sinusoidal_spec, table_len);

/* SPDX-License-Identifier: MIT
 *
 * build.h - a model under construction: what every dialect calls, and pe_model itself
 *
 * A dialect fills a spec and a draft of where each number came from, then commits both.
 * Running out of memory is remembered in the arena and reported once, by
 * pe_build_finish.
 */
#ifndef PE_BUILD_H
#define PE_BUILD_H

#include "model/arena.h"
#include "model/checkpoint.h"
#include "posenc/model.h"

struct pe_model {
    pe_env env; /* resolved */
    pe_arena arena;
    pe_model_info info;
    pe_checkpoint *preset; /* owned; NULL when the files are the caller's */
    pe_site *sites;
    pe_rope_spec *ropes;
    pe_bias_spec *biases;
    pe_field *fields;
    pe_note *notes;
    int64_t sites_capacity, ropes_capacity, biases_capacity, fields_capacity,
        notes_capacity;
    pe_sinusoidal_spec sinusoidal; /* struct_size 0: none */
    pe_learned_spec learned;
    pe_tensor learned_weight;
};

/* Where a number came from: pe_field without name and value. */
typedef struct pe_claim {
    const pe_setting *setting; /* NULL: none */
    const char *reason;        /* NULL: needs none */
    pe_source source;
} pe_claim;

/* The fields of one spec, named without the spec's prefix. */
typedef struct pe_draft {
    pe_model *model;
    pe_field fields[40];
    int32_t num_fields;
} pe_draft;

void pe_draft_text(pe_draft *draft, const char *name, const char *value,
                   const pe_claim *claim);
void pe_draft_number(pe_draft *draft, const char *name, double value,
                     const pe_claim *claim);
void pe_draft_integer(pe_draft *draft, const char *name, int64_t value,
                      const pe_claim *claim);

/* Index of an equal spec, or of a new one whose fields become "rope[index].name". */
int32_t pe_build_rope(pe_model *model, const pe_rope_spec *spec, const pe_draft *draft);
int32_t pe_build_bias(pe_model *model, const pe_bias_spec *spec, const pe_draft *draft);
void pe_build_site(pe_model *model, int32_t layer, pe_site_role role, int32_t rope,
                   int32_t bias);
/* Adds the draft's fields under prefix ("learned."; "" for those of the model). */
void pe_build_fields(pe_model *model, const char *prefix, const pe_draft *draft);
/* A note of the same text is added once. */
void pe_build_note(pe_model *model, pe_level level, const pe_setting *setting,
                   const char *format, ...) PE_PRINTF(4, 5);
/* "%.17g" with as few digits as read back the same; into a buffer of 32. */
const char *pe_number_text(double value, char *buffer);

/* The dialects.  Each fills a zeroed model, whose env and arena are set. */
pe_status pe_read_hf(pe_model *model, const pe_checkpoint *checkpoint, int64_t seq_len,
                     pe_error *error);
pe_status pe_read_gguf(pe_model *model, const pe_checkpoint *checkpoint,
                       int64_t seq_len, pe_error *error);
pe_status pe_read_preset(pe_model *model, const pe_checkpoint *checkpoint,
                         int64_t seq_len, pe_error *error);

#endif /* PE_BUILD_H */

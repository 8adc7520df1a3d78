/* SPDX-License-Identifier: MIT
 *
 * call.h - one call, checked: its documents, its tiles, and where its scratch lies
 *
 * A document is a row of the batch or a packed document; places count from its first
 * key.  A tile is a run of its queries with all q heads of one kv head, token by token:
 * row = token * group + head. */
#ifndef PE_ATTENTION_CALL_H
#define PE_ATTENTION_CALL_H

#include "attention/attention_plan.h"
#include "base/tensor.h"

typedef struct {
    int64_t b;
    int64_t q0, q_len; /* tokens of q */
    int64_t k0, k_len; /* tokens of k, those in use */
} pe_document;

typedef struct {
    const pe_attention *plan;
    pe_attention_args args; /* k_cu_seqlens resolved */
    int64_t batch, q_len, k_len;
    int64_t num_documents, num_tiles; /* tiles of one kv head */
    int variants;                     /* 1 + far rules */
    int backward;
    int streaming;       /* few rows: keys are read where they lie, not packed */
    int64_t tile_tokens; /* queries in a tile */
    int64_t tile_rows;   /* rows of a full tile, padded to PE_ROW_GROUP */
    int64_t num_parts, part_len; /* of keys, each with its own online softmax */
    int uses_extra;              /* scores get more than the fast bias */
    int makes_norms;
    int64_t num_slots; /* packed blocks that a worker keeps */
    int64_t num_workers;
    float *temperatures; /* [batch][q_len], or NULL */
    /* What different threads write begins a line of cache. */
    float *parts;                     /* [num_tiles][kv heads][num_parts][part_size] */
    double *bias_sums[2];             /* backward: [documents][kv heads][sums_size] */
    double *sink_sums;                /* backward: [documents][kv heads][sinks_size] */
    int64_t part_size;                /* [tile_rows][v_pad + 2], in whole lines */
    int64_t sums_size[2], sinks_size; /* of the group's heads, in whole lines */
    const float *k_norms; /* the caller's or own; NULL: no block is left out */
    float *own_norms;     /* [batch][kv heads][runs of keys], made by the call itself */
    int64_t *counts;      /* [num_workers][8]: blocks visited, left out */
    unsigned char *workers;
    size_t worker_size, size;
} pe_call;

/* Checks everything about a call but its workspace, and lays the workspace out from
 * offset 0.  backward: for gradients. */
pe_status pe_call_check(pe_call *call, const pe_attention *plan,
                        const pe_attention_args *args, int backward, pe_error *error);

/* Sets streaming, tiles, parts and slots from the shapes. */
void pe_call_choose_tiles(pe_call *call);

/* Lays all arrays out from base (NULL: only sizes), and sets size; SIZE_MAX: too much. */
void pe_call_lay_out(pe_call *call, unsigned char *base);

/* Sums of one head of a document, and the rows of one part: outputs, maxima, sums. */
double *pe_call_bias_sums(const pe_call *call, int bias, int64_t document,
                          int64_t head);
double *pe_call_sink_sum(const pe_call *call, int64_t document, int64_t head);
float *pe_call_part(const pe_call *call, int64_t item, int64_t part);

/* Puts the call's arrays into the workspace. */
pe_status pe_call_place(pe_call *call, void *workspace, size_t workspace_size,
                        pe_error *error);

/* Fills temperatures and own norms. */
pe_status pe_call_prepare(const pe_call *call, pe_error *error);

/* Runs of PE_KEY_BLOCK keys, each with a norm. */
int64_t pe_call_num_runs(const pe_call *call);

/* 1: norms are worth making, since ALiBi may put some blocks out of reach. */
int pe_call_may_skip(const pe_call *call);

/* own_norms = the longest key of each run, rounded up; NaN where a key or a value is not
 * finite, so that leaving blocks out shows in no result. */
void pe_call_make_norms(const pe_call *call);

pe_document pe_call_document(const pe_call *call, int64_t index);
int64_t pe_call_num_tiles(const pe_call *call, const pe_document *document);

/* Document and first token (within it) of a tile.  *cursor, at first {0, 0}, remembers
 * where the search ended: tiles asked for in order cost nothing. */
typedef struct {
    int64_t document, first_tile;
} pe_tile_cursor;
pe_document pe_call_tile(const pe_call *call, int64_t tile, pe_tile_cursor *cursor,
                         int64_t *token);

/* Scratch is handed out in order, each piece aligned to 64 bytes; base NULL only sums. */
typedef struct {
    unsigned char *base;
    size_t used;
} pe_scratch;
void *pe_scratch_take(pe_scratch *scratch, int64_t count, size_t size);

#endif /* PE_ATTENTION_CALL_H */

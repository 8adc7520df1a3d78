/* SPDX-License-Identifier: MIT
 *
 * tile.h - some queries against one block of keys after another
 *
 * A worker owns one tile.  Loading it fixes its rows; then each block of keys is scored
 * in turn.  Everything about positions and visibility is decided here. */
#ifndef PE_ATTENTION_TILE_H
#define PE_ATTENTION_TILE_H

#include "attention/call.h"

/* What a worker keeps of packed keys and values. */
typedef struct {
    int64_t b, head, key; /* first key of the block, in k; -1: nothing */
} pe_slot_tag;

/* A block's keys or values, where they lie or as floats. */
typedef struct {
    pe_rows rows;
    int type;      /* index of dots and sums */
    int64_t group; /* elements that share a scale; 0: no scales */
    float *scales; /* [groups][PE_KEY_BLOCK] */
} pe_stream;

typedef struct {
    const pe_call *call;
    pe_document doc;
    int64_t kv_head, token, num_tokens; /* token: first query, within the document */
    int64_t rows, padded_rows;

    /* Rows. */
    float *q[PE_MAX_VARIANTS]; /* [tile_rows][k_pad], turned and scaled */
    float *s, *s_far;          /* [tile_rows][PE_KEY_BLOCK] */
    float *extra;              /* the same, or NULL */
    float *out;                /* [tile_rows][v_pad] */
    float *max, *sum, *query_at, *slope, *first, *end, *sink; /* [tile_rows] */
    double *norm;                                             /* [tile_rows], of q */
    /* Tokens: places [low, high) and [0, sinks) are seen. */
    int64_t *low, *high, *sinks;
    int64_t *far_end; /* [variants - 1][tile_tokens]: keys before it follow the rule */
    double *position; /* [tile_tokens], for biases */
    double base;      /* position that query_at and key_at count from */
    int queries_count_up; /* by one */

    /* The block in hand. */
    int64_t key, num_keys;      /* within the document */
    int64_t row_begin, row_end; /* rows that see any of it; begin is a whole group */
    int masked;                 /* some of them not all of it */
    int values_finite;
    float *key_at;        /* [PE_KEY_BLOCK] */
    double *key_position; /* [PE_KEY_BLOCK] */
    int keys_count_up;    /* by one */
    float *distances;     /* [tile_tokens + PE_KEY_BLOCK], extra.c's */
    double *distance_at, *distance_bias;
    const float *value_panel; /* [PE_KEY_BLOCK][v_pad]; NULL when streaming */
    pe_stream keys, values;   /* streaming */
    const void **lists[4];    /* [PE_KEY_BLOCK]: of keys, values, those next, a group */
    pe_slot_tag next;         /* the block after it, when streaming */
    uint64_t absent;          /* keys that lie on absent pages */
    int extra_is_ready;
    float *raw_keys, *raw_values; /* [PE_KEY_BLOCK][k_pad], [v_pad] */
    float *group_s;               /* [tile_rows][PE_KEY_BLOCK]: of a group of int8 */
    float *turned;                /* [k_pad] */

    /* Gradients. */
    float *dout;                /* [tile_rows][v_pad] */
    float *dq[PE_MAX_VARIANTS]; /* [tile_rows][k_pad] */
    float *ds, *cap_slopes;     /* [tile_rows][PE_KEY_BLOCK] */
    float *delta;               /* [tile_rows]: dout . out */
    int rows_finite;            /* q and dout are */
    float *dk[PE_MAX_VARIANTS]; /* [keys of a document, whole blocks][k_pad] */
    float *dv;                  /* the same, [v_pad] */
    const float *value_columns; /* of the block: [v_pad][PE_KEY_BLOCK] */

    /* Packed blocks, by first key modulo num_slots. */
    pe_slot_tag *key_tags, *value_tags;
    uint64_t *slot_absent, *slot_value_absent;
    unsigned char *slot_finite, *slot_keys_finite; /* the latter for gradients */
    float *slot_key_rows;      /* gradients: [slots][variants][PE_KEY_BLOCK][k_pad] */
    float *slot_value_columns; /* gradients */
    float *key_panels,
        *value_panels; /* [slots][variants][k_pad][64], [slots][64][v_pad] */
    int64_t visited, skipped;
} pe_tile;

static inline int64_t pe_clamp(int64_t x, int64_t low, int64_t high)
{
    return x < low ? low : x > high ? high : x;
}

/* Lays a tile's arrays out. */
void pe_tile_place(pe_tile *tile, const pe_call *call, pe_scratch *scratch);

/* Key-only biases are computed relative to the query, where floats are finest; this is
 * what row r's scores lack, in natural units. */
double pe_tile_bias_of_query(const pe_tile *tile, int64_t r);

/* Empties the scratch of every worker, once a call. */
void pe_tile_clear(const pe_call *call);

/* The tile of a worker.  What is packed stays from one piece of work to the next. */
void pe_tile_start(pe_tile *tile, const pe_call *call, int32_t worker);

/* Queries [token, ...) of a document with the heads of kv_head: q turned and scaled,
 * max -inf, sum and out 0. */
void pe_tile_load(pe_tile *tile, const pe_document *doc, int64_t kv_head,
                  int64_t token);

/* Where the block in hand begins. */
pe_slot_tag pe_tile_tag(const pe_tile *tile);

/* out = the block's keys, turned as variant says, or its values: [PE_KEY_BLOCK] rows.
 * Returns bits of those that are absent, which are 0. */
uint64_t pe_tile_load_keys(pe_tile *tile, int variant, float *out);
uint64_t pe_tile_load_values(pe_tile *tile, float *out);

/* Scales of a vector that is streamed as int8; 0: it is not. */
int64_t pe_stream_groups(const pe_tensor *x);

/* Streaming: s = q times the block's keys; later out += weights times its values. */
void pe_tile_stream_keys(pe_tile *tile);
void pe_tile_stream_values(pe_tile *tile);

/* Asks for a byte of every page of memory that keys [begin, end) and their values lie
 * on, since where a page lies takes longer to find out than what is on it to read. */
void pe_tile_touch(pe_tile *tile, int64_t begin, int64_t end);

/* Makes keys [key, key + num_keys) of the document the block in hand: which rows see it.
 * Returns 0 when none does. */
int pe_tile_block(pe_tile *tile, int64_t key, int64_t num_keys);

/* The same without positions and rows: whether any query sees the keys. */
int pe_tile_reaches(const pe_tile *tile, int64_t key, int64_t num_keys);

/* Positions of the block in hand, for biases. */
void pe_tile_positions(pe_tile *tile);

/* Keys of the document in the block that begins with key. */
int64_t pe_tile_keys_in(const pe_tile *tile, int64_t key);

/* Token of k that key j of the block in hand is. */
int64_t pe_tile_key_token(const pe_tile *tile, int64_t j);

/* Keys [*begin, *end) of the block in hand stand where variant says for token i: the
 * last rule that applies wins. */
void pe_tile_own(const pe_tile *tile, int variant, int64_t i, int64_t *begin,
                 int64_t *end);

/* How much of the block follows a variant, over the rows that see the block. */
typedef enum { PE_SHARE_NONE, PE_SHARE_SOME, PE_SHARE_ALL } pe_share;
pe_share pe_tile_share(const pe_tile *tile, int variant);

/* Gradients: the block's keys as a variant turns them, [PE_KEY_BLOCK][k_pad], once it
 * has been scored; finite: all of them are. */
const float *pe_tile_key_rows(const pe_tile *tile, int variant, int *finite);

/* extra = what the softmax loop does not compute itself, in log2 units. */
void pe_tile_fill_extra(pe_tile *tile);

/* s = dot products of the rows that see the block; fills *softmax for the kernels. */
void pe_tile_score(pe_tile *tile, pe_softmax_block *softmax);

/* 1: row r of the tile sees key j of the block in hand. */
int pe_tile_sees(const pe_tile *tile, int64_t r, int64_t j);

/* out += weights in s times the block's values. */
void pe_tile_add_values(pe_tile *tile);

/* Divides rows by their sums, and stores outputs, log-sum-exps and, where they are asked
 * for, probabilities. */
void pe_tile_store(pe_tile *tile);

/* 1: no row that sees the block could get a weight other than +0 from it, whatever its
 * keys are, given that none is longer than k_norms says and that maximum is a lower bound
 * of each row's (the tile's own max, or another's). */
int pe_tile_is_nothing(pe_tile *tile, const float *maximum);

/* 1: the same of every block within keys [begin, end), at the cost of one; 0: unknown. */
int pe_tile_is_far(const pe_tile *tile, int64_t begin, int64_t end,
                   const float *maximum);

/* Blocks that a tile sees within keys [begin, end) of the document, nearest first.
 * Returns the first key of the next one, or -1. */
typedef struct {
    int64_t first, last, centre, down, up; /* blocks */
    int64_t sink_down, sink_first;
} pe_walk;
void pe_walk_start(pe_walk *walk, const pe_tile *tile, int64_t begin, int64_t end);
int64_t pe_walk_next(pe_walk *walk);

/* Place of a query of the document among its keys. */
int64_t pe_tile_place_of(const pe_tile *tile, int64_t token);

#endif /* PE_ATTENTION_TILE_H */

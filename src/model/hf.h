/* SPDX-License-Identifier: MIT
 *
 * hf.h - the Hugging Face dialect: shared by the files hf_*.c
 *
 * A config.json has no one place for anything.  Every number is picked from an ordered
 * list of places; the first wins, and one that says otherwise makes the field
 * conflicting and leaves a warning.
 */
#ifndef PE_HF_H
#define PE_HF_H

#include "model/build.h"

typedef enum pe_hf_method {
    PE_HF_ROPE,
    PE_HF_LEARNED,
    PE_HF_SINUSOIDAL,
    PE_HF_ALIBI,
    PE_HF_T5,
    PE_HF_RELATIVE,
    PE_HF_NONE,
    PE_HF_REFUSED /* known to need what is not read */
} pe_hf_method;

enum {
    PE_HF_MLA = 1,               /* q is [nope | rope] */
    PE_HF_DEEPSEEK_MSCALE = 2,   /* mscale_all_dim goes to the softmax scale */
    PE_HF_MROPE = 4,             /* reads mrope_section, in runs */
    PE_HF_MROPE_INTERLEAVED = 8, /* reads mrope_section, in turns */
    PE_HF_NOPE_EVERY_4 = 16,     /* no_rope_layer_interval is 4 unless stated */
    PE_HF_ROPE_ON_SLIDING = 32,  /* full-attention layers do not rotate */
    PE_HF_LOCAL_BASE = 64,       /* sliding layers have their own theta, no scaling */
    PE_HF_SCALED_ON_FULL = 128,  /* a flat rope_scaling is for full layers only */
    PE_HF_THETA_IN_CODE = 256,   /* published files never state theta */
    PE_HF_ENCODER = 512,         /* not causal */
    PE_HF_REVERSED = 1024,       /* turns by minus the angle */
    PE_HF_FULL_FIRST = 2048,     /* layer l is full when l % sliding_period is 0 */
    PE_HF_LINEAR_BETWEEN = 4096, /* full_attention_interval is 4 unless stated */
    PE_HF_COMPRESS = 8192,       /* layers that compress keys have their own rope */
    PE_HF_LAYER_LISTS = 16384,   /* theta and width may be lists, one for each layer */
    PE_HF_MROPE_ERNIE = 32768,   /* reads mrope_section as H, W, T */
    PE_HF_VISION = 65536,        /* two axes over patches, no context */
    PE_HF_THETA_RATIO = 131072   /* rope_ratio multiplies theta */
};

typedef struct pe_hf_arch {
    const char *model_type; /* "" for unknown ones */
    pe_hf_method method;
    pe_pairing pairing, out_pairing; /* 0: not known; as pairing */
    int32_t flags;
    int32_t head_dim;       /* class default, 0: hidden_size / heads */
    int32_t offset;         /* learned: row of position 0 */
    int32_t sliding_period; /* layer l is full when (l + 1) % this is 0; 0: none */
    int64_t context;        /* class default, 0: none */
    double theta;           /* class default, 0: 10000 */
    double partial;         /* class default of partial_rotary_factor, 0: 1 */
} pe_hf_arch;

/* Never NULL: unknown names get one with an empty model_type. */
const pe_hf_arch *pe_hf_find_arch(const char *model_type);

typedef struct pe_hf {
    pe_model *model;
    const pe_checkpoint *checkpoint;
    const pe_settings *settings;
    pe_error *error;
    const char *prefix; /* "", "text_config." */
    const char *model_type;
    const pe_hf_arch *arch;
    int64_t seq_len;
    const char *dicts[2]; /* what '*' in a name stands for; NULL: not there */
    int32_t is_nested;    /* rope_parameters has one dict for each layer type */
    int32_t reserved;
    int64_t hidden_size, num_heads, num_kv_heads, num_layers, max_positions;
} pe_hf;

/* A number found: claim.setting is NULL if nobody states it. */
typedef struct pe_pick {
    double number;
    pe_claim claim;
} pe_pick;

/* The layers that share one rope. */
typedef struct pe_hf_group {
    const char *layer_type; /* "sliding_attention"; NULL: the model has one kind */
    int32_t is_sliding;
    int32_t layer;         /* of the first */
    double theta, partial; /* of a list with one for each layer; 0: no list */
} pe_hf_group;

/* hf_lookup.c.  NULL for absent and for null. */
const pe_setting *pe_hf_get(const pe_hf *hf, const char *name);
const pe_entry *pe_hf_entry(const pe_hf *hf, const char *name);
/* names ends with NULL; '*' at the front of one stands for each of hf->dicts. */
pe_status pe_hf_number(pe_hf *hf, const char *const *names, pe_pick *pick);
pe_status pe_hf_integer(pe_hf *hf, const char *const *names, int64_t min, int64_t max,
                        int64_t *out, pe_pick *pick);
pe_status pe_hf_string(pe_hf *hf, const char *const *names, pe_pick *pick);
/* 1 true, 0 false, otherwise if absent. */
pe_status pe_hf_bool(pe_hf *hf, const char *const *names, int32_t otherwise,
                     int32_t *out, pe_pick *pick);

/* hf_shape.c */
pe_status pe_hf_read_shape(pe_hf *hf);
/* *head_dim is 0 when it cannot be told. */
pe_status pe_hf_head_dim(pe_hf *hf, const pe_hf_group *group, int32_t *head_dim,
                         pe_claim *claim);

/* hf_unread.c: keys beside the blocks that look like rope and are nobody's. */
void pe_hf_note_unread(pe_hf *hf);

/* hf_axes.c: which axis each pair follows. */
pe_status pe_hf_axes(pe_hf *hf, pe_rope_spec *spec, pe_draft *draft);
/* hf_theta.c */
pe_status pe_hf_theta(pe_hf *hf, const pe_hf_group *group, pe_rope_spec *spec,
                      pe_draft *draft);

/* hf_rope.c, hf_rope_type.c, hf_scaling.c */
pe_status pe_hf_rope(pe_hf *hf, const pe_hf_group *group, int32_t *rope);
pe_status pe_hf_rope_type(pe_hf *hf, const pe_hf_group *group, pe_rope_spec *spec,
                          pe_draft *draft);
const char *pe_hf_type_name(pe_rope_type type);
/* 1: the flat scaling block is not for these layers. */
int pe_hf_is_unscaled(const pe_hf *hf, const pe_hf_group *group);
pe_status pe_hf_scaling(pe_hf *hf, const pe_hf_group *group, pe_rope_spec *spec,
                        pe_draft *draft);

/* hf_lint.c */
void pe_hf_lint(pe_hf *hf, const pe_hf_group *group, const pe_rope_spec *spec);
void pe_hf_note_ignored(pe_hf *hf);
void pe_hf_resolve_lengths(pe_hf *hf, const pe_freqs *freqs);

/* hf_table.c.  1: the weights hold the table, now in model->learned_weight. */
int32_t pe_hf_learned_table(pe_hf *hf, int64_t *rows, int64_t *model_dim,
                            const char **name);

/* hf_sites.c */
pe_status pe_hf_encoder_layers(pe_hf *hf, int32_t rope);
/* *indexer is -1 when there is none. */
pe_status pe_hf_indexer(pe_hf *hf, int32_t rope, int32_t *indexer);
void pe_hf_note_sites(const pe_hf *hf);
pe_status pe_hf_plain_layers(pe_hf *hf, pe_site_role role, int32_t bias);

/* hf_layers.c, hf_absolute.c, hf_bias.c */
pe_status pe_hf_rope_layers(pe_hf *hf);
pe_status pe_hf_learned(pe_hf *hf);
pe_status pe_hf_sinusoidal(pe_hf *hf);
pe_status pe_hf_alibi(pe_hf *hf);
pe_status pe_hf_t5(pe_hf *hf);

#endif /* PE_HF_H */

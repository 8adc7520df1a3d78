/* SPDX-License-Identifier: MIT
 *
 * gguf_dialect.h - the GGUF dialect: shared by the files gguf_*.c that know positions
 *
 * Every key is general.* or {architecture}.*; what a file leaves out, the code of
 * llama.cpp decides by the architecture's name.  That code is the source of every
 * default here. */
#ifndef PE_GGUF_DIALECT_H
#define PE_GGUF_DIALECT_H

#include "model/build.h"

typedef enum pe_gguf_kind {
    PE_GGUF_UNKNOWN,    /* no such architecture */
    PE_GGUF_NORM,       /* neighbours are a pair */
    PE_GGUF_NEOX,       /* halves are */
    PE_GGUF_MROPE,      /* halves, sections in runs */
    PE_GGUF_IMROPE,     /* halves, sections in turns */
    PE_GGUF_NORM_MROPE, /* MROPE if the file has sections, else NORM */
    PE_GGUF_NEOX_MROPE,
    PE_GGUF_LEARNED, /* position_embd */
    PE_GGUF_ALIBI,
    PE_GGUF_T5,
    PE_GGUF_NONE,
    PE_GGUF_REFUSED /* known to need what is not read */
} pe_gguf_kind;

enum {
    PE_GGUF_TAIL = 1,         /* q is [nope | rope] */
    PE_GGUF_LOG_TENTH = 2,    /* yarn_log_multiplier is 0.1 mscale_all_dim */
    PE_GGUF_FULL_FIRST = 4,   /* layer l is full when l % period is 0 */
    PE_GGUF_NEEDS_WINDOW = 8, /* all layers are full unless sliding_window says so */
    PE_GGUF_OWN_BASE = 16,    /* sliding layers: base 10000 unless stated, no scaling */
    PE_GGUF_UNSCALED = 32,    /* sliding layers: the same base, no scaling */
    PE_GGUF_SLIDING_ROPE = 64, /* full layers do not rotate */
    PE_GGUF_NOPE_EVERY_4 = 128,
    PE_GGUF_FACTORS_FULL = 256, /* rope_freqs is for full layers */
    PE_GGUF_BIDIRECTIONAL = 512,
    PE_GGUF_FINETUNED = 1024,  /* rope.scaling.finetuned false: no rotation at all */
    PE_GGUF_EVERY_4TH = 2048,  /* the other layers are recurrent */
    PE_GGUF_TEMPERATURE = 4096 /* of Llama 4, in code */
};

typedef struct pe_gguf_arch {
    const char *name; /* "" for unknown ones */
    pe_gguf_kind kind;
    int32_t period; /* of sliding_window_pattern unless stated; 0: all layers alike */
    int32_t flags;
    int32_t reserved;
} pe_gguf_arch;

/* Never NULL. */
const pe_gguf_arch *pe_gguf_find_arch(const char *name);

typedef struct pe_gguf {
    pe_model *model;
    const pe_checkpoint *checkpoint;
    pe_error *error;
    const char *name; /* general.architecture */
    const pe_gguf_arch *arch;
    int64_t seq_len;
    int64_t num_layers, num_heads, num_kv_heads, width, context;
    int32_t has_sliding; /* some layers are full and some are sliding */
    int32_t reserved;
} pe_gguf;

/* gguf_lookup.c.  name is without the architecture; NULL: not there.  A number is
 * finite; absent ones leave *out alone and *setting NULL. */
const pe_setting *pe_gguf_get(const pe_gguf *g, const char *name);
pe_status pe_gguf_number(const pe_gguf *g, const char *name, double *out,
                         const pe_setting **setting);
pe_status pe_gguf_integer(const pe_gguf *g, const char *name, int64_t min, int64_t max,
                          int64_t *out, const pe_setting **setting);
/* The elements of an F32 weight of count elements, finite and above 0; *out stays NULL
 * if there is no such weight. */
pe_status pe_gguf_factors(const pe_gguf *g, const char *name, int64_t count,
                          const double **out);
pe_claim pe_gguf_stated(const pe_setting *setting);
pe_claim pe_gguf_claim(const pe_gguf *g, pe_source source, const char *reason);

/* gguf_rope.c, gguf_scaling.c: the rope of full or of sliding layers. */
pe_status pe_gguf_rope(pe_gguf *g, int32_t is_sliding, int32_t *rope);
pe_status pe_gguf_scaling(pe_gguf *g, int32_t is_sliding, pe_rope_spec *spec,
                          pe_draft *draft);
/* gguf_layers.c */
pe_status pe_gguf_rope_layers(pe_gguf *g);
pe_status pe_gguf_plain_layers(pe_gguf *g, int32_t bias);
/* gguf_other.c */
pe_status pe_gguf_learned(pe_gguf *g);
pe_status pe_gguf_alibi(pe_gguf *g, double max_bias, const pe_claim *claim);
pe_status pe_gguf_t5(pe_gguf *g);
pe_status pe_gguf_temperature(pe_gguf *g);

#endif /* PE_GGUF_DIALECT_H */

/* SPDX-License-Identifier: MIT
 *
 * model.h - what a checkpoint says about its positions, and how we know
 *
 * Two steps.  A checkpoint is what the files say: settings by path, weights by name.  A
 * model is what that means: one spec for each attention site, every field tagged with
 * its source.  Files are hostile until read: every size is checked before use.  In the
 * library posenc-model, which needs json-c.  All objects are const after creation.
 */
#ifndef POSENC_MODEL_H
#define POSENC_MODEL_H

#include "posenc.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --------------------------------------------------- checkpoint: the files --- */

typedef int32_t pe_format;
enum {
    PE_FORMAT_AUTO = 0, /* by content, not by name */
    PE_FORMAT_JSON = 1, /* config.json */
    PE_FORMAT_GGUF = 2, /* v2, v3, either endianness */
    PE_FORMAT_SAFETENSORS = 3,
    PE_FORMAT_NPY = 4 /* one weight, named "" */
};

typedef struct pe_checkpoint pe_checkpoint;
/* A file, or a folder with config.json and, if there, safetensors (also sharded).  They
 * are mapped: weights cost nothing until touched. */
PE_API pe_status pe_checkpoint_load(pe_checkpoint **out, const char *path,
                                    const pe_env *env, pe_error *error);
/* Bytes in memory, borrowed.  error->offset says where they went wrong. */
PE_API pe_status pe_checkpoint_parse(pe_checkpoint **out, pe_format format,
                                     const void *data, size_t size, const pe_env *env,
                                     pe_error *error);
PE_API void pe_checkpoint_destroy(pe_checkpoint *checkpoint);

typedef int32_t pe_setting_type;
enum {
    PE_SETTING_NULL = 0,
    PE_SETTING_BOOL = 1, /* integer */
    PE_SETTING_INTEGER = 2,
    PE_SETTING_NUMBER = 3,
    PE_SETTING_STRING = 4, /* text, unquoted */
    PE_SETTING_ARRAY = 5   /* numbers, if all elements are; text has the source */
};

typedef struct pe_setting {
    const char
        *path; /* "text_config.rope_parameters.rope_theta", "llama.rope.freq_base" */
    const char *text; /* as the file spells it, UTF-8, cut at 240 bytes */
    pe_setting_type type;
    int32_t reserved;
    int64_t integer;
    double number; /* of integers, too */
    const double *numbers;
    int64_t num_numbers;
} pe_setting;

typedef struct pe_weight {
    const char *name;
    const char *dtype_name; /* as the file spells it: "BF16", "Q4_K" */
    pe_dtype dtype;         /* 0: not one of ours */
    int32_t rank;
    int64_t shape[8];
    const void *data;
    uint64_t size; /* bytes */
} pe_weight;

PE_API int64_t pe_checkpoint_num_settings(const pe_checkpoint *checkpoint);
PE_API int64_t pe_checkpoint_num_weights(const pe_checkpoint *checkpoint);
/* In file order; NULL outside [0, num). */
PE_API const pe_setting *pe_checkpoint_setting(const pe_checkpoint *checkpoint,
                                               int64_t index);
PE_API const pe_weight *pe_checkpoint_weight(const pe_checkpoint *checkpoint,
                                             int64_t index);
/* NULL: no such path or name. */
PE_API const pe_setting *pe_checkpoint_find_setting(const pe_checkpoint *checkpoint,
                                                    const char *path);
PE_API const pe_weight *pe_checkpoint_find_weight(const pe_checkpoint *checkpoint,
                                                  const char *name);

/* ------------------------------------------------- G  model: what they mean --- */

typedef int32_t pe_site_role;
enum {
    PE_SITE_SELF = 0,
    PE_SITE_CROSS = 1,
    PE_SITE_INDEXER = 2,  /* DeepSeek sparse attention: its pairing may differ */
    PE_SITE_COMPRESS = 3, /* DeepSeek-V4 compressed keys */
    PE_SITE_ENCODER = 4,
    PE_SITE_VISION = 5
};

/* One attention of one layer.  Equal specs share one index, so a caller makes num_ropes
 * plans, however many layers there are. */
typedef struct pe_site {
    int32_t index; /* for pe_model_site */
    int32_t layer;
    pe_site_role role;
    int32_t rope; /* for pe_model_rope_spec; -1: no rotation (NoPE) */
    int32_t bias; /* for pe_model_bias_spec; -1: none */
    int32_t reserved;
} pe_site;

typedef struct pe_model_info {
    const char *model_type; /* "gemma3_text" */
    const char *method;     /* none sinusoidal learned rope alibi t5 relative */
    int32_t num_layers, num_sites, num_ropes, num_biases, num_fields, num_notes;
    int64_t trained_len;  /* longest sequence seen in training; 0: not stated */
    int64_t extended_len; /* with the scaling configured */
    int32_t num_heads, num_kv_heads; /* of layer 0; 0: not stated */
} pe_model_info;

typedef struct pe_model pe_model;
/* seq_len: longest total length that will be served; decides length-dependent specs
 * (LongRoPE, dynamic); 0: the trained length.  The checkpoint is borrowed. */
PE_API pe_status pe_model_create(pe_model **out, const pe_checkpoint *checkpoint,
                                 int64_t seq_len, const pe_env *env, pe_error *error);

/* The settings of well-known models, compiled in; name as in "llama-3.1-8b". */
typedef struct pe_preset {
    const char *name;   /* lower case, unique */
    const char *title;  /* "Llama 3.1 8B" */
    const char *source; /* where its numbers come from */
    int32_t remembered; /* 1: some number was remembered, not read; source says which */
    int32_t reserved;
} pe_preset;

PE_API int32_t pe_model_num_presets(void);
/* NULL outside [0, num).  Sorted by name. */
PE_API const pe_preset *pe_model_preset(int32_t index);
/* As pe_model_create, from a preset instead of files.  PE_E_NOT_FOUND: no such name. */
PE_API pe_status pe_model_create_preset(pe_model **out, const char *name,
                                        int64_t seq_len, const pe_env *env,
                                        pe_error *error);
PE_API void pe_model_destroy(pe_model *model);
PE_API const pe_model_info *pe_model_get_info(const pe_model *model);
PE_API const pe_site *pe_model_site(const pe_model *model, int32_t index);
/* NULL: the layer has no such site. */
PE_API const pe_site *pe_model_find_site(const pe_model *model, int32_t layer,
                                         pe_site_role role);

/* Fill the caller's spec, whose struct_size is set.  Arrays in it belong to the model.
 * PE_E_NOT_FOUND: the model has none; PE_E_UNSUPPORTED: it needs a field that the
 * caller's struct is too old to have. */
PE_API pe_status pe_model_rope_spec(const pe_model *model, int32_t index,
                                    pe_rope_spec *spec, pe_error *error);
PE_API pe_status pe_model_bias_spec(const pe_model *model, int32_t index,
                                    pe_bias_spec *spec, pe_error *error);
PE_API pe_status pe_model_sinusoidal_spec(const pe_model *model,
                                          pe_sinusoidal_spec *spec, pe_error *error);
/* weight is NULL when the files hold only the settings; the fields "learned.rows" and
 * "learned.model_dim" then say how large it is. */
PE_API pe_status pe_model_learned_spec(const pe_model *model, pe_learned_spec *spec,
                                       pe_error *error);

/* ----------------------------------------------------------- provenance --- */

typedef int32_t pe_source;
enum {
    PE_STATED = 1,     /* the file says so */
    PE_DERIVED = 2,    /* computed from what it says */
    PE_DEFAULTED = 3,  /* the published default of this model_type */
    PE_CONFLICTING = 4 /* it says several things; reason: which won, and why */
};

typedef struct pe_field {
    const char *name;   /* "rope[1].factor", "num_kv_heads" */
    const char *value;  /* resolved, as text */
    const char *path;   /* setting it came from; NULL: none */
    const char *text;   /* that setting as the file spells it */
    const char *reason; /* rule applied, with its source; the losers of a conflict */
    pe_source source;
    int32_t reserved;
} pe_field;

/* Every field of every spec above, in the order of the specs. */
PE_API const pe_field *pe_model_field(const pe_model *model, int32_t index);
PE_API const pe_field *pe_model_find_field(const pe_model *model, const char *name);

typedef int32_t pe_level;
enum { PE_INFO = 1, PE_WARNING = 2 };

typedef struct pe_note {
    const char *path; /* setting it is about, or NULL */
    const char *text; /* "rope_scaling is null, but 131072 > 8192 trained" */
    pe_level level;
    int32_t reserved;
} pe_note;

PE_API const pe_note *pe_model_note(const pe_model *model, int32_t index);

#ifdef __cplusplus
}
#endif

#endif /* POSENC_MODEL_H */

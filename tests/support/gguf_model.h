/* SPDX-License-Identifier: MIT
 *
 * gguf_model.h - a GGUF file made in a test, read, and asked about its model
 */
#ifndef TEST_GGUF_MODEL_H
#define TEST_GGUF_MODEL_H

#include "posenc/model.h"
#include "support/model_files.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

typedef struct loaded {
    test_file file;
    pe_checkpoint *checkpoint;
    pe_model *model;
    pe_error error;
} loaded;

static inline void begin(loaded *l, const char *architecture)
{
    *l = (loaded){.model = NULL};
    test_gguf_begin(&l->file, 3);
    test_gguf_string(&l->file, "general.architecture", architecture);
}

/* A key below the architecture. */
static inline const char *key(const char *architecture, const char *name)
{
    static char path[120];
    (void)snprintf(path, sizeof path, "%s.%s", architecture, name);
    return path;
}

static inline void shape(loaded *l, const char *architecture, uint32_t layers,
                         uint32_t heads, uint32_t width, uint32_t context)
{
    begin(l, architecture);
    test_gguf_u32(&l->file, key(architecture, "block_count"), layers);
    test_gguf_u32(&l->file, key(architecture, "attention.head_count"), heads);
    test_gguf_u32(&l->file, key(architecture, "embedding_length"), width);
    test_gguf_u32(&l->file, key(architecture, "context_length"), context);
}

static inline pe_status create(loaded *l, int64_t seq_len)
{
    if (l->file.num_weights == 0)
        test_gguf_end(&l->file, 32);
    if (pe_checkpoint_parse(&l->checkpoint, PE_FORMAT_GGUF, l->file.data, l->file.size,
                            NULL, &l->error) != PE_OK)
        fail_msg("%s", l->error.message);
    return pe_model_create(&l->model, l->checkpoint, seq_len, NULL, &l->error);
}

/* A model that was read makes plans. */
static inline void load(loaded *l)
{
    if (create(l, 0) != PE_OK)
        fail_msg("%s", l->error.message);
    for (int32_t i = 0; i < pe_model_get_info(l->model)->num_ropes; i++) {
        pe_rope_spec spec = {.struct_size = sizeof spec};
        pe_rope *rope = NULL;
        assert_int_equal(pe_model_rope_spec(l->model, i, &spec, NULL), PE_OK);
        if (pe_rope_create(&rope, &spec, NULL, &l->error) != PE_OK)
            fail_msg("%s", l->error.message);
        pe_rope_destroy(rope);
    }
}

static inline void done(loaded *l)
{
    pe_model_destroy(l->model);
    pe_checkpoint_destroy(l->checkpoint);
    test_file_free(&l->file);
}

static inline void expect_refusal(loaded *l, pe_status status, const char *message)
{
    assert_int_equal(create(l, 0), status);
    assert_null(l->model);
    assert_string_equal(l->error.message, message);
    done(l);
}

static inline void expect_field(const loaded *l, const char *name, const char *value,
                                pe_source source)
{
    const pe_field *field = pe_model_find_field(l->model, name);
    if (field == NULL)
        fail_msg("no field %s", name);
    assert_string_equal(field->value, value);
    assert_int_equal(field->source, source);
}

static inline void expect_note(const loaded *l, pe_level level, const char *text)
{
    const pe_note *note = NULL;
    for (int32_t i = 0; (note = pe_model_note(l->model, i)) != NULL; i++) {
        if (note->level == level && strstr(note->text, text) != NULL)
            return;
    }
    fail_msg("no note with: %s", text);
}

static inline pe_rope_spec spec_of(const loaded *l, int32_t index)
{
    pe_rope_spec spec = {.struct_size = sizeof spec};
    assert_int_equal(pe_model_rope_spec(l->model, index, &spec, NULL), PE_OK);
    return spec;
}

static inline void expect_plan(const loaded *l, int32_t index, double attention_factor,
                               double softmax_factor, int32_t pair, double inv_freq,
                               double last)
{
    const pe_rope_spec spec = spec_of(l, index);
    pe_rope *rope = NULL;
    pe_error error = {0};
    if (pe_rope_create(&rope, &spec, NULL, &error) != PE_OK)
        fail_msg("%s", error.message);
    const pe_rope_info *info = pe_rope_get_info(rope);
    assert_true(fabs(info->attention_factor / attention_factor - 1) < 1e-12);
    assert_true(fabs(info->softmax_factor / softmax_factor - 1) < 1e-12);
    assert_true(fabs(info->inv_freq[0] - 1) < 1e-15);
    assert_true(fabs(info->inv_freq[pair] / inv_freq - 1) < 1e-12);
    assert_true(fabs(info->inv_freq[info->num_pairs - 1] / last - 1) < 1e-12);
    pe_rope_destroy(rope);
}

static inline int32_t rope_of(const loaded *l, int32_t layer)
{
    const pe_site *site = pe_model_find_site(l->model, layer, PE_SITE_SELF);
    return site == NULL ? -2 : site->rope;
}

#endif /* TEST_GGUF_MODEL_H */

/* SPDX-License-Identifier: MIT
 *
 * test_model_load.c - files, folders and pipes; memory that runs out at every call
 */
#define _POSIX_C_SOURCE 200809L

#include "posenc/env.h"
#include "posenc/model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static const char config[] =
    "{\"model_type\": \"qwen2_vl\", \"num_hidden_layers\": 3, \"hidden_size\": 512,"
    " \"num_attention_heads\": 4, \"max_position_embeddings\": 8192,"
    " \"rope_theta\": 1e6, \"layer_types\": [\"full_attention\", \"x\", \"y\"],"
    " \"rope_scaling\": {\"type\": \"yarn\", \"factor\": 4.0, \"stray\": [1, 2, 3],"
    " \"original_max_position_embeddings\": 2048, \"mrope_section\": [16, 24, 24]}}";

static char folder[] = "/tmp/posenc-test-XXXXXX";
static char path[128];

static void write_file(const char *name, const void *data, size_t size)
{
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) == NULL;
}

static int remove_folder(void **state)
{
    (void)state;
    static const char *const names[] = {"config.json", "model.bin", "empty", "q.npy",
                                        "model.safetensors"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        remove(path);
    }
    return rmdir(folder);
}

static void a_file_and_its_folder_are_the_same(void **state)
{
    pe_checkpoint *file = NULL, *parent = NULL;
    (void)state;
    write_file("config.json", config, strlen(config));
    assert_int_equal(pe_checkpoint_load(&file, path, NULL, NULL), PE_OK);
    assert_int_equal(pe_checkpoint_load(&parent, folder, NULL, NULL), PE_OK);
    assert_int_equal(pe_checkpoint_num_settings(file),
                     pe_checkpoint_num_settings(parent));
    assert_non_null(pe_checkpoint_find_setting(parent, "rope_scaling.factor"));
    pe_checkpoint_destroy(file);
    pe_checkpoint_destroy(parent);
    remove(path);
    pe_error error;
    char message[240];
    assert_int_equal(pe_checkpoint_load(&file, folder, NULL, &error), PE_E_IO);
    snprintf(message, sizeof message,
             "cannot open config.json in the folder %s: No such file or directory",
             folder);
    assert_string_equal(error.message, message);
    assert_int_equal(pe_checkpoint_load(&file, "/nonexistent/x", NULL, &error),
                     PE_E_IO);
    assert_string_equal(error.message,
                        "cannot open /nonexistent/x: No such file or directory");
}

static void content_decides_not_the_name(void **state)
{
    pe_checkpoint *checkpoint = NULL;
    pe_error error;
    (void)state;
    write_file("model.bin", config, strlen(config));
    assert_int_equal(pe_checkpoint_load(&checkpoint, path, NULL, NULL), PE_OK);
    pe_checkpoint_destroy(checkpoint);
    write_file("model.bin", "GGUF\3\0\0\0", 8);
    assert_int_equal(pe_checkpoint_load(&checkpoint, path, NULL, &error), PE_E_FORMAT);
    assert_string_equal(error.message, "GGUF ends inside its counts: 8 bytes wanted at "
                                       "byte 8, 0 are left");
    write_file("model.bin", "\2\0\0\0\0\0\0\0{}", 10);
    assert_int_equal(pe_checkpoint_load(&checkpoint, path, NULL, &error), PE_OK);
    assert_int_equal(pe_checkpoint_num_weights(checkpoint), 0);
    pe_checkpoint_destroy(checkpoint);
    write_file("empty", "", 0);
    assert_int_equal(pe_checkpoint_load(&checkpoint, path, NULL, &error), PE_E_FORMAT);
    assert_string_equal(error.message, "JSON is empty, must be an object");
}

/* Larger than what is read into memory: this one is mapped, and mostly a hole. */
static void large_arrays_are_mapped(void **state)
{
    enum { COUNT = 3 << 20 };
    static const char header[] =
        "\x93NUMPY\1\0\x76\0{'descr': '<f4', 'fortran_order': False, "
        "'shape': (3145728,), }                                                   ";
    pe_checkpoint *checkpoint = NULL;
    (void)state;
    char whole[128];
    memset(whole, ' ', sizeof whole);
    memcpy(whole, header, sizeof header - 1);
    write_file("q.npy", whole, sizeof whole);
    assert_int_equal(truncate(path, 128 + 4 * (off_t)COUNT), 0);
    assert_int_equal(pe_checkpoint_load(&checkpoint, path, NULL, NULL), PE_OK);
    const pe_weight *weight = pe_checkpoint_weight(checkpoint, 0);
    assert_int_equal(weight->shape[0], COUNT);
    assert_true(((const float *)weight->data)[COUNT - 1] == 0.0F);
    pe_model *model = NULL;
    pe_error error;
    assert_int_equal(pe_model_create(&model, checkpoint, 0, NULL, &error),
                     PE_E_UNSUPPORTED);
    assert_string_equal(error.message,
                        "the file has no settings, a model needs a config.json or a "
                        "GGUF file");
    pe_checkpoint_destroy(checkpoint);
}

static void pipes_are_read_to_their_end(void **state)
{
    int ends[2];
    char name[64];
    pe_checkpoint *checkpoint = NULL;
    (void)state;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], config, strlen(config)), (int)strlen(config));
    close(ends[1]);
    snprintf(name, sizeof name, "/dev/fd/%d", ends[0]);
    assert_int_equal(pe_checkpoint_load(&checkpoint, name, NULL, NULL), PE_OK);
    assert_non_null(pe_checkpoint_find_setting(checkpoint, "rope_theta"));
    pe_checkpoint_destroy(checkpoint);
    close(ends[0]);
}

static void arguments_are_checked(void **state)
{
    pe_checkpoint *checkpoint = NULL;
    pe_model *model = NULL;
    pe_error error;
    (void)state;
    assert_int_equal(pe_checkpoint_load(NULL, "x", NULL, NULL), PE_E_ARGUMENT);
    assert_int_equal(pe_checkpoint_load(&checkpoint, NULL, NULL, NULL), PE_E_ARGUMENT);
    assert_int_equal(pe_checkpoint_parse(NULL, 0, "{}", 2, NULL, NULL), PE_E_ARGUMENT);
    assert_int_equal(pe_checkpoint_parse(&checkpoint, 9, "{}", 2, NULL, &error),
                     PE_E_ARGUMENT);
    assert_string_equal(error.message, "format is 9, must be in 0..4");
    assert_int_equal(pe_checkpoint_parse(&checkpoint, 0, NULL, 2, NULL, NULL),
                     PE_E_ARGUMENT);
    assert_int_equal(pe_checkpoint_parse(&checkpoint, 0, NULL, 0, NULL, NULL),
                     PE_E_FORMAT);
    assert_int_equal(pe_model_create(&model, NULL, 0, NULL, NULL), PE_E_ARGUMENT);
    pe_model_destroy(NULL);
    pe_checkpoint_destroy(NULL);
}

/* Each unread key deserves a note, up to a limit. */
static void a_file_cannot_ask_for_endless_notes(void **state)
{
    char text[65536];
    pe_checkpoint *checkpoint = NULL;
    pe_model *model = NULL;
    (void)state;
    size_t at = (size_t)snprintf(text, sizeof text,
                                 "{\"head_dim\": 8, \"rope_theta\": 1e4, "
                                 "\"rope_scaling\": {\"type\": \"default\"");
    for (int i = 0; i < 3000; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, ", \"k%d\": 1", i);
    snprintf(text + at, sizeof text - at, "}}");
    assert_int_equal(pe_checkpoint_parse(&checkpoint, PE_FORMAT_AUTO, text,
                                         strlen(text), NULL, NULL),
                     PE_OK);
    assert_int_equal(pe_model_create(&model, checkpoint, 0, NULL, NULL), PE_OK);
    assert_int_equal(pe_model_get_info(model)->num_notes, 201);
    assert_string_equal(pe_model_note(model, 200)->text, "further notes are left out");
    pe_model_destroy(model);
    pe_checkpoint_destroy(checkpoint);
}

/* GPT-2 with a folder of weights: four rows of three, where the settings say five. */
static void a_learned_table_comes_with_the_weights(void **state)
{
    static const char settings[] = "{\"model_type\": \"gpt2\", \"n_layer\": 2, "
                                   "\"n_embd\": 3, \"n_head\": 1, "
                                   "\"n_positions\": 5}";
    static const char header[] = "{\"h.0.w\":{\"dtype\":\"F32\",\"shape\":[1],"
                                 "\"data_offsets\":[0,4]},\"wpe.weight\":{\"dtype\":"
                                 "\"F32\",\"shape\":[4,3],\"data_offsets\":[4,52]}}";
    pe_checkpoint *checkpoint = NULL;
    pe_model *model = NULL;
    pe_learned_spec spec = {.struct_size = sizeof spec};
    pe_error error;
    (void)state;
    unsigned char file[512] = {0};
    const size_t padded = (sizeof header - 1 + 7) / 8 * 8;
    memset(file + 8, ' ', padded);
    file[0] = (unsigned char)padded;
    memcpy(file + 8, header, sizeof header - 1);
    for (int i = 0; i < 13; i++) {
        const float value = (float)i;
        memcpy(file + 8 + padded + 4 * i, &value, sizeof value);
    }
    write_file("config.json", settings, strlen(settings));
    write_file("model.safetensors", file, 8 + padded + 52);
    if (pe_checkpoint_load(&checkpoint, folder, NULL, &error) != PE_OK ||
        pe_model_create(&model, checkpoint, 0, NULL, &error) != PE_OK)
        fail_msg("%s", error.message);
    assert_int_equal(pe_model_learned_spec(model, &spec, NULL), PE_OK);
    assert_non_null(spec.weight);
    assert_int_equal(spec.weight->seq_len, 4);
    assert_int_equal(spec.weight->dim, 3);
    assert_int_equal(spec.weight->dtype, PE_F32);
    assert_true(((const float *)spec.weight->data)[11] == 12.0F);
    const pe_field *rows = pe_model_find_field(model, "learned.rows");
    assert_string_equal(rows->value, "4");
    assert_int_equal(rows->source, PE_CONFLICTING);
    assert_int_equal(pe_model_get_info(model)->trained_len, 4);
    assert_string_equal(pe_model_note(model, 0)->text,
                        "the settings imply 5 rows of positions, but wpe.weight has 4; "
                        "the table is used");
    pe_model_destroy(model);
    pe_checkpoint_destroy(checkpoint);
    remove(path);
}

typedef struct counter {
    int64_t left; /* calls that still succeed */
    int64_t live;
} counter;

static void *counted_alloc(void *ctx, size_t size, size_t alignment)
{
    counter *c = ctx;
    if (c->left-- <= 0)
        return NULL;
    c->live++;
    return aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}

static void counted_release(void *ctx, void *ptr, size_t size, size_t alignment)
{
    counter *c = ctx;
    (void)size;
    (void)alignment;
    c->live -= ptr != NULL;
    free(ptr);
}

typedef pe_status (*attempt)(const pe_env *env, pe_error *error);

static pe_status load_and_read(const pe_env *env, pe_error *error)
{
    pe_checkpoint *checkpoint = NULL;
    pe_model *model = NULL;
    snprintf(path, sizeof path, "%s/config.json", folder);
    pe_status status = pe_checkpoint_load(&checkpoint, path, env, error);
    if (status == PE_OK)
        status = pe_model_create(&model, checkpoint, 0, env, error);
    pe_model_destroy(model);
    pe_checkpoint_destroy(checkpoint);
    return status;
}

static pe_status load_preset(const pe_env *env, pe_error *error)
{
    pe_model *model = NULL;
    pe_status status = pe_model_create_preset(&model, "phi-3-mini-128k", 0, env, error);
    pe_model_destroy(model);
    return status;
}

static void fail_at_every_call(attempt run, int64_t at_least)
{
    for (int64_t k = 0;; k++) {
        counter c = {.left = k};
        const pe_env env = {.struct_size = sizeof env,
                            .allocator = {counted_alloc, counted_release, &c}};
        pe_error error = {0};
        pe_status status = run(&env, &error);
        assert_int_equal(c.live, 0);
        if (status == PE_OK) {
            assert_true(k >= at_least);
            return;
        }
        if (status != PE_E_NO_MEMORY ||
            strncmp(error.message, "out of memory", 13) != 0)
            fail_msg("call %lld: %s: %s", (long long)k, pe_status_name(status),
                     error.message);
    }
}

static void memory_may_run_out_at_any_call(void **state)
{
    (void)state;
    /* Long enough to need many chunks. */
    char *large = malloc(200000);
    assert_non_null(large);
    size_t at = (size_t)snprintf(large, 200000, "{\"pad\": {");
    for (int i = 0; i < 2000; i++)
        at += (size_t)snprintf(large + at, 200000 - at, "\"key%d\": [\"%d\", {}], ", i,
                               i);
    at += (size_t)snprintf(large + at, 200000 - at, "\"end\": 0}, %s", config + 1);
    write_file("config.json", large, at);
    free(large);
    fail_at_every_call(load_and_read, 20);
    fail_at_every_call(load_preset, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_and_its_folder_are_the_same),
        cmocka_unit_test(content_decides_not_the_name),
        cmocka_unit_test(large_arrays_are_mapped),
        cmocka_unit_test(pipes_are_read_to_their_end),
        cmocka_unit_test(arguments_are_checked),
        cmocka_unit_test(a_file_cannot_ask_for_endless_notes),
        cmocka_unit_test(a_learned_table_comes_with_the_weights),
        cmocka_unit_test(memory_may_run_out_at_any_call),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

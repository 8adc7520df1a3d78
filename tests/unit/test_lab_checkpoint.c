/* SPDX-License-Identifier: MIT
 *
 * test_lab_checkpoint.c - checkpoints read back to the same bits, and only good ones
 */
#include "lab/checkpoint.h"
#include "lab/mode.h"
#include "lab/random.h"

#include "support/refusal.h"

#include <dirent.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static const char hash[] =
    "82a24e4e23c644fe579ed387b20e54eb529cc0a87a25e0810064edb2216780c2";
static char folder[] = "/tmp/posenc-checkpoint-XXXXXX";

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) == NULL;
}

static int remove_folder(void **state)
{
    static const char *const names[] = {"a", "b", "full"};
    char path[128];
    (void)state;
    for (size_t i = 0; i < LAB_COUNT(names); i++) {
        (void)snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        (void)unlink(path);
    }
    return rmdir(folder); /* fails if a temporary file was left */
}

static const char *path_of(const char *name)
{
    static char path[128];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

typedef struct bytes {
    char *data;
    size_t size;
} bytes;

static bytes read_file(const char *name)
{
    bytes out = {NULL, 0};
    FILE *file = fopen(path_of(name), "rb");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    out.size = (size_t)ftell(file);
    rewind(file);
    out.data = malloc(out.size + 1);
    assert_non_null(out.data);
    assert_int_equal(fread(out.data, 1, out.size, file), out.size);
    out.data[out.size] = '\0';
    assert_int_equal(fclose(file), 0);
    return out;
}

/* A small model in the middle of its training, all values different. */
static lab_state make_state(lab_method method, const char *layers)
{
    lab_config config = lab_config_b;
    lab_state state;
    config.layers = 2;
    config.width = 8;
    config.heads = 2;
    config.length = 6;
    config.seed = 0xfedcba9876543210;
    config.peak_rate = 1.0 / 3;
    lab_config_set_method(&config, method);
    if (layers != NULL)
        assert_int_equal(lab_config_set_layers(&config, layers, NULL), PE_OK);
    config.learn_slopes = method == LAB_ALIBI;
    if (method == LAB_ROPE && layers == NULL) {
        assert_int_equal(lab_mode_parse(&config.extension, "parts-b2.5", NULL), PE_OK);
        config.first_length = 3;
    }
    assert_int_equal(lab_state_create(&state, &config, NULL), PE_OK);
    state.step = 77;
    state.loss_average = 0.1 + 0.2;
    for (int32_t i = 0; i < state.layout.count; i++) {
        const lab_parameter *item = &state.layout.items[i];
        for (int64_t j = 0; j < lab_parameter_size(item); j++) {
            const uint64_t at = (uint64_t)(item->offset + j);
            state.weights[item->offset + j] = (float)lab_random_normal(1, 1, at);
            state.moment1[item->offset + j] = (float)lab_random_normal(1, 2, at);
            state.moment2[item->offset + j] = (float)lab_random_unit(1, 3, at);
        }
    }
    /* Numbers that text would spoil. */
    state.weights[state.layout.u] = -0.0f;
    state.weights[state.layout.u + 1] = 1e-45f;
    state.moment2[state.layout.u] = 3.4028235e38f;
    return state;
}

static void check_equal(const lab_state *a, const lab_state *b)
{
    const size_t size = (size_t)a->layout.size * sizeof(float);
    assert_int_equal(a->layout.size, b->layout.size);
    assert_memory_equal(a->weights, b->weights, size);
    assert_memory_equal(a->moment1, b->moment1, size);
    assert_memory_equal(a->moment2, b->moment2, size);
    assert_int_equal(a->step, b->step);
    assert_memory_equal(&a->loss_average, &b->loss_average, sizeof a->loss_average);
}

/* The state is the same, and so is the file that is made of it again. */
static void checkpoints_read_back(void **state)
{
    static const struct {
        lab_method method;
        const char *layers;
    } models[] = {{LAB_NONE, NULL},    {LAB_SIN, NULL},
                  {LAB_LEARNED, NULL}, {LAB_ROPE, NULL},
                  {LAB_ALIBI, NULL},   {LAB_T5, NULL},
                  {LAB_KERPLE, NULL},  {LAB_LEARNED, "rope,none,t5,alibi,kerple"}};
    (void)state;
    for (size_t i = 0; i < LAB_COUNT(models); i++) {
        lab_state before = make_state(models[i].method, models[i].layers), after;
        char sha256[65], name[320], again[320];
        assert_int_equal(lab_checkpoint_save(&before, hash, path_of("a"), NULL), PE_OK);
        assert_int_equal(lab_checkpoint_load(&after, sha256, path_of("a"), NULL),
                         PE_OK);
        assert_string_equal(sha256, hash);
        check_equal(&before, &after);
        lab_config_name(&before.config, name, sizeof name);
        lab_config_name(&after.config, again, sizeof again);
        assert_string_equal(name, again);
        assert_true(before.config.seed == after.config.seed);
        assert_true(before.config.peak_rate == after.config.peak_rate);
        assert_int_equal(before.config.first_length, after.config.first_length);
        assert_true(before.config.extension.beta == after.config.extension.beta);
        assert_int_equal(lab_checkpoint_save(&after, sha256, path_of("b"), NULL),
                         PE_OK);
        bytes first = read_file("a"), second = read_file("b");
        assert_int_equal(first.size, second.size);
        assert_memory_equal(first.data, second.data, first.size);
        free(first.data);
        free(second.data);
        lab_state_release(&before);
        lab_state_release(&after);
    }
}

/* Refused with these words, and out is as it was. */
static void check_refused(const char *data, size_t size, const char *words)
{
    static const lab_state untouched = {.step = 12345};
    lab_state out = untouched;
    char sha256[65] = "as it was";
    pe_error error;
    /* As large as it is said to be, so that a read past the end is seen. */
    void *copy = malloc(size > 0 ? size : 1);
    assert_non_null(copy);
    memcpy(copy, data, size);
    const pe_status status = lab_checkpoint_parse(&out, sha256, copy, size, &error);
    const char *wrong = test_refusal(&error, status, PE_E_FORMAT, words);
    if (wrong != NULL)
        print_error("%s\n", wrong);
    assert_null(wrong);
    assert_int_equal(out.step, 12345);
    assert_null(out.weights);
    assert_string_equal(sha256, "as it was");
    free(copy);
}

static bytes saved(lab_method method)
{
    lab_state state = make_state(method, NULL);
    assert_int_equal(lab_checkpoint_save(&state, hash, path_of("a"), NULL), PE_OK);
    lab_state_release(&state);
    return read_file("a");
}

static size_t header_end(const bytes *file)
{
    size_t length = 0;
    for (int i = 7; i >= 0; i--)
        length = length << 8 | (unsigned char)file->data[i];
    return 8 + length;
}

/* At every length up to the first tensor, and at some in each tensor after it. */
static void truncated_files_are_refused(void **state)
{
    bytes file = saved(LAB_LEARNED);
    const size_t end = header_end(&file);
    (void)state;
    assert_int_equal(end % 8, 0);
    for (size_t size = 0; size < end + 64; size++)
        check_refused(file.data, size, "");
    for (size_t size = end + 64; size < file.size; size += 97)
        check_refused(file.data, size, "must be a range in the");
    check_refused(file.data, file.size - 1, "must be a range in the");
    free(file.data);
}

/* With any byte of the header changed, it is refused or it is a checkpoint in range whose
 * tensors have the bits that they had. */
static void changed_headers_do_no_harm(void **state)
{
    bytes file = saved(LAB_NONE);
    lab_state whole;
    const size_t end = header_end(&file);
    int64_t refused = 0, read = 0;
    (void)state;
    assert_int_equal(lab_checkpoint_parse(&whole, NULL, file.data, file.size, NULL),
                     PE_OK);
    for (size_t at = 0; at < end; at++)
        for (int bit = 0; bit < 8; bit++) {
            lab_state out;
            pe_error error;
            file.data[at] = (char)(file.data[at] ^ 1 << bit);
            if (lab_checkpoint_parse(&out, NULL, file.data, file.size, &error) ==
                PE_OK) {
                assert_int_equal(lab_config_check(&out.config, NULL), PE_OK);
                assert_memory_equal(out.weights, whole.weights,
                                    (size_t)whole.layout.size * sizeof(float));
                lab_state_release(&out);
                read++;
            } else {
                assert_true(error.message[0] != '\0');
                refused++;
            }
            file.data[at] = (char)(file.data[at] ^ 1 << bit);
        }
    /* A digit of a rate, the hash or the padding may be another. */
    assert_true(refused > 20 * read && read > 0);
    lab_state_release(&whole);
    free(file.data);
}

/* The file with "key":"..." in its header made "key":"value". */
static bytes with_text(const bytes *file, const char *key, const char *value)
{
    char start[64];
    (void)snprintf(start, sizeof start, "\"%s\":\"", key);
    const char *at = strstr(file->data + 8, start);
    assert_non_null(at);
    const size_t before = (size_t)(at - file->data) + strlen(start);
    const size_t old = strcspn(file->data + before, "\"");
    bytes out = {malloc(file->size + strlen(value) + 1), 0};
    assert_non_null(out.data);
    out.size = file->size - old + strlen(value);
    memcpy(out.data, file->data, before);
    memcpy(out.data + before, value, strlen(value));
    memcpy(out.data + before + strlen(value), file->data + before + old,
           file->size - before - old);
    const size_t length = header_end(file) - 8 - old + strlen(value);
    for (int i = 0; i < 8; i++)
        out.data[i] = (char)((uint64_t)length >> 8 * i & 255);
    return out;
}

static void hostile_settings_are_named(void **state)
{
    static const struct {
        const char *key, *value, *words;
    } cases[] = {
        {"format", "pt", "no checkpoint of the lab"},
        {"input", "rope", "input is 3, must be none"},
        {"input", "", "input is ''"},
        {"layers", "", "layer 0 is ''"},
        {"layers", "sin", "layer 0 is 'sin', must be one of"},
        {"layers", "none", "18 tensors belong to no parameter"},
        {"layers", "none,none,none", "tensor w.b.2.n1.g is missing"},
        {"layers", "t5,none", "tensor w.t5 is missing"},
        {"width", "2147483647", "width is 2147483647, must be from 2 to"},
        {"width", "99999999999999999999", "width is '99999999999999999999'"},
        {"width", "-8", "width is '-8', must be a whole number"},
        {"width", "16", "tensor w.e must be F32 [256, 16]"},
        {"heads", "0", "heads is 0, must be from 1 to 64"},
        {"length", "1048576", "tensor w.p must be F32 [1048576, 8]"},
        {"length", "0", "length is 0"},
        {"batch", "1e3", "batch is '1e3'"},
        {"steps", "76", "step is '77', must be a whole number up to 76"},
        {"steps", "2147483648", "steps is '2147483648'"},
        {"step", "", "step is ''"},
        {"peak_rate", "nan", "peak_rate is 'nan', must be a finite number"},
        {"peak_rate", "1e999", "peak_rate is '1e999', must be a finite number"},
        {"peak_rate", "0x1p3", "peak_rate is '0x1p3'"},
        {"weight_decay", "-1", "weight_decay is -1, must be from 0 to 1"},
        {"clip", "0", "clip is 0"},
        {"loss_average", "inf", "loss_average is 'inf'"},
        {"seed", "-1", "seed is '-1'"},
        {"seed", "18446744073709551616", "seed is '18446744073709551616'"},
        {"learn_slopes", "1", "learn_slopes is 1, but no layer's method is alibi"},
        {"learn_slopes", "2", "learn_slopes is '2'"},
        {"extension", "dyn", "extension is of type 4"},
        {"extension", "twice", "mode twice is none of"},
        {"first_length", "5", "first_length is 5, must be 0 without an extension"},
        {"corpus_sha256", "abc", "corpus_sha256 is 'abc', must be 64"},
        {"dtype", "F16", "w.e"},
        {"dtype", "I32", "tensor w.e must be F32"}};
    bytes file = saved(LAB_LEARNED);
    (void)state;
    for (size_t i = 0; i < LAB_COUNT(cases); i++) {
        bytes changed = with_text(&file, cases[i].key, cases[i].value);
        check_refused(changed.data, changed.size, cases[i].words);
        free(changed.data);
    }
    free(file.data);
}

/* Writes a value over an element of the data of a tensor. */
static void poke(bytes *file, const char *tensor, size_t element, float value)
{
    char start[64];
    (void)snprintf(start, sizeof start, "\"%s\":", tensor);
    const char *at = strstr(file->data + 8, start);
    assert_non_null(at);
    at = strstr(at, "\"data_offsets\":[");
    assert_non_null(at);
    const size_t offset = (size_t)strtoull(at + strlen("\"data_offsets\":["), NULL, 10);
    memcpy(file->data + header_end(file) + offset + 4 * element, &value, sizeof value);
}

static void values_that_cannot_be_are_named(void **state)
{
    static const struct {
        const char *tensor;
        size_t element;
        float value;
        const char *words;
    } cases[] = {{"w.u", 3, NAN, "element 3 of w.u is |nan|must be finite"},
                 {"m.n.g", 7, INFINITY, "element 7 of m.n.g is inf, must be finite"},
                 {"v.b.1.f2", 255, -1e-30f, "element 255 of v.b.1.f2|not negative"},
                 {"w.e", 0, -INFINITY, "element 0 of w.e is -inf"}};
    (void)state;
    for (size_t i = 0; i < LAB_COUNT(cases); i++) {
        bytes file = saved(LAB_KERPLE);
        poke(&file, cases[i].tensor, cases[i].element, cases[i].value);
        check_refused(file.data, file.size, cases[i].words);
        free(file.data);
    }
}

static void foreign_files_are_refused(void **state)
{
    static const char other[] = "\x40\0\0\0\0\0\0\0"
                                "{\"w.e\":{\"dtype\":\"F32\",\"shape\":[1],"
                                "\"data_offsets\":[0,4]}}            \0\0\0\0";
    lab_state out;
    pe_error error;
    (void)state;
    check_refused(other, sizeof other - 1, "");
    check_refused("{\"model_type\": \"llama\"}", 23, "");
    FILE *file = fopen(path_of("b"), "wb");
    assert_non_null(file);
    assert_true(fputs("{\"model_type\": \"llama\", \"head_dim\": 16}", file) >= 0);
    assert_int_equal(fclose(file), 0);
    const pe_status status = lab_checkpoint_load(&out, NULL, path_of("b"), &error);
    assert_null(
        test_refusal(&error, status, PE_E_FORMAT, "/b: no checkpoint of the lab"));
}

/* Save fails with those words, and the good file and nothing else is in the folder. */
static void check_unsaved(const lab_state *state, pe_status expected, const char *words)
{
    pe_error error;
    bytes before = read_file("full");
    const pe_status status = lab_checkpoint_save(state, hash, path_of("full"), &error);
    assert_null(test_refusal(&error, status, expected, words));
    bytes after = read_file("full");
    assert_int_equal(before.size, after.size);
    assert_memory_equal(before.data, after.data, before.size);
    free(before.data);
    free(after.data);
    int count = 0;
    DIR *listing = opendir(folder);
    assert_non_null(listing);
    for (struct dirent *entry; (entry = readdir(listing)) != NULL;)
        count += strncmp(entry->d_name, "full", 4) == 0;
    assert_int_equal(closedir(listing), 0);
    assert_int_equal(count, 1);
}

static void full_disks_leave_the_last_good_file(void **state)
{
    /* In the prefix, the header, the first tensor and the last. */
    static const rlim_t rooms[] = {0, 4, 100, 6000, 20000};
    lab_state one = make_state(LAB_ROPE, NULL);
    struct rlimit old;
    (void)state;
    assert_int_equal(lab_checkpoint_save(&one, hash, path_of("full"), NULL), PE_OK);
    one.step++;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    for (size_t i = 0; i < LAB_COUNT(rooms); i++) {
        const struct rlimit less = {rooms[i], old.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &less), 0);
        check_unsaved(&one, PE_E_IO, "/full: File too large");
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    }
    (void)signal(SIGXFSZ, handler);
    lab_state_release(&one);
}

static void broken_states_leave_the_last_good_file(void **state)
{
    lab_state one = make_state(LAB_T5, NULL);
    (void)state;
    assert_int_equal(lab_checkpoint_save(&one, hash, path_of("full"), NULL), PE_OK);
    one.moment1[one.layout.t5 + 5] = NAN;
    check_unsaved(&one, PE_E_ARGUMENT, "element 5 of m.t5 is |nan at step 77");
    lab_state_release(&one);
}

static void folders_that_are_not_there_are_named(void **state)
{
    lab_state one = make_state(LAB_SIN, NULL);
    pe_error error;
    (void)state;
    const pe_status status =
        lab_checkpoint_save(&one, hash, "/nonexistent/folder/a", &error);
    assert_null(test_refusal(&error, status, PE_E_IO,
                             "/nonexistent/folder/a: No such file or directory"));
    lab_state_release(&one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checkpoints_read_back),
        cmocka_unit_test(truncated_files_are_refused),
        cmocka_unit_test(changed_headers_do_no_harm),
        cmocka_unit_test(hostile_settings_are_named),
        cmocka_unit_test(values_that_cannot_be_are_named),
        cmocka_unit_test(foreign_files_are_refused),
        cmocka_unit_test(full_disks_leave_the_last_good_file),
        cmocka_unit_test(broken_states_leave_the_last_good_file),
        cmocka_unit_test(folders_that_are_not_there_are_named),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

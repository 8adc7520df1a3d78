/* SPDX-License-Identifier: MIT
 *
 * test_lab_corpus.c - the split of a text, the King James text, the copy language
 */
#include "lab/corpus.h"
#include "lab/corpus_parts.h"

#include "support/refusal.h"

#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[] = "/tmp/posenc-corpus-XXXXXX";

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) == NULL;
}

static int remove_folder(void **state)
{
    char path[128];
    (void)state;
    static const char *const names[] = {"text", "bible"};
    for (size_t i = 0; i < LAB_COUNT(names); i++) {
        (void)snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        (void)unlink(path);
    }
    return rmdir(folder);
}

static void write_file(const char *name, const void *data, size_t size, char path[128])
{
    (void)snprintf(path, 128, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

/* Byte i is of no period that a wrong chunk would keep. */
static uint8_t *make_text(size_t size)
{
    uint8_t *text = malloc(size);
    assert_non_null(text);
    for (size_t i = 0; i < size; i++)
        text[i] = (uint8_t)((i * 2654435761u) >> 13);
    return text;
}

/* FIPS 180-2, appendix B.1 and B.2. */
static void hashes_are_sha256(void **state)
{
    char hash[65];
    (void)state;
    lab_sha256((const uint8_t *)"abc", 3, hash);
    assert_string_equal(hash, "ba7816bf8f01cfea414140de5dae2223"
                              "b00361a396177a9cb410ff61f20015ad");
    static const char longer[] =
        "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    lab_sha256((const uint8_t *)longer, strlen(longer), hash);
    assert_string_equal(hash, "248d6a61d20638b8e5c026930c3e6039"
                              "a33ce45964ff2167f6ecedd419db06c1");
}

/* Every byte of a whole chunk is where the rule puts it, by a formula of its own. */
static void chunks_are_divided_by_the_rule(void **state)
{
    static const struct {
        size_t size;
        int64_t chunk;
    } cases[] = {{9 * 1024, 1024},    {9 * 1024 + 1023, 1024}, {18 * 1024 - 1, 1024},
                 {18 * 1024, 2048},   {9 * 65536 - 1, 32768},  {9 * 65536, 65536},
                 {25 * 65536, 65536}, {26 * 65536 + 5, 65536}};
    (void)state;
    for (size_t c = 0; c < LAB_COUNT(cases); c++) {
        uint8_t *text = make_text(cases[c].size);
        const int64_t chunk = cases[c].chunk;
        char path[128];
        lab_corpus corpus;
        write_file("text", text, cases[c].size, path);
        assert_int_equal(lab_corpus_read(&corpus, path, NULL), PE_OK);
        assert_int_equal(corpus.chunk_size, chunk);
        assert_string_equal(corpus.name, "text");
        assert_int_equal(corpus.copy_distance, 0);
        assert_true(corpus.floor_after == 0 && lab_corpus_floor(&corpus, 64) == 0);
        char hash[65];
        lab_sha256(text, cases[c].size, hash);
        assert_string_equal(corpus.sha256, hash);
        int64_t train = 0, validation = 0;
        const int64_t whole = (int64_t)cases[c].size / chunk * chunk;
        for (int64_t i = 0; i < whole; i++)
            if (i / chunk % 16 == 8)
                assert_int_equal(corpus.validation[validation++], text[i]);
            else
                assert_int_equal(corpus.train[train++], text[i]);
        assert_int_equal(corpus.train_size, train);
        assert_int_equal(corpus.validation_size, validation);
        assert_true(validation >= chunk);
        lab_corpus_release(&corpus);
        assert_null(corpus.train);
        free(text);
    }
}

/* Names are text, cut where a character ends: they go into JSON. */
static void names_are_text(void **state)
{
    static const struct {
        const char *name, *expected;
    } cases[] = {
        {"창세기.txt", "창세기.txt"},
        {"a\xff\x62", "a?b"},
        {"tab\there\x7f", "tab?here?"},
        {"\xc0\xaf\xed\xa0\x80.", "?????."},
        {"\xe2\x82", "??"},
        {"가가가가가가가가가가가가가가가가가가가가가가", /* 22 of three bytes */
         "가가가가가가가가가가가가가가가가가가가가가"}};
    uint8_t *text = make_text(9 * 1024);
    (void)state;
    for (size_t i = 0; i < LAB_COUNT(cases); i++) {
        const lab_bytes bytes = {text, 9 * 1024};
        lab_corpus corpus;
        assert_int_equal(lab_corpus_split(&corpus, &bytes, cases[i].name, NULL), PE_OK);
        assert_string_equal(corpus.name, cases[i].expected);
        lab_corpus_release(&corpus);
    }
    free(text);
}

static void short_and_absent_texts_are_refused(void **state)
{
    char path[128];
    lab_corpus corpus;
    pe_error error;
    uint8_t *text = make_text(9 * 1024 - 1);
    (void)state;
    write_file("text", text, 9 * 1024 - 1, path);
    pe_status status = lab_corpus_read(&corpus, path, &error);
    assert_null(test_refusal(&error, status, PE_E_SHAPE,
                             "text has 9215 bytes, must have at least 9216"));
    free(text);
    write_file("text", "", 0, path);
    status = lab_corpus_read(&corpus, path, &error);
    assert_null(test_refusal(&error, status, PE_E_SHAPE, "has 0 bytes"));
    status = lab_corpus_read(&corpus, "/nonexistent/text", &error);
    assert_null(test_refusal(&error, status, PE_E_NOT_FOUND,
                             "/nonexistent/text: No such file"));
    status = lab_corpus_read(&corpus, folder, &error);
    assert_null(test_refusal(&error, status, PE_E_IO, "Is a directory"));
}

static void the_king_james_text_is_the_known_one(void **state)
{
    lab_corpus corpus;
    pe_error error;
    (void)state;
    const pe_status status = lab_corpus_kjv(&corpus, &error);
    if (status == PE_E_NOT_FOUND) {
        assert_true(access("/usr/bin/bible", X_OK) != 0 ||
                    access("/usr/lib/bible.data", R_OK) != 0);
        assert_null(
            test_refusal(&error, status, PE_E_NOT_FOUND, "bible-kjv|bible-kjv-text"));
        print_message("the text itself was not checked: %s\n", error.message);
        return;
    }
    assert_int_equal(status, PE_OK);
    assert_string_equal(
        corpus.sha256,
        "82a24e4e23c644fe579ed387b20e54eb529cc0a87a25e0810064edb2216780c2");
    assert_string_equal(corpus.name, "kjv");
    assert_int_equal(corpus.chunk_size, 65536);
    assert_int_equal(corpus.train_size, 3866624);
    assert_int_equal(corpus.validation_size, 262144);
    assert_memory_equal(corpus.train, "In the beginning God created", 28);
    lab_corpus_release(&corpus);
}

/* A program of that name that prints or does something else. */
static pe_status read_with(const char *script, lab_corpus *corpus, pe_error *error)
{
    char *before = strdup(getenv("PATH")), path[128];
    assert_non_null(before);
    write_file("bible", script, strlen(script), path);
    assert_int_equal(chmod(path, 0700), 0);
    assert_int_equal(setenv("PATH", folder, 1), 0);
    const pe_status status = lab_corpus_kjv(corpus, error);
    assert_int_equal(setenv("PATH", before, 1), 0);
    free(before);
    return status;
}

static void verses_lose_their_references_only(void **state)
{
    lab_corpus corpus;
    (void)state;
    /* 600 verses in chapters of 7, of books whose names begin alike. */
    assert_int_equal(read_with("#!/bin/bash\n"
                               "for ((i = 0; i < 1200; i++)); do\n"
                               "echo \"Ge$((i / 7)):$((i % 7 + 1)) verse $i: it is\"\n"
                               "done\n",
                               &corpus, NULL),
                     PE_OK);
    /* Chunks of 1024 of a text that begins so. */
    char expected[512] = "";
    size_t length = 0;
    for (int i = 0; i < 15; i++)
        length +=
            (size_t)snprintf(expected + length, sizeof expected - length,
                             "%sverse %d: it is\n", i > 0 && i % 7 == 0 ? "\n" : "", i);
    assert_memory_equal(corpus.train, expected, length);
    lab_corpus_release(&corpus);
}

static void absent_and_strange_programs_are_named(void **state)
{
    static const struct {
        const char *script;
        pe_status status;
        const char *words;
    } cases[] = {
        {"#!/bin/bash\nexit 3\n", PE_E_NOT_FOUND,
         "bible has no text|bible-kjv and bible-kjv-text"},
        {"#!/bin/bash\necho no reference here\n", PE_E_FORMAT, "not one verse a line"},
        {"#!/bin/bash\nprintf 'Ge1:1 cut short'\n", PE_E_FORMAT,
         "not one verse a line"},
        {"#!/bin/bash\necho :1 no book\n", PE_E_FORMAT, "not one verse a line"},
        {"#!/bin/bash\n", PE_E_FORMAT, "0 bytes"},
        {"#!/bin/bash\necho Ge1:1 short\n", PE_E_SHAPE, "kjv has 6 bytes"},
    };
    lab_corpus corpus;
    pe_error error;
    (void)state;
    for (size_t i = 0; i < LAB_COUNT(cases); i++) {
        const pe_status status = read_with(cases[i].script, &corpus, &error);
        assert_null(test_refusal(&error, status, cases[i].status, cases[i].words));
    }
    char *before = strdup(getenv("PATH"));
    assert_int_equal(setenv("PATH", "/nonexistent", 1), 0);
    const pe_status status = lab_corpus_kjv(&corpus, &error);
    assert_int_equal(setenv("PATH", before, 1), 0);
    free(before);
    assert_null(test_refusal(&error, status, PE_E_NOT_FOUND,
                             "the program bible|bible-kjv and bible-kjv-text"));
}

static void copies_are_as_frequent_as_stated(void **state)
{
    enum { DISTANCE = 16 };
    lab_corpus corpus, again, other;
    int64_t counts[16] = {0}, same = 0;
    (void)state;
    assert_int_equal(lab_corpus_copy(&corpus, DISTANCE, NULL), PE_OK);
    assert_string_equal(corpus.name, "copy16");
    assert_int_equal(corpus.train_size, 1000000);
    assert_int_equal(corpus.validation_size, 200000);
    assert_int_equal(corpus.chunk_size, 200000);
    for (int64_t t = DISTANCE; t < corpus.train_size; t++) {
        assert_true(corpus.train[t] < 16);
        same += corpus.train[t] == corpus.train[t - DISTANCE];
        if (corpus.train[t] != corpus.train[t - DISTANCE])
            counts[corpus.train[t]]++;
    }
    /* q = 0.90625; a deviation is sqrt(q (1 - q) / n) = 2.9e-4. */
    const double n = (double)(corpus.train_size - DISTANCE);
    assert_true(fabs((double)same / n - 0.90625) < 5 * 2.9e-4);
    for (int i = 0; i < 16; i++)
        assert_true(fabs((double)counts[i] - n * 0.09375 / 16) <
                    5 * sqrt(n * 0.09375 / 16));
    assert_int_equal(lab_corpus_copy(&again, DISTANCE, NULL), PE_OK);
    assert_string_equal(again.sha256, corpus.sha256);
    assert_int_equal(lab_corpus_copy(&other, 5, NULL), PE_OK);
    assert_string_not_equal(other.sha256, corpus.sha256);
    lab_corpus_release(&corpus);
    lab_corpus_release(&again);
    lab_corpus_release(&other);
}

/* The floors that were worked out beside the reference run, to its four digits. */
static void floors_are_the_known_ones(void **state)
{
    static const double floors[] = {1.0824, 0.8237, 0.6944, 0.6297, 0.5973};
    lab_corpus corpus;
    (void)state;
    assert_int_equal(lab_corpus_copy(&corpus, 16, NULL), PE_OK);
    assert_true(fabs(corpus.floor_after - 0.565) < 5e-5);
    for (int i = 0; i < 5; i++)
        assert_true(fabs(lab_corpus_floor(&corpus, INT64_C(64) << i) - floors[i]) <
                    5e-5);
    /* A window that nothing can be copied into. */
    assert_true(fabs(lab_corpus_floor(&corpus, 15) - log(16)) < 1e-12);
    assert_true(fabs(lab_corpus_floor(&corpus, 3) - log(16)) < 1e-12);
    lab_corpus_release(&corpus);
}

/* What a predictor that knows the language loses on the text itself. */
static void floors_are_reached(void **state)
{
    enum { DISTANCE = 16, LENGTH = 64 };
    lab_corpus corpus;
    double sum = 0;
    int64_t count = 0;
    (void)state;
    assert_int_equal(lab_corpus_copy(&corpus, DISTANCE, NULL), PE_OK);
    for (int64_t at = 0; at + LENGTH < corpus.train_size; at += LENGTH)
        for (int64_t t = 1; t <= LENGTH; t++, count++) {
            const uint8_t *window = corpus.train + at;
            const double chance = t < DISTANCE                        ? 1.0 / 16
                                  : window[t] == window[t - DISTANCE] ? 0.9 + 0.1 / 16
                                                                      : 0.1 / 16;
            sum -= log(chance);
        }
    /* The loss of a symbol deviates by 1.5 from its mean: 1.5 / sqrt(1e6) each. */
    assert_true(fabs(sum / (double)count - lab_corpus_floor(&corpus, LENGTH)) < 0.0075);
    lab_corpus_release(&corpus);
}

static void distances_out_of_range_are_refused(void **state)
{
    static const int64_t distances[] = {0, -1, 1000001, INT64_MAX};
    lab_corpus corpus;
    pe_error error;
    (void)state;
    for (size_t i = 0; i < LAB_COUNT(distances); i++) {
        const pe_status status = lab_corpus_copy(&corpus, distances[i], &error);
        assert_null(test_refusal(&error, status, PE_E_ARGUMENT,
                                 "copy distance is |must be from 1 to 1000000"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hashes_are_sha256),
        cmocka_unit_test(chunks_are_divided_by_the_rule),
        cmocka_unit_test(names_are_text),
        cmocka_unit_test(short_and_absent_texts_are_refused),
        cmocka_unit_test(the_king_james_text_is_the_known_one),
        cmocka_unit_test(verses_lose_their_references_only),
        cmocka_unit_test(absent_and_strange_programs_are_named),
        cmocka_unit_test(copies_are_as_frequent_as_stated),
        cmocka_unit_test(floors_are_the_known_ones),
        cmocka_unit_test(floors_are_reached),
        cmocka_unit_test(distances_out_of_range_are_refused),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

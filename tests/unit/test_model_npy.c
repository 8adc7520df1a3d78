/* SPDX-License-Identifier: MIT
 *
 * test_model_npy.c - npy headers: all dtypes and versions, and hostile ones
 */
#include "posenc/model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ROOM = 4096 };

/* magic, version, length, dict padded with spaces to a multiple of pad, data_size
 * bytes. */
static size_t make(char *out, int major, const char *dict, size_t pad, size_t data_size)
{
    const size_t preamble = major == 1 ? 10 : 12;
    size_t header = strlen(dict) + 1;
    header += (pad - (preamble + header) % pad) % pad;
    memset(out, 0, ROOM);
    memcpy(out, "\x93NUMPY", 6);
    out[6] = (char)major;
    for (size_t i = 0; i < preamble - 8; i++)
        out[8 + i] = (char)(header >> 8 * i & 255);
    memset(out + preamble, ' ', header);
    memcpy(out + preamble, dict, strlen(dict));
    out[preamble + header - 1] = '\n';
    for (size_t i = 0; i < data_size; i++)
        out[preamble + header + i] = (char)i;
    return preamble + header + data_size;
}

/* From exactly size bytes, aligned as a file is. */
static pe_status parse(pe_checkpoint **out, const char *bytes, size_t size, void **copy,
                       pe_error *error)
{
    *copy = malloc(size == 0 ? 1 : size);
    assert_non_null(*copy);
    memcpy(*copy, bytes, size);
    return pe_checkpoint_parse(out, PE_FORMAT_NPY, *copy, size, NULL, error);
}

static void dtypes_and_versions_are_read(void **state)
{
    static const struct {
        const char *descr;
        pe_dtype dtype;
        size_t size;
    } dtypes[] = {{"<f4", PE_F32, 4}, {"<f2", PE_F16, 2}, {"<u2", 0, 2},
                  {"<f8", 0, 8},      {"<i8", 0, 8},      {"<i4", 0, 4},
                  {"<i2", 0, 2},      {"|i1", PE_I8, 1},  {"|u1", 0, 1},
                  {"|b1", 0, 1}};
    (void)state;
    for (int major = 1; major <= 3; major++) {
        for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
            char dict[128], bytes[ROOM];
            void *copy = NULL;
            pe_checkpoint *checkpoint = NULL;
            pe_error error;
            snprintf(dict, sizeof dict,
                     "{'descr': '%s', 'fortran_order': False, 'shape': (3, 5), }",
                     dtypes[i].descr);
            size_t size = make(bytes, major, dict, 64, 15 * dtypes[i].size);
            if (parse(&checkpoint, bytes, size, &copy, &error) != PE_OK)
                fail_msg("%d %s: %s", major, dtypes[i].descr, error.message);
            assert_int_equal(pe_checkpoint_num_weights(checkpoint), 1);
            const pe_weight *weight = pe_checkpoint_find_weight(checkpoint, "");
            assert_ptr_equal(weight, pe_checkpoint_weight(checkpoint, 0));
            assert_string_equal(weight->dtype_name, dtypes[i].descr);
            assert_int_equal(weight->dtype, dtypes[i].dtype);
            assert_int_equal(weight->rank, 2);
            assert_int_equal(weight->shape[0], 3);
            assert_int_equal(weight->shape[1], 5);
            assert_int_equal(weight->size, 15 * dtypes[i].size);
            assert_int_equal(((const char *)weight->data)[1], 1);
            assert_null(pe_checkpoint_find_weight(checkpoint, "x"));
            pe_checkpoint_destroy(checkpoint);
            free(copy);
        }
    }
}

static void shapes_of_every_spelling_are_read(void **state)
{
    static const struct {
        const char *shape;
        int32_t rank;
        size_t count;
    } shapes[] = {{"()", 0, 1},       {"(7,)", 1, 7},
                  {"(2L, 3L)", 2, 6}, {"( 2 , 3 ,4 )", 3, 24},
                  {"(0, 5)", 2, 0},   {"(1,1,1,1,1,1,1,2)", 8, 2}};
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        char dict[160], bytes[ROOM];
        void *copy = NULL;
        pe_checkpoint *checkpoint = NULL;
        pe_error error;
        snprintf(dict, sizeof dict,
                 "{\"shape\": %s,'fortran_order':False,'descr': '<f4'}",
                 shapes[i].shape);
        size_t size = make(bytes, 1, dict, 16, 4 * shapes[i].count);
        if (parse(&checkpoint, bytes, size, &copy, &error) != PE_OK)
            fail_msg("%s: %s", shapes[i].shape, error.message);
        const pe_weight *weight = pe_checkpoint_weight(checkpoint, 0);
        assert_int_equal(weight->rank, shapes[i].rank);
        assert_int_equal(weight->size, 4 * shapes[i].count);
        pe_checkpoint_destroy(checkpoint);
        free(copy);
    }
}

typedef struct refusal {
    const char *dict;
    size_t data_size;
    pe_status status;
    int64_t offset;
    const char *message;
} refusal;

#define HEAD  "{'descr': '<f4', 'fortran_order': False, "
#define SHAPE HEAD "'shape': "

/* Version 1.0: the dict begins at byte 10, and the data at 64 or 128. */
static const refusal refusals[] = {
    {SHAPE "(3,)}", 11, PE_E_FORMAT, 139,
     "npy shape needs 12 bytes after byte 128, the file has 11"},
    {SHAPE "(3,)}", 13, PE_E_FORMAT, 140,
     "npy shape needs 12 bytes after byte 128, the file has 13"},
    {SHAPE "(4611686018427387904, 4)}", 0, PE_E_FORMAT, 128,
     "npy shape has more bytes than 63 bits can count"},
    {SHAPE "(4611686018427387904, 0, 4)}", 0, PE_E_FORMAT, 128,
     "npy shape has more bytes than 63 bits can count"},
    {SHAPE "(1099511627776,)}", 4, PE_E_FORMAT, 132,
     "npy shape needs 4398046511104 bytes after byte 128, the file has 4"},
    {SHAPE "(99999999999999999999,)}", 0, PE_E_FORMAT, 61,
     "npy shape at byte 61 does not fit in 63 bits"},
    {SHAPE "(-1,)}", 4, PE_E_FORMAT, 61,
     "npy header has byte 0x2d at byte 61, must have a count there"},
    {SHAPE "(1,1,1,1,1,1,1,1,1)}", 4, PE_E_UNSUPPORTED, 77,
     "npy shape has more than 8 dimensions"},
    {SHAPE "3}", 12, PE_E_FORMAT, 60,
     "npy header has byte 0x33 at byte 60, must have '(' of the shape there"},
    {SHAPE "(3 3)}", 36, PE_E_FORMAT, 63,
     "npy header has byte 0x33 at byte 63, must have ',' or ')' of the shape there"},
    {"{'descr': '<f4', 'fortran_order': True, 'shape': (3,)}", 12, PE_E_UNSUPPORTED, 44,
     "npy fortran_order is True, must be False: save a C-ordered copy "
     "(numpy.ascontiguousarray)"},
    {"{'descr': '>f4', 'fortran_order': False, 'shape': (3,)}", 12, PE_E_UNSUPPORTED,
     20, "npy dtype is >f4, big endian is not read, save it as <f4"},
    {"{'descr': '<c8', 'fortran_order': False, 'shape': (3,)}", 24, PE_E_UNSUPPORTED,
     20, "npy dtype is <c8, must be one of <f4 <f2 <u2 <f8 <i8 <i4 <i2 |i1 |u1 |b1"},
    {"{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (3,)}", 12,
     PE_E_UNSUPPORTED, 20, "npy dtype is a record, must be one number per element"},
    {"{'descr': '<f4', 'descr': '<f4', 'shape': (3,)}", 12, PE_E_FORMAT, 27,
     "npy header key descr at byte 27 is there twice"},
    {"{'descr': '<f4', 'fortran_order': False, 'colour': 1}", 12, PE_E_FORMAT, 51,
     "npy header key colour at byte 51 is unknown"},
    {"{'descr': '<f4', 'fortran_order': False}", 12, PE_E_FORMAT, 64,
     "npy header has no shape"},
    {HEAD "'shape': (3,)} x", 12, PE_E_FORMAT, 66,
     "npy header has byte 0x78 at byte 66, must have nothing but spaces there"},
    {HEAD "'shape': (3,)", 12, PE_E_FORMAT, 128,
     "npy header ends at byte 128, must have ',' or '}' there"},
    {"shape", 12, PE_E_FORMAT, 10,
     "npy header has byte 0x73 at byte 10, must have '{' there"},
};

static void hostile_headers_name_their_byte(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        const refusal *r = &refusals[i];
        char bytes[ROOM];
        void *copy = NULL;
        pe_checkpoint *checkpoint = (pe_checkpoint *)bytes;
        pe_error error = {0};
        size_t size = make(bytes, 1, r->dict, 64, r->data_size);
        pe_status status = parse(&checkpoint, bytes, size, &copy, &error);
        if (status != r->status || error.offset != r->offset ||
            strcmp(error.message, r->message) != 0)
            fail_msg("%s\n  got %s at %lld: %s\n  want %s at %lld: %s", r->dict,
                     pe_status_name(status), (long long)error.offset, error.message,
                     pe_status_name(r->status), (long long)r->offset, r->message);
        assert_null(checkpoint);
        free(copy);
    }
}

/* Every prefix of a good file is refused, as is one with any byte more. */
static void cut_files_are_refused(void **state)
{
    char bytes[ROOM];
    (void)state;
    for (int major = 1; major <= 2; major++) {
        size_t whole = make(bytes, major, SHAPE "(3,)}", 64, 12);
        for (size_t size = 0; size <= whole; size++) {
            void *copy = NULL;
            pe_checkpoint *checkpoint = NULL;
            pe_error error = {0};
            pe_status status = parse(&checkpoint, bytes, size, &copy, &error);
            assert_int_equal(status, size == whole ? PE_OK : PE_E_FORMAT);
            if (status != PE_OK)
                assert_in_range(error.offset, 0, size);
            pe_checkpoint_destroy(checkpoint);
            free(copy);
        }
    }
}

static void lying_preambles_are_refused(void **state)
{
    char bytes[ROOM];
    void *copy = NULL;
    pe_checkpoint *checkpoint = NULL;
    pe_error error;
    (void)state;
    size_t size = make(bytes, 1, SHAPE "(3,)}", 64, 12);
    bytes[9] = 1; /* 256 bytes more */
    assert_int_equal(parse(&checkpoint, bytes, size, &copy, &error), PE_E_FORMAT);
    assert_string_equal(error.message,
                        "npy header length is 374, but only 130 bytes follow");
    assert_int_equal(error.offset, 8);
    free(copy);
    size = make(bytes, 1, SHAPE "(3,)}", 64, 12);
    bytes[6] = 4;
    assert_int_equal(parse(&checkpoint, bytes, size, &copy, &error), PE_E_UNSUPPORTED);
    assert_string_equal(error.message, "npy version is 4.0, must be 1.0, 2.0 or 3.0");
    free(copy);
    size = make(bytes, 1, SHAPE "(3,)}", 1, 12);
    assert_int_equal(parse(&checkpoint, bytes, size, &copy, &error), PE_E_FORMAT);
    assert_string_equal(error.message,
                        "npy data begins at byte 66, must be a multiple of 4");
    free(copy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dtypes_and_versions_are_read),
        cmocka_unit_test(shapes_of_every_spelling_are_read),
        cmocka_unit_test(hostile_headers_name_their_byte),
        cmocka_unit_test(cut_files_are_refused),
        cmocka_unit_test(lying_preambles_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

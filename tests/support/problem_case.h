/* SPDX-License-Identifier: MIT
 *
 * problem_case.h - reading tests/data/problem-cases.json, and comparing with it
 *
 * Include cmocka.h first.  In a header, because only tests linked with json-c have it. */
#ifndef PE_TESTS_PROBLEM_CASE_H
#define PE_TESTS_PROBLEM_CASE_H

#include <json-c/json.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "posenc/posenc.h"

static json_object *file;

static inline int set_up(void **state)
{
    (void)state;
    file = json_object_from_file("tests/data/problem-cases.json");
    return file == NULL;
}

static inline int tear_down(void **state)
{
    (void)state;
    json_object_put(file);
    return 0;
}

/* The value at a path of member names and list indices: "expect/values/2/cos". */
static inline json_object *at_path(json_object *value, const char *path)
{
    char name[64];
    const char *whole = path;

    while (*path != '\0') {
        const size_t span = strcspn(path, "/");
        assert_true(span < sizeof name);
        memcpy(name, path, span);
        name[span] = '\0';
        if (json_object_is_type(value, json_type_array))
            value = json_object_array_get_idx(value, (size_t)strtoul(name, NULL, 10));
        else if (!json_object_object_get_ex(value, name, &value))
            value = NULL;
        if (value == NULL)
            fail_msg("problem-cases.json has no %s", whole);
        path += span + (path[span] == '/');
    }
    return value;
}

static inline json_object *find_case(const char *id)
{
    json_object *cases = at_path(file, "cases");

    for (size_t i = 0; i < json_object_array_length(cases); i++) {
        json_object *c = json_object_array_get_idx(cases, i);
        if (strcmp(json_object_get_string(at_path(c, "id")), id) == 0)
            return c;
    }
    fail_msg("no case %s", id);
    return NULL;
}

static inline double number(json_object *parent, const char *path)
{
    return json_object_get_double(at_path(parent, path));
}

static inline int64_t integer(json_object *parent, const char *path)
{
    return json_object_get_int64(at_path(parent, path));
}

static inline int64_t length(json_object *parent, const char *path)
{
    return (int64_t)json_object_array_length(at_path(parent, path));
}

static inline double item(json_object *parent, const char *path, int64_t i)
{
    return json_object_get_double(
        json_object_array_get_idx(at_path(parent, path), (size_t)i));
}

static inline void near(double got, double expected, double abs_tol, double rel_tol)
{
    if (!(fabs(got - expected) <= abs_tol + rel_tol * fabs(expected)))
        fail_msg("%.17g, expected %.17g", got, expected);
}

/* The tolerances that the file gives to doubles and to floats. */
static inline void near_double(json_object *c, double got, double expected)
{
    near(got, expected, number(c, "tolerance/abs"), number(c, "tolerance/rel"));
}

static inline void near_float(json_object *c, float got, double expected)
{
    near((double)got, expected, number(c, "tolerance/f32_abs"),
         number(c, "tolerance/f32_rel"));
}

static inline pe_rope *create(const pe_rope_spec *spec)
{
    pe_rope *rope = NULL;
    pe_error error;

    if (pe_rope_create(&rope, spec, NULL, &error) != PE_OK)
        fail_msg("%s", error.message);
    return rope;
}

static inline void rotate(const pe_rope_spec *spec, int64_t position, json_object *c,
                          const char *x_path, float *y)
{
    pe_rope *rope = create(spec);
    const pe_positions at = {.start = position};
    pe_tensor y_t;
    pe_error error;

    for (int32_t i = 0; i < spec->head_dim; i++)
        y[i] = (float)item(c, x_path, i);
    pe_tensor_bshd(&y_t, PE_F32, y, 1, 1, 1, spec->head_dim);
    if (pe_rope_apply(rope, &at, &y_t, &y_t, &error) != PE_OK)
        fail_msg("%s", error.message);
    pe_rope_destroy(rope);
}

static inline void check_inv_freq(json_object *c, const pe_rope_spec *spec,
                                  const char *path)
{
    pe_rope *rope = create(spec);
    const pe_rope_info *info = pe_rope_get_info(rope);

    assert_int_equal(info->num_pairs, length(c, path));
    for (int32_t i = 0; i < info->num_pairs; i++)
        near_double(c, info->inv_freq[i], item(c, path, i));
    pe_rope_destroy(rope);
}

/* {"pair": value, ...}: some pairs only. */
static inline void check_some(json_object *c, const pe_rope_info *info,
                              const char *path)
{
    int seen = 0;

    json_object_object_foreach(at_path(c, path), pair, value)
    {
        const long i = strtol(pair, NULL, 10);
        assert_true(i >= 0 && i < info->num_pairs);
        near_double(c, info->inv_freq[i], json_object_get_double(value));
        seen++;
    }
    assert_true(seen > 0);
}

#endif /* PE_TESTS_PROBLEM_CASE_H */

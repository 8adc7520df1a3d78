/* SPDX-License-Identifier: MIT
 *
 * case.c - reading one golden case
 *
 * Files come from anywhere: every member is checked for presence, type and range, and a
 * wrong one fails its case with a message. */
#include "case.h"

#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_OWNED = 64, MAX_NUMBERS = 1 << 24 };

static struct {
    void *blocks[MAX_OWNED];
    pe_rope *ropes[MAX_OWNED];
    int num_blocks, num_ropes;
    jmp_buf leave;
} run;

int vec_run(vec_case *c, vec_check check)
{
    int failed = 0;

    if (setjmp(run.leave) == 0)
        check(c);
    else
        failed = 1;
    while (run.num_blocks > 0)
        free(run.blocks[--run.num_blocks]);
    while (run.num_ropes > 0)
        pe_rope_destroy(run.ropes[--run.num_ropes]);
    return failed;
}

void vec_fail(const vec_case *c, const char *format, ...)
{
    va_list args;

    printf("FAIL %s: ", c->id);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
    longjmp(run.leave, 1);
}

double vec_float_rounding(double exact)
{
    return 6e-8 * fmax(fabs(exact), 1);
}

double vec_product_rounding(pe_isa isa, const float *x, int64_t count, double factor)
{
    double top = 0;

    for (int64_t i = 0; i < count && isa != PE_ISA_SCALAR; i++)
        top = fmax(top, fabs((double)x[i]));
    return 0x1p-24 * top * factor;
}

void vec_near(const vec_case *c, const char *what, int64_t index, double got,
              double exact, double allowed)
{
    if (!(fabs(got - exact) <= allowed))
        vec_fail(c, "%s[%lld]: expected %.17g, got %.17g, allowed %.3g", what,
                 (long long)index, exact, got, allowed);
}

void *vec_alloc(const vec_case *c, int64_t count, size_t size)
{
    if (count < 0 || count > MAX_NUMBERS)
        vec_fail(c, "%lld numbers, at most %d are read", (long long)count, MAX_NUMBERS);
    if (run.num_blocks == MAX_OWNED)
        vec_fail(c, "more than %d lists in one case", MAX_OWNED);
    void *block = calloc((size_t)count + 1, size);
    if (block == NULL)
        vec_fail(c, "out of memory");
    run.blocks[run.num_blocks++] = block;
    return block;
}

pe_isa vec_isa_next(pe_isa isa)
{
    while (isa < PE_ISA_WASM128)
        if (pe_isa_available(++isa))
            return isa;
    return 0;
}

pe_rope *vec_rope(const vec_case *c, const pe_rope_spec *spec)
{
    return vec_rope_on(c, spec, PE_ISA_AUTO);
}

pe_rope *vec_rope_on(const vec_case *c, const pe_rope_spec *spec, pe_isa isa)
{
    const pe_env env = {.struct_size = sizeof env, .isa = isa};
    pe_rope *rope;
    pe_error error;

    if (run.num_ropes == MAX_OWNED)
        vec_fail(c, "more than %d plans in one case", MAX_OWNED);
    if (pe_rope_create(&rope, spec, &env, &error) != PE_OK)
        vec_fail(c, "expected a plan, got %s: %s", pe_status_name(error.status),
                 error.message);
    run.ropes[run.num_ropes++] = rope;
    return rope;
}

static json_object *member(const vec_case *c, json_object *parent, const char *name)
{
    json_object *value = NULL;

    if (!json_object_is_type(parent, json_type_object))
        vec_fail(c, "the object that holds %s is missing", name);
    json_object_object_get_ex(parent, name, &value);
    return value;
}

static double number_of(const vec_case *c, json_object *value, const char *name)
{
    if (!json_object_is_type(value, json_type_double) &&
        !json_object_is_type(value, json_type_int))
        vec_fail(c, "%s is missing or not a number", name);
    double number = json_object_get_double(value);
    if (!(fabs(number) <= DBL_MAX))
        vec_fail(c, "%s is not finite", name);
    return number;
}

static int64_t integer_of(const vec_case *c, json_object *value, const char *name)
{
    double number = number_of(c, value, name);

    if (json_object_is_type(value, json_type_int))
        return json_object_get_int64(value);
    if (number != floor(number) || fabs(number) > 0x1p53)
        vec_fail(c, "%s is %.17g, not a whole number", name, number);
    return (int64_t)number;
}

json_object *vec_object(const vec_case *c, json_object *parent, const char *name)
{
    json_object *value = member(c, parent, name);

    if (!json_object_is_type(value, json_type_object))
        vec_fail(c, "%s is missing or not an object", name);
    return value;
}

double vec_number(const vec_case *c, json_object *parent, const char *name)
{
    return number_of(c, member(c, parent, name), name);
}

double vec_number_or(const vec_case *c, json_object *parent, const char *name,
                     double fallback)
{
    json_object *value = member(c, parent, name);

    return value == NULL ? fallback : number_of(c, value, name);
}

int64_t vec_integer(const vec_case *c, json_object *parent, const char *name)
{
    return integer_of(c, member(c, parent, name), name);
}

int64_t vec_integer_or(const vec_case *c, json_object *parent, const char *name,
                       int64_t fallback)
{
    json_object *value = member(c, parent, name);

    return value == NULL ? fallback : integer_of(c, value, name);
}

int vec_flag(const vec_case *c, json_object *parent, const char *name)
{
    json_object *value = member(c, parent, name);

    if (!json_object_is_type(value, json_type_boolean))
        vec_fail(c, "%s is missing or not true or false", name);
    return json_object_get_boolean(value) != 0;
}

const char *vec_string(const vec_case *c, json_object *parent, const char *name)
{
    json_object *value = member(c, parent, name);

    if (!json_object_is_type(value, json_type_string))
        vec_fail(c, "%s is missing or not a string", name);
    return json_object_get_string(value);
}

static int64_t count_leaves(json_object *list)
{
    if (!json_object_is_type(list, json_type_array))
        return 1;
    int64_t count = 0;
    for (size_t i = 0; i < json_object_array_length(list); i++)
        count += count_leaves(json_object_array_get_idx(list, i));
    return count;
}

static json_object *list_of(const vec_case *c, json_object *parent, const char *name,
                            int64_t *count)
{
    json_object *list = member(c, parent, name);

    if (!json_object_is_type(list, json_type_array))
        vec_fail(c, "%s is missing or not a list", name);
    *count = count_leaves(list);
    return list;
}

static void read_leaves(const vec_case *c, json_object *list, const char *name,
                        double **doubles, int64_t **integers)
{
    if (json_object_is_type(list, json_type_array)) {
        for (size_t i = 0; i < json_object_array_length(list); i++)
            read_leaves(c, json_object_array_get_idx(list, i), name, doubles, integers);
    } else if (doubles != NULL) {
        *(*doubles)++ = number_of(c, list, name);
    } else {
        *(*integers)++ = integer_of(c, list, name);
    }
}

double *vec_numbers(const vec_case *c, json_object *parent, const char *name,
                    int64_t *count)
{
    json_object *list = list_of(c, parent, name, count);
    double *numbers = vec_alloc(c, *count, sizeof *numbers), *at = numbers;

    read_leaves(c, list, name, &at, NULL);
    return numbers;
}

int64_t *vec_integers(const vec_case *c, json_object *parent, const char *name,
                      int64_t *count)
{
    json_object *list = list_of(c, parent, name, count);
    int64_t *numbers = vec_alloc(c, *count, sizeof *numbers), *at = numbers;

    read_leaves(c, list, name, NULL, &at);
    return numbers;
}

double *vec_expected(const vec_case *c, const char *name, int64_t count)
{
    int64_t found;
    double *numbers = vec_numbers(c, c->expect, name, &found);

    if (found != count)
        vec_fail(c, "%s has %lld numbers, the shapes of the case call for %lld", name,
                 (long long)found, (long long)count);
    return numbers;
}

float *vec_input(const vec_case *c, const char *name, int64_t shape[4], int *rank)
{
    json_object *record = vec_object(c, c->inputs, name);
    const char *generator = vec_string(c, record, "generator");
    int64_t start = vec_integer(c, record, "start"), num_axes, count = 1;
    int64_t *axes = vec_integers(c, record, "shape", &num_axes);
    double scale = vec_number(c, record, "scale");

    if (strcmp(generator, "golden_hash") != 0)
        vec_fail(c, "the generator of %s is %s, known: golden_hash", name, generator);
    if (num_axes < 1 || num_axes > 4)
        vec_fail(c, "%s has %lld axes, must be 1 to 4", name, (long long)num_axes);
    for (int64_t i = 0; i < num_axes; i++) {
        if (axes[i] < 1 || axes[i] > MAX_NUMBERS || count > MAX_NUMBERS / axes[i])
            vec_fail(c, "axis %lld of %s is %lld", (long long)i, name,
                     (long long)axes[i]);
        count *= axes[i];
        shape[i] = axes[i];
    }
    *rank = (int)num_axes;

    float *values = vec_alloc(c, count, sizeof *values);
    for (int64_t i = 0; i < count; i++) {
        uint32_t hash = (uint32_t)(start + i) * 2654435761u;
        values[i] = (float)(scale * ((hash >> 8) / 0x1p24 - 0.5));
    }
    return values;
}

void vec_tensor(const vec_case *c, pe_tensor *t, const float *data, const char *axes,
                const int64_t shape[4], int rank)
{
    if (rank == 4 && strcmp(axes, "BHTD") == 0)
        pe_tensor_bhsd(t, PE_F32, data, shape[0], shape[1], shape[2], shape[3]);
    else if (rank == 4 && strcmp(axes, "BTHD") == 0)
        pe_tensor_bshd(t, PE_F32, data, shape[0], shape[1], shape[2], shape[3]);
    else if (rank == 3 && strcmp(axes, "THD") == 0)
        pe_tensor_bshd(t, PE_F32, data, 1, shape[0], shape[1], shape[2]);
    else
        vec_fail(c, "axes is %s for a tensor of %d axes, known: BHTD, BTHD, THD", axes,
                 rank);
}

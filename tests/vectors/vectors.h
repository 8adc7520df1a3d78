/* SPDX-License-Identifier: MIT
 *
 * vectors.h - what the families of golden vectors share
 *
 * A check reads its case through the accessors below and ends by returning (passed) or
 * in vec_fail, which prints the case's line and leaves the check by longjmp; what
 * vec_alloc and vec_rope handed out is freed either way. */
#ifndef PE_TESTS_VECTORS_H
#define PE_TESTS_VECTORS_H

#include <json-c/json.h>

#include "posenc/env.h"

typedef struct vec_case vec_case;
typedef void (*vec_check)(vec_case *c);

struct vec_case {
    const char *id, *kind;
    json_object *spec, *inputs, *expect, *tolerance; /* NULL where absent */
};

/* One kind of one family; check NULL ends a list. */
typedef struct vec_kind {
    const char *kind;
    vec_check check;
} vec_kind;

extern const vec_kind vec_rope_freqs_kinds[], vec_rope_cache_kinds[],
    vec_rope_apply_kinds[], vec_mrope_kinds[], vec_attn_scale_kinds[],
    vec_alibi_kinds[], vec_lesson_kinds[], vec_sinusoidal_kinds[], vec_learned_kinds[],
    vec_attention_kinds[];

/* The lesson's examples that other families' files know how to make. */
void vec_lesson_alibi_slopes(vec_case *c);
void vec_lesson_alibi_softmax(vec_case *c);
void vec_lesson_sinusoidal(vec_case *c);

/* What storing a result as float may add: half an ulp, at values of up to 1 that of 1. */
double vec_float_rounding(double exact);

/* What vector kernels may add to that: they round a product before the sum, of elements
 * of x and a float table that factor multiplies.  The scalar ones do not: 0. */
double vec_product_rounding(pe_isa isa, const float *x, int64_t count, double factor);

/* "FAIL id: ..." */
_Noreturn void vec_fail(const vec_case *c, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Fails the case unless |got - exact| <= allowed (a NaN never passes). */
void vec_near(const vec_case *c, const char *what, int64_t index, double got,
              double exact, double allowed);

/* A member of the right type, or the case fails; _or: absent and null give fallback. */
json_object *vec_object(const vec_case *c, json_object *parent, const char *name);
double vec_number(const vec_case *c, json_object *parent, const char *name);
double vec_number_or(const vec_case *c, json_object *parent, const char *name,
                     double fallback);
int64_t vec_integer(const vec_case *c, json_object *parent, const char *name);
int64_t vec_integer_or(const vec_case *c, json_object *parent, const char *name,
                       int64_t fallback);
int vec_flag(const vec_case *c, json_object *parent, const char *name);
const char *vec_string(const vec_case *c, json_object *parent, const char *name);

/* All numbers of a (nested) list, in order. */
double *vec_numbers(const vec_case *c, json_object *parent, const char *name,
                    int64_t *count);
int64_t *vec_integers(const vec_case *c, json_object *parent, const char *name,
                      int64_t *count);

/* The numbers of expect->name, which must be count of them. */
double *vec_expected(const vec_case *c, const char *name, int64_t count);

/* A generated input and its shape. */
float *vec_input(const vec_case *c, const char *name, int64_t shape[4], int *rank);

void *vec_alloc(const vec_case *c, int64_t count, size_t size);

/* Spec of a case with the usual keys (head_dim, rotary_dim, theta, scaling, ...), and
 * the plan of a spec, which the case owns. */
void vec_rope_spec(const vec_case *c, pe_rope_spec *spec);
pe_rope *vec_rope(const vec_case *c, const pe_rope_spec *spec);

/* The same for an instruction set that is available here.  Checks of rotations and
 * tables run on every one: for (pe_isa isa = vec_isa_next(0); isa; ...). */
pe_rope *vec_rope_on(const vec_case *c, const pe_rope_spec *spec, pe_isa isa);
pe_isa vec_isa_next(pe_isa isa); /* the next one available, 0 after the last */

/* A float tensor of shape (batch, heads, seq, dim), (batch, seq, heads, dim) or
 * (seq, heads, dim) as axes says: BHTD, BTHD, THD. */
void vec_tensor(const vec_case *c, pe_tensor *t, const float *data, const char *axes,
                const int64_t shape[4], int rank);

#endif /* PE_TESTS_VECTORS_H */

/* SPDX-License-Identifier: MIT
 *
 * pass.c - the layers, forward and backward, on arrays that a pass keeps
 *
 * Forward alone needs the arrays of one layer, which all layers share.  With backward
 * each has its own, for what it read and made; GELU leaves its slope where its argument
 * was, so that backward makes no exponential again. */
#include "pass.h"

#include "attend.h"
#include "input.h"
#include "loops.h"
#include "matmul.h"

#include <stdlib.h>
#include <string.h>

typedef struct lab_pass_layer {
    float *x, *n1, *qkv, *attended; /* x: what the layer reads */
    float *middle, *n2;    /* x plus attention; the same array as x if shared */
    float *inner, *active; /* argument of GELU, later its slope; its value */
    float *root1, *root2;  /* of the norms; NULL if shared */
} lab_pass_layer;

enum { MAX_ARRAYS = 16 + 10 * LAB_MAX_LAYERS };

struct lab_pass {
    lab_pass_spec spec;
    lab_memory memory;
    const lab_loops *loops;
    lab_input *input;
    lab_attend *attend;
    int64_t count, width; /* rows * tokens */
    float *arrays[MAX_ARRAYS];
    int64_t sizes[MAX_ARRAYS];
    int num_arrays;
    uint8_t *bytes, *targets; /* [count] */
    lab_pass_layer layer[LAB_MAX_LAYERS];
    float *x, *n, *root; /* after the last layer */
    float *logits, *log_sum, *nll;
    float *dx, *dn, *dqkv, *wide; /* backward; wide: 4 width, or logits */
};

/* ------------------------------------------------------------------------- create --- */

/* [count][columns] floats, remembered for destroy.  *failed is set, never cleared. */
static float *take(lab_pass *pass, int64_t columns, int *failed)
{
    if (pass->count > INT64_MAX / columns)
        *failed = 1;
    if (*failed)
        return NULL;
    const int64_t size = pass->count * columns;
    float *array = lab_memory_take(&pass->memory, size, sizeof *array);
    if (array == NULL) {
        *failed = 1;
        return NULL;
    }
    pass->sizes[pass->num_arrays] = size;
    pass->arrays[pass->num_arrays++] = array;
    return array;
}

static lab_pass_layer take_layer(lab_pass *pass, int *failed)
{
    const int64_t d = pass->width;
    const int backward = pass->spec.has_backward;
    lab_pass_layer l = {0};
    l.x = take(pass, d, failed);
    l.n1 = take(pass, d, failed);
    l.qkv = take(pass, 3 * d, failed);
    l.attended = take(pass, d, failed);
    l.middle = backward ? take(pass, d, failed) : l.x;
    l.n2 = backward ? take(pass, d, failed) : l.n1;
    l.inner = take(pass, 4 * d, failed);
    l.active = take(pass, 4 * d, failed);
    l.root1 = backward ? take(pass, 1, failed) : NULL;
    l.root2 = backward ? take(pass, 1, failed) : NULL;
    return l;
}

static void take_arrays(lab_pass *pass, int *failed)
{
    const int64_t d = pass->width;
    const int backward = pass->spec.has_backward;
    for (int32_t i = 0; i < pass->spec.config->layers; i++)
        pass->layer[i] = backward || i == 0 ? take_layer(pass, failed) : pass->layer[0];
    pass->x = backward ? take(pass, d, failed) : pass->layer[0].x;
    pass->n = backward ? take(pass, d, failed) : pass->layer[0].n1;
    pass->root = backward ? take(pass, 1, failed) : NULL;
    pass->logits = take(pass, LAB_VOCAB, failed);
    pass->log_sum = take(pass, 1, failed);
    pass->nll = take(pass, 1, failed);
    if (!backward)
        return;
    pass->dx = take(pass, d, failed);
    pass->dn = take(pass, d, failed);
    pass->dqkv = take(pass, 3 * d, failed);
    pass->wide = take(pass, 4 * d > LAB_VOCAB ? 4 * d : LAB_VOCAB, failed);
}

static pe_status check(const lab_pass_spec *spec, pe_error *error)
{
    if (spec->rows < 1 || spec->tokens < 1 || spec->rows > INT32_MAX / spec->tokens)
        return lab_fail(error, PE_E_ARGUMENT,
                        "rows is %lld and tokens %lld, must be at least 1, and at most "
                        "%d when multiplied",
                        (long long)spec->rows, (long long)spec->tokens, INT32_MAX);
    if (spec->has_backward && spec->mode.type != LAB_MODE_BASE)
        return lab_fail(error, PE_E_ARGUMENT,
                        "mode is not base, which is the only one with gradients");
    const pe_status status = lab_mode_check(&spec->mode, spec->config, error);
    return status == PE_OK ? lab_matmul_load(error) : status;
}

static pe_status create(lab_pass *pass, pe_error *error)
{
    int failed = 0;
    pe_status status;
    take_arrays(pass, &failed);
    pass->bytes = lab_memory_take(&pass->memory, pass->count, 1);
    pass->targets = lab_memory_take(&pass->memory, pass->count, 1);
    if (failed || pass->bytes == NULL || pass->targets == NULL)
        return lab_fail(error, PE_E_NO_MEMORY, "no memory for %lld tokens at once",
                        (long long)pass->count);
    if ((status = lab_input_create(&pass->input, &pass->spec, &pass->memory, error)) !=
        PE_OK)
        return status;
    return lab_attend_create(&pass->attend, &pass->spec, &pass->memory, error);
}

pe_status lab_pass_create(lab_pass **out, const lab_pass_spec *spec, pe_error *error)
{
    *out = NULL;
    pe_status status = check(spec, error);
    if (status != PE_OK)
        return status;
    lab_pass *pass = calloc(1, sizeof *pass);
    if (pass == NULL)
        return lab_fail(error, PE_E_NO_MEMORY, "no memory for a pass");
    pass->spec = *spec;
    pass->loops = lab_loops_get(spec->isa);
    pass->count = spec->rows * spec->tokens;
    pass->width = spec->config->width;
    status = create(pass, error);
    if (status != PE_OK) {
        lab_pass_destroy(pass);
        return status;
    }
    *out = pass;
    return PE_OK;
}

void lab_pass_destroy(lab_pass *pass)
{
    if (pass == NULL)
        return;
    lab_attend_destroy(pass->attend);
    lab_input_destroy(pass->input);
    for (int i = 0; i < pass->num_arrays; i++)
        lab_memory_return(&pass->memory, pass->arrays[i], pass->sizes[i],
                          sizeof(float));
    lab_memory_return(&pass->memory, pass->bytes, pass->count, 1);
    lab_memory_return(&pass->memory, pass->targets, pass->count, 1);
    free(pass);
}

const float *lab_pass_logits(const lab_pass *pass)
{
    return pass->logits;
}

size_t lab_pass_memory(const lab_pass *pass)
{
    return pass->memory.most + sizeof *pass;
}

/* ------------------------------------------------------------------------ forward --- */

static void copy(const lab_pass *pass, float *to, const float *from)
{
    if (to != from)
        memcpy(to, from, (size_t)(pass->count * pass->width) * sizeof *to);
}

static pe_status forward_layer(lab_pass *pass, int32_t i, const float *w, float *next,
                               pe_error *error)
{
    const lab_layer_offsets *at = &pass->spec.layout->layer[i];
    const lab_pass_layer *l = &pass->layer[i];
    const int64_t n = pass->count, d = pass->width;
    pass->loops->norm(n, d, l->x, w + at->n1, l->n1, l->root1);
    lab_matmul_nt(n, 3 * d, d, l->n1, w + at->qkv, l->qkv, 0);
    const pe_status status =
        lab_attend_forward(pass->attend, i, l->qkv, l->attended, error);
    if (status != PE_OK)
        return status;
    copy(pass, l->middle, l->x);
    lab_matmul_nt(n, d, d, l->attended, w + at->o, l->middle, 1);
    pass->loops->norm(n, d, l->middle, w + at->n2, l->n2, l->root2);
    lab_matmul_nt(n, 4 * d, d, l->n2, w + at->f1, l->inner, 0);
    pass->loops->gelu(n * 4 * d, l->inner, l->active,
                      pass->spec.has_backward ? l->inner : NULL);
    copy(pass, next, l->middle);
    lab_matmul_nt(n, d, 4 * d, l->active, w + at->f2, next, 1);
    return PE_OK;
}

pe_status lab_pass_forward(lab_pass *pass, const float *weights, const uint8_t *ids,
                           int64_t stride, float *nll, pe_error *error)
{
    const lab_layout *layout = pass->spec.layout;
    const int64_t n = pass->count, d = pass->width, tokens = pass->spec.tokens;
    const int32_t layers = pass->spec.config->layers;
    pe_status status = lab_attend_update(pass->attend, weights, error);
    for (int64_t r = 0; r < pass->spec.rows; r++) {
        memcpy(pass->bytes + r * tokens, ids + r * stride, (size_t)tokens);
        memcpy(pass->targets + r * tokens, ids + r * stride + 1, (size_t)tokens);
    }
    if (status == PE_OK)
        status = lab_input_forward(pass->input, weights, pass->bytes, pass->layer[0].x,
                                   error);
    for (int32_t i = 0; i < layers && status == PE_OK; i++)
        status = forward_layer(pass, i, weights,
                               i + 1 < layers ? pass->layer[i + 1].x : pass->x, error);
    if (status != PE_OK)
        return status;
    pass->loops->norm(n, d, pass->x, weights + layout->n, pass->n, pass->root);
    lab_matmul_nt(n, LAB_VOCAB, d, pass->n, weights + layout->u, pass->logits, 0);
    pass->loops->loss(n, pass->logits, pass->targets, nll != NULL ? nll : pass->nll,
                      pass->log_sum);
    return PE_OK;
}

/* ----------------------------------------------------------------------- backward --- */

/* What is added to comes first as zeroes, and the gaps; products overwrite the rest. */
static void clear_sums(const lab_pass *pass, float *grads)
{
    const lab_layout *layout = pass->spec.layout;
    int64_t end = layout->size;
    for (int32_t i = layout->count - 1; i >= 0; i--) {
        const lab_parameter *item = &layout->items[i];
        const int64_t offset = item->offset, size = lab_parameter_size(item);
        const int is_product = item->decays && offset != layout->e &&
                               offset != layout->p && offset != layout->t5;
        const int64_t begin = is_product ? offset + size : offset;
        memset(grads + begin, 0, (size_t)(end - begin) * sizeof *grads);
        end = offset;
    }
}

/* pass->dx: in, the gradient of what the layer made; out, of what it read. */
static pe_status backward_layer(lab_pass *pass, int32_t i, const float *w, float *g,
                                pe_error *error)
{
    const lab_layer_offsets *at = &pass->spec.layout->layer[i];
    const lab_pass_layer *l = &pass->layer[i];
    const lab_loops *loops = pass->loops;
    const int64_t n = pass->count, d = pass->width;
    lab_matmul_tn(d, 4 * d, n, pass->dx, l->active, g + at->f2, 0);
    lab_matmul_nn(n, 4 * d, d, pass->dx, w + at->f2, pass->wide, 0);
    loops->multiply(n * 4 * d, pass->wide, l->inner);
    lab_matmul_tn(4 * d, d, n, pass->wide, l->n2, g + at->f1, 0);
    lab_matmul_nn(n, d, 4 * d, pass->wide, w + at->f1, pass->dn, 0);
    loops->norm_back(n, d, l->middle, w + at->n2, l->root2, pass->dn, pass->dx,
                     g + at->n2);
    lab_matmul_tn(d, d, n, pass->dx, l->attended, g + at->o, 0);
    lab_matmul_nn(n, d, d, pass->dx, w + at->o, pass->dn, 0);
    const pe_status status = lab_attend_backward(pass->attend, i, l->qkv, l->attended,
                                                 pass->dn, pass->dqkv, g, error);
    if (status != PE_OK)
        return status;
    lab_matmul_tn(3 * d, d, n, pass->dqkv, l->n1, g + at->qkv, 0);
    lab_matmul_nn(n, d, 3 * d, pass->dqkv, w + at->qkv, pass->dn, 0);
    loops->norm_back(n, d, l->x, w + at->n1, l->root1, pass->dn, pass->dx, g + at->n1);
    return PE_OK;
}

pe_status lab_pass_backward(lab_pass *pass, const float *weights, double scale,
                            float *grads, pe_error *error)
{
    const lab_layout *layout = pass->spec.layout;
    const int64_t n = pass->count, d = pass->width;
    pe_status status = PE_OK;
    clear_sums(pass, grads);
    pass->loops->loss_back(n, pass->logits, pass->targets, pass->log_sum, (float)scale,
                           pass->wide);
    lab_matmul_tn(LAB_VOCAB, d, n, pass->wide, pass->n, grads + layout->u, 0);
    lab_matmul_nn(n, d, LAB_VOCAB, pass->wide, weights + layout->u, pass->dn, 0);
    memset(pass->dx, 0, (size_t)(n * d) * sizeof *pass->dx);
    pass->loops->norm_back(n, d, pass->x, weights + layout->n, pass->root, pass->dn,
                           pass->dx, grads + layout->n);
    for (int32_t i = pass->spec.config->layers - 1; i >= 0 && status == PE_OK; i--)
        status = backward_layer(pass, i, weights, grads, error);
    if (status != PE_OK)
        return status;
    return lab_input_backward(pass->input, weights, pass->bytes, pass->dx, grads,
                              error);
}

/* SPDX-License-Identifier: MIT
 *
 * adamw.c - the optimiser, as PyTorch's AdamW and clip_grad_norm_ compute it
 */
#include "adamw.h"

#include "loops.h"

#include <math.h>
#include <stdlib.h>

enum {
    PIECE = 8192 /* floats: weights, moments and gradients fit into a core's cache */
};

static const double beta1 = 0.9, beta2 = 0.95, epsilon = 1e-8;

typedef struct lab_piece {
    const lab_parameter *parameter;
    int64_t offset, count;
    double square; /* sum of the squares of its gradients */
} lab_piece;

struct lab_adamw {
    const lab_loops *loops;
    pe_executor executor;
    int64_t num_pieces;
    lab_piece *pieces;
    float *const *grads; /* of the call at work */
    int64_t num_grads;
    lab_state *state;
    lab_adamw_rates rates;
};

/* ------------------------------------------------------------------------- create --- */

static int64_t pieces_of(const lab_parameter *parameter)
{
    return (lab_parameter_size(parameter) + PIECE - 1) / PIECE;
}

static void cut(lab_adamw *adamw, const lab_layout *layout)
{
    lab_piece *piece = adamw->pieces;
    for (int32_t i = 0; i < layout->count; i++) {
        const lab_parameter *parameter = &layout->items[i];
        const int64_t size = lab_parameter_size(parameter);
        for (int64_t begin = 0; begin < size; begin += PIECE)
            *piece++ =
                (lab_piece){.parameter = parameter,
                            .offset = parameter->offset + begin,
                            .count = size - begin < PIECE ? size - begin : PIECE};
    }
}

pe_status lab_adamw_create(lab_adamw **out, const lab_layout *layout, const pe_env *env,
                           pe_error *error)
{
    int64_t num_pieces = 0;
    for (int32_t i = 0; i < layout->count; i++)
        num_pieces += pieces_of(&layout->items[i]);
    *out = calloc(1, sizeof **out);
    lab_piece *pieces = calloc((size_t)num_pieces, sizeof *pieces);
    if (*out == NULL || pieces == NULL) {
        free(*out);
        free(pieces);
        *out = NULL;
        return lab_fail(error, PE_E_NO_MEMORY, "no memory for the optimiser");
    }
    (*out)->loops = lab_loops_get(env != NULL ? env->isa : PE_ISA_AUTO);
    if (env != NULL)
        (*out)->executor = env->executor;
    (*out)->num_pieces = num_pieces;
    (*out)->pieces = pieces;
    cut(*out, layout);
    return PE_OK;
}

void lab_adamw_destroy(lab_adamw *adamw)
{
    if (adamw == NULL)
        return;
    free(adamw->pieces);
    free(adamw);
}

/* -------------------------------------------------------------------------- calls --- */

static void sum_pieces(void *arg, int32_t worker, int64_t begin, int64_t end)
{
    const lab_adamw *a = arg;
    (void)worker;
    for (int64_t i = begin; i < end; i++) {
        lab_piece *piece = &a->pieces[i];
        float *sum = a->grads[0] + piece->offset;
        for (int64_t g = 1; g < a->num_grads; g++)
            a->loops->add(piece->count, sum, a->grads[g] + piece->offset);
        piece->square = a->loops->sum_of_squares(piece->count, sum);
    }
}

double lab_adamw_sum(lab_adamw *adamw, float *const *grads, int64_t count)
{
    double square = 0;
    adamw->grads = grads;
    adamw->num_grads = count;
    lab_run(&adamw->executor, adamw->num_pieces, sum_pieces, adamw);
    for (int64_t i = 0; i < adamw->num_pieces; i++)
        square += adamw->pieces[i].square;
    return sqrt(square);
}

static void raise(float *w, int64_t count, double least)
{
    for (int64_t i = 0; i < count && least > -INFINITY; i++)
        w[i] = w[i] < (float)least ? (float)least : w[i];
}

static void step_pieces(void *arg, int32_t worker, int64_t begin, int64_t end)
{
    const lab_adamw *a = arg;
    const lab_state *state = a->state;
    (void)worker;
    for (int64_t i = begin; i < end; i++) {
        const lab_piece *piece = &a->pieces[i];
        lab_adamw_rates rates = a->rates;
        float *w = state->weights + piece->offset;
        if (!piece->parameter->decays)
            rates.keep = 1;
        a->loops->adamw(&rates, piece->count, w, state->moment1 + piece->offset,
                        state->moment2 + piece->offset, a->grads[0] + piece->offset);
        raise(w, piece->count, piece->parameter->least);
    }
}

void lab_adamw_step(lab_adamw *adamw, lab_state *state, const float *grads, double norm,
                    double rate)
{
    const double clip = state->config.clip / (norm + 1e-6);
    const double step = (double)(state->step + 1);
    float *only = (float *)(uintptr_t)grads;
    adamw->grads = &only;
    adamw->state = state;
    adamw->rates =
        (lab_adamw_rates){.clip = (float)(clip < 1 ? clip : 1),
                          .keep = (float)(1 - rate * state->config.weight_decay),
                          .rate = (float)(rate / (1 - pow(beta1, step))),
                          .root = (float)(1 / sqrt(1 - pow(beta2, step))),
                          .beta1 = (float)beta1,
                          .beta2 = (float)beta2,
                          .epsilon = (float)epsilon};
    lab_run(&adamw->executor, adamw->num_pieces, step_pieces, adamw);
    state->step++;
}

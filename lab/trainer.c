/* SPDX-License-Identifier: MIT
 *
 * trainer.c - one step: rows drawn, chunks run side by side, gradients added, AdamW
 *
 * Workers have a pass each, made when they first need it; chunks have gradients each, so
 * that which worker ran a chunk does not show. */
#include "trainer.h"

#include "adamw.h"
#include "matmul.h"
#include "random.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK_ROWS = 8 }; /* 4, 16 and 32 rows of 64 tokens are 4 to 7% slower */

typedef struct lab_worker {
    lab_pass *pass; /* of whole chunks */
    pe_status status;
    pe_error error;
} lab_worker;

struct lab_trainer {
    lab_state *state;
    const lab_corpus *corpus;
    const int64_t *offsets;
    pe_env env;
    lab_adamw *adamw;
    int64_t num_chunks, num_workers;
    lab_worker *workers;
    lab_worker rest; /* of a last chunk that is smaller */
    float **grads;   /* [num_chunks][layout.size] */
    uint8_t *ids;    /* [batch][length + 1] */
    float *nll;      /* [batch][length] */
};

/* ------------------------------------------------------------------------- create --- */

static int64_t rows_of(const lab_trainer *t, int64_t chunk)
{
    const int64_t rest = t->state->config.batch - chunk * CHUNK_ROWS;
    return rest < CHUNK_ROWS ? rest : CHUNK_ROWS;
}

static pe_status check(const lab_state *state, const lab_corpus *corpus,
                       pe_error *error)
{
    const pe_status status = lab_config_check(&state->config, error);
    if (status != PE_OK)
        return status;
    if (corpus->train_size <= state->config.length)
        return lab_fail(error, PE_E_ARGUMENT,
                        "length is %d, must be below the %lld bytes of %s to train on",
                        state->config.length, (long long)corpus->train_size,
                        corpus->name);
    return lab_matmul_load(error);
}

static pe_status allocate(lab_trainer *t, pe_error *error)
{
    const lab_config *config = &t->state->config;
    const size_t rows = (size_t)config->batch, length = (size_t)config->length;
    t->workers = calloc((size_t)t->num_workers, sizeof *t->workers);
    t->grads = calloc((size_t)t->num_chunks, sizeof *t->grads);
    t->ids = malloc(rows * (length + 1));
    t->nll = malloc(rows * length * sizeof *t->nll);
    int missing =
        t->workers == NULL || t->grads == NULL || t->ids == NULL || t->nll == NULL;
    for (int64_t i = 0; i < t->num_chunks && !missing; i++) {
        t->grads[i] =
            aligned_alloc(64, (size_t)t->state->layout.size * sizeof **t->grads);
        missing = t->grads[i] == NULL;
    }
    if (missing)
        return lab_fail(
            error, PE_E_NO_MEMORY,
            "no memory for steps of %lld rows of %lld tokens: %.0f bytes "
            "for the losses, %.0f for %lld gradients of %lld weights",
            (long long)rows, (long long)length,
            (double)rows * (double)length * sizeof *t->nll,
            (double)t->num_chunks * (double)t->state->layout.size * sizeof **t->grads,
            (long long)t->num_chunks, (long long)t->state->layout.num_weights);
    return lab_adamw_create(&t->adamw, &t->state->layout, &t->env, error);
}

pe_status lab_trainer_create(lab_trainer **out, lab_state *state,
                             const lab_corpus *corpus, const int64_t *offsets,
                             const pe_env *env, pe_error *error)
{
    *out = NULL;
    pe_status status = check(state, corpus, error);
    if (status != PE_OK)
        return status;
    lab_trainer *t = calloc(1, sizeof *t);
    if (t == NULL)
        return lab_fail(error, PE_E_NO_MEMORY, "no memory for a trainer");
    t->state = state;
    t->corpus = corpus;
    t->offsets = offsets;
    if (env != NULL)
        t->env = *env;
    t->num_workers = t->env.executor.run != NULL ? t->env.executor.num_workers : 1;
    t->num_chunks = (state->config.batch + CHUNK_ROWS - 1) / CHUNK_ROWS;
    status = allocate(t, error);
    if (status != PE_OK) {
        lab_trainer_destroy(t);
        return status;
    }
    *out = t;
    return PE_OK;
}

void lab_trainer_destroy(lab_trainer *t)
{
    if (t == NULL)
        return;
    for (int64_t i = 0; i < t->num_workers && t->workers != NULL; i++)
        lab_pass_destroy(t->workers[i].pass);
    for (int64_t i = 0; i < t->num_chunks && t->grads != NULL; i++)
        free(t->grads[i]);
    lab_pass_destroy(t->rest.pass);
    lab_adamw_destroy(t->adamw);
    free(t->workers);
    free(t->grads);
    free(t->ids);
    free(t->nll);
    free(t);
}

size_t lab_trainer_memory(const lab_trainer *t)
{
    const lab_config *config = &t->state->config;
    const size_t tokens = (size_t)config->batch * (size_t)config->length;
    size_t sum = tokens * (sizeof *t->nll + 1) + (size_t)config->batch;
    sum += (size_t)(t->num_chunks + 3) * (size_t)t->state->layout.size * sizeof(float);
    for (int64_t i = 0; i < t->num_workers; i++)
        if (t->workers[i].pass != NULL)
            sum += lab_pass_memory(t->workers[i].pass);
    return sum + (t->rest.pass != NULL ? lab_pass_memory(t->rest.pass) : 0);
}

/* ------------------------------------------------------------------------- chunks --- */

static pe_status draw_rows(const lab_trainer *t, pe_error *error)
{
    const lab_config *config = &t->state->config;
    const int64_t length = config->length, batch = config->batch;
    const int64_t starts = t->corpus->train_size - length;
    for (int64_t row = 0; row < batch; row++) {
        const int64_t place = t->state->step * batch + row;
        const int64_t start = t->offsets != NULL
                                  ? t->offsets[place]
                                  : lab_random_below(config->seed, LAB_STREAM_OFFSETS,
                                                     (uint64_t)place, starts);
        if (start < 0 || start >= starts)
            return lab_fail(error, PE_E_ARGUMENT,
                            "offset of step %lld, row %lld is %lld, must be in 0 .. "
                            "%lld",
                            (long long)t->state->step, (long long)row, (long long)start,
                            (long long)(starts - 1));
        memcpy(t->ids + row * (length + 1), t->corpus->train + start,
               (size_t)length + 1);
    }
    return PE_OK;
}

static pe_status run_chunk(const lab_trainer *t, lab_worker *worker, int64_t chunk)
{
    const lab_state *state = t->state;
    const int64_t length = state->config.length, first = chunk * CHUNK_ROWS;
    pe_status status = PE_OK;
    if (worker->pass == NULL) {
        const lab_pass_spec spec = {.config = &state->config,
                                    .layout = &state->layout,
                                    .mode = {.times = 1},
                                    .rows = rows_of(t, chunk),
                                    .tokens = length,
                                    .has_backward = 1,
                                    .isa = t->env.isa};
        status = lab_pass_create(&worker->pass, &spec, &worker->error);
    }
    if (status == PE_OK)
        status = lab_pass_forward(worker->pass, state->weights,
                                  t->ids + first * (length + 1), length + 1,
                                  t->nll + first * length, &worker->error);
    if (status == PE_OK)
        status = lab_pass_backward(worker->pass, state->weights,
                                   1 / ((double)state->config.batch * (double)length),
                                   t->grads[chunk], &worker->error);
    return status;
}

static void run_chunks(void *arg, int32_t worker, int64_t begin, int64_t end)
{
    lab_trainer *t = arg;
    for (int64_t i = begin; i < end; i++) {
        lab_worker *w = rows_of(t, i) < CHUNK_ROWS ? &t->rest : &t->workers[worker];
        if (w->status == PE_OK)
            w->status = run_chunk(t, w, i);
    }
}

static pe_status collect(const lab_trainer *t, pe_error *error)
{
    const lab_worker *failed = t->rest.status != PE_OK ? &t->rest : NULL;
    for (int64_t i = t->num_workers - 1; i >= 0; i--)
        if (t->workers[i].status != PE_OK)
            failed = &t->workers[i];
    if (failed == NULL)
        return PE_OK;
    return lab_fail(error, failed->status, "%s", failed->error.message);
}

/* --------------------------------------------------------------------------- step --- */

static double mean_loss(const lab_trainer *t)
{
    const int64_t count = (int64_t)t->state->config.batch * t->state->config.length;
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += (double)t->nll[i];
    return sum / (double)count;
}

static const lab_parameter *first_not_finite(const lab_layout *layout, const float *x,
                                             int64_t *element)
{
    for (int32_t i = 0; i < layout->count; i++)
        for (int64_t j = 0; j < lab_parameter_size(&layout->items[i]); j++)
            if (!isfinite(x[layout->items[i].offset + j])) {
                *element = j;
                return &layout->items[i];
            }
    return NULL;
}

static pe_status refuse(const lab_trainer *t, double loss, pe_error *error)
{
    const lab_layout *layout = &t->state->layout;
    const char *what = "weight";
    int64_t element = 0;
    const lab_parameter *first = first_not_finite(layout, t->state->weights, &element);
    if (first == NULL) {
        what = "gradient";
        first = first_not_finite(layout, t->grads[0], &element);
    }
    if (first == NULL)
        return lab_fail(error, PE_E_ARGUMENT,
                        "the loss of step %lld is %g, all gradients are finite",
                        (long long)(t->state->step + 1), loss);
    return lab_fail(error, PE_E_ARGUMENT,
                    "the loss of step %lld is %g, the first %s that is not finite is "
                    "element %lld of %s",
                    (long long)(t->state->step + 1), loss, what, (long long)element,
                    first->name);
}

pe_status lab_trainer_step(lab_trainer *t, lab_step *out, pe_error *error)
{
    lab_state *state = t->state;
    pe_status status = draw_rows(t, error);
    if (status != PE_OK)
        return status;
    for (int64_t i = 0; i < t->num_workers; i++)
        t->workers[i].status = PE_OK;
    t->rest.status = PE_OK;
    lab_run(&t->env.executor, t->num_chunks, run_chunks, t);
    if ((status = collect(t, error)) != PE_OK)
        return status;
    const double loss = mean_loss(t);
    const double norm = lab_adamw_sum(t->adamw, t->grads, t->num_chunks);
    if (!isfinite(loss) || !isfinite(norm))
        return refuse(t, loss, error);
    *out = (lab_step){loss, norm, lab_config_rate(&state->config, state->step)};
    state->loss_average =
        state->step == 0 ? loss : 0.98 * state->loss_average + 0.02 * loss;
    lab_adamw_step(t->adamw, state, t->grads[0], norm, out->rate);
    return PE_OK;
}

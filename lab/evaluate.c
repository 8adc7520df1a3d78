/* SPDX-License-Identifier: MIT
 *
 * evaluate.c - windows cut, read in groups of fixed size, and averaged
 *
 * Groups depend on the window alone and every window leaves its sums in a place of its
 * own, added at the end in order: so no number of threads shows in the bits. */
#include "evaluate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    GROUP_TOKENS = 1024, /* of one pass: what a core's second-level cache holds */
    MAX_GROUP_ROWS = 64
};

typedef struct worker {
    lab_pass *pass; /* made at the first group that falls to this worker */
    uint8_t *ids;   /* [rows][tokens + 1] */
    float *nll;     /* [rows][tokens] */
    pe_status status;
    pe_error error;
} worker;

typedef struct job {
    const lab_eval_spec *spec;
    int64_t length, tokens;      /* L and T */
    int64_t num_chunks, windows; /* windows: of one chunk */
    int64_t rows; /* of a group; the last group repeats its last window */
    worker *workers;
    double *sums; /* [windows of all chunks][multiple]: of each L tokens */
} job;

static pe_status check_fit(job *j, pe_error *error)
{
    const lab_eval_spec *spec = j->spec;
    const lab_corpus *corpus = spec->corpus;
    if (spec->multiple < 1 || spec->multiple > INT32_MAX / j->length)
        return lab_fail(error, PE_E_ARGUMENT, "multiple is %lld, must be in 1 .. %lld",
                        (long long)spec->multiple, (long long)(INT32_MAX / j->length));
    if (spec->slide && (spec->max_multiple < spec->multiple ||
                        spec->max_multiple > INT32_MAX / j->length))
        return lab_fail(error, PE_E_ARGUMENT,
                        "max_multiple is %lld, must be in %lld .. %lld",
                        (long long)spec->max_multiple, (long long)spec->multiple,
                        (long long)(INT32_MAX / j->length));
    j->tokens = spec->multiple * j->length;
    j->num_chunks = corpus->validation_size / corpus->chunk_size;
    const int64_t step = spec->slide ? j->length : j->tokens;
    const int64_t begin = spec->slide ? spec->max_multiple * j->length : 0;
    const int64_t share = spec->eval_tokens / j->num_chunks;
    const int64_t room = corpus->chunk_size - 1 - begin; /* the last byte is a target */
    if (share < j->length)
        return lab_fail(error, PE_E_ARGUMENT,
                        "eval_tokens is %lld, must be at least %lld: %lld for each of "
                        "%lld chunks",
                        (long long)spec->eval_tokens,
                        (long long)(j->length * j->num_chunks), (long long)j->length,
                        (long long)j->num_chunks);
    if (room < step)
        return lab_fail(
            error, PE_E_LIMIT,
            "%s windows of %lld tokens need chunks of %lld bytes, and those "
            "of %s have %lld",
            spec->slide ? "sliding" : "whole", (long long)j->tokens,
            (long long)(begin + step + 1), corpus->name, (long long)corpus->chunk_size);
    j->windows = (share < room ? share : room) / step;
    if (j->windows < 1)
        j->windows = 1;
    const int64_t rows = GROUP_TOKENS / j->tokens;
    j->rows = rows < 1 ? 1 : rows > MAX_GROUP_ROWS ? MAX_GROUP_ROWS : rows;
    return PE_OK;
}

/* Where a window begins in the validation bytes. */
static int64_t window_start(const job *j, int64_t window)
{
    const int64_t chunk = window / j->windows * j->spec->corpus->chunk_size;
    const int64_t place = window % j->windows;
    if (!j->spec->slide)
        return chunk + place * j->tokens;
    return chunk + (j->spec->max_multiple + place + 1) * j->length - j->tokens;
}

static pe_status prepare(const job *j, worker *w)
{
    const lab_eval_spec *spec = j->spec;
    if (w->pass != NULL)
        return PE_OK;
    const lab_pass_spec pass = {.config = spec->config,
                                .layout = spec->layout,
                                .mode = spec->mode,
                                .rows = j->rows,
                                .tokens = j->tokens,
                                .isa = spec->isa};
    w->ids = malloc((size_t)(j->rows * (j->tokens + 1)));
    w->nll = malloc((size_t)(j->rows * j->tokens) * sizeof *w->nll);
    if (w->ids == NULL || w->nll == NULL)
        return lab_fail(&w->error, PE_E_NO_MEMORY,
                        "out of memory: a window of %lld tokens", (long long)j->tokens);
    return lab_pass_create(&w->pass, &pass, &w->error);
}

static pe_status read_group(const job *j, worker *w, int64_t group)
{
    const int64_t first = group * j->rows, stride = j->tokens + 1;
    const int64_t total = j->windows * j->num_chunks;
    for (int64_t row = 0; row < j->rows; row++) {
        const int64_t window = first + row < total ? first + row : total - 1;
        memcpy(w->ids + row * stride,
               j->spec->corpus->validation + window_start(j, window), (size_t)stride);
    }
    const pe_status status =
        lab_pass_forward(w->pass, j->spec->weights, w->ids, stride, w->nll, &w->error);
    if (status != PE_OK)
        return status;
    for (int64_t row = 0; row < j->rows && first + row < total; row++)
        for (int64_t block = 0; block < j->spec->multiple; block++) {
            const float *nll = w->nll + row * j->tokens + block * j->length;
            double sum = 0;
            for (int64_t t = 0; t < j->length; t++)
                sum += (double)nll[t];
            j->sums[(first + row) * j->spec->multiple + block] = sum;
        }
    return PE_OK;
}

static void work(void *arg, int32_t index, int64_t begin, int64_t end)
{
    const job *j = arg;
    worker *w = &j->workers[index];
    if (w->status == PE_OK)
        w->status = prepare(j, w);
    for (int64_t group = begin; group < end && w->status == PE_OK; group++)
        w->status = read_group(j, w, group);
}

static pe_status average(const job *j, lab_eval *out, pe_error *error)
{
    const int64_t multiple = j->spec->multiple, total = j->windows * j->num_chunks;
    const int64_t first = j->spec->slide ? multiple - 1 : 0;
    double all = 0;
    for (int64_t block = 0; block < multiple; block++) {
        double sum = 0;
        for (int64_t window = 0; window < total; window++)
            sum += j->sums[window * multiple + block];
        if (block >= first)
            all += sum;
        if (out->by_position != NULL)
            out->by_position[block] = sum / (double)(total * j->length);
    }
    out->count = total * j->length * (multiple - first);
    out->nll = all / (double)out->count;
    if (!isfinite(out->nll))
        return lab_fail(error, PE_E_ARGUMENT, "the loss at %lld tokens is not finite",
                        (long long)j->tokens);
    return PE_OK;
}

static pe_status run(job *j, int32_t num_workers, lab_eval *out, pe_error *error)
{
    const int64_t total = j->windows * j->num_chunks;
    const int64_t groups = (total + j->rows - 1) / j->rows;
    lab_run(j->spec->executor, groups, work, j);
    for (int32_t i = 0; i < num_workers; i++) {
        const worker *w = &j->workers[i];
        if (w->status != PE_OK)
            return lab_fail(error, w->status, "%s", w->error.message);
        if (w->pass != NULL)
            out->memory = lab_pass_memory(w->pass);
    }
    return average(j, out, error);
}

static pe_status check(job *j, pe_error *error)
{
    const pe_status status = lab_mode_check(&j->spec->mode, j->spec->config, error);
    return status == PE_OK ? check_fit(j, error) : status;
}

pe_status lab_evaluate_check(const lab_eval_spec *spec, pe_error *error)
{
    job j = {.spec = spec, .length = spec->config->length};
    return check(&j, error);
}

pe_status lab_evaluate(const lab_eval_spec *spec, lab_eval *out, pe_error *error)
{
    job j = {.spec = spec, .length = spec->config->length};
    pe_status status = check(&j, error);
    if (status != PE_OK)
        return status;
    const double start = lab_now();
    const int32_t num_workers =
        spec->executor == NULL ? 1 : spec->executor->num_workers;
    j.workers = calloc((size_t)num_workers, sizeof *j.workers);
    j.sums =
        calloc((size_t)(j.windows * j.num_chunks * spec->multiple), sizeof *j.sums);
    if (j.workers == NULL || j.sums == NULL)
        status = lab_fail(error, PE_E_NO_MEMORY, "out of memory: %lld windows",
                          (long long)(j.windows * j.num_chunks));
    else
        status = run(&j, num_workers, out, error);
    for (int32_t i = 0; j.workers != NULL && i < num_workers; i++) {
        lab_pass_destroy(j.workers[i].pass);
        free(j.workers[i].ids);
        free(j.workers[i].nll);
    }
    free(j.workers);
    free(j.sums);
    out->seconds = lab_now() - start;
    return status;
}

const char *const *lab_modes_of(const lab_config *config)
{
    static const char *const learned[] = {"base", "clamp", "wrap", "interp", NULL};
    static const char *const rope[] = {"base",     "pi",       "ntk",     "dyn",
                                       "yarn",     "yarn-b8",  "yarn-b4", "yarn-b2",
                                       "parts-b8", "parts-b2", "ntkx2",   "ntkx4",
                                       "ntk@16",   "window",   NULL};
    static const char *const sin[] = {"base", "pi", "window", NULL};
    static const char *const others[] = {"base", "window", NULL};
    if (config->input == LAB_LEARNED)
        return learned;
    if (lab_config_has(config, LAB_ROPE))
        return rope;
    return config->input == LAB_SIN ? sin : others;
}

int lab_mode_tells(const lab_mode *mode, const lab_config *config, int64_t multiple)
{
    if (mode->type == LAB_MODE_BASE)
        return multiple == 1 || config->input != LAB_LEARNED;
    return multiple > 1 || mode->type == LAB_MODE_CLAMP || mode->fixed > 0;
}

int lab_mode_slides(const lab_mode *mode)
{
    return mode->type == LAB_MODE_BASE || mode->type == LAB_MODE_CLAMP ||
           (mode->type == LAB_MODE_NTK && mode->times == 1 && mode->fixed <= 0);
}

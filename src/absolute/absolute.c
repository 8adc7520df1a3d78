/* SPDX-License-Identifier: MIT
 *
 * absolute.c - filling and adding an absolute encoding, of whichever kind
 *
 * The sum is done in float where embed_scale is 1, which rounds once; else in double and
 * then rounded to float, unless the plan imitates code that rounds the product. */
#include "absolute/absolute.h"

#include "base/error.h"

typedef struct {
    const pe_absolute *plan;
    const pe_positions *at;
    const pe_tensor *x, *y; /* x NULL: fill */
    int64_t chunk;
} encoding;

pe_status pe_absolute_chunk(int64_t dim, const int64_t groups[3], const char *name,
                            int64_t *chunk, pe_error *error)
{
    int64_t product = 1;
    *chunk = dim;
    if (dim <= PE_MAX_VECTOR_DIM)
        return PE_OK;
    for (int i = 0; i < 3; i++) {
        if (groups[i] > PE_MAX_VECTOR_DIM / product)
            return pe_fail(error, PE_E_LIMIT,
                           "%s.dim is %lld, above %d the groups that share a scale or "
                           "block (%lld, %lld and %lld elements) must multiply to at "
                           "most that",
                           name, (long long)dim, PE_MAX_VECTOR_DIM,
                           (long long)groups[0], (long long)groups[1],
                           (long long)groups[2]);
        product *= groups[i];
    }
    *chunk = PE_MAX_VECTOR_DIM / product * product;
    return PE_OK;
}

/* y = scale * x + y, the product in double, the sum rounded to float. */
static void add_scaled(double scale, const float *x, int64_t n, float *y)
{
    enum { BLOCK = 256 };
    double products[BLOCK];
    for (int64_t i = 0; i < n; i += BLOCK) {
        const int64_t count = n - i < BLOCK ? n - i : BLOCK;
        for (int64_t k = 0; k < count; k++)
            products[k] = scale * (double)x[i + k];
        PE_KEEP_ARRAY(products);
        for (int64_t k = 0; k < count; k++)
            y[i + k] = (float)(products[k] + (double)y[i + k]);
    }
}

static void add_input(const pe_absolute *plan, const float *x, int64_t n, float *y)
{
    const float scale = (float)plan->embed_scale;
    if (plan->embed_scale == 1) {
        for (int64_t i = 0; i < n; i++)
            y[i] = x[i] + y[i];
    } else if (plan->float_steps) {
        for (int64_t i = 0; i < n; i++) {
            float product = scale * x[i];
            PE_KEEP(product);
            y[i] = product + y[i];
        }
    } else {
        add_scaled(plan->embed_scale, x, n, y);
    }
}

static void encode_tokens(void *arg, int32_t worker, int64_t begin, int64_t end)
{
    const encoding *job = arg;
    const pe_tensor *x = job->x, *y = job->y;
    float out[PE_MAX_VECTOR_DIM], in[PE_MAX_VECTOR_DIM];
    (void)worker;
    for (int64_t i = begin; i < end; i++) {
        const int64_t b = i / y->seq_len, t = i % y->seq_len;
        int64_t ex = 0, ey;
        if (!pe_tensor_at(y, b, t, 0, &ey) ||
            (x != NULL && !pe_tensor_at(x, b, t, 0, &ex)))
            continue;
        for (int64_t e = 0; e < y->dim; e += job->chunk) {
            const int64_t n = y->dim - e < job->chunk ? y->dim - e : job->chunk;
            job->plan->kind->encode(job->plan, job->at, b, t, e, n, out);
            if (x != NULL) {
                pe_kernels_load(job->plan->kernels, x, ex, e, n, in);
                add_input(job->plan, in, n, out);
            }
            pe_kernels_store(job->plan->kernels, y, ey, e, n, out);
        }
    }
}

static void run(const encoding *job)
{
    const int64_t elements = 32768;
    const int64_t grain = job->y->dim >= elements ? 1 : elements / job->y->dim;
    pe_run(&job->plan->env, job->y->batch * job->y->seq_len, grain, encode_tokens,
           (void *)(uintptr_t)job);
}

static pe_status check_shape(const pe_absolute *plan, const pe_tensor *y,
                             const char *name, pe_error *error)
{
    if (y->num_heads != 1)
        return pe_fail(error, PE_E_SHAPE,
                       "%s.num_heads is %lld, must be 1: hidden states have no heads",
                       name, (long long)y->num_heads);
    if (y->dim != plan->model_dim)
        return pe_fail(error, PE_E_SHAPE, "%s.dim is %lld, must be model_dim (%lld)",
                       name, (long long)y->dim, (long long)plan->model_dim);
    return PE_OK;
}

static pe_status check_output(const pe_absolute *plan, const pe_tensor *y,
                              pe_error *error)
{
    pe_status status;
    if (plan == NULL)
        return pe_fail(error, PE_E_ARGUMENT, "plan is NULL");
    if ((status = pe_tensor_check(y, PE_OUTPUT, "y", error)) != PE_OK)
        return status;
    return check_shape(plan, y, "y", error);
}

pe_status pe_absolute_fill(const pe_absolute *plan, const pe_positions *at,
                           const pe_tensor *y, pe_error *error)
{
    pe_status status;
    encoding job = {plan, at, NULL, y, 0};
    if ((status = check_output(plan, y, error)) != PE_OK)
        return status;
    const int64_t groups[3] = {1, pe_tensor_group(y), plan->group};
    if ((status = pe_absolute_chunk(y->dim, groups, "y", &job.chunk, error)) != PE_OK ||
        (status = plan->kind->check(plan, at, y, "y", error)) != PE_OK)
        return status;
    run(&job);
    return PE_OK;
}

pe_status pe_absolute_add(const pe_absolute *plan, const pe_positions *at,
                          const pe_tensor *x, const pe_tensor *y, pe_error *error)
{
    pe_status status;
    encoding job = {plan, at, x, y, 0};
    if ((status = check_output(plan, y, error)) != PE_OK ||
        (status = pe_tensor_check(x, PE_INPUT, "x", error)) != PE_OK ||
        (status = pe_tensor_check_same_shape(x, "x", y, "y", error)) != PE_OK ||
        (status = pe_tensor_check_overlap(x, "x", y, "y", error)) != PE_OK)
        return status;
    const int64_t groups[3] = {pe_tensor_group(x), pe_tensor_group(y), plan->group};
    if ((status = pe_absolute_chunk(y->dim, groups, "y", &job.chunk, error)) != PE_OK ||
        (status = plan->kind->check(plan, at, y, "y", error)) != PE_OK)
        return status;
    run(&job);
    return PE_OK;
}

pe_status pe_absolute_backward(const pe_absolute *plan, const pe_positions *at,
                               const pe_tensor *dy, const pe_tensor *dweight,
                               pe_error *error)
{
    pe_status status;
    if (plan == NULL)
        return pe_fail(error, PE_E_ARGUMENT, "plan is NULL");
    if (plan->kind->backward == NULL)
        return pe_fail(error, PE_E_UNSUPPORTED,
                       "plan is sinusoidal, which has no weight to train");
    if ((status = pe_tensor_check(dy, PE_INPUT, "dy", error)) != PE_OK ||
        (status = check_shape(plan, dy, "dy", error)) != PE_OK)
        return status;
    return plan->kind->backward(plan, at, dy, dweight, error);
}

int64_t pe_absolute_capacity(const pe_absolute *plan)
{
    return plan != NULL ? plan->capacity : 0;
}

void pe_absolute_destroy(pe_absolute *plan)
{
    if (plan != NULL) {
        const pe_env env = plan->env;
        pe_release(&env, plan, plan->size);
    }
}

/* SPDX-License-Identifier: MIT
 *
 * absolute.c - filling and adding an absolute encoding, of whichever kind
 *
 * The sum is done in float where embed_scale is 1, which rounds once; else in double and
 * then rounded to float, unless the plan imitates code that rounds the product.  A row
 * that lies in memory is added from there. */
#include "absolute/absolute.h"

#include "base/at.h"
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

/* What one worker carries from token to token. */
typedef struct {
    const encoding *job;
    pe_sum_fn *sum;         /* of rows of floats; NULL: by way of buffers */
    pe_sum_fn *sum_own;     /* of rows of x's type, where the plan's are */
    int64_t x_size, y_size; /* bytes of an element, where there is a sum */
    const void *seen;       /* the row that sum_own had last */
    const void *row;        /* the row that wide holds, and its length */
    int64_t count;
    float wide[PE_MAX_VECTOR_DIM];
} writer;

static void set_sums(writer *w)
{
    const pe_tensor *x = w->job->x, *y = w->job->y;
    const pe_absolute *plan = w->job->plan;
    if (x == NULL || x->dtype > PE_BF16 || y->dtype > PE_BF16)
        return;
    const int from = pe_kernels_kind(x), to = pe_kernels_kind(y);
    w->sum = plan->kernels->sum[from][to];
    w->x_size = pe_dtype_size(x->dtype);
    w->y_size = pe_dtype_size(y->dtype);
    if (plan->rows.kind == from)
        w->sum_own = plan->kernels->sum_own[from][to];
}

pe_sum pe_absolute_sum(double embed_scale, int float_steps)
{
    const uint64_t bits = pe_f64_bits(embed_scale);
    const int64_t exponent = (int64_t)(bits >> 52 & 0x7ff) - 1023;
    if (embed_scale == 1)
        return (pe_sum){PE_SUM_PLAIN, 1};
    if (float_steps)
        return (pe_sum){PE_SUM_FLOATS, (double)(float)embed_scale};
    /* The product then has a float's 24 bits, and rounding the sum of two such numbers to
     * 53 bits first does not show. */
    if (bits << 12 == 0 && exponent >= -126 && exponent <= 127)
        return (pe_sum){PE_SUM_FUSED, embed_scale};
    return (pe_sum){PE_SUM_DOUBLES, embed_scale};
}

/* Elements [e, e + n) of a token of x and y that begins at elements ex and ey. */
static void add_row(const writer *w, int64_t ex, int64_t ey, int64_t e, int64_t n,
                    const float *row)
{
    const encoding *job = w->job;
    const pe_kernels *kernels = job->plan->kernels;
    float in[PE_MAX_VECTOR_DIM];
    pe_kernels_load(kernels, job->x, ex, e, n, in);
    kernels->sum[PE_K_F32][PE_K_F32](&job->plan->sum, in, row, in, n);
    pe_kernels_store(kernels, job->y, ey, e, n, in);
}

/* A row of 16-bit numbers as floats.  Those of the row before are kept: sequences that
 * are decoded together are often at one position. */
static const float *widened(writer *w, int64_t n, const void *row, int kind)
{
    if (row != w->row || n != w->count)
        w->job->plan->kernels->load[kind](row, w->wide, n);
    w->row = row;
    w->count = n;
    return w->wide;
}

/* Elements [e, e + n) of token t of row b, whose encoding is row, of kind. */
static void write_token(writer *w, int64_t b, int64_t t, int64_t e, int64_t n,
                        const void *row, int kind)
{
    const encoding *job = w->job;
    const pe_tensor *x = job->x, *y = job->y;
    int64_t ex = 0, ey;
    if (!pe_tensor_at(y, b, t, 0, &ey) || (x != NULL && !pe_tensor_at(x, b, t, 0, &ex)))
        return;
    pe_sum_fn *sum = w->sum;
    if (kind != PE_K_F32 && w->sum_own != NULL && row != w->seen)
        sum = w->sum_own;
    else if (kind != PE_K_F32)
        row = widened(w, n, row, kind);
    if (kind != PE_K_F32 && sum == w->sum_own)
        w->seen = row;
    if (sum != NULL)
        sum(&job->plan->sum, (const unsigned char *)x->data + (ex + e) * w->x_size, row,
            (unsigned char *)y->data + (ey + e) * w->y_size, n);
    else if (x != NULL)
        add_row(w, ex, ey, e, n, row);
    else
        pe_kernels_store(job->plan->kernels, y, ey, e, n, row);
}

/* The encoding of token t of row b; NULL: it does not lie in memory. */
static inline const unsigned char *row_of(const encoding *job, int64_t b, int64_t t)
{
    const pe_absolute_rows *rows = &job->plan->rows;
    if (rows->data == NULL || job->at->values != NULL)
        return NULL;
    const int64_t id = pe_at_id(job->at, 0, b, t);
    const uint64_t row = (uint64_t)id - (uint64_t)rows->first;
    return row < (uint64_t)rows->count && id != rows->without
               ? rows->data + (int64_t)row * rows->stride
               : NULL;
}

/* Of tokens [t, t + tokens) of row b, those from the first on that must be made. */
static int64_t count_made(const encoding *job, int64_t b, int64_t t, int64_t tokens)
{
    int64_t n = 0;
    while (n < tokens && row_of(job, b, t + n) == NULL)
        n++;
    return n;
}

/* Elements [e, e + n) of tokens [t, t + tokens) of row b, which must be made. */
static void write_made(writer *w, int64_t b, int64_t t, int64_t tokens, int64_t e,
                       int64_t n)
{
    enum { ROOM = 4 * PE_MAX_VECTOR_DIM };
    const pe_absolute *plan = w->job->plan;
    const int64_t room = ROOM / n,
                  most = room < PE_ENCODE_TOKENS ? room : PE_ENCODE_TOKENS;
    float rows[ROOM];
    for (int64_t k = 0, made; k < tokens; k += made) {
        made = tokens - k < most ? tokens - k : most;
        plan->kind->encode(plan, w->job->at, b, t + k, made, e, n, rows);
        for (int64_t j = 0; j < made; j++)
            write_token(w, b, t + k + j, e, n, rows + j * n, PE_K_F32);
    }
}

/* Elements [e, e + n) of tokens [t, t + tokens) of row b. */
static void write_tokens(writer *w, int64_t b, int64_t t, int64_t tokens, int64_t e,
                         int64_t n)
{
    const int kind = w->job->plan->rows.kind;
    const int64_t begin = e * (kind == PE_K_F32 ? 4 : 2);
    for (int64_t k = 0; k < tokens;) {
        const unsigned char *row = row_of(w->job, b, t + k);
        if (row != NULL) {
            write_token(w, b, t + k++, e, n, row + begin, kind);
            continue;
        }
        const int64_t made = count_made(w->job, b, t + k, tokens - k);
        write_made(w, b, t + k, made, e, n);
        k += made;
    }
}

static void encode_tokens(void *arg, int32_t worker, int64_t begin, int64_t end)
{
    writer w;
    const encoding *job = w.job = arg;
    const pe_tensor *y = job->y;
    (void)worker;
    w.sum = w.sum_own = NULL;
    w.seen = w.row = NULL;
    set_sums(&w);
    end = pe_tensor_cut(&y, 1, end);
    begin = pe_tensor_cut(&y, 1, begin);
    int64_t b = begin / y->seq_len, t = begin % y->seq_len;
    for (int64_t i = begin, tokens; i < end; i += tokens, b++, t = 0) {
        tokens = end - i < y->seq_len - t ? end - i : y->seq_len - t;
        for (int64_t e = 0; e < y->dim; e += job->chunk)
            write_tokens(&w, b, t, tokens, e,
                         y->dim - e < job->chunk ? y->dim - e : job->chunk);
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

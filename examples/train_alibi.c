/* SPDX-License-Identifier: MIT
 *
 * train_alibi.c - gradients of causal attention with ALiBi and its slopes, one checked by
 * moving it; no q_len x k_len array exists */
#include <math.h>
#include <posenc/attention.h>
#include <stdio.h>

enum { T = 70, H = 4, D = 16, N = T * H * D };

static float x[N], out[N], weights[N], dx[3][N], lse[H * T], dslopes[H];
static float slopes[H] = {.5f, .25f, .125f, .0625f};
static _Alignas(64) unsigned char work[1 << 20];

/* Loss: the sum of out * weights, which are its gradient.  NaN: failed. */
static double step(pe_error *error)
{
    pe_bias_spec bias = {.struct_size = sizeof bias, .type = PE_BIAS_ALIBI};
    pe_attention_spec spec = {.struct_size = sizeof spec, .num_heads = H};
    pe_attention_args args = {.struct_size = sizeof args, .lse = lse};
    pe_attention_grads grads = {.struct_size = sizeof grads, .dbias = {dslopes}};
    const pe_positions at = {.start = 0};
    pe_tensor t[6];
    const float *const data[6] = {x, out, weights, dx[0], dx[1], dx[2]};
    pe_attention *plan = NULL;
    pe_bias *alibi = NULL;
    double loss = 0;
    for (int i = 0; i < 6; i++)
        pe_tensor_bshd(&t[i], PE_F32, data[i], 1, T, H, D);
    bias.form = PE_BIAS_CAUSAL, bias.num_heads = H, bias.slopes = slopes;
    spec.num_kv_heads = H, spec.head_dim = D, spec.visible.mask = PE_MASK_CAUSAL;
    args.q = args.k = args.v = &t[0], args.out = &t[1], args.q_at = args.k_at = &at;
    grads.dout = &t[2], grads.dq = &t[3], grads.dk = &t[4], grads.dv = &t[5];
    pe_status status = pe_bias_create(&alibi, &bias, NULL, error);
    spec.bias[0] = alibi;
    if (status != PE_OK || pe_attention_create(&plan, &spec, NULL, error) != PE_OK ||
        pe_attention_forward(plan, &args, work, sizeof work, error) != PE_OK ||
        pe_attention_backward(plan, &args, &grads, work, sizeof work, error) != PE_OK)
        loss = (double)NAN;
    for (int i = 0; i < N; i++)
        loss += (double)out[i] * (double)weights[i];
    pe_attention_destroy(plan);
    pe_bias_destroy(alibi);
    return loss;
}

int main(void)
{
    pe_error error = {.message = ""};
    for (int i = 0; i < N; i++)
        x[i] = (float)(i * 7919 % 997) / 499 - 1, weights[i] = (float)(i % 7) / 7;
    const double loss = step(&error), slope = (double)dslopes[1], h = 0x1p-7;
    slopes[1] = .25f + (float)h;
    const double above = step(&error);
    slopes[1] = .25f - (float)h;
    const double measured = (above - step(&error)) / (2 * h);
    printf("loss %.3f, along slopes[1] %.3f, by moving it %.3f %s\n", loss, slope,
           measured, error.message);
    return !(fabs(slope - measured) < 1e-2 * fabs(measured));
}

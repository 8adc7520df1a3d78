/* SPDX-License-Identifier: MIT
 *
 * matmul.h - matrix products, row-major, by OpenBLAS on the calling thread
 *
 * The library is loaded at the first call of lab_matmul_load, after its environment is
 * set: one thread, so that bits do not depend on threads, and, unless
 * OPENBLAS_CORETYPE says otherwise, the kernels that suit this CPU (version 0.3.21 does
 * not know newer ones).  Calls from several threads at once are fine. */
#ifndef POSENC_LAB_MATMUL_H
#define POSENC_LAB_MATMUL_H

#include "lab.h"

/* PE_E_NOT_FOUND names the Debian package.  Once is enough; call it before threads, for
 * it sets environment variables. */
pe_status lab_matmul_load(pe_error *error);
/* What was loaded: "OpenBLAS 0.3.21 SkylakeX". */
const char *lab_matmul_name(void);

/* c [m][n] = (add ? c : 0) + a [m][k] times b [n][k], transposed: a linear layer. */
void lab_matmul_nt(int64_t m, int64_t n, int64_t k, const float *a, const float *b,
                   float *c, int add);
/* c [m][n] = a [m][k] times b [k][n]: the gradient of its input. */
void lab_matmul_nn(int64_t m, int64_t n, int64_t k, const float *a, const float *b,
                   float *c, int add);
/* c [m][n] = a [k][m], transposed, times b [k][n]: the gradient of its weight. */
void lab_matmul_tn(int64_t m, int64_t n, int64_t k, const float *a, const float *b,
                   float *c, int add);

#endif /* POSENC_LAB_MATMUL_H */

/* SPDX-License-Identifier: MIT
 *
 * matmul.c - OpenBLAS, found at run time
 *
 * Not linked, so that the command starts without it and says what is missing.  Which
 * kernels: AVX-512 ones are fastest where 512-bit units are whole; AMD family 25 (Zen 4)
 * has them in halves, and its best are the AVX2 ones, by 4% here. */
#include "matmul.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROW_MAJOR = 101, AS_IS = 111, TRANSPOSED = 112 }; /* CBLAS's numbers */

typedef void sgemm_function(int order, int a_form, int b_form, int m, int n, int k,
                            float alpha, const float *a, int a_row, const float *b,
                            int b_row, float beta, float *c, int c_row);
typedef char *text_function(void);

static sgemm_function *sgemm;
static char name[160];

/* ------------------------------------------------------------------------- load --- */

/* Of the first processor that the system lists. */
static int is_amd_family_25(void)
{
    char line[256];
    int is_amd = 0, family = 0;
    FILE *file = fopen("/proc/cpuinfo", "r");
    while (file != NULL && family == 0 && fgets(line, sizeof line, file) != NULL) {
        is_amd |= strstr(line, "AuthenticAMD") != NULL;
        if (strncmp(line, "cpu family", 10) == 0 && strchr(line, ':') != NULL)
            family = atoi(strchr(line, ':') + 1);
    }
    if (file != NULL)
        fclose(file);
    return is_amd && family == 25;
}

/* NULL: OpenBLAS's own choice. */
static const char *best_core(void)
{
    if (pe_isa_available(PE_ISA_AVX512))
        return is_amd_family_25() ? "Haswell" : "SkylakeX";
    return pe_isa_available(PE_ISA_AVX2) ? "Haswell" : NULL;
}

static void name_it(void *library)
{
    text_function *config = NULL, *core = NULL;
    void *symbol = dlsym(library, "openblas_get_config");
    memcpy(&config, &symbol, sizeof config);
    symbol = dlsym(library, "openblas_get_corename");
    memcpy(&core, &symbol, sizeof core);
    /* "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH ...": the first two words. */
    const char *text = config != NULL ? config() : "OpenBLAS";
    size_t length = strcspn(text, " ");
    if (text[length] == ' ')
        length += 1 + strcspn(text + length + 1, " ");
    snprintf(name, sizeof name, "%.*s%s%s", (int)(length < 80 ? length : 80), text,
             core != NULL ? " " : "", core != NULL ? core() : "");
}

pe_status lab_matmul_load(pe_error *error)
{
    if (sgemm != NULL)
        return PE_OK;
    const char *core = best_core();
    if (setenv("OPENBLAS_NUM_THREADS", "1", 1) != 0 ||
        (core != NULL && setenv("OPENBLAS_CORETYPE", core, 0) != 0))
        return lab_fail(error, PE_E_NO_MEMORY, "no memory for the environment");
    void *library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        return lab_fail(error, PE_E_NOT_FOUND,
                        "libopenblas.so.0 is not here, install the package "
                        "libopenblas0-pthread");
    void *symbol = dlsym(library, "cblas_sgemm");
    if (symbol == NULL)
        return lab_fail(error, PE_E_NOT_FOUND,
                        "libopenblas.so.0 has no cblas_sgemm, install the package "
                        "libopenblas0-pthread");
    name_it(library);
    memcpy(&sgemm, &symbol, sizeof sgemm);
    return PE_OK;
}

const char *lab_matmul_name(void)
{
    return name;
}

/* --------------------------------------------------------------------- products --- */

void lab_matmul_nt(int64_t m, int64_t n, int64_t k, const float *a, const float *b,
                   float *c, int add)
{
    sgemm(ROW_MAJOR, AS_IS, TRANSPOSED, (int)m, (int)n, (int)k, 1, a, (int)k, b, (int)k,
          add ? 1 : 0, c, (int)n);
}

void lab_matmul_nn(int64_t m, int64_t n, int64_t k, const float *a, const float *b,
                   float *c, int add)
{
    sgemm(ROW_MAJOR, AS_IS, AS_IS, (int)m, (int)n, (int)k, 1, a, (int)k, b, (int)n,
          add ? 1 : 0, c, (int)n);
}

void lab_matmul_tn(int64_t m, int64_t n, int64_t k, const float *a, const float *b,
                   float *c, int add)
{
    sgemm(ROW_MAJOR, TRANSPOSED, AS_IS, (int)m, (int)n, (int)k, 1, a, (int)m, b, (int)n,
          add ? 1 : 0, c, (int)n);
}

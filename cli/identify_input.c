/* SPDX-License-Identifier: MIT
 *
 * identify_input.c - arrays of numbers for identify, and its answers
 */
#include "identify.h"

#include "npy_in.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ELEMENTS_MAX = 1 << 26 };

static int convert(cli_array *out, const cli_npy_in *in, pe_dtype dtype, char *bytes)
{
    if (dtype == 0) {
        memcpy(out->data, bytes, (size_t)out->count * sizeof(double));
        return CLI_DONE;
    }
    float *floats = malloc((size_t)out->count * sizeof *floats + 1);
    pe_tensor x, y;
    pe_error error;
    if (floats == NULL)
        return cli_fail(CLI_FAILED, "out of memory");
    pe_tensor_bshd(&x, dtype, bytes, 1, 1, 1, out->count);
    pe_tensor_bshd(&y, PE_F32, floats, 1, 1, 1, out->count);
    const int status = out->count == 0 || pe_tensor_copy(&x, &y, NULL, &error) == PE_OK
                           ? CLI_DONE
                           : cli_fail_with(in->name, &error);
    for (int64_t i = 0; i < out->count && status == CLI_DONE; i++)
        out->data[i] = (double)floats[i];
    free(floats);
    return status;
}

static int read_open(cli_array *out, cli_npy_in *in, int is_bf16)
{
    const pe_weight *w = in->weight;
    const char *name = w->dtype_name;
    const pe_dtype dtype = strcmp(name, "<u2") == 0 && is_bf16 ? PE_BF16 : w->dtype;
    const int is_double = strcmp(name, "<f8") == 0;
    if (!is_double && dtype != PE_F32 && dtype != PE_F16 && dtype != PE_BF16)
        return cli_fail(CLI_FAILED,
                        "%s is %s, must be <f4, <f8, <f2, or <u2 with --bf16", in->name,
                        name);
    if (w->rank < 1 || w->rank > 4)
        return cli_fail(CLI_FAILED, "%s has %d axes, must have 1 to 4", in->name,
                        w->rank);
    out->count = 1;
    out->rank = w->rank;
    for (int32_t i = 0; i < w->rank; i++) {
        out->shape[i] = w->shape[i];
        out->count *= w->shape[i];
        if (out->count > ELEMENTS_MAX)
            return cli_fail(CLI_FAILED,
                            "%s has more than %d elements: some tokens of "
                            "it are enough",
                            in->name, ELEMENTS_MAX);
    }
    const size_t size = (size_t)w->size;
    char *bytes = malloc(size + 1);
    out->data = calloc((size_t)out->count + 1, sizeof *out->data);
    int status = bytes == NULL || out->data == NULL
                     ? cli_fail(CLI_FAILED, "out of memory")
                     : cli_npy_read(in, bytes, size);
    if (status == CLI_DONE)
        status = convert(out, in, is_double ? 0 : dtype, bytes);
    free(bytes);
    for (int64_t i = 0; i < out->count && status == CLI_DONE; i++)
        if (!isfinite(out->data[i]))
            return cli_fail(CLI_FAILED, "%s: element %lld is %g, must be finite",
                            in->name, (long long)i, out->data[i]);
    return status;
}

int cli_array_read(cli_array *out, const char *path, int is_bf16)
{
    cli_npy_in in;
    *out = (cli_array){.name = path};
    int status = cli_npy_open(&in, path);
    if (status != CLI_DONE)
        return status;
    out->name = in.name;
    status = read_open(out, &in, is_bf16);
    cli_npy_close(&in);
    return status;
}

void cli_array_free(cli_array *array)
{
    free(array->data);
    *array = (cli_array){0};
}

void cli_answers_add(cli_answers *answers, double residual, json_object *details,
                     const char *format, ...)
{
    if (answers->count == CLI_COUNT(answers->items)) {
        json_object_put(details);
        return;
    }
    cli_answer *answer = &answers->items[answers->count++];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(answer->name, sizeof answer->name, format, args);
    va_end(args);
    answer->residual = residual;
    answer->details = details;
}

void cli_answers_say(cli_answers *answers, const char *format, ...)
{
    if (answers->num_evidence == CLI_COUNT(answers->evidence))
        return;
    char *text = answers->evidence[answers->num_evidence++];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof answers->evidence[0], format, args);
    va_end(args);
}

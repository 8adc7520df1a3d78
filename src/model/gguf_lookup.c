/* SPDX-License-Identifier: MIT
 *
 * gguf_lookup.c - keys below an architecture's name, and weights that hold numbers
 */
#include "model/gguf_dialect.h"

#include "base/error.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const pe_setting *pe_gguf_get(const pe_gguf *g, const char *name)
{
    char path[PE_SETTING_TEXT_MAX + 100];
    (void)snprintf(path, sizeof path, "%s.%s", g->name, name);
    const pe_entry *entry = pe_settings_find(&g->checkpoint->settings, path);
    return entry == NULL ? NULL : &entry->setting;
}

pe_status pe_gguf_number(const pe_gguf *g, const char *name, double *out,
                         const pe_setting **setting)
{
    *setting = pe_gguf_get(g, name);
    if (*setting == NULL)
        return PE_OK;
    const pe_setting_type type = (*setting)->type;
    if ((type != PE_SETTING_NUMBER && type != PE_SETTING_INTEGER) ||
        !isfinite((*setting)->number))
        return pe_fail(g->error, PE_E_ARGUMENT, "%s is %.60s, must be a finite number",
                       (*setting)->path, (*setting)->text);
    *out = (*setting)->number;
    return PE_OK;
}

pe_status pe_gguf_integer(const pe_gguf *g, const char *name, int64_t min, int64_t max,
                          int64_t *out, const pe_setting **setting)
{
    *setting = pe_gguf_get(g, name);
    if (*setting == NULL)
        return PE_OK;
    if ((*setting)->type != PE_SETTING_INTEGER || (*setting)->integer < min ||
        (*setting)->integer > max)
        return pe_fail(
            g->error, PE_E_ARGUMENT, "%s is %.60s, must be an integer in %lld..%lld",
            (*setting)->path, (*setting)->text, (long long)min, (long long)max);
    *out = (*setting)->integer;
    return PE_OK;
}

static double element(const pe_gguf *g, const unsigned char *bytes)
{
    uint32_t bits = 0;
    float value = 0;
    for (int i = 0; i < 4; i++)
        bits |= (uint32_t)bytes[g->checkpoint->swapped ? 3 - i : i] << 8 * i;
    memcpy(&value, &bits, sizeof value);
    return (double)value;
}

pe_status pe_gguf_factors(const pe_gguf *g, const char *name, int64_t count,
                          const double **out)
{
    const pe_weight_entry *entry = pe_weights_find(&g->checkpoint->weights, name);
    *out = NULL;
    if (entry == NULL)
        return PE_OK;
    const pe_weight *weight = &entry->weight;
    if (strcmp(weight->dtype_name, "F32") != 0)
        return pe_fail(g->error, PE_E_UNSUPPORTED, "%s is %s, must be F32", name,
                       weight->dtype_name);
    if (weight->size != 4 * (uint64_t)count)
        return pe_fail(g->error, PE_E_ARGUMENT,
                       "%s has %llu elements, must have %lld (rotary_dim / 2)", name,
                       (unsigned long long)weight->size / 4, (long long)count);
    double *values = pe_arena_alloc(&g->model->arena, (size_t)count * sizeof *values);
    if (values == NULL)
        return pe_fail(g->error, PE_E_NO_MEMORY, "out of memory for %s", name);
    for (int64_t i = 0; i < count; i++) {
        values[i] = element(g, (const unsigned char *)weight->data + 4 * i);
        if (!(values[i] > 0) || !isfinite(values[i]))
            return pe_fail(g->error, PE_E_ARGUMENT,
                           "%s[%lld] is %g, must be finite and above 0", name,
                           (long long)i, values[i]);
    }
    *out = values;
    return PE_OK;
}

pe_claim pe_gguf_stated(const pe_setting *setting)
{
    return (pe_claim){.setting = setting, .source = PE_STATED};
}

pe_claim pe_gguf_claim(const pe_gguf *g, pe_source source, const char *reason)
{
    const pe_entry *entry =
        pe_settings_find(&g->checkpoint->settings, "general.architecture");
    return (pe_claim){.setting = source == PE_DERIVED && entry != NULL ? &entry->setting
                                                                       : NULL,
                      .reason = reason,
                      .source = source};
}

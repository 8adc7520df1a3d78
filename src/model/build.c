/* SPDX-License-Identifier: MIT
 *
 * build.c - specs, sites, fields and notes added to a model
 */
#include "model/build.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A file may hold any number of keys that deserve one. */
enum { NOTES_MAX = 200 };

const char *pe_number_text(double value, char *buffer)
{
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(buffer, 32, "%.*g", digits, value);
        if (strtod(buffer, NULL) == value)
            break;
    }
    char *comma = strchr(buffer, ',');
    if (comma != NULL)
        *comma = '.'; /* the caller's locale */
    return buffer;
}

/* An array that a file spells over several lines becomes "[8, 12, 12]". */
static void flatten(char *text)
{
    char *out = text;
    if (text == NULL || strpbrk(text, "\n\r\t") == NULL)
        return;
    for (const char *in = text; *in != '\0'; in++) {
        if (strchr(" \n\r\t", *in) == NULL)
            *out++ = *in;
        else if (out > text && out[-1] != ' ' && out[-1] != '[' &&
                 in[strspn(in, " \n\r\t")] != ']')
            *out++ = ' ';
    }
    *out = '\0';
}

void pe_draft_text(pe_draft *draft, const char *name, const char *value,
                   const pe_claim *claim)
{
    if (draft->num_fields == (int32_t)PE_COUNT(draft->fields))
        return;
    pe_field *field = &draft->fields[draft->num_fields++];
    memset(field, 0, sizeof *field);
    field->name = name;
    char *copy = pe_arena_copy(&draft->model->arena, value, strlen(value));
    flatten(copy);
    field->value = copy;
    field->source = claim->source;
    field->reason = claim->reason;
    if (claim->setting != NULL) {
        field->path = claim->setting->path;
        field->text = claim->setting->text;
    }
}

void pe_draft_number(pe_draft *draft, const char *name, double value,
                     const pe_claim *claim)
{
    char text[32];
    pe_draft_text(draft, name, pe_number_text(value, text), claim);
}

void pe_draft_integer(pe_draft *draft, const char *name, int64_t value,
                      const pe_claim *claim)
{
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)value);
    pe_draft_text(draft, name, text, claim);
}

void pe_build_fields(pe_model *model, const char *prefix, const pe_draft *draft)
{
    for (int32_t i = 0; i < draft->num_fields; i++) {
        const int64_t used = model->info.num_fields;
        if (used == model->fields_capacity) {
            pe_field *moved =
                pe_arena_grow(&model->arena, model->fields, used,
                              &model->fields_capacity, sizeof *model->fields);
            if (moved == NULL)
                return;
            model->fields = moved;
        }
        pe_field *field = &model->fields[used];
        *field = draft->fields[i];
        field->name = pe_arena_format(&model->arena, "%s%s", prefix, field->name);
        model->info.num_fields++;
    }
}

static int same_numbers(const double *a, const double *b, int64_t count)
{
    if (a == b)
        return 1;
    if (a == NULL || b == NULL)
        return 0;
    return memcmp(a, b, (size_t)count * sizeof *a) == 0;
}

static int same_rope(const pe_rope_spec *a, const pe_rope_spec *b)
{
    pe_rope_spec x = *a, y = *b;
    const int32_t rotary = a->pairs.rotary_dim != 0 ? a->pairs.rotary_dim : a->head_dim;
    pe_freqs *const freqs[2] = {&x.freqs, &y.freqs};
    for (int i = 0; i < 2; i++) {
        freqs[i]->short_factor = freqs[i]->long_factor = NULL;
        freqs[i]->inv_freq = freqs[i]->freq_factors = NULL;
    }
    return memcmp(&x, &y, sizeof x) == 0 &&
           same_numbers(a->freqs.short_factor, b->freqs.short_factor, rotary / 2) &&
           same_numbers(a->freqs.long_factor, b->freqs.long_factor, rotary / 2) &&
           same_numbers(a->freqs.inv_freq, b->freqs.inv_freq, rotary / 2) &&
           same_numbers(a->freqs.freq_factors, b->freqs.freq_factors, rotary / 2);
}

int32_t pe_build_rope(pe_model *model, const pe_rope_spec *spec, const pe_draft *draft)
{
    const int32_t used = model->info.num_ropes;
    for (int32_t i = 0; i < used; i++) {
        if (same_rope(&model->ropes[i], spec))
            return i;
    }
    if (used == model->ropes_capacity) {
        pe_rope_spec *moved =
            pe_arena_grow(&model->arena, model->ropes, used, &model->ropes_capacity,
                          sizeof *model->ropes);
        if (moved == NULL)
            return -1;
        model->ropes = moved;
    }
    char prefix[32];
    snprintf(prefix, sizeof prefix, "rope[%d].", used);
    model->ropes[used] = *spec;
    model->info.num_ropes++;
    pe_build_fields(model, prefix, draft);
    return used;
}

int32_t pe_build_bias(pe_model *model, const pe_bias_spec *spec, const pe_draft *draft)
{
    const int32_t used = model->info.num_biases;
    for (int32_t i = 0; i < used; i++) {
        if (memcmp(&model->biases[i], spec, sizeof *spec) == 0)
            return i;
    }
    if (used == model->biases_capacity) {
        pe_bias_spec *moved =
            pe_arena_grow(&model->arena, model->biases, used, &model->biases_capacity,
                          sizeof *model->biases);
        if (moved == NULL)
            return -1;
        model->biases = moved;
    }
    char prefix[32];
    snprintf(prefix, sizeof prefix, "bias[%d].", used);
    model->biases[used] = *spec;
    model->info.num_biases++;
    pe_build_fields(model, prefix, draft);
    return used;
}

void pe_build_site(pe_model *model, int32_t layer, pe_site_role role, int32_t rope,
                   int32_t bias)
{
    const int32_t used = model->info.num_sites;
    if (used == model->sites_capacity) {
        pe_site *moved = pe_arena_grow(&model->arena, model->sites, used,
                                       &model->sites_capacity, sizeof *model->sites);
        if (moved == NULL)
            return;
        model->sites = moved;
    }
    model->sites[used] = (pe_site){
        .index = used, .layer = layer, .role = role, .rope = rope, .bias = bias};
    model->info.num_sites++;
}

static int has_note(const pe_model *model, const char *text)
{
    for (int32_t i = 0; i < model->info.num_notes; i++) {
        if (model->notes[i].text != NULL && strcmp(model->notes[i].text, text) == 0)
            return 1;
    }
    return 0;
}

void pe_build_note(pe_model *model, pe_level level, const pe_setting *setting,
                   const char *format, ...)
{
    char text[600];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    flatten(text);
    const int32_t used = model->info.num_notes;
    if (used > NOTES_MAX || has_note(model, text))
        return;
    if (used == NOTES_MAX)
        snprintf(text, sizeof text, "further notes are left out");
    if (used == model->notes_capacity) {
        pe_note *moved = pe_arena_grow(&model->arena, model->notes, used,
                                       &model->notes_capacity, sizeof *model->notes);
        if (moved == NULL)
            return;
        model->notes = moved;
    }
    model->notes[used] =
        (pe_note){.path = setting == NULL ? NULL : setting->path,
                  .text = pe_arena_copy(&model->arena, text, strlen(text)),
                  .level = level};
    model->info.num_notes++;
}

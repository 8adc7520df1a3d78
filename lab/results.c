/* SPDX-License-Identifier: MIT
 *
 * results.c - the fields of settings, rows kept once, and their means over seeds
 */
#include "results.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIELD(name, type)                                                        \
  {                                                                              \
#    name, type, offsetof(lab_settings, name), sizeof(((lab_settings *)0)->name) \
  }

const lab_field lab_fields[] = {
    FIELD(layers, LAB_FIELD_INTEGER),       FIELD(width, LAB_FIELD_INTEGER),
    FIELD(heads, LAB_FIELD_INTEGER),        FIELD(length, LAB_FIELD_INTEGER),
    FIELD(first_length, LAB_FIELD_INTEGER), FIELD(batch, LAB_FIELD_INTEGER),
    FIELD(steps, LAB_FIELD_INTEGER),        FIELD(warmup, LAB_FIELD_INTEGER),
    FIELD(peak_rate, LAB_FIELD_NUMBER),     FIELD(weight_decay, LAB_FIELD_NUMBER),
    FIELD(clip, LAB_FIELD_NUMBER),          FIELD(text, LAB_FIELD_TEXT),
    FIELD(text_sha256, LAB_FIELD_TEXT),     FIELD(eval_tokens, LAB_FIELD_INTEGER),
    FIELD(slide_tokens, LAB_FIELD_INTEGER), FIELD(slide_from, LAB_FIELD_INTEGER),
    FIELD(version, LAB_FIELD_TEXT)};

const size_t lab_num_fields = LAB_COUNT(lab_fields);

void lab_results_release(lab_results *results)
{
    for (int64_t i = 0; i < results->count; i++)
        free(results->items[i].by_position);
    free(results->items);
    free(results->timings);
    *results = (lab_results){.count = 0};
}

void lab_settings_make(lab_settings *out, const lab_config *config, const char *text,
                       const char *text_sha256, int64_t eval_tokens,
                       int64_t slide_tokens, int64_t slide_from)
{
    *out = (lab_settings){.layers = config->layers,
                          .width = config->width,
                          .heads = config->heads,
                          .length = config->length,
                          .first_length = config->first_length,
                          .batch = config->batch,
                          .steps = config->steps,
                          .warmup = config->warmup,
                          .peak_rate = config->peak_rate,
                          .weight_decay = config->weight_decay,
                          .clip = config->clip,
                          .eval_tokens = eval_tokens,
                          .slide_tokens = slide_tokens,
                          .slide_from = slide_from};
    const int version = pe_version_number();
    (void)snprintf(out->text, sizeof out->text, "%s", text);
    (void)snprintf(out->text_sha256, sizeof out->text_sha256, "%s", text_sha256);
    (void)snprintf(out->version, sizeof out->version, "%d.%d.%d", version / 10000,
                   version / 100 % 100, version % 100);
}

static void show(const lab_settings *settings, const lab_field *field, char out[80])
{
    const char *at = (const char *)settings + field->offset;
    if (field->type == LAB_FIELD_TEXT) {
        (void)snprintf(out, 80, "%.70s", at);
        return;
    }
    int64_t integer;
    double number;
    if (field->type == LAB_FIELD_INTEGER) {
        memcpy(&integer, at, sizeof integer);
        (void)snprintf(out, 80, "%lld", (long long)integer);
    } else {
        memcpy(&number, at, sizeof number);
        (void)snprintf(out, 80, "%.17g", number);
    }
}

pe_status lab_settings_match(const lab_settings *a, const char *a_source,
                             const lab_settings *b, const char *b_source,
                             pe_error *error)
{
    for (size_t i = 0; i < lab_num_fields; i++) {
        char left[80], right[80];
        show(a, &lab_fields[i], left);
        show(b, &lab_fields[i], right);
        if (strcmp(left, right) != 0)
            return lab_fail(error, PE_E_INCOMPATIBLE,
                            "%s is %.64s in %.40s and %.64s in %.40s",
                            lab_fields[i].name, left, a_source, right, b_source);
    }
    return PE_OK;
}

/* Room for one more; the new array, or NULL. */
static void *grow(void *items, int64_t count, int64_t *room, size_t size)
{
    if (count < *room)
        return items;
    const int64_t wanted = *room == 0 ? 64 : 2 * *room;
    void *more = realloc(items, (size_t)wanted * size);
    if (more != NULL)
        *room = wanted;
    return more;
}

static int is_same_run(const lab_result *a, const lab_result *b)
{
    return a->seed == b->seed && a->multiple == b->multiple && a->slide == b->slide &&
           strcmp(a->mode, b->mode) == 0 && strcmp(a->method, b->method) == 0;
}

pe_status lab_results_add(lab_results *results, const lab_result *result,
                          const char *source, pe_error *error)
{
    for (int64_t i = 0; i < results->count; i++) {
        const lab_result *old = &results->items[i];
        if (!is_same_run(old, result))
            continue;
        if (old->nll == result->nll)
            return PE_OK;
        return lab_fail(error, PE_E_INCOMPATIBLE,
                        "nll of %.60s, seed %llu, %s at %gx is %.9g in %.60s and %.9g "
                        "before",
                        old->method, (unsigned long long)old->seed, old->mode,
                        old->multiple, result->nll, source, old->nll);
    }
    lab_result copy = *result;
    const size_t size = (size_t)copy.num_blocks * sizeof *copy.by_position;
    copy.by_position = NULL;
    lab_result *items =
        grow(results->items, results->count, &results->room, sizeof *items);
    if (items != NULL)
        results->items = items;
    if (result->by_position != NULL)
        copy.by_position = malloc(size);
    if (items == NULL || (result->by_position != NULL && copy.by_position == NULL))
        return lab_fail(error, PE_E_NO_MEMORY, "out of memory: %lld results",
                        (long long)results->count);
    if (copy.by_position != NULL)
        memcpy(copy.by_position, result->by_position, size);
    results->items[results->count++] = copy;
    return PE_OK;
}

pe_status lab_results_add_timing(lab_results *results, const lab_timing *timing,
                                 pe_error *error)
{
    lab_timing *timings = grow(results->timings, results->num_timings,
                               &results->timing_room, sizeof *timings);
    if (timings == NULL)
        return lab_fail(error, PE_E_NO_MEMORY, "out of memory: %lld timings",
                        (long long)results->num_timings);
    results->timings = timings;
    results->timings[results->num_timings++] = *timing;
    return PE_OK;
}

void lab_results_mean(const lab_results *results, const char *method, const char *mode,
                      double multiple, int slide, lab_mean *out)
{
    double sum = 0, squares = 0;
    *out = (lab_mean){.count = 0};
    for (int pass = 0; pass < 2; pass++)
        for (int64_t i = 0; i < results->count; i++) {
            const lab_result *r = &results->items[i];
            if (r->multiple != multiple || r->slide != slide ||
                strcmp(r->mode, mode) != 0 || strcmp(r->method, method) != 0)
                continue;
            if (pass == 1) {
                const double gap = r->nll - out->mean;
                squares += gap * gap;
                continue;
            }
            sum += r->nll;
            out->min = out->count == 0 || r->nll < out->min ? r->nll : out->min;
            out->max = out->count == 0 || r->nll > out->max ? r->nll : out->max;
            out->mean = sum / (double)++out->count;
        }
    if (out->count > 1)
        out->sd = sqrt(squares / (double)(out->count - 1));
}

int64_t lab_results_by_position(const lab_results *results, const char *method,
                                const char *mode, double multiple, int64_t blocks,
                                double *out)
{
    int64_t seeds = 0;
    for (int64_t b = 0; b < blocks; b++)
        out[b] = 0;
    for (int64_t i = 0; i < results->count; i++) {
        const lab_result *r = &results->items[i];
        if (r->multiple != multiple || r->slide || r->by_position == NULL ||
            r->num_blocks != blocks || strcmp(r->mode, mode) != 0 ||
            strcmp(r->method, method) != 0)
            continue;
        seeds++;
        for (int64_t b = 0; b < blocks; b++)
            out[b] += r->by_position[b];
    }
    for (int64_t b = 0; b < blocks && seeds > 0; b++)
        out[b] /= (double)seeds;
    return seeds;
}

/* Methods as config.h numbers them, then mixtures by name. */
static int compare_methods(const char *a, const char *b)
{
    lab_method left = LAB_NUM_METHODS, right = LAB_NUM_METHODS;
    (void)lab_method_find(a, &left);
    (void)lab_method_find(b, &right);
    return left != right ? left - right : strcmp(a, b);
}

const char *lab_results_method(const lab_results *results, int64_t number)
{
    const char *last = NULL;
    for (int64_t n = 0; n <= number; n++) {
        const char *next = NULL;
        for (int64_t i = 0; i < results->count; i++) {
            const char *name = results->items[i].method;
            if ((last == NULL || compare_methods(name, last) > 0) &&
                (next == NULL || compare_methods(name, next) < 0))
                next = name;
        }
        if (next == NULL)
            return NULL;
        last = next;
    }
    return last;
}

double lab_results_multiple(const lab_results *results, int64_t number)
{
    double last = 0;
    for (int64_t n = 0; n <= number; n++) {
        double next = 0;
        for (int64_t i = 0; i < results->count; i++) {
            const double multiple = results->items[i].multiple;
            if (multiple > last && (next == 0 || multiple < next))
                next = multiple;
        }
        if (next == 0)
            return 0;
        last = next;
    }
    return last;
}

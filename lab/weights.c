/* SPDX-License-Identifier: MIT
 *
 * weights.c - the order, shapes and first values of the parameters
 *
 * Standard deviations are those of the reference experiment; with them a model of a few
 * layers starts near the loss of a uniform guess. */
#include "weights.h"

#include "random.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    ALIGNMENT = 16, /* floats: a cache line */
    INDEX_E = 0,
    INDEX_P = 1,
    INDEX_T5 = 2,
    INDEX_LAYERS = 3, /* eight for each layer, then n.g and u */
    PER_LAYER = 8,
    T5_BUCKETS = 32
};

/* ---------------------------------------------------------------------- layout --- */

/* One more parameter, a matrix that decays; returns it for what else is known of it. */
static lab_parameter *add(lab_layout *layout, int32_t index, int64_t rows, int64_t cols,
                          double sd)
{
    lab_parameter *item = &layout->items[layout->count++];
    *item = (lab_parameter){.rows = rows,
                            .cols = cols,
                            .offset = layout->size,
                            .decays = 1,
                            .index = index,
                            .init_sd = sd,
                            .least = -INFINITY};
    const int64_t size = lab_parameter_size(item);
    layout->num_weights += size;
    layout->size += (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return item;
}

/* A parameter that all start at mean and that does not decay. */
static lab_parameter *add_plain(lab_layout *layout, int32_t index, int64_t rows,
                                int64_t cols, double mean)
{
    lab_parameter *item = add(layout, index, rows, cols, 0);
    item->init_mean = mean;
    item->decays = 0;
    return item;
}

static int64_t named(lab_parameter *item, const char *name)
{
    snprintf(item->name, sizeof item->name, "%s", name);
    return item->offset;
}

static int64_t named_of_layer(lab_parameter *item, int32_t layer, const char *name)
{
    snprintf(item->name, sizeof item->name, "b.%d.%s", (int)layer, name);
    return item->offset;
}

static void add_layer(lab_layout *layout, const lab_config *config, int32_t layer)
{
    const int64_t d = config->width, heads = config->heads;
    const double sd = 0.7 / sqrt((double)d), shrink = sqrt(2.0 * config->layers);
    const lab_method method = config->layer[layer];
    lab_layer_offsets *at = &layout->layer[layer];
    const int32_t index = INDEX_LAYERS + PER_LAYER * layer;
    *at = (lab_layer_offsets){.slopes = -1, .kerple = -1};
    at->n1 = named_of_layer(add_plain(layout, index, d, 0, 1), layer, "n1.g");
    at->qkv = named_of_layer(add(layout, index + 1, 3 * d, d, sd), layer, "qkv");
    at->o = named_of_layer(add(layout, index + 2, d, d, sd / shrink), layer, "o");
    if (method == LAB_ALIBI && config->learn_slopes)
        at->slopes =
            named_of_layer(add_plain(layout, index + 3, heads, 0, 0), layer, "slopes");
    if (method == LAB_KERPLE) {
        lab_parameter *kerple = add_plain(layout, index + 4, 2, heads, 1);
        kerple->least = 0.01;
        at->kerple = named_of_layer(kerple, layer, "kerple");
    }
    at->n2 = named_of_layer(add_plain(layout, index + 5, d, 0, 1), layer, "n2.g");
    at->f1 = named_of_layer(add(layout, index + 6, 4 * d, d, sd), layer, "f1");
    at->f2 =
        named_of_layer(add(layout, index + 7, d, 4 * d, sd / 2 / shrink), layer, "f2");
}

void lab_layout_make(lab_layout *out, const lab_config *config)
{
    const int64_t d = config->width;
    const double root = 1 / sqrt((double)d);
    const int32_t last = INDEX_LAYERS + PER_LAYER * config->layers;
    *out = (lab_layout){.p = -1, .t5 = -1};
    out->e = named(add(out, INDEX_E, LAB_VOCAB, d, root), "e");
    if (config->input == LAB_LEARNED)
        out->p = named(add(out, INDEX_P, config->length, d, 0.5), "p");
    if (lab_config_has(config, LAB_T5))
        out->t5 = named(add(out, INDEX_T5, T5_BUCKETS, config->heads, root), "t5");
    for (int32_t i = 0; i < config->layers; i++)
        add_layer(out, config, i);
    out->n = named(add_plain(out, last, d, 0, 1), "n.g");
    out->u = named(add(out, last + 1, LAB_VOCAB, d, root / 2), "u");
}

const lab_parameter *lab_layout_find(const lab_layout *layout, const char *name)
{
    for (int32_t i = 0; i < layout->count; i++)
        if (strcmp(layout->items[i].name, name) == 0)
            return &layout->items[i];
    return NULL;
}

int64_t lab_parameter_size(const lab_parameter *parameter)
{
    return parameter->rows * (parameter->cols > 0 ? parameter->cols : 1);
}

/* ------------------------------------------------------------------ first values --- */

static void fill(float *w, const lab_parameter *item, uint64_t seed)
{
    const uint64_t stream = LAB_STREAM_WEIGHTS + 16 * (uint64_t)item->index;
    const int64_t size = lab_parameter_size(item);
    for (int64_t i = 0; i < size; i++) {
        double x = item->init_mean;
        if (item->init_sd > 0)
            x += item->init_sd * lab_random_normal(seed, stream, (uint64_t)i);
        w[i] = (float)x;
    }
}

static pe_status fill_slopes(float *weights, const lab_layout *layout,
                             const lab_config *config, pe_error *error)
{
    const pe_bias_spec spec = {.struct_size = sizeof spec,
                               .type = PE_BIAS_ALIBI,
                               .form = PE_BIAS_CAUSAL,
                               .num_heads = config->heads};
    pe_bias *bias;
    const pe_status status = pe_bias_create(&bias, &spec, NULL, error);
    if (status != PE_OK)
        return status;
    for (int32_t i = 0; i < config->layers; i++)
        if (layout->layer[i].slopes >= 0)
            memcpy(weights + layout->layer[i].slopes, pe_bias_slopes(bias),
                   (size_t)config->heads * sizeof *weights);
    pe_bias_destroy(bias);
    return PE_OK;
}

pe_status lab_weights_init(float *weights, const lab_layout *layout,
                           const lab_config *config, pe_error *error)
{
    memset(weights, 0, (size_t)layout->size * sizeof *weights);
    for (int32_t i = 0; i < layout->count; i++)
        fill(weights + layout->items[i].offset, &layout->items[i], config->seed);
    return fill_slopes(weights, layout, config, error);
}

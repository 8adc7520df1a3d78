/* SPDX-License-Identifier: MIT
 *
 * extend_report.c - the ways of extending a model side by side
 */
#include "extend.h"

#include "print.h"
#include "report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double pi = 3.141592653589793;

static void print_head(const cli_model *model, const char *layers,
                       const cli_extend_base *base)
{
    const double d = base->rotary_dim;
    cli_number numbers[4];
    int32_t unfinished = 0;
    for (int32_t i = 0; i < base->num_pairs; i++)
        unfinished += (double)base->trained_len * base->freqs[i] < 2 * pi;
    cli_print("%s, layers %s: trained on %lld tokens, to serve %lld\n", model->name,
              layers, (long long)base->trained_len, (long long)base->length);
    cli_print(
        "factor %s = freq-scale %s = alpha %s = base %s\n",
        cli_double(&numbers[0], base->factor),
        cli_double(&numbers[1], 1 / base->factor), numbers[0].text,
        cli_double(&numbers[2], base->rope_theta * pow(base->factor, d / (d - 2))));
    cli_print("  base = theta %s of training * alpha^(%d/%d)\n",
              cli_double(&numbers[3], base->rope_theta), (int)base->rotary_dim,
              (int)base->rotary_dim - 2);
    cli_print("%d of %d pairs turned less than once in training: angles past that are "
              "new\n",
              (int)unfinished, (int)base->num_pairs);
}

static void print_change(const cli_extend_change *change)
{
    if (change->radians > pi)
        cli_print("  %8s", "> pi");
    else
        cli_print("  %8.3g", change->radians);
}

static void print_table(const cli_extended *const *ways, size_t num_ways)
{
    cli_print("\n%-9s  %-26s    %-26s  %s\n", "", "angles new to the model",
              "rad changed at distance", "attention");
    cli_print("%-9s  %5s  %-19s", "", "pairs", "worst, rad");
    for (int d = 0; d < CLI_EXTEND_DISTANCES; d++)
        cli_print("  %8lld", (long long)cli_extend_distances[d]);
    cli_print("  factor\n");
    for (size_t w = 0; w < num_ways; w++) {
        const cli_extended *way = ways[w];
        char worst[64] = "-";
        if (way->num_beyond > 0)
            (void)snprintf(worst, sizeof worst, "%.3g (pair %d)",
                           way->beyond[way->worst_pair], (int)way->worst_pair);
        cli_print("%-9s  %5d  %-19s", cli_choice_name(cli_extend_names, way->method),
                  (int)way->num_beyond, worst);
        for (int d = 0; d < CLI_EXTEND_DISTANCES; d++)
            print_change(&way->changes[d]);
        cli_print("  %.10g\n", way->attention_factor);
    }
}

/* Lists of LongRoPE would fill the screen; --json and -o have them. */
static void print_cut(const char *text)
{
    enum { LIMIT = 400 };
    if (strlen(text) <= LIMIT)
        cli_print("%s\n", text);
    else
        cli_print("%.*s ... (whole with --json)\n", LIMIT / 2, text);
}

static int print_text_of(const char *label, char *text)
{
    if (text == NULL)
        return cli_fail(CLI_FAILED, "out of memory");
    cli_print("  %-12s  ", label);
    print_cut(text);
    free(text);
    return CLI_DONE;
}

static int print_way(const cli_extended *way, const cli_extend_base *base)
{
    char pairs[160];
    cli_number number;
    cli_turns_describe(pairs, sizeof pairs, &way->turns);
    cli_print("\n%s\n", cli_choice_name(cli_extend_names, way->method));
    cli_print("  %-12s  %s", "pairs", pairs);
    if (way->ramp_high > 0)
        cli_print("; correction range %.6g to %.6g", way->ramp_low, way->ramp_high);
    if (way->method == CLI_EXTEND_NTK || way->method == CLI_EXTEND_DYNAMIC)
        cli_print("; base %s", cli_double(&number, way->rope_theta));
    if (way->method == CLI_EXTEND_LONGROPE)
        cli_print("; a shape, not the result of a search over this model");
    cli_print("\n");
    int status = print_text_of("Hugging Face", cli_extend_hugging_face(way, base));
    if (status == CLI_DONE)
        status = print_text_of("llama.cpp", cli_extend_llama_cpp(way, base));
    return status == CLI_DONE ? print_text_of("vLLM", cli_extend_vllm(way, base))
                              : status;
}

int cli_extend_print(const cli_model *model, const char *layers,
                     const cli_extend_base *base, const cli_extended *const *ways,
                     size_t num_ways)
{
    int status = CLI_DONE;
    print_head(model, layers, base);
    print_table(ways, num_ways);
    for (size_t w = 0; w < num_ways && status == CLI_DONE; w++)
        status = print_way(ways[w], base);
    return status;
}

static void add_text(json_object *object, const char *key, char *text)
{
    cli_json_set_text(object, key, text);
    free(text);
}

static json_object *changes_json(const cli_extended *way)
{
    json_object *array = json_object_new_array();
    for (int d = 0; d < CLI_EXTEND_DISTANCES; d++) {
        json_object *object = json_object_new_object();
        cli_json_set_integer(object, "distance", cli_extend_distances[d]);
        cli_json_set_number(object, "radians", way->changes[d].radians);
        cli_json_set_integer(object, "pair", way->changes[d].pair);
        (void)json_object_array_add(array, object);
    }
    return array;
}

static json_object *way_json(const cli_extended *way, const cli_extend_base *base)
{
    json_object *object = json_object_new_object();
    json_object *block = cli_extend_block(way, base);
    cli_json_set_text(object, "method", cli_choice_name(cli_extend_names, way->method));
    cli_json_set_number(object, "factor", base->factor);
    cli_json_set_number(object, "rope_theta",
                        way->method == CLI_EXTEND_NTK ? way->rope_theta
                                                      : base->rope_theta);
    if (way->method == CLI_EXTEND_NTK || way->method == CLI_EXTEND_DYNAMIC)
        cli_json_set_number(object, "equivalent_base", way->rope_theta);
    if (block != NULL)
        (void)json_object_object_add(object, "rope_scaling", block);
    cli_json_set_integer(object, "max_position_embeddings",
                         cli_extend_max_positions(way, base));
    cli_json_set_number(object, "attention_factor", way->attention_factor);
    cli_json_set_integer(object, "kept", way->turns.kept);
    cli_json_set_integer(object, "blended", way->turns.blended);
    cli_json_set_integer(object, "divided", way->turns.divided);
    if (way->ramp_high > 0) {
        const double ramp[2] = {way->ramp_low, way->ramp_high};
        cli_json_numbers(object, "correction_range", ramp, 2);
    }
    cli_json_set_integer(object, "num_beyond", way->num_beyond);
    cli_json_numbers(object, "beyond", way->beyond, base->num_pairs);
    (void)json_object_object_add(object, "changes", changes_json(way));
    cli_json_numbers(object, "inv_freq", way->inv_freq, base->num_pairs);
    add_text(object, "hugging_face", cli_extend_hugging_face(way, base));
    add_text(object, "llama_cpp", cli_extend_llama_cpp(way, base));
    add_text(object, "vllm", cli_extend_vllm(way, base));
    return object;
}

int cli_extend_print_json(const cli_model *model, const char *layers,
                          const cli_extend_base *base, const cli_extended *const *ways,
                          size_t num_ways)
{
    const double d = base->rotary_dim;
    json_object *root = cli_json_start("posenc.extend/1");
    json_object *methods = json_object_new_array();
    json_object *conversions = json_object_new_object();
    cli_json_set_text(root, "model", model->name);
    cli_json_set_text(root, "layers", layers);
    cli_json_set_integer(root, "trained_len", base->trained_len);
    cli_json_set_integer(root, "length", base->length);
    cli_json_set_number(conversions, "factor", base->factor);
    cli_json_set_number(conversions, "freq_scale", 1 / base->factor);
    cli_json_set_number(conversions, "alpha", base->factor);
    cli_json_set_number(conversions, "base",
                        base->rope_theta * pow(base->factor, d / (d - 2)));
    (void)json_object_object_add(root, "conversions", conversions);
    for (size_t w = 0; w < num_ways; w++)
        (void)json_object_array_add(methods, way_json(ways[w], base));
    (void)json_object_object_add(root, "methods", methods);
    return cli_json_print(root);
}

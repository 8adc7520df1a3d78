/* SPDX-License-Identifier: MIT
 *
 * diff_report.c - what differs between two models, the verdict first
 */
#include "diff.h"

#include "layers.h"
#include "names.h"
#include "print.h"
#include "report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { VALUE_WIDTH = 14 };

static const double pi = 3.141592653589793;

/* The width of the names of a block. */
static int width_of(const cli_diff_lines *lines)
{
    int width = 16; /* attention_factor */
    for (size_t i = 0; i < lines->count; i++) {
        const int length = (int)strlen(lines->items[i].name);
        width = length > width ? length : width;
    }
    return width;
}

static void print_lines(const cli_diff_lines *lines)
{
    const int width = width_of(lines);
    for (size_t i = 0; i < lines->count; i++) {
        const cli_diff_line *line = &lines->items[i];
        cli_print("  %-*s  %-*s  %-*s", width, line->name, VALUE_WIDTH, line->a,
                  line->excuse != NULL ? VALUE_WIDTH : 0, line->b);
        if (line->excuse != NULL)
            cli_print("  does not count: %s", line->excuse);
        cli_print("\n");
    }
}

static void print_gaps(const cli_diff_site *site, int width)
{
    for (int i = 0; i < CLI_DIFF_LENGTHS; i++) {
        const cli_diff_gap *gap = &site->gaps[i];
        cli_print("  %-*s  %lldk: %.4g rad", width, i == 0 ? "largest gap" : "",
                  (long long)cli_diff_lengths[i] / 1024, gap->radians);
        if (gap->radians > 0)
            cli_print(" (pair %d%s)", (int)gap->pair,
                      gap->radians > pi ? ", past half a turn" : "");
        cli_print("\n");
    }
}

static int parts_when_longer(const cli_diff *diff, const cli_diff_site *site)
{
    int parts = 0;
    for (int i = 0; i < CLI_DIFF_LENGTHS; i++)
        parts |= site->gaps[i].radians > diff->tolerance;
    return parts;
}

static void print_angles(const cli_diff *diff, const cli_diff_site *site, int width)
{
    cli_number number;
    (void)cli_double(&number, diff->tolerance);
    cli_print("  %-*s  ", width, "angles");
    if (site->first_position >= 0)
        cli_print("part by more than %s rad from position %lld on (pair %d)\n",
                  number.text, (long long)site->first_position, (int)site->first_pair);
    else if (parts_when_longer(diff, site))
        cli_print("within %s rad at this length, not when more is served\n",
                  number.text);
    else
        cli_print("within %s rad to position %lld\n", number.text,
                  (long long)diff->limit);
    print_gaps(site, width);
}

static void print_site(const cli_diff *diff, const cli_diff_site *site)
{
    const int width = width_of(&site->lines);
    cli_print("\nlayer%s %s, %s attention\n", cli_layers_plural(site->layers),
              site->layers, cli_choice_name(cli_role_names, site->role));
    if (site->rotates)
        print_angles(diff, site, width);
    print_lines(&site->lines);
    if (site->rotates)
        cli_print("  %-*s  %.10g and %.10g; softmax_factor %.10g and %.10g\n", width,
                  "attention_factor", site->attention_factor[0],
                  site->attention_factor[1], site->softmax_factor[0],
                  site->softmax_factor[1]);
    if (!site->rotates && site->lines.count == 0)
        cli_print("  the same\n");
}

/* "first at position 24, pair 32 (layers 0-31)" */
static void print_verdict(const cli_diff *diff, const cli_model *a, const cli_model *b)
{
    const cli_diff_site *first = NULL;
    cli_number number;
    for (size_t i = 0; i < diff->num_sites; i++) {
        const cli_diff_site *site = &diff->sites[i];
        if (site->rotates && site->first_position >= 0 &&
            (first == NULL || site->first_position < first->first_position))
            first = site;
    }
    if (!diff->differs)
        cli_print("same: %s and %s, within %s rad to position %lld\n", a->name, b->name,
                  cli_double(&number, diff->tolerance), (long long)diff->limit);
    else if (first != NULL)
        cli_print("different: %s and %s part by more than %s rad first at position "
                  "%lld, pair %d, layer%s %s\n",
                  a->name, b->name, cli_double(&number, diff->tolerance),
                  (long long)first->first_position, (int)first->first_pair,
                  cli_layers_plural(first->layers), first->layers);
    else
        cli_print("different: %s and %s\n", a->name, b->name);
}

static void print_context(const pe_model_info *a, const pe_model_info *b)
{
    cli_print("\ncontext\n");
    cli_print("  %-*s  %lld and %lld, extended to %lld and %lld\n", 16, "trained on",
              (long long)a->trained_len, (long long)b->trained_len,
              (long long)a->extended_len, (long long)b->extended_len);
}

void cli_diff_print(const cli_diff *diff, const cli_model *a, const cli_model *b)
{
    print_verdict(diff, a, b);
    if (diff->lines.count > 0) {
        cli_print("\nthe models\n");
        print_lines(&diff->lines);
    }
    for (size_t i = 0; i < diff->num_sites; i++)
        print_site(diff, &diff->sites[i]);
    print_context(pe_model_get_info(a->model), pe_model_get_info(b->model));
}

static json_object *lines_json(const cli_diff_lines *lines)
{
    json_object *array = json_object_new_array();
    for (size_t i = 0; i < lines->count; i++) {
        const cli_diff_line *line = &lines->items[i];
        json_object *object = json_object_new_object();
        cli_json_set_text(object, "name", line->name);
        cli_json_set_text(object, "a", line->a);
        cli_json_set_text(object, "b", line->b);
        (void)json_object_object_add(object, "counts",
                                     json_object_new_boolean(line->excuse == NULL));
        cli_json_text(object, "reason", line->excuse);
        (void)json_object_array_add(array, object);
    }
    return array;
}

static json_object *gaps_json(const cli_diff_site *site)
{
    json_object *array = json_object_new_array();
    for (int i = 0; i < CLI_DIFF_LENGTHS; i++) {
        json_object *object = json_object_new_object();
        cli_json_set_integer(object, "position", cli_diff_lengths[i]);
        cli_json_set_number(object, "radians", site->gaps[i].radians);
        cli_json_set_integer(object, "pair", site->gaps[i].pair);
        (void)json_object_array_add(array, object);
    }
    return array;
}

static json_object *site_json(const cli_diff_site *site)
{
    json_object *object = json_object_new_object();
    cli_json_set_text(object, "layers", site->layers);
    cli_json_set_text(object, "role", cli_choice_name(cli_role_names, site->role));
    if (site->rotates) {
        if (site->first_position >= 0) {
            cli_json_set_integer(object, "first_position", site->first_position);
            cli_json_set_integer(object, "first_pair", site->first_pair);
        } else {
            cli_json_set_text(object, "first_position", NULL);
        }
        (void)json_object_object_add(object, "gaps", gaps_json(site));
        cli_json_numbers(object, "attention_factor", site->attention_factor, 2);
        cli_json_numbers(object, "softmax_factor", site->softmax_factor, 2);
    }
    (void)json_object_object_add(object, "differences", lines_json(&site->lines));
    return object;
}

static json_object *model_json(const cli_model *model)
{
    const pe_model_info *info = pe_model_get_info(model->model);
    json_object *object = json_object_new_object();
    cli_json_set_text(object, "name", model->name);
    cli_json_set_text(object, "method", info->method);
    cli_json_set_integer(object, "trained_len", info->trained_len);
    cli_json_set_integer(object, "extended_len", info->extended_len);
    return object;
}

int cli_diff_print_json(const cli_diff *diff, const cli_model *a, const cli_model *b)
{
    json_object *root = cli_json_start("posenc.diff/1");
    json_object *sites = json_object_new_array();
    (void)json_object_object_add(root, "same", json_object_new_boolean(!diff->differs));
    cli_json_set_number(root, "tolerance", diff->tolerance);
    cli_json_set_integer(root, "limit", diff->limit);
    (void)json_object_object_add(root, "a", model_json(a));
    (void)json_object_object_add(root, "b", model_json(b));
    (void)json_object_object_add(root, "differences", lines_json(&diff->lines));
    for (size_t i = 0; i < diff->num_sites; i++)
        (void)json_object_array_add(sites, site_json(&diff->sites[i]));
    (void)json_object_object_add(root, "sites", sites);
    return cli_json_print(root);
}

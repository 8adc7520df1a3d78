/* SPDX-License-Identifier: MIT
 *
 * plot_axes.c - posenc plot mrope: which position axis each pair follows
 */
#include "plot.h"

#include <math.h>

typedef struct layout {
    const char *name;
    pe_axes axes;
} layout;

static const layout layouts[] = {
    {"chunked", {.map = PE_AXIS_CHUNKED, .section = {16, 24, 24}}},
    {"interleaved", {.map = PE_AXIS_INTERLEAVED, .section = {24, 20, 20}}},
    {"imrope", {.map = PE_AXIS_IMROPE, .section = {24, 20, 20}}},
    {"ernie", {.map = PE_AXIS_ERNIE, .section = {22, 22, 20}}}};

static const char *const three_axes[] = {"T (time)", "H (row)", "W (column)", NULL};
static const char *const four_axes[] = {"T (time)", "H (row)", "W (column)",
                                        "E (fourth)", NULL};
static const char *const many_axes[] = {"0 axis 0", "1 axis 1", "2 axis 2", "3 axis 3",
                                        NULL};

static void fill_row(cli_panel *panel, int64_t row, const pe_rope_info *info)
{
    for (int64_t c = 0; c < panel->cols; c++)
        panel->values[row * panel->cols + c] =
            c < info->num_pairs ? (double)info->pair_axis[c] : (double)NAN;
}

static int fill_layouts(cli_panel *panel)
{
    const int64_t rows = (int64_t)CLI_COUNT(layouts);
    int status = cli_panel_cells(panel, rows, 64, 1, 0);
    for (int64_t r = 0; r < rows && status == CLI_DONE; r++) {
        pe_rope *plan;
        pe_error error;
        const pe_rope_spec spec = {.struct_size = sizeof spec,
                                   .head_dim = 128,
                                   .pairs = {.pairing = PE_HALF_SPLIT},
                                   .axes = layouts[r].axes,
                                   .freqs = {.rope_theta = 1e6}};
        if (pe_rope_create(&plan, &spec, NULL, &error) != PE_OK)
            return cli_fail_with(layouts[r].name, &error);
        fill_row(panel, r, pe_rope_get_info(plan));
        (void)snprintf(panel->row_names[r], CLI_NAME_SIZE, "%s", layouts[r].name);
        pe_rope_destroy(plan);
    }
    return status;
}

static int fill_model(cli_panel *panel, const cli_plot_args *args, char *name)
{
    cli_plot_rope rope;
    int status = cli_plot_rope_open(&rope, args, 0, -1);
    if (status != CLI_DONE)
        return status;
    const pe_rope_info *info = rope.rope.info;
    if (info->num_axes < 2)
        status = cli_fail(CLI_FAILED, "%s has one position axis, must have several",
                          rope.name);
    if (status == CLI_DONE)
        status = cli_panel_cells(panel, 1, info->num_pairs, 1, 0);
    if (status == CLI_DONE) {
        fill_row(panel, 0, info);
        (void)snprintf(panel->row_names[0], CLI_NAME_SIZE, "%s",
                       cli_choice_name(cli_axis_names, rope.rope.spec.axes.map));
        panel->categories = info->num_axes == 3 ? three_axes : many_axes;
        (void)snprintf(name, CLI_NAME_SIZE, "%s", rope.name);
    }
    cli_plot_rope_close(&rope);
    return status;
}

int cli_plot_mrope(const cli_plot_args *args, cli_figure *figure)
{
    cli_panel *panel = cli_figure_panel(figure, CLI_HEAT);
    char name[CLI_NAME_SIZE] = "published layouts, head_dim 128";
    panel->colours = CLI_CATEGORIES;
    panel->categories = four_axes;
    const int status =
        args->model != NULL ? fill_model(panel, args, name) : fill_layouts(panel);
    panel->x = (cli_axis){.label = "pair, fast to slow",
                          .column = "pair",
                          .max = (double)panel->cols - 1};
    panel->y = (cli_axis){.label = "layout", .column = "layout"};
    panel->value = (cli_axis){.label = "axis", .column = "axis", .max = 3};
    (void)snprintf(figure->title, sizeof figure->title,
                   "Which position axis each pair follows: %s", name);
    (void)snprintf(figure->note, sizeof figure->note, "%s",
                   args->model != NULL
                       ? "Text moves all axes together; only images and video tell "
                         "them apart."
                       : "Pairs for T, H and W: 16, 24, 24 in chunked, 24, 20, 20 in "
                         "interleaved and imrope; for H, W and T: 22, 22, 20 in ernie. "
                         " Text moves all axes together; only images and video tell "
                         "them apart.");
    return status;
}

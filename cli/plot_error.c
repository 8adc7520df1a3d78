/* SPDX-License-Identifier: MIT
 *
 * plot_error.c - posenc plot error: how wrong cos and sin get as positions grow
 *
 * The truth is double precision: at positions below 2^24 its own error is under 4e-9 of
 * a radian, a tenth of what the best float can do. */
#include "plot.h"

#include <math.h>
#include <stdlib.h>

enum { NUM_PLACES = 96, RUN = 32, MAX_POSITION = 1 << 24, MAX_DIM = 4096 };

typedef struct method {
    const char *name;
    pe_angles angles;
    pe_dtype dtype;
    int is_rounded; /* positions pass through bfloat16 */
} method;

static const method methods[] = {{"exact", PE_ANGLES_EXACT, PE_F32, 0},
                                 {"hf_f32", PE_ANGLES_HF_F32, PE_F32, 0},
                                 {"ggml_f32", PE_ANGLES_GGML_F32, PE_F32, 0},
                                 {"bf16 cos, sin", PE_ANGLES_EXACT, PE_BF16, 0},
                                 {"bf16 positions", PE_ANGLES_EXACT, PE_F32, 1}};

typedef struct workspace {
    double truth[2 * RUN * MAX_DIM / 2]; /* cos, then sin */
    float got[2 * RUN * MAX_DIM / 2];
    uint16_t stored[2 * RUN * MAX_DIM / 2];
} workspace;

/* Eight significant bits, ties to even. */
static double to_bf16(double value)
{
    int exponent;
    (void)frexp(value, &exponent);
    return ldexp(nearbyint(ldexp(value, 8 - exponent)), exponent - 8);
}

static void fill_truth(workspace *w, const pe_rope_info *info, int64_t start)
{
    const int64_t pairs = info->num_pairs;
    for (int64_t t = 0; t < RUN; t++)
        for (int64_t i = 0; i < pairs; i++) {
            const double angle = (double)(start + t) * info->inv_freq[i];
            w->truth[t * pairs + i] = cos(angle);
            w->truth[(RUN + t) * pairs + i] = sin(angle);
        }
}

/* The largest error over a run of positions and all pairs. */
static int measure(workspace *w, const method *m, const pe_rope *plan, int64_t start,
                   double *out)
{
    const pe_rope_info *info = pe_rope_get_info(plan);
    const int64_t pairs = info->num_pairs, half = RUN * pairs;
    double values[RUN];
    pe_tensor cos_out, sin_out, from, to;
    pe_error error;
    pe_positions at = {.start = start};
    for (int t = 0; t < RUN; t++)
        values[t] = to_bf16((double)(start + t));
    if (m->is_rounded)
        at = (pe_positions){.values = values};
    uint16_t *stored = w->stored;
    void *cells = m->dtype == PE_BF16 ? (void *)stored : (void *)w->got;
    void *second = m->dtype == PE_BF16 ? (void *)(stored + half) : w->got + half;
    pe_tensor_bshd(&cos_out, m->dtype, cells, 1, RUN, 1, pairs);
    pe_tensor_bshd(&sin_out, m->dtype, second, 1, RUN, 1, pairs);
    if (pe_rope_table(plan, &at, &cos_out, &sin_out, &error) != PE_OK)
        return cli_fail_with(m->name, &error);
    if (m->dtype == PE_BF16) {
        pe_tensor_bshd(&from, PE_BF16, stored, 1, 2 * RUN, 1, pairs);
        pe_tensor_bshd(&to, PE_F32, w->got, 1, 2 * RUN, 1, pairs);
        if (pe_tensor_copy(&from, &to, NULL, &error) != PE_OK)
            return cli_fail_with(m->name, &error);
    }
    *out = 0;
    for (int64_t i = 0; i < 2 * half; i++)
        *out =
            fmax(*out, fabs((double)w->got[i] / info->attention_factor - w->truth[i]));
    return CLI_DONE;
}

static int fill_series(cli_panel *panel, const cli_plot_rope *rope, cli_range range,
                       const method *m, workspace *w)
{
    pe_rope *plan;
    pe_error error;
    pe_rope_spec spec = rope->rope.spec;
    spec.angles = m->angles;
    if (pe_rope_create(&plan, &spec, NULL, &error) != PE_OK)
        return cli_fail_with(m->name, &error);
    cli_series *series = cli_panel_series(panel, NUM_PLACES);
    int status = series ? CLI_DONE : CLI_FAILED;
    const double ratio = (double)range.end / (double)range.begin;
    int64_t last = 0, count = 0;
    for (int i = 0; i < NUM_PLACES && status == CLI_DONE; i++) {
        const double place =
            (double)range.begin * pow(ratio, (double)i / (NUM_PLACES - 1));
        const int64_t start = llround(place);
        if (start == last)
            continue;
        last = start;
        fill_truth(w, rope->rope.info, start);
        series->x[count] = (double)start;
        status = measure(w, m, plan, start, &series->y[count++]);
    }
    if (series != NULL)
        series->count = count;
    if (status == CLI_DONE)
        (void)snprintf(series->name, sizeof series->name, "%s", m->name);
    pe_rope_destroy(plan);
    return status;
}

int cli_plot_error(const cli_plot_args *args, cli_figure *figure)
{
    cli_plot_rope rope;
    cli_range range;
    workspace *w = malloc(sizeof *w);
    int status = w ? CLI_DONE : cli_fail(CLI_FAILED, "out of memory");
    if (status == CLI_DONE)
        status = cli_plot_range(&range, args, (cli_range){1, 1 << 20}, 1, MAX_POSITION);
    if (status == CLI_DONE)
        status = cli_plot_rope_open(&rope, args, 128, -1);
    if (status != CLI_DONE) {
        free(w);
        return status;
    }
    cli_panel *panel = cli_figure_panel(figure, CLI_LINES);
    panel->x = (cli_axis){.label = "position (tokens)",
                          .column = "position",
                          .min = (double)range.begin,
                          .max = (double)range.end,
                          .log_base = 10};
    panel->y = (cli_axis){.label = "largest error of cos and sin",
                          .column = "error",
                          .min = 1e-9,
                          .max = 10,
                          .log_base = 10,
                          .digits = 3};
    for (size_t i = 0; i < CLI_COUNT(methods) && status == CLI_DONE; i++)
        status = fill_series(panel, &rope, range, &methods[i], w);
    (void)snprintf(figure->title, sizeof figure->title,
                   "Error of the rotation's cos and sin: %s", rope.name);
    (void)snprintf(figure->note, sizeof figure->note,
                   "Against double precision: the largest over all pairs and %d "
                   "positions from each point on.  bf16 cos, sin: stored as bfloat16; "
                   "bf16 positions: the position is rounded to bfloat16 first.",
                   RUN);
    cli_plot_rope_close(&rope);
    free(w);
    return status;
}

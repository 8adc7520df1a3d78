/* SPDX-License-Identifier: MIT
 *
 * plot.c - posenc plot: pictures of encodings, in the terminal, as SVG or as CSV
 */
#include "plot.h"

#include "canvas.h"
#include "file_out.h"
#include "suggest.h"
#include "verbs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef int32_t plot_format;
enum { FORMAT_UNSAID = 0, FORMAT_TEXT = 1, FORMAT_SVG = 2, FORMAT_CSV = 3 };

static const cli_choice formats[] = {
    {"text", FORMAT_TEXT}, {"svg", FORMAT_SVG}, {"csv", FORMAT_CSV}, {NULL, 0}};

enum { TABLE, WAVES, DIALS, DECAY, FREQS, ALIBI, SLOPES, ERRORS, MROPE };

static const cli_choice kinds[] = {
    {"table", TABLE}, {"waves", WAVES}, {"dials", DIALS},   {"decay", DECAY},
    {"freqs", FREQS}, {"alibi", ALIBI}, {"slopes", SLOPES}, {"error", ERRORS},
    {"mrope", MROPE}, {NULL, 0}};

static const cli_plot_fn functions[] = {
    cli_plot_table, cli_plot_waves,  cli_plot_dials, cli_plot_decay, cli_plot_freqs,
    cli_plot_alibi, cli_plot_slopes, cli_plot_error, cli_plot_mrope};

static const char *kind_name(void *context, size_t index)
{
    (void)context;
    return kinds[index].name;
}

static int read_kind(const char *name, int32_t *kind)
{
    for (const cli_choice *c = kinds; c->name != NULL; c++)
        if (strcmp(c->name, name) == 0) {
            *kind = c->value;
            return CLI_DONE;
        }
    const char *near = cli_suggest(name, kind_name, NULL);
    if (near != NULL)
        return cli_fail(CLI_USAGE, "unknown kind '%s'; did you mean %s?", name, near);
    return cli_fail(CLI_USAGE,
                    "unknown kind '%s', must be table, waves, dials, decay, freqs, "
                    "alibi, slopes, error or mrope",
                    name);
}

static int read_number(const char *option, const char *text, double *out)
{
    char *end;
    if (text == NULL)
        return CLI_DONE;
    errno = 0;
    *out = strtod(text, &end);
    if (*end == '\0' && errno == 0 && *out > 0 && *out < 1e300)
        return CLI_DONE;
    return cli_fail(CLI_USAGE, "--%s is '%s', must be a number over 0", option, text);
}

/* An option that a kind does not read would be a picture of something else. */
static int check_options(const cli_plot_args *args, int32_t kind)
{
    const unsigned sinusoids = 1u << TABLE | 1u << WAVES;
    const unsigned turning = 1u << DIALS | 1u << DECAY | 1u << ERRORS;
    const unsigned biases = 1u << ALIBI | 1u << SLOPES;
    const struct {
        const char *name;
        int is_said;
        unsigned kinds;
    } options[] = {
        {"positions", args->positions.end > args->positions.begin,
         sinusoids | turning | 1u << ALIBI},
        {"dim", args->dim != 0, sinusoids | turning | 1u << FREQS},
        {"base", args->base != 0, sinusoids | turning | 1u << FREQS},
        {"heads", args->heads != 0, biases},
        {"factor", args->factor != 0, 1u << FREQS},
        {"trained-len", args->trained_len != 0, 1u << FREQS},
        {"deinterleave", args->deinterleave, sinusoids},
        {"layer", args->rope.layer >= 0, turning | 1u << FREQS | 1u << MROPE},
        {"role", args->rope.role >= 0, turning | 1u << FREQS | 1u << MROPE},
        {"seq-len", args->rope.seq_len != 0, turning | 1u << FREQS | 1u << MROPE},
        {"angles", args->rope.angles != 0, sinusoids | 1u << DECAY}};
    for (size_t i = 0; i < CLI_COUNT(options); i++)
        if (options[i].is_said && !(options[i].kinds >> kind & 1))
            return cli_fail(CLI_USAGE, "--%s does not go with %s", options[i].name,
                            cli_choice_name(kinds, kind));
    if (args->model == NULL)
        return CLI_DONE;
    if (args->dim != 0 || args->base != 0 || args->heads != 0 || args->factor != 0)
        return cli_fail(CLI_USAGE,
                        "--dim, --base, --heads and --factor are the model's to say");
    return CLI_DONE;
}

static int choose_format(const cli_plot_args *args, plot_format *format)
{
    const char *dot = args->output ? strrchr(args->output, '.') : NULL;
    *format = args->format;
    if (*format != FORMAT_UNSAID)
        return CLI_DONE;
    *format = FORMAT_TEXT;
    if (args->output == NULL || strcmp(args->output, "-") == 0)
        return CLI_DONE;
    if (dot == NULL || (strcmp(dot, ".svg") != 0 && strcmp(dot, ".csv") != 0 &&
                        strcmp(dot, ".txt") != 0))
        return cli_fail(CLI_USAGE,
                        "--output is %s, must end in .svg, .csv or .txt, or --format "
                        "say which",
                        args->output);
    *format = dot[1] == 's' ? FORMAT_SVG : dot[1] == 'c' ? FORMAT_CSV : FORMAT_TEXT;
    return CLI_DONE;
}

static int draw(const cli_plot_args *args, cli_figure *figure, plot_format format,
                FILE *out)
{
    cli_screen screen;
    cli_clean_text(figure->title);
    cli_clean_text(figure->note);
    if (format == FORMAT_SVG)
        return cli_figure_svg(figure, out);
    if (format == FORMAT_CSV) {
        cli_figure_csv(figure, out);
        return CLI_DONE;
    }
    cli_screen_find(&screen, args->color, args->width);
    for (char *c = figure->title; *c != '\0' && !screen.has_blocks; c++)
        if ((unsigned char)*c >= 0x80)
            *c = '?';
    return cli_figure_text(figure, &screen, out);
}

static int write_figure(const cli_plot_args *args, cli_figure *figure,
                        plot_format format)
{
    cli_file_out out = {.file = NULL};
    char *text = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&text, &size);
    int status = memory ? CLI_DONE : cli_fail(CLI_FAILED, "out of memory");
    if (status == CLI_DONE)
        status = draw(args, figure, format, memory);
    if (memory != NULL && fclose(memory) != 0 && status == CLI_DONE)
        status = cli_fail(CLI_FAILED, "out of memory");
    if (status == CLI_DONE)
        status = cli_file_create(&out, args->output ? args->output : "-", 0);
    if (status == CLI_DONE)
        status = cli_file_write(&out, text, size);
    if (status == CLI_DONE)
        status = cli_file_commit(&out);
    cli_file_discard(&out);
    free(text);
    return status;
}

static int run(int argc, char **argv)
{
    cli_plot_args args = {.rope = CLI_ROPE_DEFAULTS};
    cli_figure figure = {.num_panels = 0};
    const char *operand;
    int32_t kind = 0;
    plot_format format;
    int status = cli_parse(&cli_verb_plot, argc, argv, &args, &operand);
    if (status != CLI_CONTINUE)
        return status;
    if ((status = read_kind(operand, &kind)) != CLI_DONE ||
        (status = read_number("base", args.base_text, &args.base)) != CLI_DONE ||
        (status = read_number("factor", args.factor_text, &args.factor)) != CLI_DONE ||
        (status = check_options(&args, kind)) != CLI_DONE ||
        (status = choose_format(&args, &format)) != CLI_DONE)
        return status;
    status = functions[kind](&args, &figure);
    if (status == CLI_DONE)
        status = write_figure(&args, &figure, format);
    cli_figure_release(&figure);
    return status;
}

/* clang-format off */
#define NUMBER(field, name_, low, high, help_)                                 \
  {.name = name_, .argument = "N", .type = CLI_INTEGER, .help = help_,         \
   .min = low, .max = high, .offset = offsetof(cli_plot_args, field)}
#define TEXT(field, name_, argument_, help_)                                   \
  {.name = name_, .argument = argument_, .type = CLI_TEXT, .help = help_,      \
   .offset = offsetof(cli_plot_args, field)}

static const cli_option options[] = {
    TEXT(model, "model", "MODEL", "a model's own encoding instead of --dim and so on"),
    {.name = "positions", .letter = 'p', .argument = "A:B", .type = CLI_RANGE,
     .offset = offsetof(cli_plot_args, positions),
     .help = "positions, of decay and alibi distances, A to B - 1"},
    NUMBER(dim, "dim", 1, 4096, "model_dim of table and waves (default 64), head_dim of "
           "decay, freqs and error (128) and dials (16)"),
    TEXT(base_text, "base", "X", "base or rope_theta; default 10000"),
    NUMBER(heads, "heads", 1, 4096, "alibi (default 8), slopes (12): how many"),
    TEXT(factor_text, "factor", "X", "freqs: how far to stretch; default 8"),
    NUMBER(trained_len, "trained-len", 1, 1 << 30, "freqs: default 4096"),
    {.name = "deinterleave", .type = CLI_FLAG,
     .offset = offsetof(cli_plot_args, deinterleave),
     .help = "table, waves: sines on the left, cosines on the right"},
    CLI_ROPE_OPTIONS(cli_plot_args),
    {.name = "format", .argument = "FORMAT", .type = CLI_CHOICE, .choices = formats,
     .offset = offsetof(cli_plot_args, format),
     .help = "text, svg or csv; default: as the name of --output ends, else text"},
    {.name = "output", .letter = 'o', .argument = "FILE", .type = CLI_TEXT,
     .offset = offsetof(cli_plot_args, output),
     .help = "write there (.svg, .csv or .txt); - is standard output"},
    {.name = "color", .argument = "WHEN", .type = CLI_CHOICE,
     .choices = cli_color_names, .offset = offsetof(cli_plot_args, color),
     .help = "text: auto (default), always, never, 256 or truecolor; NO_COLOR and "
             "CLICOLOR_FORCE are heeded"},
    NUMBER(width, "width", 40, 400, "text: columns; default: the terminal's, else 80")};
/* clang-format on */

const cli_verb cli_verb_plot = {
    .name = "plot",
    .summary = "pictures: tables, waves, decay, scaling, slopes, errors",
    .operands = "KIND",
    .about =
        "KIND is one of\n"
        "  table   the sinusoidal table as a heat map\n"
        "  waves   four of its channels over positions\n"
        "  dials   pairs of RoPE as dials, position by position\n"
        "  decay   RoPE's score against distance, for q = k = 1\n"
        "  freqs   inv_freq against wavelength under the scaling rules\n"
        "  alibi   ALiBi's bias and softmax, head by head\n"
        "  slopes  ALiBi's slope of each head\n"
        "  error   error of cos and sin: exact, hf_f32, ggml_f32 and bf16\n"
        "  mrope   which position axis each pair follows\n"
        "drawn in the terminal, with half blocks and colours where it has them, or\n"
        "written as SVG or CSV.",
    .examples = "posenc plot decay\n"
                "posenc plot table --deinterleave -o table.svg\n"
                "posenc plot freqs --model llama-3.1-8b -o freqs.svg\n"
                "posenc plot alibi --heads 12 --format csv",
    .kind_at = kind_name,
    .options = options,
    .num_options = CLI_COUNT(options),
    .num_operands = 1,
    .run = run};

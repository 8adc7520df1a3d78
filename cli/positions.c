/* SPDX-License-Identifier: MIT
 *
 * positions.c - posenc positions: where tokens stand, from masks, packing, images, maps
 */
#include "build_positions.h"
#include "npy_out.h"
#include "print.h"
#include "report.h"
#include "suggest.h"
#include "terminal.h"
#include "verbs.h"

#include <stdio.h>
#include <string.h>

typedef struct positions_args {
    cli_build_args build;
    const char *output;
    int32_t json;
} positions_args;

/* ------------------------------------------------------------------ reports --- */

static json_object *numbers(const int64_t *values, int64_t count)
{
    json_object *array = json_object_new_array();
    for (int64_t i = 0; i < count; i++)
        (void)json_object_array_add(array, json_object_new_int64(values[i]));
    return array;
}

/* ids nest as the .npy has them: (len), (rows, len) or (axes, len). */
static int print_json(const cli_built *b)
{
    json_object *root = cli_json_start("posenc.positions/1");
    cli_json_set_text(root, "kind", cli_choice_name(cli_build_names, b->kind));
    if (b->axes == 1 && b->rows == 1) {
        (void)json_object_object_add(root, "ids", numbers(b->ids, b->len));
    } else {
        json_object *lines = json_object_new_array();
        for (int64_t i = 0; i < b->axes * b->rows; i++)
            (void)json_object_array_add(lines, numbers(b->ids + i * b->len, b->len));
        (void)json_object_object_add(root, "ids", lines);
    }
    if (b->axes > 1) {
        json_object *names = json_object_new_array();
        for (int64_t a = 0; a < b->axes; a++)
            (void)json_object_array_add(names,
                                        json_object_new_string(b->axis_names[a]));
        (void)json_object_object_add(root, "axes", names);
    }
    if (b->places != NULL)
        (void)json_object_object_add(root, "rows", numbers(b->places, b->len));
    if (b->next != NULL)
        (void)json_object_object_add(root, "next",
                                     b->rows == 1 ? json_object_new_int64(*b->next)
                                                  : numbers(b->next, b->rows));
    return cli_json_print(root);
}

static int digits_of(int64_t value)
{
    char text[32];
    return snprintf(text, sizeof text, "%lld", (long long)value);
}

/* Columns that every number of the picture fits. */
static int column_width(const cli_built *b)
{
    int width = digits_of(b->len > 0 ? b->len - 1 : 0);
    for (int64_t i = 0; i < b->axes * b->rows * b->len; i++)
        if (digits_of(b->ids[i]) > width)
            width = digits_of(b->ids[i]);
    for (int64_t i = 0; b->places != NULL && i < b->len; i++)
        if (digits_of(b->places[i]) > width)
            width = digits_of(b->places[i]);
    return width + 1;
}

static void print_line(const char *label, const int64_t *ids, int64_t begin, int64_t n,
                       int width, int64_t pad, int has_pad)
{
    (void)printf("%-8s", label);
    for (int64_t t = begin; t < begin + n; t++) {
        if (has_pad && ids[t] == pad)
            (void)printf("%*s", width, ".");
        else
            (void)printf("%*lld", width, (long long)ids[t]);
    }
    (void)putchar('\n');
}

/* Tokens from left to right, as many as a line holds; each axis and row is a line. */
static void print_lines(const cli_built *b, int64_t pad)
{
    const int has_pad = b->kind == CLI_BUILD_MASK || b->kind == CLI_BUILD_STREAMING;
    const int width = column_width(b);
    const int64_t room = cli_columns() - 2 - 8;
    const int64_t per_line = room > width ? room / width : 1;
    char label[32];
    for (int64_t begin = 0; begin < b->len; begin += per_line) {
        const int64_t n = b->len - begin < per_line ? b->len - begin : per_line;
        if (begin > 0)
            (void)putchar('\n');
        (void)printf("%-8s", "token");
        for (int64_t t = begin; t < begin + n; t++)
            (void)printf("%*lld", width,
                         (long long)(b->places != NULL ? b->places[t] : t));
        (void)putchar('\n');
        for (int64_t i = 0; i < b->axes * b->rows; i++) {
            if (b->rows > 1)
                (void)snprintf(label, sizeof label, "row %lld", (long long)i);
            else
                (void)snprintf(label, sizeof label, "%s", b->axis_names[i]);
            print_line(label, b->ids + i * b->len, begin, n, width, pad, has_pad);
        }
    }
}

/* The image itself: each patch shows its place in the sequence. */
static void print_image(const cli_built *b)
{
    const int width = digits_of(b->len - 1) + 1;
    int64_t w = 0;
    for (int64_t t = 0; t < b->len; t++)
        w = b->ids[b->len + t] >= w ? b->ids[b->len + t] + 1 : w;
    if (w * width > cli_columns() - 2)
        return;
    (void)puts("the image, each patch by its token:\n");
    for (int64_t y = 0; y < b->len / w; y++) {
        for (int64_t x = 0; x < w; x++) {
            int64_t t = 0;
            while (b->ids[t] != y || b->ids[b->len + t] != x)
                t++;
            (void)printf("%*lld", width, (long long)t);
        }
        (void)putchar('\n');
    }
    (void)putchar('\n');
}

static void print_text(const cli_built *b, int64_t pad)
{
    enum { MAX_PICTURE = 4096 };
    if (b->kind == CLI_BUILD_GRID && b->len <= MAX_PICTURE)
        print_image(b);
    print_lines(b, pad);
    if (b->next == NULL)
        return;
    cli_print("\nnext  ");
    for (int64_t r = 0; r < b->rows; r++)
        cli_print("%s%lld", r > 0 ? " " : "", (long long)b->next[r]);
    cli_print("\n");
}

static int write_npy(const char *path, const cli_built *b)
{
    cli_file_out out;
    const int64_t lines = b->axes * b->rows;
    const int64_t shape[2] = {lines, b->len};
    int status = cli_npy_create(&out, path, "<i8", lines > 1 ? 2 : 1,
                                lines > 1 ? shape : shape + 1);
    if (status == CLI_DONE)
        status =
            cli_file_write(&out, b->ids, (size_t)(lines * b->len) * sizeof *b->ids);
    if (status == CLI_DONE)
        status = cli_file_commit(&out);
    cli_file_discard(&out);
    return status;
}

/* ---------------------------------------------------------------- the verb --- */

static const char *kind_name(void *context, size_t index)
{
    (void)context;
    return cli_build_names[index].name;
}

static int read_kind(const char *name, cli_build_kind *kind)
{
    for (const cli_choice *c = cli_build_names; c->name != NULL; c++)
        if (strcmp(c->name, name) == 0) {
            *kind = c->value;
            return CLI_DONE;
        }
    const char *near = cli_suggest(name, kind_name, NULL);
    if (near != NULL)
        return cli_fail(CLI_USAGE, "unknown kind '%s'; did you mean %s?", name, near);
    return cli_fail(CLI_USAGE,
                    "unknown kind '%s', must be mask, packed, shard, grid, mrope, "
                    "self-extend or streaming",
                    name);
}

static int run(int argc, char **argv)
{
    positions_args args = {.build = {.seq_len = -1,
                                     .rank = -1,
                                     .ranks = -1,
                                     .merge = 1,
                                     .group = -1,
                                     .window = -1,
                                     .sinks = 4,
                                     .pad = -1,
                                     .scheme = 2}};
    const char *operand;
    cli_build_kind kind = 0;
    cli_built built;
    int status = cli_parse(&cli_verb_positions, argc, argv, &args, &operand);
    if (status != CLI_CONTINUE)
        return status;
    if (args.json && args.output != NULL)
        return cli_fail(CLI_USAGE, "--json and --output exclude each other");
    if ((status = read_kind(operand, &kind)) != CLI_DONE ||
        (status = cli_build(&built, kind, &args.build)) != CLI_DONE)
        return status;
    if (args.output != NULL)
        status = write_npy(args.output, &built);
    else if (args.json)
        status = print_json(&built);
    else
        print_text(&built, args.build.pad);
    cli_built_release(&built);
    return status;
}

static const cli_choice scheme_names[] = {{"contiguous", 1}, {"zigzag", 2}, {NULL, 0}};

/* clang-format off */
#define TEXT(field, name_, argument_, help_)                                   \
  {.name = name_, .argument = argument_, .type = CLI_TEXT, .help = help_,      \
   .offset = offsetof(positions_args, build.field)}
#define NUMBER(field, name_, low, help_)                                       \
  {.name = name_, .argument = "N", .type = CLI_INTEGER, .help = help_,         \
   .min = low, .max = INT64_MAX, .offset = offsetof(positions_args, build.field)}

static const cli_option options[] = {
    TEXT(mask, "mask", "ROWS", "mask: 1 for tokens, 0 for padding, as 00111,11111"),
    TEXT(lengths, "lengths", "LIST", "packed, shard: tokens of each document, as 3,1,2"),
    NUMBER(seq_len, "seq-len", 0, "shard, self-extend, streaming: tokens in all"),
    NUMBER(rank, "rank", 0, "shard: whose tokens"),
    NUMBER(ranks, "ranks", 1, "shard: how many share them"),
    {.name = "scheme", .argument = "NAME", .type = CLI_CHOICE, .choices = scheme_names,
     .offset = offsetof(positions_args, build.scheme),
     .help = "shard: default zigzag"},
    TEXT(grid, "grid", "HxW", "grid: rows and columns of patches"),
    NUMBER(merge, "merge", 1, "grid: order by blocks of N x N patches; default 1"),
    TEXT(runs, "runs", "LIST", "mrope: text N, image or video TxHxW (merged patches), "
                               "@ ids per frame, as 7,1x16x12,30"),
    NUMBER(start, "start", INT64_MIN, "mrope, self-extend: the first position; default 0"),
    NUMBER(group, "group", 1, "self-extend: tokens that share a far position"),
    NUMBER(window, "window", 0, "self-extend: near distances; streaming: recent tokens"),
    {.name = "query", .type = CLI_FLAG, .offset = offsetof(positions_args, build.query),
     .help = "self-extend: of queries, not of keys"},
    NUMBER(sinks, "sinks", 0, "streaming: first tokens that stay; default 4"),
    NUMBER(pad, "pad", INT64_MIN, "mask, streaming: the id of what has no place; "
                                  "default -1, shown as a dot"),
    {.name = "json", .type = CLI_FLAG, .offset = offsetof(positions_args, json),
     .help = "schema posenc.positions/1"},
    {.name = "output", .letter = 'o', .argument = "FILE.npy", .type = CLI_TEXT,
     .offset = offsetof(positions_args, output),
     .help = "write int64 ids there instead, as apply --positions takes them; - is "
             "standard output"}};
/* clang-format on */

const cli_verb cli_verb_positions = {
    .name = "positions",
    .summary = "where tokens stand: padding, packing, shards, images, maps",
    .operands = "KIND",
    .about = "KIND is one of\n"
             "  mask         rows with padding: positions count the tokens before\n"
             "  packed       documents in one row, each from 0\n"
             "  shard        one context-parallel rank's tokens\n"
             "  grid         rows and columns of an image's patches\n"
             "  mrope        text, images and video on the axes T, H, W\n"
             "  self-extend  far positions of Self-Extend, floor(p / group)\n"
             "  streaming    places in StreamingLLM's cache\n"
             "Options name the kinds that read them.",
    .examples = "posenc positions mask --mask 00111,11111\n"
                "posenc positions mrope --runs 3,1x2x3,2\n"
                "posenc positions shard --seq-len 16 --rank 0 --ranks 2\n"
                "posenc positions grid --grid 4x6 --merge 2",
    .kind_at = kind_name,
    .options = options,
    .num_options = CLI_COUNT(options),
    .num_operands = 1,
    .run = run};

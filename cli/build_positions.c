/* SPDX-License-Identifier: MIT
 *
 * build_positions.c - the ids that posenc positions was asked for
 *
 * Texts such as "3,1,2" or "7,1x16x12,30" are read here; what the numbers mean, and
 * whether they go together, is the library's to say. */
#include "build_positions.h"

#include "posenc/positions.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ITEMS = 1 << 16, MAX_IDS = 1 << 24 };

const cli_choice cli_build_names[] = {
    {"mask", CLI_BUILD_MASK},           {"packed", CLI_BUILD_PACKED},
    {"shard", CLI_BUILD_SHARD},         {"grid", CLI_BUILD_GRID},
    {"mrope", CLI_BUILD_MROPE},         {"self-extend", CLI_BUILD_SELF_EXTEND},
    {"streaming", CLI_BUILD_STREAMING}, {NULL, 0}};

static int fail_library(const pe_error *error)
{
    return cli_fail(CLI_USAGE, "%s", error->message);
}

static int fail_memory(void)
{
    return cli_fail(CLI_FAILED, "out of memory");
}

/* A number at *text, which moves behind it. */
static int read_count(const char **text, int64_t *out)
{
    char *end;
    if (**text < '0' || **text > '9')
        return 0;
    errno = 0;
    const long long value = strtoll(*text, &end, 10);
    *text = end;
    *out = value;
    return errno == 0;
}

static int make_ids(cli_built *out, int64_t axes, int64_t rows, int64_t len)
{
    if (len > MAX_IDS / axes / rows)
        return cli_fail(CLI_USAGE, "more than %d ids", (int)MAX_IDS);
    out->axes = axes;
    out->rows = rows;
    out->len = len;
    out->ids = calloc((size_t)(axes * rows * len) + 1, sizeof *out->ids);
    out->next = calloc((size_t)rows, sizeof *out->next);
    return out->ids != NULL && out->next != NULL ? CLI_DONE : fail_memory();
}

static void drop_next(cli_built *out)
{
    free(out->next);
    out->next = NULL;
}

/* ------------------------------------------------------------------ kinds --- */

/* "00111,11111" */
static int build_mask(cli_built *out, const cli_build_args *args)
{
    const char *text = args->mask;
    pe_error error;
    if (text == NULL)
        return cli_fail(CLI_USAGE,
                        "--mask is missing: rows of 0 and 1, as 00111,11111");
    const size_t len = strcspn(text, ",");
    const size_t rows = (strlen(text) + 1) / (len + 1);
    if (len == 0 || (strlen(text) + 1) % (len + 1) != 0)
        return cli_fail(CLI_USAGE, "--mask has rows of different length");
    uint8_t *mask = calloc(rows * len, 1);
    int status =
        mask == NULL ? fail_memory() : make_ids(out, 1, (int64_t)rows, (int64_t)len);
    for (size_t i = 0; status == CLI_DONE && i < rows * (len + 1); i++) {
        const char c = text[i];
        if (i % (len + 1) == len ? c != ',' && c != '\0' : c != '0' && c != '1')
            status = cli_fail(CLI_USAGE,
                              "--mask has '%c' at place %zu, must be rows of "
                              "0 and 1, as 00111,11111",
                              c, i);
        else if (i % (len + 1) < len)
            mask[i / (len + 1) * len + i % (len + 1)] = c == '1';
    }
    if (status == CLI_DONE &&
        pe_positions_from_mask(mask, (int64_t)rows, (int64_t)len, args->pad, out->ids,
                               out->next, &error) != PE_OK)
        status = fail_library(&error);
    free(mask);
    return status;
}

/* "3,1,2" as cu_seqlens, which the caller frees. */
static int read_lengths(const char *text, int32_t **cu_seqlens, int64_t *count)
{
    if (text == NULL)
        return cli_fail(CLI_USAGE, "--lengths is missing: the documents, as 3,1,2");
    *count = 0;
    *cu_seqlens = calloc(MAX_ITEMS + 1, sizeof **cu_seqlens);
    if (*cu_seqlens == NULL)
        return fail_memory();
    for (const char *at = text;; at++) {
        int64_t length;
        if (*count == MAX_ITEMS || !read_count(&at, &length) ||
            length > INT32_MAX - (*cu_seqlens)[*count] || (*at != ',' && *at != '\0'))
            return cli_fail(CLI_USAGE,
                            "--lengths is '%s', must be numbers of tokens, "
                            "as 3,1,2, of 2^31 - 1 in all",
                            text);
        (*cu_seqlens)[*count + 1] = (*cu_seqlens)[*count] + (int32_t)length;
        ++*count;
        if (*at == '\0')
            return CLI_DONE;
    }
}

static int build_packed(cli_built *out, const cli_build_args *args)
{
    int32_t *cu_seqlens = NULL;
    int64_t count;
    pe_error error;
    int status = read_lengths(args->lengths, &cu_seqlens, &count);
    if (status == CLI_DONE)
        status = make_ids(out, 1, 1, cu_seqlens[count]);
    if (status == CLI_DONE &&
        pe_positions_packed(cu_seqlens, count, out->ids, &error) != PE_OK)
        status = fail_library(&error);
    drop_next(out);
    free(cu_seqlens);
    return status;
}

static int build_packed_shard(cli_built *out, const cli_build_args *args)
{
    int32_t *cu_seqlens = NULL;
    int64_t count;
    pe_error error;
    int status = read_lengths(args->lengths, &cu_seqlens, &count);
    if (status == CLI_DONE)
        status = make_ids(out, 1, 1, cu_seqlens[count] / args->ranks);
    if (status == CLI_DONE) {
        out->places = calloc((size_t)out->len + 1, sizeof *out->places);
        if (out->places == NULL)
            status = fail_memory();
        else if (pe_positions_shard_packed(args->scheme, cu_seqlens, count, args->rank,
                                           args->ranks, out->places, out->ids,
                                           &error) != PE_OK)
            status = fail_library(&error);
    }
    free(cu_seqlens);
    return status;
}

static int build_shard(cli_built *out, const cli_build_args *args)
{
    pe_error error;
    int status;
    if (args->rank < 0 || args->ranks < 1)
        return cli_fail(CLI_USAGE, "--rank and --ranks must be given");
    if (args->lengths != NULL && args->seq_len >= 0)
        return cli_fail(CLI_USAGE, "--seq-len and --lengths exclude each other");
    if (args->lengths != NULL) {
        status = build_packed_shard(out, args);
    } else if (args->seq_len < 0) {
        status = cli_fail(CLI_USAGE, "--seq-len is missing, or --lengths of documents");
    } else {
        status = make_ids(out, 1, 1, args->seq_len / args->ranks);
        if (status == CLI_DONE &&
            pe_positions_shard(args->scheme, args->seq_len, args->rank, args->ranks,
                               out->ids, &error) != PE_OK)
            status = fail_library(&error);
    }
    drop_next(out);
    return status;
}

static int build_grid(cli_built *out, const cli_build_args *args)
{
    const char *at = args->grid;
    int64_t h, w, n;
    pe_error error;
    if (at == NULL)
        return cli_fail(CLI_USAGE, "--grid is missing: rows x columns, as 16x12");
    if (!read_count(&at, &h) || *at++ != 'x' || !read_count(&at, &w) || *at != '\0')
        return cli_fail(CLI_USAGE, "--grid is '%s', must be rows x columns, as 16x12",
                        args->grid);
    if (__builtin_mul_overflow(h, w, &n))
        n = INT64_MAX;
    int status = make_ids(out, 2, 1, n);
    if (status == CLI_DONE &&
        pe_positions_grid(h, w, args->merge, out->ids, &error) != PE_OK)
        status = fail_library(&error);
    out->axis_names[0] = "row";
    out->axis_names[1] = "column";
    drop_next(out);
    return status;
}

/* "7,1x16x12@2.5,30": text, or frames x rows x columns, @ ids per frame. */
static int read_run(const char **at, pe_mrope_run *run)
{
    *run = (pe_mrope_run){.t = 0};
    if (!read_count(at, &run->t))
        return 0;
    if (**at == 'x') {
        ++*at;
        if (!read_count(at, &run->h) || **at != 'x')
            return 0;
        ++*at;
        if (!read_count(at, &run->w))
            return 0;
    }
    if (**at == '@') {
        char *end;
        run->time_step = strtod(*at + 1, &end);
        if (end == *at + 1)
            return 0;
        *at = end;
    }
    return **at == ',' || **at == '\0';
}

/* Tokens of a run, or -1 when they are too many to be made. */
static int64_t run_tokens(const pe_mrope_run *run)
{
    int64_t n = run->t;
    if (run->h == 0 && run->w == 0)
        return n;
    if (__builtin_mul_overflow(n, run->h, &n) || __builtin_mul_overflow(n, run->w, &n))
        return -1;
    return n;
}

static int build_mrope(cli_built *out, const cli_build_args *args)
{
    int64_t count = 0, tokens = 0;
    pe_error error;
    if (args->runs == NULL)
        return cli_fail(CLI_USAGE,
                        "--runs is missing: tokens of text and frames x rows "
                        "x columns, as 7,1x16x12,30");
    pe_mrope_run *runs = calloc(MAX_ITEMS, sizeof *runs);
    int status = runs == NULL ? fail_memory() : CLI_DONE;
    for (const char *at = args->runs; status == CLI_DONE; at++) {
        if (count == MAX_ITEMS || !read_run(&at, &runs[count])) {
            status = cli_fail(CLI_USAGE,
                              "--runs is '%s', must be tokens of text and "
                              "frames x rows x columns, as 7,1x16x12@2,30",
                              args->runs);
            break;
        }
        const int64_t n = run_tokens(&runs[count++]);
        if (n < 0 || n > MAX_IDS || (tokens += n) > MAX_IDS)
            status = cli_fail(CLI_USAGE, "more than %d ids", (int)MAX_IDS);
        if (*at == '\0')
            break;
    }
    if (status == CLI_DONE)
        status = make_ids(out, 3, 1, tokens);
    if (status == CLI_DONE && pe_positions_mrope(runs, count, args->start, tokens,
                                                 out->ids, out->next, &error) != PE_OK)
        status = fail_library(&error);
    out->axis_names[0] = "T";
    out->axis_names[1] = "H";
    out->axis_names[2] = "W";
    free(runs);
    return status;
}

static int build_self_extend(cli_built *out, const cli_build_args *args)
{
    pe_error error;
    if (args->seq_len < 0 || args->group < 0 || args->window < 0)
        return cli_fail(CLI_USAGE, "--seq-len, --group and --window must be given");
    int status = make_ids(out, 1, 1, args->seq_len);
    for (int64_t t = 0; status == CLI_DONE && t < out->len; t++)
        out->ids[t] = (int64_t)((uint64_t)args->start + (uint64_t)t);
    if (status == CLI_DONE &&
        pe_positions_self_extend(out->ids, out->len, args->group, args->window,
                                 args->query, out->ids, &error) != PE_OK)
        status = fail_library(&error);
    drop_next(out);
    return status;
}

static int build_streaming(cli_built *out, const cli_build_args *args)
{
    pe_error error;
    if (args->seq_len < 0 || args->window < 0)
        return cli_fail(CLI_USAGE, "--seq-len and --window must be given");
    int status = make_ids(out, 1, 1, args->seq_len);
    if (status == CLI_DONE &&
        pe_positions_streaming(args->seq_len, args->sinks, args->window, args->pad,
                               out->ids, out->next, &error) != PE_OK)
        status = fail_library(&error);
    return status;
}

int cli_build(cli_built *out, cli_build_kind kind, const cli_build_args *args)
{
    static int (*const builders[])(cli_built *, const cli_build_args *) = {
        [CLI_BUILD_MASK] = build_mask,
        [CLI_BUILD_PACKED] = build_packed,
        [CLI_BUILD_SHARD] = build_shard,
        [CLI_BUILD_GRID] = build_grid,
        [CLI_BUILD_MROPE] = build_mrope,
        [CLI_BUILD_SELF_EXTEND] = build_self_extend,
        [CLI_BUILD_STREAMING] = build_streaming};
    *out = (cli_built){.kind = kind, .axis_names = {"position"}};
    const int status = builders[kind](out, args);
    if (status != CLI_DONE)
        cli_built_release(out);
    return status;
}

void cli_built_release(cli_built *built)
{
    free(built->ids);
    free(built->next);
    free(built->places);
    *built = (cli_built){.ids = NULL};
}

/* SPDX-License-Identifier: MIT
 *
 * lab_report.c - posenc lab report: folders of results merged and shown
 */
#include "lab_report.h"

#include "canvas.h"
#include "file_out.h"
#include "folder_out.h"
#include "input.h"
#include "lab_json.h"
#include "lab_store.h"
#include "lab_verbs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_FOLDERS = 256 };

typedef struct report_args {
    const char *output, *method, *modes, *claim;
    int32_t json, csv;
} report_args;

int cli_lab_read(lab_results *out, const char *path)
{
    pe_error error;
    return lab_results_read(out, path, &error) == PE_OK
               ? CLI_DONE
               : cli_fail(CLI_FAILED, "%s", error.message);
}

static int save_picture(const lab_results *results, const char *method,
                        const char *modes, const char *path)
{
    cli_figure figure = {.num_panels = 0};
    cli_file_out out;
    int status = cli_lab_figure(results, method, modes, &figure);
    if (status == CLI_DONE)
        status = cli_file_create(&out, path, 0);
    if (status == CLI_DONE) {
        status = cli_figure_svg(&figure, out.file);
        if (status == CLI_DONE)
            status = cli_file_commit(&out);
        cli_file_discard(&out);
    }
    cli_figure_release(&figure);
    return status;
}

static int save_csv(const lab_results *results, const char *path)
{
    cli_file_out out;
    int status = cli_file_create(&out, path, 0);
    if (status != CLI_DONE)
        return status;
    cli_lab_csv(results, out.file);
    status = cli_file_commit(&out);
    cli_file_discard(&out);
    return status;
}

int cli_lab_save_report(const lab_results *results, const char *method,
                        const char *modes, const char *folder)
{
    int status = cli_folder_make(folder);
    if (status != CLI_DONE)
        return status;
    char *json = cli_lab_path(folder, "report.json");
    char *csv = cli_lab_path(folder, "report.csv");
    char *svg = cli_lab_path(folder, "report.svg");
    if (json == NULL || csv == NULL || svg == NULL)
        status = CLI_FAILED;
    if (status == CLI_DONE)
        status = cli_lab_save_json(cli_lab_json(results, 1), json);
    if (status == CLI_DONE)
        status = save_csv(results, csv);
    if (status == CLI_DONE)
        status = save_picture(results, method, modes, svg);
    free(json);
    free(csv);
    free(svg);
    return status;
}

/* A picture alone, by the name of the file, or all that there is. */
static int save(const report_args *args, const lab_results *results)
{
    const size_t length = strlen(args->output);
    const int is_picture = length > 4 && strcmp(args->output + length - 4, ".svg") == 0;
    return is_picture
               ? save_picture(results, args->method, args->modes, args->output)
               : cli_lab_save_report(results, args->method, args->modes, args->output);
}

static int show(const report_args *args, const lab_results *results,
                const lab_results *twice)
{
    if (args->json)
        return cli_json_print(cli_lab_json(results, 1));
    if (args->csv) {
        cli_lab_csv(results, stdout);
        return CLI_DONE;
    }
    const int status = cli_lab_print(results);
    if (status == CLI_DONE && args->claim != NULL)
        cli_lab_print_claim(results, twice);
    return status;
}

/* All that is given, before anything is written; an input is never written over. */
static int read_all(const report_args *args, const char *const *folders,
                    lab_results *results, lab_results *twice)
{
    int status = CLI_DONE;
    results->opened = twice->opened = cli_input_add;
    for (int i = 0; i < MAX_FOLDERS && folders[i] != NULL && status == CLI_DONE; i++)
        status = cli_lab_read(results, folders[i]);
    if (status == CLI_DONE && args->method != NULL)
        status = cli_lab_check_names(results, args->method, args->modes);
    if (status == CLI_DONE && args->claim != NULL)
        status = cli_lab_read(twice, args->claim);
    if (status == CLI_DONE && args->claim != NULL)
        status = cli_lab_check_claim(results, twice);
    return status;
}

static int run(int argc, char **argv)
{
    report_args args = {.json = 0};
    const char *folders[MAX_FOLDERS];
    int status = cli_parse(&cli_verb_lab_report, argc, argv, &args, folders);
    if (status != CLI_CONTINUE)
        return status;
    if (args.json + args.csv > 1)
        return cli_fail(CLI_USAGE, "--json and --csv exclude each other");
    if (args.modes != NULL && args.method == NULL)
        return cli_fail(CLI_USAGE, "--mode needs --method: whose modes to draw");
    if (args.claim != NULL && args.json + args.csv > 0)
        return cli_fail(CLI_USAGE, "--claim is a table: without --json or --csv");
    lab_results results = {.count = 0}, twice = {.count = 0};
    status = read_all(&args, folders, &results, &twice);
    if (status == CLI_DONE && args.output != NULL)
        status = save(&args, &results);
    if (status == CLI_DONE)
        status = show(&args, &results, &twice);
    lab_results_release(&twice);
    lab_results_release(&results);
    return status;
}

static const cli_option options[] = {
    {.name = "output",
     .letter = 'o',
     .argument = "FOLDER|FILE.svg",
     .type = CLI_TEXT,
     .offset = offsetof(report_args, output),
     .help = "also write report.json, report.csv and report.svg there, or the picture "
             "alone"},
    {.name = "json",
     .type = CLI_FLAG,
     .offset = offsetof(report_args, json),
     .help = "schema posenc.lab/1, with the loss by position"},
    {.name = "csv",
     .type = CLI_FLAG,
     .offset = offsetof(report_args, csv),
     .help = "means over seeds, and the loss by position"},
    {.name = "method",
     .argument = "NAME",
     .type = CLI_TEXT,
     .offset = offsetof(report_args, method),
     .help = "draw the modes of that method, not all methods"},
    {.name = "mode",
     .argument = "LIST",
     .type = CLI_TEXT,
     .offset = offsetof(report_args, modes),
     .help = "the modes to draw, at most eight: base,ntk,window"},
    {.name = "claim",
     .argument = "FOLDER",
     .type = CLI_TEXT,
     .offset = offsetof(report_args, claim),
     .help = "runs that were trained on twice the length: quality, speed and memory "
             "of both at that length"}};

const cli_verb cli_verb_lab_report = {
    .name = "lab report",
    .summary = "results of many runs, merged: tables, CSV, JSON, a picture",
    .operands = "FOLDER [FOLDER...]",
    .about =
        "FOLDER is what lab run wrote, or the folder of one run, or a results.json;\n"
        "there may be many.  Runs whose settings differ are not merged: the first\n"
        "setting that differs is named.  A loss is the mean over seeds, with the\n"
        "standard deviation of the sample beside it.",
    .examples =
        "posenc lab report results\n"
        "posenc lab report results/rope-seed0 results/rope-seed1 -o report\n"
        "posenc lab report results --method rope --mode base,ntk,window -o report",
    .options = options,
    .num_options = CLI_COUNT(options),
    .num_operands = 1,
    .num_optional = MAX_FOLDERS - 1,
    .run = run};

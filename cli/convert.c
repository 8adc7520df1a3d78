/* SPDX-License-Identifier: MIT
 *
 * convert.c - posenc convert: q and k rows of safetensors into the other pairing
 *
 * A folder is converted shard by shard.  Outputs get their names when all of them are
 * whole. */
#include "convert_job.h"
#include "input.h"
#include "names.h"
#include "pending.h"
#include "verbs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const cli_choice qkv_names[] = {
    {"concat", CLI_QKV_CONCAT}, {"grouped", CLI_QKV_GROUPED}, {NULL, 0}};

static int is_folder(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static int ends_with(const char *name, const char *ending)
{
    const size_t length = strlen(name), tail = strlen(ending);
    return length > tail && strcmp(name + length - tail, ending) == 0;
}

static char *join(const char *folder, const char *name)
{
    const size_t size = strlen(folder) + strlen(name) + 2;
    char *path = malloc(size);
    if (path != NULL)
        (void)snprintf(path, size, "%s/%s", folder, name);
    return path;
}

static int add_item(cli_convert_job *job, char *input, char *output, int is_copied)
{
    cli_convert_item *wider =
        realloc(job->items, (job->num_items + 1) * sizeof *job->items);
    if (wider == NULL || input == NULL || (output == NULL && job->args->output)) {
        free(input);
        free(output);
        return cli_fail(CLI_FAILED, "out of memory");
    }
    job->items = wider;
    job->items[job->num_items++] =
        (cli_convert_item){.input = input, .output = output, .is_copied = is_copied};
    return CLI_DONE;
}

static int by_input(const void *a, const void *b)
{
    const cli_convert_item *x = a, *y = b;
    return strcmp(x->input, y->input);
}

static int list_folder(cli_convert_job *job, const char *path)
{
    int status = CLI_DONE;
    DIR *folder = opendir(path);
    if (folder == NULL)
        return cli_fail(CLI_FAILED, "%s: %s", path, strerror(errno));
    for (struct dirent *entry;
         status == CLI_DONE && (entry = readdir(folder)) != NULL;) {
        const char *name = entry->d_name;
        const int is_copied = ends_with(name, ".json");
        if (is_copied || ends_with(name, ".safetensors"))
            status = add_item(job, join(path, name),
                              job->args->output ? join(job->args->output, name) : NULL,
                              is_copied);
    }
    (void)closedir(folder);
    if (job->num_items > 0)
        qsort(job->items, job->num_items, sizeof *job->items, by_input);
    return status;
}

static int list_inputs(cli_convert_job *job, const char *path)
{
    const char *output = job->args->output;
    if (!is_folder(path))
        return add_item(job, strdup(path), output ? strdup(output) : NULL, 0);
    int status = list_folder(job, path);
    if (status == CLI_DONE && output != NULL && cli_pending_folder(output) != 0)
        return cli_fail(CLI_FAILED, "the folder %s could not be made: %s", output,
                        strerror(errno));
    return status;
}

/* The config beside the weights, unless --config names another or dims are stated. */
static int open_model(cli_convert_job *job, const char *path)
{
    const cli_convert_args *args = job->args;
    const char *config = args->config;
    if (config == NULL && is_folder(path) && args->head_dim == 0)
        config = path;
    if (config == NULL) {
        if (args->from == 0 || args->head_dim == 0)
            return cli_fail(CLI_USAGE, "which rows turn is not known: say --config "
                                       "MODEL, or --from and --head-dim");
        return CLI_DONE;
    }
    return cli_model_open(&job->model, config, 0);
}

static int make_rule(cli_convert_job *job)
{
    const cli_convert_args *args = job->args;
    const pe_model *model = job->model.model;
    cli_convert_rule *rule = &job->rule;
    *rule = (cli_convert_rule){.model = model,
                               .from = args->from,
                               .to = args->to,
                               .head_dim = (int32_t)args->head_dim,
                               .rotary_dim = (int32_t)args->rotary_dim,
                               .num_heads = (int32_t)args->heads,
                               .num_kv_heads = (int32_t)args->kv_heads,
                               .qkv = args->qkv};
    if (model != NULL) {
        pe_rope_spec spec = {.struct_size = sizeof spec};
        pe_error error;
        const pe_model_info *info = pe_model_get_info(model);
        if (pe_model_rope_spec(model, 0, &spec, &error) != PE_OK)
            return cli_fail(CLI_FAILED,
                            "%s: positions are %s: there are no rows to "
                            "convert",
                            job->model.name, info->method);
        if (rule->from == 0)
            rule->from = spec.pairs.pairing;
        if (rule->num_heads == 0)
            rule->num_heads = info->num_heads;
        if (rule->num_kv_heads == 0)
            rule->num_kv_heads = info->num_kv_heads;
    }
    if (rule->from == rule->to)
        return cli_fail(CLI_FAILED,
                        "the weights are %s already%s; --from says otherwise",
                        cli_choice_name(cli_pairing_names, rule->to),
                        args->from ? "" : " by the model's configuration");
    return CLI_DONE;
}

static int open_output(cli_convert_item *item)
{
    struct stat in, out;
    if (cli_input_is(item->output) ||
        (stat(item->input, &in) == 0 && stat(item->output, &out) == 0 &&
         in.st_dev == out.st_dev && in.st_ino == out.st_ino)) {
        (void)cli_fail(CLI_USAGE, "%s is an input; choose another --output",
                       item->output);
        return -1;
    }
    if (cli_pending_is_special(item->output)) {
        (void)cli_fail(CLI_USAGE, "--output is %s, must be a file", item->output);
        return -1;
    }
    item->temporary = cli_pending_add(item->output);
    const int fd =
        item->temporary == NULL
            ? -1
            : open(item->temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        (void)cli_fail(CLI_FAILED, "%s could not be written: %s", item->output,
                       strerror(errno ? errno : ENOMEM));
    return fd;
}

static int write_output(const cli_convert_job *job, cli_convert_item *item,
                        const cli_convert_file *file)
{
    errno = 0;
    const int fd = open_output(item);
    if (fd < 0)
        return CLI_FAILED;
    int status = cli_convert_write(file, fd, item->output);
    if (status == CLI_DONE && job->args->check)
        status = cli_convert_check(file, fd);
    if (close(fd) != 0 && status == CLI_DONE)
        status = cli_fail(CLI_FAILED, "%s could not be written: %s", item->output,
                          strerror(errno));
    return status;
}

static int convert_one(cli_convert_job *job, cli_convert_item *item)
{
    cli_convert_file file;
    int status = cli_convert_open(&file, item->input, &job->rule);
    if (status == CLI_DONE && job->args->output != NULL)
        status = write_output(job, item, &file);
    else if (status == CLI_DONE && job->args->check)
        status = cli_convert_check(&file, -1);
    if (status == CLI_DONE)
        cli_convert_report_file(job, item, &file);
    if (status == CLI_DONE && job->args->list)
        status = cli_convert_list_rows(&file);
    cli_convert_close(&file);
    return status;
}

/* Settings and the index say nothing of rows. */
static int copy_one(const cli_convert_job *job, cli_convert_item *item)
{
    if (job->args->output == NULL)
        return CLI_DONE;
    cli_convert_file file = {.name = item->input};
    struct stat info;
    file.fd = open(item->input, O_RDONLY | O_CLOEXEC);
    if (file.fd < 0 || fstat(file.fd, &info) != 0)
        return cli_fail(CLI_FAILED, "%s: %s", item->input, strerror(errno));
    file.size = info.st_size;
    const int status = write_output(job, item, &file);
    (void)close(file.fd);
    return status;
}

static int commit(cli_convert_job *job)
{
    for (size_t i = 0; i < job->num_items; i++) {
        cli_convert_item *item = &job->items[i];
        if (item->temporary != NULL &&
            cli_pending_rename(item->temporary, item->output) != 0)
            return cli_fail(CLI_FAILED, "%s could not be written: %s", item->output,
                            strerror(errno));
    }
    return CLI_DONE;
}

static int work(cli_convert_job *job, const char *path)
{
    int status = open_model(job, path);
    if (status == CLI_DONE)
        status = make_rule(job);
    if (status == CLI_DONE)
        status = list_inputs(job, path);
    if (status == CLI_DONE && job->args->json)
        job->files = json_object_new_array();
    int has_weights = 0;
    for (size_t i = 0; i < job->num_items && status == CLI_DONE; i++) {
        has_weights |= !job->items[i].is_copied;
        status = job->items[i].is_copied ? copy_one(job, &job->items[i])
                                         : convert_one(job, &job->items[i]);
    }
    if (status == CLI_DONE && !has_weights)
        return cli_fail(CLI_FAILED, "%s: has no .safetensors file", path);
    if (status == CLI_DONE)
        status = commit(job);
    return status == CLI_DONE ? cli_convert_report(job) : status;
}

static int run(int argc, char **argv)
{
    cli_convert_args args = {0};
    const char *path;
    int status = cli_parse(&cli_verb_convert, argc, argv, &args, &path);
    if (status != CLI_CONTINUE)
        return status;
    if (args.to == 0)
        return cli_fail(CLI_USAGE, "--to half-split or --to interleaved is missing");
    if (args.dry_run && args.output != NULL)
        return cli_fail(CLI_USAGE, "--dry-run and --output exclude each other");
    if (args.output == NULL && !args.dry_run && !args.list && !args.check)
        return cli_fail(CLI_USAGE, "-o OUT is missing: where to write; or --dry-run");
    if (args.list && args.json)
        return cli_fail(CLI_USAGE, "--list and --json exclude each other");
    cli_convert_job job = {.args = &args};
    status = work(&job, path);
    for (size_t i = 0; i < job.num_items; i++) {
        cli_pending_drop(job.items[i].temporary);
        free(job.items[i].input);
        free(job.items[i].output);
    }
    free(job.items);
    json_object_put(job.files);
    cli_model_close(&job.model);
    return status;
}

static const cli_option options[] = {
    {.name = "to",
     .argument = "PAIRING",
     .type = CLI_CHOICE,
     .choices = cli_pairing_names,
     .offset = offsetof(cli_convert_args, to),
     .help = "half-split (Hugging Face, NeoX) or interleaved (Meta, GPT-J)"},
    {.name = "from",
     .argument = "PAIRING",
     .type = CLI_CHOICE,
     .choices = cli_pairing_names,
     .offset = offsetof(cli_convert_args, from),
     .help = "what the weights are; default: what the model says"},
    {.name = "config",
     .argument = "MODEL",
     .type = CLI_TEXT,
     .offset = offsetof(cli_convert_args, config),
     .help = "where heads and the part that turns are read; default: the folder"},
    {.name = "output",
     .letter = 'o',
     .argument = "OUT",
     .type = CLI_TEXT,
     .offset = offsetof(cli_convert_args, output),
     .help = "file or folder to write, as WEIGHTS is one; a folder also gets copies of "
             "the .json files"},
    {.name = "dry-run",
     .letter = 'n',
     .type = CLI_FLAG,
     .offset = offsetof(cli_convert_args, dry_run),
     .help = "say what would change, write nothing"},
    {.name = "check",
     .type = CLI_FLAG,
     .offset = offsetof(cli_convert_args, check),
     .help = "move the rows back and compare every byte with the source"},
    {.name = "list",
     .type = CLI_FLAG,
     .offset = offsetof(cli_convert_args, list),
     .help = "print the order of the rows"},
    {.name = "json",
     .type = CLI_FLAG,
     .offset = offsetof(cli_convert_args, json),
     .help = "schema posenc.convert/1"},
    {.name = "head-dim",
     .argument = "N",
     .type = CLI_INTEGER,
     .min = 2,
     .max = 4096,
     .offset = offsetof(cli_convert_args, head_dim),
     .help = "width of a head, for weights without a model"},
    {.name = "rotary-dim",
     .argument = "N",
     .type = CLI_INTEGER,
     .min = 2,
     .max = 4096,
     .offset = offsetof(cli_convert_args, rotary_dim),
     .help = "part of a head that turns, from its first element on; default: all"},
    {.name = "heads",
     .argument = "N",
     .type = CLI_INTEGER,
     .min = 1,
     .max = 65536,
     .offset = offsetof(cli_convert_args, heads),
     .help = "query heads, for fused weights without a model"},
    {.name = "kv-heads",
     .argument = "N",
     .type = CLI_INTEGER,
     .min = 1,
     .max = 65536,
     .offset = offsetof(cli_convert_args, kv_heads),
     .help = "key heads"},
    {.name = "qkv",
     .argument = "ORDER",
     .type = CLI_CHOICE,
     .choices = qkv_names,
     .offset = offsetof(cli_convert_args, qkv),
     .help = "order inside fused weights: concat (q, k, v) or grouped (for each key "
             "head: its queries, k, v); default: by name"}};

const cli_verb cli_verb_convert = {
    .name = "convert",
    .summary = "q and k rows of safetensors into the other pairing",
    .operands = "WEIGHTS",
    .about =
        "Reorders the rows of q and k projections, their biases, LoRA B and norms, so\n"
        "that a model trained with one pairing runs in an engine that has the other.\n"
        "All other bytes stay.  WEIGHTS is a .safetensors file, or a folder with\n"
        "config.json and shards.  Rows move as they are, whatever their dtype.",
    .examples = "posenc convert examples/data/tiny.safetensors --dry-run \\\n"
                "    --config examples/data/tiny.json --to interleaved",
    .options = options,
    .num_options = CLI_COUNT(options),
    .num_operands = 1,
    .run = run};

/* SPDX-License-Identifier: MIT
 *
 * lab_train.c - posenc lab train: one run in a folder of its own
 */
#include "lab_arg.h"
#include "lab_store.h"
#include "lab_training.h"
#include "lab_verbs.h"
#include "print.h"

#include "lab/extend.h"
#include "lab/matmul.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct train_args {
    cli_lab_arg lab;
    const char *from, *extend;
    int64_t save_every;
    int32_t resume, force, json;
} train_args;

/* ------------------------------------------------------------ the command again --- */

static int is_plain(const char *word)
{
    return *word != '\0' && word[strspn(word, "abcdefghijklmnopqrstuvwxyz"
                                              "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                              "0123456789-_=+,./:@%")] == '\0';
}

static void append_word(char *out, const char *word)
{
    char *end = out + strlen(out);
    *end++ = ' ';
    if (is_plain(word)) {
        (void)strcpy(end, word);
        return;
    }
    *end++ = '\'';
    for (; *word != '\0'; word++) {
        if (*word == '\'') {
            memcpy(end, "'\\'", 3);
            end += 3;
        }
        *end++ = *word;
    }
    (void)strcpy(end, "'");
}

/* What to type to go on; NULL: out of memory, said. */
static char *command_again(int argc, char **argv, int has_resume)
{
    size_t size = 64;
    for (int i = 1; i < argc; i++)
        size += 4 * strlen(argv[i]) + 3;
    char *out = malloc(size);
    if (out == NULL) {
        (void)cli_fail(CLI_FAILED, "out of memory");
        return NULL;
    }
    (void)strcpy(out, "posenc lab train");
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--force") != 0)
            append_word(out, argv[i]);
    if (!has_resume)
        (void)strcat(out, " --resume");
    return out;
}

/* --------------------------------------------------------------- what is trained --- */

/* Of a trained model: what may still be chosen is what is not in its weights. */
static int config_from(const train_args *args, const lab_state *trained,
                       lab_config *out)
{
    const cli_lab_arg *lab = &args->lab;
    pe_error error;
    const struct {
        const char *name;
        int is_given;
    } fixed[] = {{"config", lab->config != 0},    {"method", lab->method != NULL},
                 {"layers", lab->layers != NULL}, {"width", lab->width > 0},
                 {"heads", lab->heads > 0},       {"learn-slopes", lab->learn_slopes}};
    for (size_t i = 0; i < CLI_COUNT(fixed); i++)
        if (fixed[i].is_given)
            return cli_fail(CLI_USAGE, "--%s is what the model of --from has",
                            fixed[i].name);
    if (lab->length == 0)
        return cli_fail(CLI_USAGE, "--length is missing: how long to go on at");
    *out = trained->config;
    if (lab_extend_config(out, lab->length, args->extend, &error) != PE_OK)
        return cli_fail(CLI_USAGE, "%s", error.message);
    cli_lab_replace(lab, out);
    if (lab_config_check(out, &error) != PE_OK)
        return cli_fail(CLI_USAGE, "%s", error.message);
    return CLI_DONE;
}

/* What a run begins with if that is not random. */
typedef struct origin {
    lab_state state;
    char sha256[65]; /* of the weights before they were extended; "": random */
} origin;

static int choose(const train_args *args, lab_config *config, origin *from)
{
    pe_error error;
    if (args->from == NULL && args->extend != NULL)
        return cli_fail(CLI_USAGE, "--extend is for a model that --from names");
    if (args->from == NULL)
        return cli_lab_config(&args->lab, config);
    lab_state trained;
    int code = cli_lab_load(args->from, &trained, NULL);
    if (code != CLI_DONE)
        return code;
    code = config_from(args, &trained, config);
    if (code == CLI_DONE &&
        lab_extend_state(&from->state, &trained, config, &error) != PE_OK)
        code = cli_fail(CLI_FAILED, "%s: %s", args->from, error.message);
    lab_sha256((const uint8_t *)trained.weights,
               (size_t)trained.layout.size * sizeof *trained.weights, from->sha256);
    lab_state_release(&trained);
    return code;
}

/* ------------------------------------------------------------------------- report --- */

static void print_text(const lab_state *state, const cli_lab_record *record,
                       const lab_corpus *corpus, const char *folder)
{
    const lab_config *c = &state->config;
    char name[LAB_NAME_SIZE];
    lab_config_name(c, name, sizeof name);
    (void)printf("method    %s, seed %" PRIu64 "\n", name, c->seed);
    (void)printf("model     %d layer%s, width %d, %d head%s, %" PRId64 " parameters\n",
                 c->layers, c->layers == 1 ? "" : "s", c->width, c->heads,
                 c->heads == 1 ? "" : "s", state->layout.num_weights);
    cli_print("text      %s, %" PRId64 " bytes to learn from\n", corpus->name,
              corpus->train_size);
    (void)printf("trained   %" PRId64 " step%s of %d row%s of %d tokens\n", state->step,
                 state->step == 1 ? "" : "s", c->batch, c->batch == 1 ? "" : "s",
                 c->length);
    (void)printf("loss      %.4f nats a byte, the last steps averaged\n",
                 state->loss_average);
    if (record->seconds > 0)
        (void)printf("time      %.1f s, %.0f tokens/s on %" PRId64 " thread%s\n",
                     record->seconds, cli_lab_record_speed(record, state),
                     record->threads, record->threads == 1 ? "" : "s");
    (void)printf("memory    %.1f MB for training, %.1f MB in all\n",
                 (double)record->memory * 1e-6, (double)record->peak_memory * 1e-6);
    cli_print("folder    %s\n", folder);
}

/* -------------------------------------------------------------------------- verb --- */

static const cli_option options[] = {
    CLI_LAB_METHOD_OPTIONS(train_args),
    CLI_LAB_SIZE_OPTIONS(train_args),
    CLI_LAB_TEXT_OPTIONS(train_args),
    CLI_LAB_OUTPUT_OPTION(train_args),
    CLI_LAB_THREADS_OPTION(train_args),
    {.name = "save-every",
     .argument = "N",
     .type = CLI_INTEGER,
     .min = 1,
     .max = INT32_MAX,
     .offset = offsetof(train_args, save_every),
     .help = "steps between checkpoints (200)"},
    {.name = "resume",
     .type = CLI_FLAG,
     .offset = offsetof(train_args, resume),
     .help = "go on where the folder's run stands; one that is not there is begun, one "
             "that is finished is left alone"},
    {.name = "force",
     .type = CLI_FLAG,
     .offset = offsetof(train_args, force),
     .help = "begin again, whatever is in the run's folder"},
    {.name = "from",
     .argument = "CKPT",
     .type = CLI_TEXT,
     .offset = offsetof(train_args, from),
     .help = "go on with a trained model at a greater --length: a checkpoint, or the "
             "folder of a run"},
    {.name = "extend",
     .argument = "MODE",
     .type = CLI_TEXT,
     .offset = offsetof(train_args, extend),
     .help = "what --from does to positions: base (nothing), pi, ntk, ntkxM, yarn, "
             "yarn-bN, parts-bN, or interp for a learned table"},
    {.name = "json",
     .type = CLI_FLAG,
     .offset = offsetof(train_args, json),
     .help = "print train.json, schema " CLI_LAB_TRAIN_SCHEMA},
};

/* --from may not be the file that this run would take the place of. */
static int check_place(const char *from, const char *folder)
{
    struct stat source, place;
    char *file = cli_lab_file(from), *target = cli_lab_path(folder, CLI_LAB_CHECKPOINT);
    int code = file == NULL || target == NULL ? CLI_FAILED : CLI_DONE;
    if (code == CLI_DONE && stat(file, &source) == 0 && stat(target, &place) == 0 &&
        source.st_dev == place.st_dev && source.st_ino == place.st_ino)
        code = cli_fail(CLI_USAGE,
                        "--from is the run in %s itself, whose place this one would "
                        "take; choose another -o",
                        folder);
    free(file);
    free(target);
    return code;
}

static int train(const train_args *args, const lab_config *config, const origin *from,
                 const char *again)
{
    lab_corpus corpus;
    pe_pool *pool = NULL;
    pe_env env;
    lab_state state;
    cli_lab_record record;
    cli_lab_training how = {.config = config,
                            .corpus = &corpus,
                            .env = &env,
                            .again = again,
                            .from = args->from != NULL ? &from->state : NULL,
                            .from_sha256 = from->sha256,
                            .save_every = args->save_every,
                            .resume = args->resume,
                            .force = args->force};
    int code = cli_lab_corpus(&args->lab, &corpus);
    if (code != CLI_DONE)
        return code;
    char *folder = cli_lab_folder(args->lab.output, config);
    code = folder == NULL ? CLI_FAILED
                          : cli_lab_threads(&args->lab, &pool, &env, &how.threads);
    if (code == CLI_DONE && args->from != NULL)
        code = check_place(args->from, folder);
    if (code == CLI_DONE) {
        how.folder = folder;
        code = cli_lab_train(&how, &state, &record);
    }
    if (code == CLI_DONE) {
        if (args->json)
            code = cli_json_print(cli_lab_record_json(&record, &state, &corpus));
        else
            print_text(&state, &record, &corpus, folder);
        lab_state_release(&state);
        cli_lab_record_release(&record);
    }
    pe_pool_destroy(pool);
    free(folder);
    lab_corpus_release(&corpus);
    return code;
}

static int run_train(int argc, char **argv)
{
    train_args args = {.lab = cli_lab_defaults, .save_every = CLI_LAB_SAVE_EVERY};
    lab_config config;
    origin from = {.sha256 = ""};
    pe_error error;
    int code = cli_parse(&cli_verb_lab_train, argc, argv, &args, NULL);
    if (code != CLI_CONTINUE)
        return code;
    if (args.resume && args.force)
        return cli_fail(CLI_USAGE,
                        "--resume goes on and --force begins again; give one");
    code = choose(&args, &config, &from);
    if (code != CLI_DONE)
        return code;
    char *again = command_again(argc, argv, args.resume);
    if (again == NULL)
        code = CLI_FAILED;
    else if (lab_matmul_load(&error) != PE_OK)
        code = cli_fail(CLI_FAILED, "%s", error.message);
    else
        code = train(&args, &config, &from, again);
    free(again);
    lab_state_release(&from.state);
    return code;
}

const cli_verb cli_verb_lab_train = {
    .name = "lab train",
    .summary = "train one model, with one method and one seed",
    .operands = "",
    .about =
        "Trains a causal transformer on bytes, from scratch.  The run has a folder of\n"
        "its own, FOLDER/METHOD-seedN, with checkpoint.safetensors and train.json:\n"
        "settings, the text's hash, the loss every 100 steps, speed and memory.  The\n"
        "same command leaves the same bits there on any number of threads, stopped\n"
        "or not: Ctrl-C saves, and says how to go on.\n"
        "\n"
        "Configuration A has 3 layers of width 96, 4 heads, rows of 64 tokens, 32 in\n"
        "a step, 1200 steps; B has 2 layers of width 64 and 600 steps.\n"
        "\n"
        "With --from, training goes on at a greater length with the positions\n"
        "interpolated, YaRN's frequencies, or a learned table stretched; the model\n"
        "keeps reading its positions so.",
    .examples =
        "posenc lab train --method alibi --config B --copy 16 --steps 40 -o try\n"
        "posenc lab train --layers rope,none,rope --width 32 --copy 5 --steps 9 -o "
        "try\n"
        "posenc lab train --from try/alibi-seed0 --length 128 --copy 16 \\\n"
        "    --steps 9 -o long",
    .options = options,
    .num_options = CLI_COUNT(options),
    .run = run_train,
};

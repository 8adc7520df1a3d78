/* SPDX-License-Identifier: MIT
 *
 * lab_training.c - one run, from wherever its folder stands to its last step
 */
#include "lab_training.h"

#include "lab_json.h"
#include "lab_store.h"
#include "progress.h"
#include "stop.h"

#include "lab/mode.h"
#include "lab/results.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct sitting {
    const cli_lab_training *how;
    int lock;                /* descriptor of the folder */
    char *checkpoint, *file; /* paths in the folder */
    lab_state state;
    cli_lab_record record;
    double before; /* seconds of earlier sittings */
    double start;  /* of this one, by the clock */
    lab_trainer *trainer;
} sitting;

/* ------------------------------------------------------------------ the folder --- */

static int make_folders(const char *path, int *is_new)
{
    char *copy = strdup(path);
    if (copy == NULL)
        return cli_fail(CLI_FAILED, "out of memory");
    int failed = 0;
    for (char *slash = strchr(copy + 1, '/'); slash != NULL && !failed;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        failed = mkdir(copy, 0777) != 0 && errno != EEXIST;
        *slash = '/';
    }
    *is_new = !failed && mkdir(copy, 0777) == 0;
    if (!failed && !*is_new)
        failed = errno != EEXIST;
    const int reason = errno;
    free(copy);
    return failed ? cli_fail(CLI_FAILED, "the folder %s could not be made: %s", path,
                             strerror(reason))
                  : CLI_DONE;
}

/* Two commands at once would take turns in spoiling what the other saved.  The lock goes
 * with the process; where there are none, as on some network file systems, it is not
 * missed. */
static int lock_folder(const char *path, int *lock)
{
    *lock = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*lock < 0)
        return cli_fail(CLI_FAILED, "%s: %s", path, strerror(errno));
    if (flock(*lock, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
        (void)close(*lock);
        return cli_fail(CLI_FAILED, "%s is being trained by another command", path);
    }
    return CLI_DONE;
}

typedef char value_text[LAB_NAME_SIZE];

/* The name without what has a field of its own. */
static void write_method(const lab_config *config, value_text out)
{
    lab_config plain = *config;
    plain.learn_slopes = 0;
    plain.extension = (lab_mode){0};
    lab_config_name(&plain, out, LAB_NAME_SIZE);
}

/* NULL, or the first field in which two runs differ, and its values.  The folder's name
 * says nothing of what is in it: files are moved and copied. */
static const char *difference(const lab_config *a, const lab_config *b,
                              value_text values[2])
{
    const lab_config *const both[2] = {a, b};
    for (int i = 0; i < 2; i++)
        write_method(both[i], values[i]);
    if (strcmp(values[0], values[1]) != 0)
        return "method";
    for (int i = 0; i < 2; i++)
        lab_mode_name(&both[i]->extension, values[i], LAB_NAME_SIZE);
    if (strcmp(values[0], values[1]) != 0)
        return "extension";
    for (int i = 0; i < 2; i++)
        (void)snprintf(values[i], LAB_NAME_SIZE, "%" PRIu64, both[i]->seed);
    if (a->seed != b->seed)
        return "seed";
    const struct {
        const char *name;
        double a, b;
    } fields[] = {{"learn_slopes", a->learn_slopes, b->learn_slopes},
                  {"layers", a->layers, b->layers},
                  {"width", a->width, b->width},
                  {"heads", a->heads, b->heads},
                  {"length", a->length, b->length},
                  {"first_length", a->first_length, b->first_length},
                  {"batch", a->batch, b->batch},
                  {"steps", a->steps, b->steps},
                  {"warmup", a->warmup, b->warmup},
                  {"peak_rate", a->peak_rate, b->peak_rate},
                  {"weight_decay", a->weight_decay, b->weight_decay},
                  {"clip", a->clip, b->clip}};
    for (size_t i = 0; i < CLI_COUNT(fields); i++)
        if (fields[i].a != fields[i].b) {
            (void)snprintf(values[0], LAB_NAME_SIZE, "%.10g", fields[i].a);
            (void)snprintf(values[1], LAB_NAME_SIZE, "%.10g", fields[i].b);
            return fields[i].name;
        }
    return NULL;
}

/* What helps where the settings must stay. */
static const char *way_out(const cli_lab_training *how)
{
    return how->is_batch ? "another -o" : "--force to begin again";
}

static void write_from(const char *sha256, value_text out)
{
    if (sha256[0] == '\0')
        (void)snprintf(out, LAB_NAME_SIZE, "random weights");
    else
        (void)snprintf(out, LAB_NAME_SIZE, "weights of SHA-256 %.12s", sha256);
}

static int check_from(const sitting *s)
{
    value_text had, given;
    if (!s->record.knows_from ||
        strcmp(s->record.from_sha256, s->how->from_sha256) == 0)
        return CLI_DONE;
    write_from(s->record.from_sha256, had);
    write_from(s->how->from_sha256, given);
    return cli_fail(CLI_FAILED, "%s began with %s, not %s; give %s%s", s->how->folder,
                    had, given, s->how->is_batch ? "" : "the same --from, or ",
                    way_out(s->how));
}

static int take_up(sitting *s, const char *corpus_sha256)
{
    const cli_lab_training *how = s->how;
    value_text values[2];
    const char *name = difference(&s->state.config, how->config, values);
    if (name != NULL)
        return cli_fail(CLI_FAILED,
                        "%s has %s %s, not %s; give the same settings, or %s",
                        how->folder, name, values[0], values[1], way_out(how));
    if (strcmp(corpus_sha256, how->corpus->sha256) != 0)
        return cli_fail(
            CLI_FAILED,
            "%s has learned from another text than %s; give the same, or %s",
            how->folder, how->corpus->name, way_out(how));
    cli_lab_record_read(&s->record, s->file, s->state.step);
    s->before = s->record.seconds;
    return check_from(s);
}

static int begin(sitting *s)
{
    pe_error error;
    const cli_lab_training *how = s->how;
    const pe_status status = how->from != NULL
                                 ? lab_state_allocate(&s->state, how->config, &error)
                                 : lab_state_create(&s->state, how->config, &error);
    if (status != PE_OK)
        return cli_fail(CLI_FAILED, "%s", error.message);
    if (how->from != NULL) {
        const size_t size = (size_t)s->state.layout.size * sizeof(float);
        memcpy(s->state.weights, how->from->weights, size);
    }
    s->record.knows_from = 1;
    (void)snprintf(s->record.from_sha256, sizeof s->record.from_sha256, "%s",
                   how->from_sha256);
    return CLI_DONE;
}

/* What was there says nothing about the run that begins. */
static int clear(const char *folder)
{
    static const char *const names[] = {CLI_LAB_CHECKPOINT, CLI_LAB_TRAIN_FILE,
                                        LAB_RESULTS_FILE};
    for (size_t i = 0; i < CLI_COUNT(names); i++) {
        char *path = cli_lab_path(folder, names[i]);
        const int failed = path == NULL || (unlink(path) != 0 && errno != ENOENT);
        if (failed && path != NULL)
            (void)cli_fail(CLI_FAILED, "%s could not be removed: %s", path,
                           strerror(errno));
        free(path);
        if (failed)
            return CLI_FAILED;
    }
    return CLI_DONE;
}

/* What there is in the folder, or a beginning. */
static int find_state(sitting *s)
{
    const cli_lab_training *how = s->how;
    char corpus_sha256[65];
    int code = how->force ? clear(how->folder) : CLI_DONE;
    if (code != CLI_DONE)
        return code;
    if (access(s->checkpoint, F_OK) != 0)
        return begin(s);
    code = cli_lab_load(s->checkpoint, &s->state, corpus_sha256);
    if (code != CLI_DONE || how->resume)
        return code == CLI_DONE ? take_up(s, corpus_sha256) : code;
    const long long step = s->state.step, steps = s->state.config.steps;
    if (step >= steps)
        return cli_fail(CLI_FAILED, "%s holds a finished run; --force begins it again",
                        how->folder);
    return cli_fail(CLI_FAILED,
                    "%s holds a run at step %lld of %lld; --resume goes on with it, "
                    "--force begins it again",
                    how->folder, step, steps);
}

/* --------------------------------------------------------------------- training --- */

static int save_record(const sitting *s)
{
    json_object *object = cli_lab_record_json(&s->record, &s->state, s->how->corpus);
    cli_stop_hold();
    const int code = cli_lab_save_json(object, s->file);
    cli_stop_watch();
    return code;
}

static int save(sitting *s)
{
    pe_error error;
    struct rusage usage;
    s->record.seconds = s->before + lab_now() - s->start;
    s->record.threads = s->how->threads;
    s->record.memory = (int64_t)lab_trainer_memory(s->trainer);
    if (getrusage(RUSAGE_SELF, &usage) == 0)
        s->record.peak_memory = (int64_t)usage.ru_maxrss * 1024;
    if (lab_checkpoint_save(&s->state, s->how->corpus->sha256, s->checkpoint, &error) !=
        PE_OK)
        return cli_fail(CLI_FAILED, "%s", error.message);
    return save_record(s);
}

/* To the last step, or to where something stops it. */
static int take_steps(sitting *s, cli_progress *progress)
{
    const cli_lab_training *how = s->how;
    const int64_t steps = s->state.config.steps;
    int code = CLI_DONE;
    while (s->state.step < steps && code == CLI_DONE && !cli_stop_wanted()) {
        lab_step step;
        pe_error error;
        if (lab_trainer_step(s->trainer, &step, &error) != PE_OK) {
            cli_progress_end(progress);
            return cli_fail(CLI_FAILED, "%s: %s", how->folder, error.message);
        }
        const int64_t at = s->state.step;
        if ((at % CLI_LAB_LOG_EVERY == 0 || at == steps) &&
            !cli_lab_record_add(&s->record, at, s->state.loss_average))
            code = cli_fail(CLI_FAILED, "out of memory");
        if (code == CLI_DONE && at % how->save_every == 0 && at < steps)
            code = save(s);
        cli_progress_note(progress, "loss %.4f", s->state.loss_average);
        cli_progress_add(progress, 1);
    }
    cli_progress_end(progress);
    return code;
}

static int train(sitting *s)
{
    const cli_lab_training *how = s->how;
    pe_error error;
    char label[13], name[LAB_NAME_SIZE];
    cli_progress progress;
    if (lab_trainer_create(&s->trainer, &s->state, how->corpus, NULL, how->env,
                           &error) != PE_OK)
        return cli_fail(CLI_FAILED, "%s", error.message);
    lab_config_name(how->config, name, sizeof name);
    (void)snprintf(label, sizeof label, "%.12s", name);
    cli_stop_watch();
    s->start = lab_now();
    /* A folder that cannot be written to is better known now than later. */
    int code = s->state.step == 0 ? save(s) : CLI_DONE;
    cli_progress_start(&progress, label, s->state.config.steps);
    cli_progress_skip(&progress, s->state.step);
    if (code == CLI_DONE)
        code = take_steps(s, &progress);
    if (code == CLI_DONE)
        code = save(s);
    lab_trainer_destroy(s->trainer);
    if (code == CLI_DONE && s->state.step == s->state.config.steps && cli_stop_wanted())
        cli_note("all %d steps are done", s->state.config.steps);
    else if (code == CLI_DONE && s->state.step < s->state.config.steps)
        cli_note("stopped at step %lld of %d; to go on: %s", (long long)s->state.step,
                 s->state.config.steps, how->again);
    cli_stop_end();
    return code;
}

int cli_lab_train(const cli_lab_training *training, lab_state *out,
                  cli_lab_record *record)
{
    sitting s = {.how = training};
    int is_new = 0;
    int code = make_folders(training->folder, &is_new);
    if (code == CLI_DONE)
        code = lock_folder(training->folder, &s.lock);
    if (code != CLI_DONE)
        return code;
    s.checkpoint = cli_lab_path(training->folder, CLI_LAB_CHECKPOINT);
    s.file = cli_lab_path(training->folder, CLI_LAB_TRAIN_FILE);
    code = s.checkpoint == NULL || s.file == NULL ? CLI_FAILED : find_state(&s);
    if (code == CLI_DONE && s.state.step < s.state.config.steps)
        code = train(&s);
    free(s.checkpoint);
    free(s.file);
    if (code != CLI_DONE && is_new)
        (void)rmdir(training->folder); /* which fails where something was saved */
    (void)close(s.lock);
    if (code == CLI_DONE) {
        *out = s.state;
        *record = s.record;
        return CLI_DONE;
    }
    lab_state_release(&s.state);
    cli_lab_record_release(&s.record);
    return code;
}

/* SPDX-License-Identifier: MIT
 *
 * lab_job.c - one method and seed, trained and read, in a folder of its own
 */
#include "lab_job.h"

#include "lab_json.h"
#include "lab_report.h"
#include "lab_training.h"
#include "names.h"

#include "lab/matmul.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { TRIALS = 3, TRIAL_STEPS = 8 };

typedef struct job {
    const cli_lab_bench *bench;
    const lab_config *config;
    const cli_lab_plan *plan;
    char name[LAB_NAME_SIZE];
    char *folder, *file;
    lab_settings settings;
    lab_results results; /* of this run */
} job;

static int fail(const job *j, const pe_error *error)
{
    return cli_fail(CLI_FAILED, "%s: %s", j->folder, error->message);
}

static int add_timing(job *j, const char *what, double multiple, int64_t tokens,
                      double seconds, size_t memory)
{
    pe_error error;
    pe_isa isa;
    if (cli_isa_choose(j->bench->env.isa, &isa) != CLI_DONE)
        return CLI_FAILED;
    lab_timing timing = {.seed = j->config->seed,
                         .multiple = multiple,
                         .tokens = tokens,
                         .seconds = seconds,
                         .memory = (int64_t)memory,
                         .threads = j->bench->threads};
    (void)snprintf(timing.method, sizeof timing.method, "%s", j->name);
    (void)snprintf(timing.what, sizeof timing.what, "%s", what);
    (void)snprintf(timing.isa, sizeof timing.isa, "%s", pe_isa_name(isa));
    (void)snprintf(timing.blas, sizeof timing.blas, "%s", lab_matmul_name());
    return lab_results_add_timing(&j->results, &timing, &error) == PE_OK
               ? CLI_DONE
               : fail(j, &error);
}

/* To the last step, from wherever the folder stands. */
static int train(job *j, lab_state *state)
{
    cli_lab_record record;
    const cli_lab_training how = {.config = j->config,
                                  .corpus = j->bench->corpus,
                                  .env = &j->bench->env,
                                  .folder = j->folder,
                                  .again = j->bench->again,
                                  .from_sha256 = "",
                                  .save_every = CLI_LAB_SAVE_EVERY,
                                  .threads = j->bench->threads,
                                  .resume = 1,
                                  .is_batch = 1};
    int status = cli_lab_train(&how, state, &record);
    if (status != CLI_DONE)
        return status;
    const lab_config *c = &state->config;
    if (record.seconds > 0)
        status = add_timing(j, "train", 1, (int64_t)c->steps * c->batch * c->length,
                            record.seconds, (size_t)record.memory);
    cli_lab_record_release(&record);
    if (status != CLI_DONE)
        lab_state_release(state);
    return status;
}

typedef struct trial {
    lab_config config;
    lab_state state;
    lab_trainer *trainer;
    double seconds; /* the shortest */
} trial;

static pe_status trial_begin(trial *t, const job *j, int32_t multiple, pe_error *error)
{
    t->config = *j->config;
    t->config.length *= multiple;
    t->config.batch = t->config.batch > multiple ? t->config.batch / multiple : 1;
    t->config.steps = TRIALS * TRIAL_STEPS;
    const pe_status status = lab_state_create(&t->state, &t->config, error);
    return status != PE_OK
               ? status
               : lab_trainer_create(&t->trainer, &t->state, j->bench->corpus, NULL,
                                    &j->bench->env, error);
}

static pe_status trial_run(trial *t, pe_error *error)
{
    const double start = lab_now();
    pe_status status = PE_OK;
    for (int i = 0; i < TRIAL_STEPS && status == PE_OK; i++) {
        lab_step step;
        status = lab_trainer_step(t->trainer, &step, error);
    }
    const double seconds = lab_now() - start;
    t->seconds = t->seconds == 0 || seconds < t->seconds ? seconds : t->seconds;
    return status;
}

/* A few steps on rows of L and of 2 L tokens, as many bytes a step, in turns: the speed
 * of training, where the whole run may have shared its processor. */
static int try_steps(job *j)
{
    trial trials[2] = {{.seconds = 0}, {.seconds = 0}};
    pe_error error;
    pe_status status = PE_OK;
    for (int32_t i = 0; i < 2 && status == PE_OK; i++)
        status = trial_begin(&trials[i], j, i + 1, &error);
    for (int i = 0; i < 2 * TRIALS && status == PE_OK; i++)
        status = trial_run(&trials[i % 2], &error);
    int code = status == PE_OK ? CLI_DONE : fail(j, &error);
    for (int i = 0; i < 2 && code == CLI_DONE; i++)
        code = add_timing(j, "step", i + 1,
                          (int64_t)TRIAL_STEPS * trials[i].config.batch *
                              trials[i].config.length,
                          trials[i].seconds, lab_trainer_memory(trials[i].trainer));
    for (int i = 0; i < 2; i++) {
        lab_trainer_destroy(trials[i].trainer);
        lab_state_release(&trials[i].state);
    }
    return code;
}

static int make(job *j)
{
    lab_state state;
    int status = train(j, &state);
    if (status != CLI_DONE)
        return status;
    status = try_steps(j);
    if (status == CLI_DONE)
        status = cli_lab_measure(j->plan, &state, j->bench->corpus, &j->bench->env,
                                 &j->results);
    if (status == CLI_DONE)
        status = cli_lab_save_json(cli_lab_json(&j->results, 1), j->file);
    lab_state_release(&state);
    return status;
}

/* Whether every mode and length of the plan has its result. */
static int is_whole(const job *j)
{
    for (int32_t m = 0; m < j->plan->num_modes; m++)
        for (int32_t k = 0; k < j->plan->num_multiples; k++) {
            char mode[40];
            lab_mean mean;
            const int64_t multiple = j->plan->multiples[k];
            lab_mode_name(&j->plan->modes[m], mode, sizeof mode);
            lab_results_mean(&j->results, j->name, mode, (double)multiple, 0, &mean);
            if (mean.count == 0 &&
                lab_mode_tells(&j->plan->modes[m], j->config, multiple))
                return 0;
        }
    return 1;
}

/* What an earlier command left; settings that differ are refused. */
static int read_old(job *j)
{
    struct stat info;
    pe_error error;
    if (stat(j->file, &info) != 0)
        return CLI_DONE;
    int status = cli_lab_read(&j->results, j->file);
    if (status == CLI_DONE &&
        lab_settings_match(&j->results.settings, j->file, &j->settings, "this command",
                           &error) != PE_OK)
        status = cli_fail(CLI_FAILED, "%s", error.message);
    if (status == CLI_DONE && !is_whole(j))
        lab_results_release(&j->results);
    return status;
}

static int merge(const job *j, lab_results *into)
{
    pe_error error;
    pe_status status = PE_OK;
    into->settings = j->settings;
    (void)snprintf(into->source, sizeof into->source, "%s", j->file);
    for (int64_t i = 0; i < j->results.count && status == PE_OK; i++)
        status = lab_results_add(into, &j->results.items[i], j->file, &error);
    for (int64_t i = 0; i < j->results.num_timings && status == PE_OK; i++)
        status = lab_results_add_timing(into, &j->results.timings[i], &error);
    return status == PE_OK ? CLI_DONE : fail(j, &error);
}

int cli_lab_job(const cli_lab_bench *bench, const lab_config *config,
                const cli_lab_plan *plan, const char *output, lab_results *results)
{
    job j = {.bench = bench, .config = config, .plan = plan};
    lab_config_name(config, j.name, sizeof j.name);
    cli_lab_plan_settings(plan, config, bench->corpus, &j.settings);
    j.folder = cli_lab_folder(output, config);
    if (j.folder != NULL)
        j.file = cli_lab_path(j.folder, LAB_RESULTS_FILE);
    int status = j.file == NULL ? CLI_FAILED : read_old(&j);
    if (status == CLI_DONE && j.results.count == 0) {
        j.results.settings = j.settings;
        (void)snprintf(j.results.source, sizeof j.results.source, "this command");
        status = make(&j);
    }
    if (status == CLI_DONE)
        status = merge(&j, results);
    lab_results_release(&j.results);
    free(j.folder);
    free(j.file);
    return status;
}

/* SPDX-License-Identifier: MIT
 *
 * lab_measure.c - a trained model read in some modes, at some lengths
 */
#include "lab_measure.h"

#include "names.h"
#include "options.h"
#include "progress.h"

#include "lab/matmul.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The next item of a list with commas; 0 at its end or when it is too long. */
static int next_item(const char **list, char *out, size_t size)
{
    const size_t length = strcspn(*list, ",");
    if (length >= size)
        return 0;
    memcpy(out, *list, length);
    out[length] = '\0';
    *list += length + ((*list)[length] == ',' && (*list)[length + 1] != '\0');
    return length > 0;
}

static int read_multiples(cli_lab_plan *out, const char *list)
{
    char item[16];
    const char *at = list;
    while (*at != '\0') {
        int64_t *next = &out->multiples[out->num_multiples];
        if (out->num_multiples == CLI_LAB_MAX_MULTIPLES)
            return cli_fail(CLI_USAGE, "--multiple lists more than %d",
                            CLI_LAB_MAX_MULTIPLES);
        if (!next_item(&at, item, sizeof item) || !cli_read_integer(item, next) ||
            *next < 1 || *next > 1 << 20 ||
            (out->num_multiples > 0 && *next <= next[-1]))
            return cli_fail(CLI_USAGE,
                            "--multiple is '%s', must be whole numbers from 1 to %d, "
                            "rising, with commas between",
                            list, 1 << 20);
        out->num_multiples++;
    }
    return CLI_DONE;
}

/* A mode that nobody named is left out where the model has no use for it. */
static int add_mode(cli_lab_plan *out, const lab_config *config, const char *name)
{
    pe_error error;
    if (out->num_modes == CLI_LAB_MAX_MODES)
        return cli_fail(CLI_USAGE, "--mode lists more than %d", CLI_LAB_MAX_MODES);
    lab_mode *mode = &out->modes[out->num_modes];
    if (lab_mode_parse(mode, name, &error) != PE_OK)
        return cli_fail(CLI_USAGE, "%s", error.message);
    if (lab_mode_check(mode, config, &error) == PE_OK)
        out->num_modes++;
    else if (out->is_asked)
        return cli_fail(CLI_USAGE, "%s", error.message);
    return CLI_DONE;
}

int cli_lab_plan_make(cli_lab_plan *out, const lab_config *config, const char *modes,
                      const char *multiples)
{
    *out = (cli_lab_plan){.is_asked = modes != NULL};
    int status = read_multiples(out, multiples != NULL ? multiples : "1,2,4,8,16");
    for (const char *const *name = lab_modes_of(config);
         modes == NULL && *name != NULL && status == CLI_DONE; name++)
        status = add_mode(out, config, *name);
    while (modes != NULL && *modes != '\0' && status == CLI_DONE) {
        char item[40];
        if (!next_item(&modes, item, sizeof item))
            return cli_fail(CLI_USAGE, "--mode has an empty name, or one too long");
        status = add_mode(out, config, item);
    }
    return status;
}

static int64_t last_multiple(const cli_lab_plan *plan)
{
    return plan->multiples[plan->num_multiples - 1];
}

void cli_lab_plan_settings(const cli_lab_plan *plan, const lab_config *config,
                           const lab_corpus *corpus, lab_settings *out)
{
    lab_settings_make(out, config, corpus->name, corpus->sha256, plan->eval_tokens,
                      plan->slide_tokens,
                      plan->slide_tokens > 0 ? last_multiple(plan) : 0);
}

static int check_tokens(const cli_lab_plan *plan, const lab_config *config,
                        const lab_corpus *corpus, const char *without_slide)
{
    const int64_t chunks = corpus->validation_size / corpus->chunk_size;
    const int64_t least = chunks * config->length;
    if (plan->eval_tokens < least)
        return cli_fail(
            CLI_USAGE,
            "--eval-tokens is %lld, must be at least %lld: a length of %d in "
            "each of the %lld chunks of %s",
            (long long)plan->eval_tokens, (long long)least, config->length,
            (long long)chunks, corpus->name);
    if (plan->slide_tokens > 0 && plan->slide_tokens < least)
        return cli_fail(CLI_USAGE,
                        "--eval-tokens is %lld, must be at least %lld for sliding "
                        "windows, which read an eighth of it; %s leaves them out",
                        (long long)plan->eval_tokens,
                        (long long)(CLI_LAB_SLIDE_SHARE * least), without_slide);
    return CLI_DONE;
}

static int needs(const cli_lab_plan *plan, const lab_config *config,
                 const lab_mode *mode, int64_t multiple, int slide)
{
    if (slide &&
        (plan->slide_tokens == 0 || !(plan->is_asked || lab_mode_slides(mode))))
        return 0;
    return plan->is_asked || lab_mode_tells(mode, config, multiple);
}

int cli_lab_plan_check(const cli_lab_plan *plan, const lab_config *config,
                       const lab_corpus *corpus, const char *without_slide)
{
    pe_error error;
    lab_eval_spec spec = {
        .config = config, .corpus = corpus, .max_multiple = last_multiple(plan)};
    const int status = check_tokens(plan, config, corpus, without_slide);
    if (status != CLI_DONE)
        return status;
    for (spec.slide = 0; spec.slide < 2; spec.slide++)
        for (int32_t m = 0; m < plan->num_modes; m++)
            for (int32_t k = 0; k < plan->num_multiples; k++) {
                spec.mode = plan->modes[m];
                spec.multiple = plan->multiples[k];
                spec.eval_tokens = spec.slide ? plan->slide_tokens : plan->eval_tokens;
                if (!needs(plan, config, &spec.mode, spec.multiple, spec.slide) ||
                    lab_evaluate_check(&spec, &error) == PE_OK)
                    continue;
                return spec.slide
                           ? cli_fail(CLI_USAGE,
                                      "--multiple up to %lld of length %d: %s; %s "
                                      "leaves these out",
                                      (long long)spec.max_multiple, config->length,
                                      error.message, without_slide)
                           : cli_fail(CLI_USAGE, "--multiple %lld of length %d: %s",
                                      (long long)spec.multiple, config->length,
                                      error.message);
            }
    return CLI_DONE;
}

typedef struct reading {
    const cli_lab_plan *plan;
    const lab_state *state;
    lab_eval_spec spec;
    lab_results *out;
    char method[LAB_NAME_SIZE];
    double *by_position;
} reading;

static int add_timing(const reading *r, const lab_eval *eval)
{
    pe_error error;
    pe_isa isa;
    if (cli_isa_choose(r->spec.isa, &isa) != CLI_DONE)
        return CLI_FAILED;
    lab_timing timing = {.what = "eval",
                         .seed = r->state->config.seed,
                         .multiple = (double)r->spec.multiple,
                         .tokens = eval->count,
                         .seconds = eval->seconds,
                         .memory = (int64_t)eval->memory,
                         .threads = r->plan->threads};
    (void)snprintf(timing.method, sizeof timing.method, "%s", r->method);
    (void)snprintf(timing.isa, sizeof timing.isa, "%s", pe_isa_name(isa));
    (void)snprintf(timing.blas, sizeof timing.blas, "%s", lab_matmul_name());
    return lab_results_add_timing(r->out, &timing, &error) == PE_OK
               ? CLI_DONE
               : cli_fail_with("timing", &error);
}

static int read_once(reading *r, int slide)
{
    pe_error error;
    lab_eval eval = {.by_position = r->by_position};
    r->spec.slide = slide;
    r->spec.eval_tokens = slide ? r->plan->slide_tokens : r->plan->eval_tokens;
    if (lab_evaluate(&r->spec, &eval, &error) != PE_OK)
        return cli_fail_with(r->method, &error);
    lab_result result = {.seed = r->state->config.seed,
                         .multiple = (double)r->spec.multiple,
                         .nll = eval.nll,
                         .slide = slide,
                         .num_blocks = (int32_t)r->spec.multiple,
                         .by_position = slide ? NULL : r->by_position};
    (void)snprintf(result.method, sizeof result.method, "%s", r->method);
    lab_mode_name(&r->spec.mode, result.mode, sizeof result.mode);
    if (lab_results_add(r->out, &result, "this run", &error) != PE_OK)
        return cli_fail_with(r->method, &error);
    const int is_plain =
        r->spec.mode.type == LAB_MODE_BASE || r->spec.mode.type == LAB_MODE_CLAMP;
    const int is_first = r->spec.mode.type == LAB_MODE_CLAMP || r->spec.multiple > 1 ||
                         r->state->config.input != LAB_LEARNED;
    return is_plain && is_first && !slide ? add_timing(r, &eval) : CLI_DONE;
}

static int measure_all(reading *r, cli_progress *progress)
{
    const cli_lab_plan *plan = r->plan;
    int status = CLI_DONE;
    for (int32_t m = 0; m < plan->num_modes && status == CLI_DONE; m++)
        for (int32_t k = 0; k < plan->num_multiples && status == CLI_DONE; k++) {
            r->spec.mode = plan->modes[m];
            r->spec.multiple = plan->multiples[k];
            for (int slide = 0; slide < 2 && status == CLI_DONE; slide++)
                if (needs(plan, &r->state->config, &r->spec.mode, r->spec.multiple,
                          slide))
                    status = read_once(r, slide);
            cli_progress_add(progress, plan->multiples[k]);
        }
    return status;
}

int cli_lab_measure(const cli_lab_plan *plan, const lab_state *state,
                    const lab_corpus *corpus, const pe_env *env, lab_results *out)
{
    reading r = {
        .plan = plan,
        .state = state,
        .spec = {.config = &state->config,
                 .layout = &state->layout,
                 .weights = state->weights,
                 .corpus = corpus,
                 .max_multiple = last_multiple(plan),
                 .isa = env->isa,
                 .executor = env->executor.run != NULL ? &env->executor : NULL},
        .out = out,
        .by_position = calloc((size_t)last_multiple(plan), sizeof *r.by_position)};
    if (r.by_position == NULL)
        return cli_fail(CLI_FAILED, "out of memory");
    lab_config_name(&state->config, r.method, sizeof r.method);
    int64_t total = 0;
    for (int32_t k = 0; k < plan->num_multiples; k++)
        total += plan->multiples[k] * plan->num_modes;
    cli_progress progress;
    cli_progress_start(&progress, "reading", total);
    const int status = measure_all(&r, &progress);
    cli_progress_end(&progress);
    free(r.by_position);
    return status;
}

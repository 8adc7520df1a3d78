/* SPDX-License-Identifier: MIT
 *
 * lab_arg.c - from options to a configuration, a text and threads
 */
#include "lab_arg.h"

#include "input.h"
#include "machine.h"

const cli_lab_arg cli_lab_defaults = {.output = "lab", .warmup = -1, .seed = -1};

const cli_choice cli_lab_config_names[] = {
    {"A", CLI_LAB_A}, {"B", CLI_LAB_B}, {NULL, 0}};

static void replace(int32_t *field, int64_t given)
{
    if (given > 0)
        *field = (int32_t)given;
}

void cli_lab_replace(const cli_lab_arg *args, lab_config *config)
{
    replace(&config->width, args->width);
    replace(&config->heads, args->heads);
    replace(&config->length, args->length);
    replace(&config->batch, args->batch);
    replace(&config->steps, args->steps);
    if (args->warmup >= 0)
        config->warmup = (int32_t)args->warmup;
    else if (config->warmup > config->steps / 4)
        config->warmup = config->steps / 4;
    if (args->rate > 0)
        config->peak_rate = args->rate;
    if (args->seed >= 0)
        config->seed = (uint64_t)args->seed;
}

static void fill_sizes(const cli_lab_arg *args, lab_config *out)
{
    *out = args->config == CLI_LAB_B ? lab_config_b : lab_config_a;
    cli_lab_replace(args, out);
}

static int check(const lab_config *config)
{
    pe_error error;
    if (lab_config_check(config, &error) != PE_OK)
        return cli_fail(CLI_USAGE, "%s", error.message);
    return CLI_DONE;
}

int cli_lab_sizes(const cli_lab_arg *args, lab_config *out)
{
    fill_sizes(args, out);
    return check(out);
}

static int fill_layers(const cli_lab_arg *args, lab_config *out, int *is_list)
{
    int64_t count;
    pe_error error;
    *is_list = 0;
    if (args->layers == NULL)
        return CLI_DONE;
    if (cli_read_integer(args->layers, &count)) {
        if (count < 1 || count > LAB_MAX_LAYERS)
            return cli_fail(CLI_USAGE, "layers is %s, must be from 1 to %d",
                            args->layers, LAB_MAX_LAYERS);
        out->layers = (int32_t)count;
        return CLI_DONE;
    }
    *is_list = 1;
    if (lab_config_set_layers(out, args->layers, &error) != PE_OK)
        return cli_fail(CLI_USAGE, "%s", error.message);
    return CLI_DONE;
}

static int fill_method(const cli_lab_arg *args, lab_config *out, int is_list)
{
    lab_method method;
    if (args->method == NULL && !is_list)
        return cli_fail(CLI_USAGE,
                        "a method is missing: --method NAME, or --layers with "
                        "a list of them");
    if (args->method == NULL)
        return CLI_DONE;
    if (!lab_method_find(args->method, &method))
        return cli_fail(
            CLI_USAGE,
            "method is '%s', must be one of none, sin, learned, rope, alibi, "
            "t5, kerple",
            args->method);
    if (!is_list) {
        lab_config_set_method(out, method);
        return CLI_DONE;
    }
    if (method != LAB_NONE && method != LAB_SIN && method != LAB_LEARNED)
        return cli_fail(CLI_USAGE,
                        "method is %s, must be none, sin or learned beside a list of "
                        "layers",
                        args->method);
    out->input = method;
    return CLI_DONE;
}

int cli_lab_config(const cli_lab_arg *args, lab_config *out)
{
    int is_list;
    fill_sizes(args, out);
    int code = fill_layers(args, out, &is_list);
    if (code == CLI_DONE)
        code = fill_method(args, out, is_list);
    if (code != CLI_DONE)
        return code;
    out->learn_slopes = args->learn_slopes;
    return check(out);
}

int cli_lab_corpus(const cli_lab_arg *args, lab_corpus *out)
{
    pe_error error;
    if (args->text != NULL && args->copy > 0)
        return cli_fail(CLI_USAGE, "--text and --copy are two texts; give one");
    const pe_status status = args->text != NULL
                                 ? lab_corpus_read(out, args->text, &error)
                             : args->copy > 0 ? lab_corpus_copy(out, args->copy, &error)
                                              : lab_corpus_kjv(out, &error);
    if (args->text != NULL)
        cli_input_add(args->text);
    if (status == PE_OK)
        return CLI_DONE;
    const int is_kjv = args->text == NULL && args->copy == 0;
    return cli_fail(CLI_FAILED, "%s%s", error.message,
                    is_kjv ? ", or name a text by --text FILE" : "");
}

int cli_lab_threads(const cli_lab_arg *args, pe_pool **pool, pe_env *env,
                    int32_t *threads)
{
    pe_error error;
    cli_machine machine;
    int64_t count = args->threads;
    if (count == 0) {
        cli_machine_read(&machine);
        count = machine.num_cpus;
    }
    if (count < 1 || count > CLI_LAB_MAX_THREADS)
        count = count < 1 ? 1 : CLI_LAB_MAX_THREADS;
    *threads = (int32_t)count;
    if (pe_pool_create(pool, *threads, &error) != PE_OK)
        return cli_fail(CLI_FAILED, "%s", error.message);
    *env = (pe_env){.struct_size = sizeof *env};
    pe_pool_executor(*pool, &env->executor);
    return CLI_DONE;
}

/* SPDX-License-Identifier: MIT
 *
 * extend.c - posenc extend: what each way of serving more tokens would set and cost
 */
#include "extend.h"

#include "layers.h"
#include "names.h"
#include "report.h"
#include "sites.h"
#include "verbs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct extend_args {
    int64_t length, trained, layer;
    double factor, freq_scale, alpha, base;
    const char *output;
    int32_t method; /* -1: all */
    int32_t json;
} extend_args;

enum { LEN_MAX = 1 << 30 };

/* Of several rotations the one with the largest base: that of full attention, since
 * sliding layers never see far. */
static int choose(const cli_model *model, const extend_args *args, int32_t *rope)
{
    const pe_site *site;
    double largest = 0;
    *rope = -1;
    if (args->layer >= 0) {
        site = pe_model_find_site(model->model, (int32_t)args->layer, PE_SITE_SELF);
        if (site == NULL || site->rope < 0)
            return cli_fail(CLI_USAGE, "--layer is %lld, but %s rotates nothing there",
                            (long long)args->layer, model->name);
        *rope = site->rope;
        return CLI_DONE;
    }
    for (int32_t i = 0; (site = pe_model_site(model->model, i)) != NULL; i++) {
        pe_rope_spec spec = {.struct_size = sizeof spec};
        if (site->rope < 0 ||
            pe_model_rope_spec(model->model, site->rope, &spec, NULL) != PE_OK ||
            spec.freqs.rope_theta <= largest)
            continue;
        largest = spec.freqs.rope_theta;
        *rope = site->rope;
    }
    if (*rope < 0)
        return cli_fail(CLI_FAILED,
                        "%s rotates nothing by a base (method %s): there is no "
                        "frequency to change",
                        model->name, pe_model_get_info(model->model)->method);
    return CLI_DONE;
}

static int layers_of(char **out, const cli_model *model, int32_t rope)
{
    const pe_site *site;
    int status = CLI_DONE;
    *out = NULL;
    for (int32_t i = 0; (site = pe_model_site(model->model, i)) != NULL; i++)
        if (site->rope == rope && status == CLI_DONE)
            status = cli_layers_add(out, site->layer);
    return status;
}

static int read_trained(cli_extend_base *base, const cli_model *model,
                        const extend_args *args)
{
    base->trained_len = args->trained;
    if (base->trained_len == 0)
        base->trained_len = pe_model_get_info(model->model)->trained_len;
    if (base->trained_len != 0)
        return CLI_DONE;
    return cli_fail(CLI_FAILED,
                    "%s does not say how many tokens it was trained on: say it with "
                    "--trained",
                    model->name);
}

/* The same stretch in any of its spellings. */
static int read_factor(cli_extend_base *base, const extend_args *args)
{
    const double d = base->rotary_dim;
    const double trained = (double)base->trained_len;
    const int said = (args->length != 0) + (args->factor != 0) +
                     (args->freq_scale != 0) + (args->alpha != 0) + (args->base != 0);
    if (said != 1)
        return cli_fail(CLI_USAGE, "say one of --length, --factor, --freq-scale, "
                                   "--alpha and --base");
    if (args->length != 0)
        base->factor = (double)args->length / trained;
    else if (args->freq_scale != 0)
        base->factor = 1 / args->freq_scale;
    else if (args->base != 0)
        base->factor = pow(args->base / base->rope_theta, (d - 2) / d);
    else
        base->factor = args->alpha != 0 ? args->alpha : args->factor;
    if (!(base->factor > 1) || base->factor * trained > (double)LEN_MAX)
        return cli_fail(CLI_USAGE,
                        "that is %.6g times the %lld tokens of training, must be above "
                        "1 and at most %d tokens",
                        base->factor, (long long)base->trained_len, (int)LEN_MAX);
    base->length =
        args->length != 0 ? args->length : (int64_t)nearbyint(base->factor * trained);
    return CLI_DONE;
}

static int read_base(cli_extend_base *base, const cli_model *model, int32_t rope,
                     const extend_args *args)
{
    pe_rope *plan;
    pe_error error;
    memset(base, 0, sizeof *base);
    base->spec.struct_size = sizeof base->spec;
    if (pe_model_rope_spec(model->model, rope, &base->spec, &error) != PE_OK)
        return cli_fail_with(model->name, &error);
    if (base->spec.freqs.rope_type == PE_ROPE_PROPORTIONAL ||
        base->spec.freqs.rope_type == PE_ROPE_CUSTOM)
        return cli_fail(
            CLI_FAILED,
            "%s has rope_type %s, which no rule for longer contexts "
            "combines with",
            model->name,
            cli_choice_name(cli_rope_type_names, base->spec.freqs.rope_type));
    if (base->spec.freqs.rope_type != PE_ROPE_DEFAULT)
        cli_note("%s has rope_type %s: what follows replaces it", model->name,
                 cli_choice_name(cli_rope_type_names, base->spec.freqs.rope_type));
    if (base->spec.freqs.freq_factors != NULL)
        cli_note("%s divides its frequencies by a table: what follows replaces it, and "
                 "counts from --trained, the length before that table",
                 model->name);
    base->rope_theta = base->spec.freqs.rope_theta;
    base->spec.freqs = (pe_freqs){.rope_theta = base->rope_theta};
    if (pe_rope_create(&plan, &base->spec, NULL, &error) != PE_OK)
        return cli_fail_with(model->name, &error);
    const pe_rope_info *info = pe_rope_get_info(plan);
    base->num_pairs = info->num_pairs;
    base->rotary_dim = info->rotary_dim;
    memcpy(base->freqs, info->inv_freq, (size_t)info->num_pairs * sizeof *base->freqs);
    pe_rope_destroy(plan);
    if (base->rotary_dim < 4)
        return cli_fail(CLI_FAILED, "rotary_dim is %d, must be at least 4",
                        (int)base->rotary_dim);
    int status = read_trained(base, model, args);
    return status == CLI_DONE ? read_factor(base, args) : status;
}

static int report(const cli_model *model, int32_t rope, const cli_extend_base *base,
                  const cli_extended *const *ways, size_t num_ways,
                  const extend_args *args)
{
    char *layers;
    int status = layers_of(&layers, model, rope);
    if (status == CLI_DONE)
        status = args->json ? cli_extend_print_json(model, layers, base, ways, num_ways)
                            : cli_extend_print(model, layers, base, ways, num_ways);
    free(layers);
    return status;
}

static int extend(const cli_model *model, const char *argument, const extend_args *args,
                  cli_extend_base *base, cli_extended *storage)
{
    const cli_extended *ways[CLI_EXTEND_METHODS];
    size_t num_ways = 0;
    int32_t rope = -1;
    int status = choose(model, args, &rope);
    if (status == CLI_DONE)
        status = read_base(base, model, rope, args);
    for (int32_t m = 0; m < CLI_EXTEND_METHODS && status == CLI_DONE; m++) {
        if (args->method >= 0 ? m != args->method
                              : args->output != NULL && m != CLI_EXTEND_YARN)
            continue;
        status = cli_extend_resolve(&storage[m], m, base);
        ways[num_ways++] = &storage[m];
    }
    if (status == CLI_DONE && args->output != NULL)
        return cli_extend_write(args->output, argument, model, rope, ways[0], base);
    return status == CLI_DONE ? report(model, rope, base, ways, num_ways, args)
                              : status;
}

static int run(int argc, char **argv)
{
    extend_args args = {.layer = -1, .method = -1};
    const char *argument;
    int status = cli_parse(&cli_verb_extend, argc, argv, &args, &argument);
    if (status != CLI_CONTINUE)
        return status;
    if (args.json && args.output != NULL)
        return cli_fail(CLI_USAGE, "--json and --output exclude each other");
    cli_model model;
    status = cli_model_open(&model, argument, 0);
    if (status != CLI_DONE)
        return status;
    cli_extend_base *base = malloc(sizeof *base);
    cli_extended *storage = malloc(CLI_EXTEND_METHODS * sizeof *storage);
    status = base == NULL || storage == NULL
                 ? cli_fail(CLI_FAILED, "out of memory")
                 : extend(&model, argument, &args, base, storage);
    free(storage);
    free(base);
    cli_model_close(&model);
    return status;
}

static const cli_option options[] = {
    {.name = "length",
     .argument = "N",
     .type = CLI_INTEGER,
     .min = 1,
     .max = LEN_MAX,
     .offset = offsetof(extend_args, length),
     .help = "tokens to serve"},
    {.name = "factor",
     .argument = "X",
     .type = CLI_NUMBER,
     .offset = offsetof(extend_args, factor),
     .help = "the same as a multiple of the trained length"},
    {.name = "freq-scale",
     .argument = "X",
     .type = CLI_NUMBER,
     .offset = offsetof(extend_args, freq_scale),
     .help = "the same as llama.cpp's --rope-freq-scale: 1 / factor"},
    {.name = "alpha",
     .argument = "X",
     .type = CLI_NUMBER,
     .offset = offsetof(extend_args, alpha),
     .help = "the same as NTK's alpha"},
    {.name = "base",
     .argument = "X",
     .type = CLI_NUMBER,
     .offset = offsetof(extend_args, base),
     .help = "the same as the theta that NTK would set: theta * alpha^(d / (d - 2))"},
    {.name = "trained",
     .argument = "N",
     .type = CLI_INTEGER,
     .min = 2,
     .max = LEN_MAX,
     .offset = offsetof(extend_args, trained),
     .help = "tokens that the model was trained on; default: what MODEL says"},
    {.name = "method",
     .argument = "NAME",
     .type = CLI_CHOICE,
     .choices = cli_extend_names,
     .offset = offsetof(extend_args, method),
     .help = "only this one: linear (position interpolation), ntk, dynamic, yarn "
             "(default with -o), llama3 or longrope"},
    {.name = "layer",
     .argument = "N",
     .type = CLI_INTEGER,
     .max = INT32_MAX,
     .offset = offsetof(extend_args, layer),
     .help = "the layer to extend, where layers differ; default: the rotation with the "
             "largest theta"},
    {.name = "output",
     .letter = 'o',
     .argument = "FILE.json",
     .type = CLI_TEXT,
     .offset = offsetof(extend_args, output),
     .help = "write MODEL's config.json there with the method's keys set and every "
             "other byte kept; - is standard output"},
    {.name = "json",
     .type = CLI_FLAG,
     .offset = offsetof(extend_args, json),
     .help = "schema posenc.extend/1"}};

const cli_verb cli_verb_extend = {
    .name = "extend",
    .summary = "what each way of serving more tokens would set, and cost",
    .operands = "MODEL",
    .about =
        "For each method: the pairs it keeps, blends and divides, the angles that the\n"
        "model never saw in training, how much it changes angles at short distances,\n"
        "the attention factor, and the settings for Hugging Face, llama.cpp and vLLM.\n"
        "All start from the frequencies of training: scaling that MODEL already has "
        "is\n"
        "replaced.\n"
        "\n" CLI_MODEL_HELP,
    .examples = "posenc extend llama-3-8b --length 32768\n"
                "posenc extend qwen2.5-7b --factor 4 --method yarn --json",
    .options = options,
    .num_options = CLI_COUNT(options),
    .num_operands = 1,
    .run = run};

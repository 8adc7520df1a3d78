/* SPDX-License-Identifier: MIT
 *
 * presets.c - posenc presets: the models whose settings are compiled in
 */
#include "print.h"
#include "report.h"
#include "verbs.h"

#include "posenc/model.h"

#include <stdio.h>

typedef struct presets_args {
    int32_t json;
} presets_args;

static int add_preset(json_object *list, const pe_preset *preset, pe_model *model)
{
    const pe_model_info *info = pe_model_get_info(model);
    json_object *entry = json_object_new_object();
    cli_json_set_text(entry, "name", preset->name);
    cli_json_set_text(entry, "title", preset->title);
    cli_json_text(entry, "model_type", info->model_type);
    cli_json_set_text(entry, "method", info->method);
    cli_json_set_text(entry, "source", preset->source);
    (void)json_object_object_add(entry, "remembered",
                                 json_object_new_boolean(preset->remembered));
    (void)json_object_array_add(list, entry);
    return CLI_DONE;
}

static int print_preset(const pe_preset *preset, pe_model *model)
{
    cli_print("%-26s %-11s %s%s\n", preset->name, pe_model_get_info(model)->method,
              preset->title, preset->remembered ? " (from memory)" : "");
    return CLI_DONE;
}

static int run(int argc, char **argv)
{
    presets_args args = {0};
    int status = cli_parse(&cli_verb_presets, argc, argv, &args, NULL);
    if (status != CLI_CONTINUE)
        return status;
    json_object *root = args.json ? cli_json_start("posenc.presets/1") : NULL;
    json_object *list = args.json ? json_object_new_array() : NULL;
    if (args.json)
        (void)json_object_object_add(root, "presets", list);
    const pe_preset *preset;
    for (int32_t i = 0; (preset = pe_model_preset(i)) != NULL; i++) {
        pe_model *model;
        pe_error error;
        if (pe_model_create_preset(&model, preset->name, 0, NULL, &error) != PE_OK) {
            (void)json_object_put(root);
            return cli_fail_with(preset->name, &error);
        }
        (void)(args.json ? add_preset(list, preset, model)
                         : print_preset(preset, model));
        pe_model_destroy(model);
    }
    return args.json ? cli_json_print(root) : CLI_DONE;
}

static const cli_option options[] = {
    {.name = "json",
     .type = CLI_FLAG,
     .offset = offsetof(presets_args, json),
     .help = "schema posenc.presets/1, with the source of each preset's numbers"}};

const cli_verb cli_verb_presets = {
    .name = "presets",
    .summary = "list the models whose settings are built in",
    .operands = "",
    .about =
        "Each line is a name that stands for MODEL in other verbs, the method and\n"
        "the model.  (from memory): some number was not read from a published\n"
        "file; --json says which.",
    .examples = "posenc presets\nposenc presets --json",
    .options = options,
    .num_options = CLI_COUNT(options),
    .run = run};

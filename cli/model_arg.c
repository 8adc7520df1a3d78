/* SPDX-License-Identifier: MIT
 *
 * model_arg.c - the MODEL argument of a verb
 */
#include "model_arg.h"

#include "suggest.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

static const char *preset_name(void *context, size_t index)
{
    (void)context;
    const pe_preset *preset =
        index <= INT32_MAX ? pe_model_preset((int32_t)index) : NULL;
    return preset ? preset->name : NULL;
}

static int is_preset_name(const char *argument)
{
    const char *name;
    for (size_t i = 0; (name = preset_name(NULL, i)) != NULL; i++)
        if (strcmp(name, argument) == 0)
            return 1;
    return 0;
}

static int fail_unknown(const char *argument)
{
    if (strchr(argument, '/') != NULL || strstr(argument, ".json") != NULL)
        return cli_fail(CLI_FAILED, "%s: %s", argument, strerror(ENOENT));
    const char *near = cli_suggest(argument, preset_name, NULL);
    if (near != NULL)
        return cli_fail(CLI_USAGE,
                        "no file and no preset is named '%s'; did you mean %s?",
                        argument, near);
    return cli_fail(CLI_USAGE,
                    "no file and no preset is named '%s'; posenc presets lists them",
                    argument);
}

static int create(cli_model *model, int64_t seq_len)
{
    pe_error error;
    pe_status status =
        model->checkpoint == NULL
            ? pe_model_create_preset(&model->model, model->name, seq_len, NULL, &error)
            : pe_model_create(&model->model, model->checkpoint, seq_len, NULL, &error);
    return status == PE_OK ? CLI_DONE : cli_fail_with(model->name, &error);
}

int cli_model_open(cli_model *out, const char *argument, int64_t seq_len)
{
    struct stat info;
    int status = CLI_DONE;
    *out = (cli_model){.name = argument};
    if (strcmp(argument, "-") == 0 || stat(argument, &info) == 0)
        status = cli_input_open(&out->checkpoint, &out->name, argument);
    else if (!is_preset_name(argument))
        return fail_unknown(argument);
    if (status == CLI_DONE)
        status = create(out, seq_len);
    if (status != CLI_DONE)
        cli_model_close(out);
    return status;
}

int cli_model_set_len(cli_model *model, int64_t seq_len)
{
    pe_model_destroy(model->model);
    model->model = NULL;
    return create(model, seq_len);
}

void cli_model_close(cli_model *model)
{
    pe_model_destroy(model->model);
    pe_checkpoint_destroy(model->checkpoint);
    *model = (cli_model){0};
}

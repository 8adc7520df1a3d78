/* SPDX-License-Identifier: MIT
 *
 * fuzz_config.c - any bytes as a config.json, through to the plans it asks for
 */
#include "posenc/model.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_settings(const pe_checkpoint *checkpoint)
{
    for (int64_t i = 0; i < pe_checkpoint_num_settings(checkpoint); i++) {
        const pe_setting *setting = pe_checkpoint_setting(checkpoint, i);
        if (strlen(setting->text) > 240 ||
            pe_checkpoint_find_setting(checkpoint, setting->path) != setting)
            abort();
    }
}

/* What a model says must hold together, and its ropes make plans or errors. */
static void read_model(const pe_model *model)
{
    const pe_model_info *info = pe_model_get_info(model);
    for (int32_t i = 0; i < info->num_fields; i++) {
        const pe_field *field = pe_model_field(model, i);
        if (field->name == NULL || field->value == NULL || field->source < PE_STATED ||
            field->source > PE_CONFLICTING)
            abort();
    }
    for (int32_t i = 0; i < info->num_notes; i++) {
        if (pe_model_note(model, i)->text == NULL)
            abort();
    }
    for (int32_t i = 0; i < info->num_ropes; i++) {
        pe_rope_spec spec = {.struct_size = sizeof spec};
        pe_rope *rope = NULL;
        if (pe_model_rope_spec(model, i, &spec, NULL) != PE_OK)
            abort();
        (void)pe_rope_create(&rope, &spec, NULL, NULL);
        pe_rope_destroy(rope);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    pe_checkpoint *checkpoint = NULL;
    pe_model *model = NULL;
    pe_error error = {0};
    pe_status status =
        pe_checkpoint_parse(&checkpoint, PE_FORMAT_JSON, data, size, NULL, &error);
    if (status == PE_OK) {
        read_settings(checkpoint);
        if (pe_model_create(&model, checkpoint, 5000, NULL, &error) == PE_OK)
            read_model(model);
    } else if (checkpoint != NULL || error.offset < 0 ||
               (uint64_t)error.offset > size) {
        abort();
    }
    pe_model_destroy(model);
    pe_checkpoint_destroy(checkpoint);
    return 0;
}

/* SPDX-License-Identifier: MIT
 *
 * fuzz_gguf.c - any bytes as a GGUF file, and what it means as a model
 */
#include "posenc/model.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile unsigned sink;

/* Whatever a reader hands out can be read. */
static void touch(const pe_checkpoint *checkpoint)
{
    const int64_t num_settings = pe_checkpoint_num_settings(checkpoint);
    const int64_t num_weights = pe_checkpoint_num_weights(checkpoint);
    for (int64_t i = 0; i < num_settings; i++) {
        const pe_setting *setting = pe_checkpoint_setting(checkpoint, i);
        sink += (unsigned)strlen(setting->path) + (unsigned)strlen(setting->text);
        for (int64_t j = 0; j < setting->num_numbers; j++)
            sink += setting->numbers[j] > 0;
    }
    for (int64_t i = 0; i < num_weights; i++) {
        const pe_weight *weight = pe_checkpoint_weight(checkpoint, i);
        const unsigned char *bytes = weight->data;
        sink += (unsigned)strlen(weight->name) + (unsigned)strlen(weight->dtype_name);
        if (weight->size > 0 && bytes != NULL)
            sink += bytes[0] + bytes[weight->size - 1];
    }
}

static void use(const pe_model *model)
{
    const pe_model_info *info = pe_model_get_info(model);
    for (int32_t i = 0; i < info->num_ropes; i++) {
        pe_rope_spec spec = {.struct_size = sizeof spec};
        pe_rope *rope = NULL;
        if (pe_model_rope_spec(model, i, &spec, NULL) == PE_OK)
            (void)pe_rope_create(&rope, &spec, NULL, NULL);
        pe_rope_destroy(rope);
    }
    for (int32_t i = 0; i < info->num_fields; i++)
        sink += (unsigned)strlen(pe_model_field(model, i)->value);
    for (int32_t i = 0; i < info->num_notes; i++)
        sink += (unsigned)strlen(pe_model_note(model, i)->text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    pe_checkpoint *checkpoint = NULL;
    pe_model *model = NULL;
    pe_error error;
    if (pe_checkpoint_parse(&checkpoint, PE_FORMAT_GGUF, data, size, NULL, &error) !=
        PE_OK)
        return 0;
    touch(checkpoint);
    if (pe_model_create(&model, checkpoint, 0, NULL, &error) == PE_OK)
        use(model);
    pe_model_destroy(model);
    pe_checkpoint_destroy(checkpoint);
    return 0;
}

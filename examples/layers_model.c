/* SPDX-License-Identifier: MIT
 *
 * layers_model.c - from a config.json to one plan for each kind of layer
 *
 * Gemma 3 turns every sixth layer by another base, stretched by 8.  A model has one rope
 * for each kind, and a site for each layer that says which. */
#include <posenc/model.h>
#include <stdio.h>
#include <string.h>

static const char config[] =
    "{\"model_type\": \"gemma3_text\", \"num_hidden_layers\": 12, \"head_dim\": 256,"
    " \"num_attention_heads\": 8, \"num_key_value_heads\": 4,"
    " \"max_position_embeddings\": 131072, \"sliding_window\": 1024,"
    " \"rope_theta\": 1e6, \"rope_local_base_freq\": 1e4,"
    " \"rope_scaling\": {\"rope_type\": \"linear\", \"factor\": 8}}";

int main(void)
{
    enum { MAX_ROPES = 4 };
    pe_checkpoint *files; /* pe_checkpoint_load() takes a path */
    pe_model *model = NULL;
    pe_rope *ropes[MAX_ROPES] = {NULL};
    pe_error error;
    int failed = 0;

    if (pe_checkpoint_parse(&files, PE_FORMAT_AUTO, config, strlen(config), NULL,
                            &error) != PE_OK ||
        pe_model_create(&model, files, 0, NULL, &error) != PE_OK)
        return fprintf(stderr, "%s\n", error.message), 1;
    const pe_model_info *info = pe_model_get_info(model);
    for (int32_t i = 0; i < info->num_ropes && i < MAX_ROPES; i++) {
        pe_rope_spec spec = {.struct_size = sizeof spec};
        failed |= pe_model_rope_spec(model, i, &spec, &error) != PE_OK ||
                  pe_rope_create(&ropes[i], &spec, NULL, &error) != PE_OK;
    }
    for (int32_t i = 0; i < info->num_notes; i++)
        printf("note: %s\n", pe_model_note(model, i)->text);
    for (int32_t layer = 4; layer < 7 && !failed; layer++) {
        const pe_site *site = pe_model_find_site(model, layer, PE_SITE_SELF);
        printf("layer %d turns its fastest pair by %g a token\n", (int)layer,
               pe_rope_get_info(ropes[site->rope])->inv_freq[0]);
        failed |= pe_rope_get_info(ropes[site->rope])->inv_freq[0] !=
                  (layer == 5 ? 0.125 : 1);
    }
    for (int i = 0; i < MAX_ROPES; i++)
        pe_rope_destroy(ropes[i]);
    pe_model_destroy(model);
    pe_checkpoint_destroy(files);
    return failed;
}

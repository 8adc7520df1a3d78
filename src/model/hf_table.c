/* SPDX-License-Identifier: MIT
 *
 * hf_table.c - the learned position table among the weights, where there are weights
 */
#include "model/hf.h"

#include <string.h>

static int ends_with(const char *text, const char *end)
{
    const size_t size = strlen(text), length = strlen(end);
    return size >= length && strcmp(text + size - length, end) == 0;
}

static int is_table(const pe_weight *weight)
{
    static const char *const names[] = {"wpe.weight",
                                        "position_embeddings.weight",
                                        "position_embedding.weight",
                                        "embed_positions.weight",
                                        "positions_embed.weight",
                                        "position_embeddings"};
    const int is_flat =
        weight->rank == 2 || (weight->rank == 3 && weight->shape[0] == 1);
    for (size_t i = 0; is_flat && i < PE_COUNT(names); i++) {
        if (ends_with(weight->name, names[i]))
            return 1;
    }
    return 0;
}

/* Encoder and decoder may each have one: the decoder's is meant. */
static const pe_weight *find(const pe_checkpoint *checkpoint, int *num_found)
{
    const pe_weight *found = NULL;
    *num_found = 0;
    for (int64_t i = 0; i < pe_checkpoint_num_weights(checkpoint); i++) {
        const pe_weight *weight = pe_checkpoint_weight(checkpoint, i);
        if (!is_table(weight))
            continue;
        if (strstr(weight->name, "decoder.") != NULL) {
            *num_found = 1;
            return weight;
        }
        if (strstr(weight->name, "encoder.embed_positions") != NULL)
            continue;
        found = weight;
        ++*num_found;
    }
    return found;
}

int32_t pe_hf_learned_table(pe_hf *hf, int64_t *rows, int64_t *model_dim,
                            const char **name)
{
    int num_found = 0;
    const pe_weight *weight = find(hf->checkpoint, &num_found);
    if (num_found > 1)
        pe_build_note(hf->model, PE_WARNING, NULL,
                      "%d weights look like the position table: none is taken",
                      num_found);
    if (num_found != 1)
        return 0;
    const size_t element = weight->dtype == PE_F32                               ? 4
                           : weight->dtype == PE_F16 || weight->dtype == PE_BF16 ? 2
                                                                                 : 0;
    if (element == 0 || (uintptr_t)weight->data % element != 0) {
        pe_build_note(hf->model, PE_WARNING, NULL,
                      "the position table %.100s is %s%s: it is left out", weight->name,
                      weight->dtype_name, element == 0 ? "" : ", and misaligned");
        return 0;
    }
    *rows = weight->shape[weight->rank - 2];
    *model_dim = weight->shape[weight->rank - 1];
    *name = weight->name;
    pe_tensor_bshd(&hf->model->learned_weight, weight->dtype, weight->data, 1, *rows, 1,
                   *model_dim);
    return 1;
}

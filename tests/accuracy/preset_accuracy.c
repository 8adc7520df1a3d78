/* SPDX-License-Identifier: MIT
 *
 * preset_accuracy.c - every rope of every preset against MPFR, |position| up to 2^40
 */
#include "check_spec.h"

#include "posenc/model.h"

int main(void)
{
    check_result result = {0, 0, 0};
    for (int32_t k = 0; k < pe_model_num_presets(); k++) {
        const char *name = pe_model_preset(k)->name;
        pe_model *model;
        pe_error error;
        if (pe_model_create_preset(&model, name, 0, NULL, &error) != PE_OK) {
            printf("%s: %s\n", name, error.message);
            return 1;
        }
        for (int32_t i = 0; i < pe_model_get_info(model)->num_ropes; i++) {
            pe_rope_spec spec = {.struct_size = sizeof spec};
            if (pe_model_rope_spec(model, i, &spec, &error) != PE_OK) {
                printf("%s: %s\n", name, error.message);
                return 1;
            }
            check_spec(&result, &spec, name, 150);
        }
        pe_model_destroy(model);
    }
    return check_report("presets", &result);
}

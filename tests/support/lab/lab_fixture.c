/* SPDX-License-Identifier: MIT
 *
 * lab_fixture.c - reading the reference's tensors through posenc-model
 */
#include "lab_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const void *lab_fixture_data(lab_fixture *fixture, const char *name, int64_t count)
{
    const pe_weight *weight = pe_checkpoint_find_weight(fixture->file, name);
    int64_t found = 1;
    if (weight == NULL)
        fail_msg("the fixture has no %s", name);
    for (int32_t i = 0; i < weight->rank; i++)
        found *= weight->shape[i];
    if (found != count)
        fail_msg("%s has %lld elements, not %lld", name, (long long)found,
                 (long long)count);
    void *copy = malloc(weight->size);
    assert_true(copy != NULL && fixture->num_copies < (int)LAB_COUNT(fixture->copies));
    memcpy(copy, weight->data, weight->size);
    fixture->copies[fixture->num_copies++] = copy;
    return copy;
}

void lab_fixture_open(lab_fixture *out, const char *path, const char *method,
                      const lab_config *config)
{
    pe_error error;
    lab_method number;
    lab_config filled = *config;
    assert_true(lab_method_find(method, &number));
    out->num_copies = 0;
    lab_config_set_method(&filled, number);
    if (pe_checkpoint_load(&out->file, path, NULL, &error) != PE_OK ||
        lab_state_create(&out->state, &filled, &error) != PE_OK)
        fail_msg("%s: %s", path, error.message);
    const lab_layout *layout = &out->state.layout;
    for (int32_t i = 0; i < layout->count; i++) {
        const lab_parameter *item = &layout->items[i];
        char name[32];
        snprintf(name, sizeof name, "w.%s", item->name);
        memcpy(out->state.weights + item->offset,
               lab_fixture_data(out, name, lab_parameter_size(item)),
               (size_t)lab_parameter_size(item) * sizeof(float));
    }
}

void lab_fixture_close(lab_fixture *fixture)
{
    for (int i = 0; i < fixture->num_copies; i++)
        free(fixture->copies[i]);
    lab_state_release(&fixture->state);
    pe_checkpoint_destroy(fixture->file);
}

double lab_relative(const float *got, const float *want, int64_t count)
{
    double worst = 0, largest = 0;
    for (int64_t i = 0; i < count; i++) {
        const double error = fabs((double)got[i] - (double)want[i]);
        worst = error <= worst ? worst : error; /* a NaN is kept */
        largest = fmax(largest, fabs((double)want[i]));
    }
    return worst / largest;
}

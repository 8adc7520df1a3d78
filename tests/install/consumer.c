/* SPDX-License-Identifier: MIT
 *
 * consumer.c - a program that knows only what is installed
 *
 * Compiled as C and as C++, against the shared and the static libraries.
 */
#include <posenc/posenc.h>

#include <stdio.h>

#ifdef WITH_MODEL
#  include <posenc/model.h>

static int check_model(void)
{
    int32_t count = pe_model_num_presets();
    printf("%d presets\n", (int)count);
    return count > 0 && pe_model_preset(count) == NULL ? 0 : 1;
}
#else
static int check_model(void)
{
    return 0;
}
#endif

int main(void)
{
    printf("header %d, library %d\n", PE_VERSION_NUMBER, (int)pe_version_number());
    if (pe_version_number() != PE_VERSION_NUMBER)
        return 1;
    return check_model();
}

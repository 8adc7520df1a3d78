/* SPDX-License-Identifier: MIT
 *
 * inspect_fields.c - where the values of a model come from, as a table
 */
#include "inspect_text.h"

#include "names.h"

#include <stdio.h>
#include <string.h>

enum { MAX_VALUE_WIDTH = 24 };

static int same_text(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

/* "rope[2].factor" says what "rope[0].factor" does, from the same place. */
static int is_repeated(const pe_model *model, const pe_field *field)
{
    const pe_field *first;
    const char *rest = strstr(field->name, "].");
    for (int32_t i = 0; (first = pe_model_field(model, i)) != field; i++) {
        const char *first_rest = strstr(first->name, "].");
        if (rest != NULL && first_rest != NULL && strcmp(rest, first_rest) == 0 &&
            *first->name == *field->name && same_text(first->value, field->value) &&
            same_text(first->path, field->path) &&
            same_text(first->reason, field->reason) && first->source == field->source)
            return 1;
    }
    return 0;
}

/* Long values are cut, and what a second spec repeats is left out; --json has all. */
void cli_inspect_fields(const pe_model *model)
{
    int num_repeated = 0;
    const pe_field *field;
    int name_width = 0, value_width = 0;
    for (int32_t i = 0; (field = pe_model_field(model, i)) != NULL; i++) {
        int name = (int)strlen(field->name), value = (int)strlen(field->value);
        name_width = name > name_width ? name : name_width;
        value_width = value > value_width ? value : value_width;
    }
    value_width = value_width < MAX_VALUE_WIDTH ? value_width : MAX_VALUE_WIDTH;
    (void)puts("\nwhere the values come from");
    for (int32_t i = 0; (field = pe_model_field(model, i)) != NULL; i++) {
        if (is_repeated(model, field)) {
            num_repeated++;
            continue;
        }
        int is_long = strlen(field->value) > MAX_VALUE_WIDTH;
        (void)printf("  %-*s  %-*.*s%s  %-11s", name_width, field->name,
                     is_long ? MAX_VALUE_WIDTH - 3 : value_width,
                     is_long ? MAX_VALUE_WIDTH - 3 : value_width, field->value,
                     is_long ? "..." : "",
                     cli_choice_name(cli_source_names, field->source));
        if (field->path != NULL)
            (void)printf("  %s", field->path);
        if (field->source != PE_STATED && field->reason != NULL && *field->reason)
            (void)printf("%s%s", field->path ? ": " : "  ", field->reason);
        (void)putchar('\n');
    }
    if (num_repeated > 0)
        (void)printf("  and %d that repeat one of these for another rotation\n",
                     num_repeated);
}

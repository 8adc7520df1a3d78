/* SPDX-License-Identifier: MIT
 *
 * inspect_fields.c - where the values of a model come from, as a table
 */
#include "inspect_text.h"

#include "names.h"
#include "print.h"

#include <stdio.h>
#include <string.h>

enum { MAX_VALUE_WIDTH = 24, NAME_COLUMN = 24, VALUE_COLUMN = 12, SOURCE_COLUMN = 9 };

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

static int at_most(int a, int b)
{
    return a < b ? a : b;
}

static void print_field(const pe_field *field, int name_width, int value_width)
{
    const int is_long = strlen(field->value) > MAX_VALUE_WIDTH;
    char value[MAX_VALUE_WIDTH + 1];
    (void)snprintf(value, sizeof value, "%.*s%s",
                   is_long ? MAX_VALUE_WIDTH - 3 : MAX_VALUE_WIDTH, field->value,
                   is_long ? "..." : "");
    cli_print("  %-*s  %-*s  %-*s", name_width, field->name, value_width, value,
              SOURCE_COLUMN, cli_choice_name(cli_source_names, field->source));
    if (field->path != NULL)
        cli_print("  %s", field->path);
    if (field->source != PE_STATED && field->reason != NULL && *field->reason)
        cli_print("%s%s", field->path ? ": " : "  ", field->reason);
    cli_print("\n");
}

/* Long names and values push what follows; --json has the values whole, and what a
 * second spec repeats. */
void cli_inspect_fields(const pe_model *model)
{
    int num_repeated = 0;
    const pe_field *field;
    int name_width = 0, value_width = 0;
    for (int32_t i = 0; (field = pe_model_field(model, i)) != NULL; i++) {
        const int name = at_most((int)strlen(field->name), NAME_COLUMN);
        const int value = at_most((int)strlen(field->value), VALUE_COLUMN);
        name_width = name > name_width ? name : name_width;
        value_width = value > value_width ? value : value_width;
    }
    cli_print("\nwhere the values come from\n");
    for (int32_t i = 0; (field = pe_model_field(model, i)) != NULL; i++)
        if (is_repeated(model, field))
            num_repeated++;
        else
            print_field(field, name_width, value_width);
    if (num_repeated > 0)
        cli_print("  and %d that repeat one of these for another rotation\n",
                  num_repeated);
}

/* SPDX-License-Identifier: MIT
 *
 * json_edit.h - a few members of a JSON text replaced, every other byte kept
 *
 * The text has been parsed by the library before, so it is known to be whole. */
#ifndef POSENC_CLI_JSON_EDIT_H
#define POSENC_CLI_JSON_EDIT_H

#include "cli.h"

typedef struct cli_span {
    size_t begin, end; /* [begin, end) of a text */
} cli_span;

typedef struct cli_json_member {
    cli_span key; /* without the quotes, as the text spells it */
    cli_span value;
    cli_span space; /* what stands before the key */
} cli_json_member;

/* Steps through the members of the object that begins at object.  *at is 0 at first.
 * 1: *out is the next one; 0: there are no more, and *at is the place of the brace. */
int cli_json_next(const char *text, size_t object, size_t *at, cli_json_member *out);

/* The member at a path such as "text_config.rope_theta", found from the first brace on.
 * 1, or 0 when there is none; *object is then the innermost object that is there. */
int cli_json_find(const char *text, const char *path, cli_json_member *out,
                  size_t *object);

/* text with span replaced, in new memory; text is released. */
char *cli_json_replace(char *text, cli_span span, const char *with);

/* Sets the member of an object to value: replaced where it is, else added last. */
char *cli_json_set(char *text, const char *path, const char *value);

#endif /* POSENC_CLI_JSON_EDIT_H */

/* SPDX-License-Identifier: MIT
 *
 * suggest.h - the name that was probably meant
 */
#ifndef POSENC_CLI_SUGGEST_H
#define POSENC_CLI_SUGGEST_H

#include <stddef.h>

/* The known name nearest to text, or NULL if none is near: a name that text begins or
 * occurs in, else the one with the fewest single-letter edits, at most a third of its
 * length; of equals, the shortest.  name_at(context, i) lists the names and ends with NULL. */
const char *cli_suggest(const char *text, const char *(*name_at)(void *, size_t),
                        void *context);

#endif /* POSENC_CLI_SUGGEST_H */

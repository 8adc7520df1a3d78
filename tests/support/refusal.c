/* SPDX-License-Identifier: MIT
 *
 * refusal.c - checking that a message names field, value and bound
 */
#include "refusal.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static char complaint[640];

static const char *complain(const char *what, const char *word, const pe_error *error)
{
    snprintf(complaint, sizeof complaint, "%s \"%s\": %s \"%.239s\"", what, word,
             pe_status_name(error->status), error->message);
    return complaint;
}

const char *test_refusal(const pe_error *error, pe_status got, pe_status expected,
                         const char *words)
{
    const char *end = memchr(error->message, 0, sizeof error->message);
    const size_t length = end != NULL ? (size_t)(end - error->message) : 0;

    if (got == PE_OK) {
        snprintf(complaint, sizeof complaint, "accepted, expected %s naming \"%s\"",
                 pe_status_name(expected), words);
        return complaint;
    }
    if (got != expected || error->status != got)
        return complain("not the status", pe_status_name(expected), error);
    if (length == 0)
        return complain("empty or unterminated", "", error);
    if (error->message[length - 1] == '.' || isupper((unsigned char)*error->message))
        return complain("a capital or a full stop", "", error);
    while (*words != '\0') {
        char word[64];
        const size_t span = strcspn(words, "|");
        snprintf(word, sizeof word, "%.*s", (int)span, words);
        if (strstr(error->message, word) == NULL)
            return complain("does not say", word, error);
        words += span + (words[span] == '|');
    }
    return NULL;
}

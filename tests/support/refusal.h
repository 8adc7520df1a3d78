/* SPDX-License-Identifier: MIT
 *
 * refusal.h - checking that a message names field, value and bound
 */
#ifndef PE_TESTS_REFUSAL_H
#define PE_TESTS_REFUSAL_H

#include "posenc/posenc.h"

/* words: parts of the message, split by '|', all of which must be in it.  Returns NULL
 * when error has that status and such a message, else what is wrong with it. */
const char *test_refusal(const pe_error *error, pe_status got, pe_status expected,
                         const char *words);

#endif /* PE_TESTS_REFUSAL_H */

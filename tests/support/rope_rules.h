/* SPDX-License-Identifier: MIT
 *
 * rope_rules.h - one spec for each frequency rule and its turnings, for tests
 */
#ifndef ROPE_RULES_H
#define ROPE_RULES_H

#include "posenc/posenc.h"

typedef struct {
    const char *name;
    pe_rope_spec spec;
} rope_rule_case;

const rope_rule_case *rope_rules(int *count);

#endif /* ROPE_RULES_H */

/* SPDX-License-Identifier: MIT
 *
 * compare_out.h - what compare found, as text, JSON and a drawing
 */
#ifndef POSENC_CLI_COMPARE_OUT_H
#define POSENC_CLI_COMPARE_OUT_H

#include "compare_methods.h"

typedef struct cmp_report {
    const cmp_problem *problem;
    int64_t head; /* whose scores are shown */
    cmp_result here[CMP_METHODS], past[CMP_METHODS];
    cmp_tests tests[CMP_METHODS];
} cmp_report;

/* All return an exit code. */
int cmp_print_text(const cmp_report *report);
int cmp_print_json(const cmp_report *report);
int cmp_write_svg(const cmp_report *report, const char *path);

#endif /* POSENC_CLI_COMPARE_OUT_H */

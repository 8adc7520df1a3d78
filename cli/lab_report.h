/* SPDX-License-Identifier: MIT
 *
 * lab_report.h - what the parts of the lab's report share
 */
#ifndef POSENC_CLI_LAB_REPORT_H
#define POSENC_CLI_LAB_REPORT_H

#include "figure.h"

#include "lab/results.h"

enum { CLI_LAB_MAX_LENGTHS = 24 };

/* A row of the table: a method read in a mode. */
typedef struct cli_lab_row {
    char method[LAB_NAME_SIZE], mode[40];
} cli_lab_row;

/* The rows for which results are there: methods in their order, modes of a method in
 * the order of the results.  In new memory, NULL for none or without memory. */
cli_lab_row *cli_lab_rows(const lab_results *results, int slide, int64_t *count);

typedef struct cli_lab_speed {
    double rate;    /* bytes a second, of the fastest seed; 0: not known */
    int64_t memory; /* bytes, at most */
} cli_lab_speed;

/* Of timings: what and multiple as there. */
cli_lab_speed cli_lab_speed_of(const lab_results *results, const char *method,
                               const char *what, double multiple);

/* On stdout. */
int cli_lab_print(const lab_results *results);
/* once: models trained on L and read at 2 L; twice: trained on 2 L, all other settings
 * but the batch alike.  Says what is wrong and returns an exit code. */
int cli_lab_check_claim(const lab_results *once, const lab_results *twice);
/* Quality at 2 L, speed and memory of training, side by side: of alibi and sin where they
 * are there, else of the first methods. */
void cli_lab_print_claim(const lab_results *once, const lab_results *twice);

void cli_lab_csv(const lab_results *results, FILE *out);

/* Two panels: loss against length, and by position at the longest.  One line for each
 * method, read as it was trained (a learned table clamped); of one method, NULL for all,
 * a line for each mode in the list, NULL for the first eight. */
int cli_lab_figure(const lab_results *results, const char *method, const char *modes,
                   cli_figure *figure);

/* Whether there are results of the method, and of it in each mode of the list (NULL:
 * none), of which at most eight can be drawn. */
int cli_lab_check_names(const lab_results *results, const char *method,
                        const char *modes);

/* Adds a results.json, a run's folder, or a folder of such.  Says what is wrong and
 * returns an exit code, as the next does. */
int cli_lab_read(lab_results *out, const char *path);
/* report.json, report.csv and report.svg in a folder, made if it does not exist; method
 * and modes as in cli_lab_figure. */
int cli_lab_save_report(const lab_results *results, const char *method,
                        const char *modes, const char *folder);

#endif /* POSENC_CLI_LAB_REPORT_H */

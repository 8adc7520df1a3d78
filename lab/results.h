/* SPDX-License-Identifier: MIT
 *
 * results.h - numbers of many runs, brought together
 *
 * Each run, one method and one seed, leaves its numbers in a results.json of its own
 * folder (schema posenc.lab/1), so that runs may be made anywhere and in any order.
 * Runs are comparable when their settings are the same; others are not merged. */
#ifndef POSENC_LAB_RESULTS_H
#define POSENC_LAB_RESULTS_H

#include "config.h"

#define LAB_SCHEMA       "posenc.lab/1"
#define LAB_RESULTS_FILE "results.json"

typedef struct lab_settings { /* what runs that are compared have in common */
    int64_t layers, width, heads, length, first_length, batch, steps, warmup;
    double peak_rate, weight_decay, clip;
    char text[64], text_sha256[65];                /* as lab_corpus has them */
    int64_t eval_tokens, slide_tokens, slide_from; /* as lab_eval_spec has them */
    char version[16];                              /* of posenc */
} lab_settings;

typedef struct lab_field {
    const char *name;    /* in JSON and in messages */
    int32_t type;        /* LAB_FIELD_... */
    size_t offset, size; /* in lab_settings; size: of a text */
} lab_field;
enum { LAB_FIELD_INTEGER = 1, LAB_FIELD_NUMBER = 2, LAB_FIELD_TEXT = 3 };
extern const lab_field lab_fields[];
extern const size_t lab_num_fields;

typedef struct lab_result {
    char method[LAB_NAME_SIZE]; /* lab_config_name */
    char mode[40];              /* lab_mode_name */
    uint64_t seed;
    double multiple; /* of the trained length */
    double nll;      /* nats a byte */
    int32_t slide, num_blocks;
    double *by_position; /* [num_blocks], owned; NULL: not kept */
} lab_result;

typedef struct lab_timing {
    char method[LAB_NAME_SIZE];
    char what[8]; /* "train": the whole run; "step": some steps alone; "eval" */
    uint64_t seed;
    double multiple;
    int64_t tokens; /* read in that time */
    double seconds;
    int64_t memory;  /* bytes: of the trainer, or of one pass */
    int64_t threads; /* and what ran on them: */
    char isa[16], blas[64];
} lab_timing;

typedef struct lab_results { /* zeroed: none */
    lab_settings settings;
    char source[512]; /* where the settings are from; "": nowhere yet */
    lab_result *items;
    lab_timing *timings;
    int64_t count, num_timings, room, timing_room;
    void (*opened)(const char *path); /* told of each file that is read; NULL: not */
} lab_results;

void lab_results_release(lab_results *results);

void lab_settings_make(lab_settings *out, const lab_config *config, const char *text,
                       const char *text_sha256, int64_t eval_tokens,
                       int64_t slide_tokens, int64_t slide_from);
/* PE_E_INCOMPATIBLE names the first field that differs, both values and both sources. */
pe_status lab_settings_match(const lab_settings *a, const char *a_source,
                             const lab_settings *b, const char *b_source,
                             pe_error *error);

/* Copies what it is given, by_position too.  The same number twice is fine;
 * PE_E_INCOMPATIBLE: another number for the same run, mode and length. */
pe_status lab_results_add(lab_results *results, const lab_result *result,
                          const char *source, pe_error *error);
pe_status lab_results_add_timing(lab_results *results, const lab_timing *timing,
                                 pe_error *error);
/* A results.json, a folder with one, or a folder of such folders, in the order of their
 * names.  Settings must match those that are there. */
pe_status lab_results_read(lab_results *results, const char *path, pe_error *error);

typedef struct lab_mean {
    double mean, sd, min, max; /* sd: of the sample; 0 for one seed */
    int64_t count;             /* seeds; 0: no such result */
} lab_mean;

void lab_results_mean(const lab_results *results, const char *method, const char *mode,
                      double multiple, int slide, lab_mean *out);
/* The mean over seeds of every block of by_position at that multiple, in out[blocks];
 * returns how many seeds have as many blocks. */
int64_t lab_results_by_position(const lab_results *results, const char *method,
                                const char *mode, double multiple, int64_t blocks,
                                double *out);
/* The number-th method, in the order of config.h, then mixtures by name; NULL: no more.
 * The number-th multiple, ascending; 0: no more. */
const char *lab_results_method(const lab_results *results, int64_t number);
double lab_results_multiple(const lab_results *results, int64_t number);

#endif /* POSENC_LAB_RESULTS_H */

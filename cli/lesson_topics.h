/* SPDX-License-Identifier: MIT
 *
 * lesson_topics.h - what each topic of the lesson computes
 *
 * A topic asks the library for its numbers and names them; the words are in
 * data/lesson.LANG.txt.  Each returns CLI_DONE, or says what went wrong. */
#ifndef POSENC_CLI_LESSON_TOPICS_H
#define POSENC_CLI_LESSON_TOPICS_H

#include "lesson_numbers.h"

typedef struct lesson_topic {
    const char *name;
    int (*compute)(lesson_numbers *numbers);
} lesson_topic;

/* In the order of the lesson; NULL past the last. */
const lesson_topic *lesson_topic_at(size_t index);

int lesson_order(lesson_numbers *numbers);
int lesson_recurrent(lesson_numbers *numbers);
int lesson_where(lesson_numbers *numbers);
int lesson_sinusoidal(lesson_numbers *numbers);
int lesson_mixing(lesson_numbers *numbers);
int lesson_learned(lesson_numbers *numbers);
int lesson_rope(lesson_numbers *numbers);
int lesson_direction(lesson_numbers *numbers);
int lesson_pairs(lesson_numbers *numbers);
int lesson_complex(lesson_numbers *numbers);
int lesson_alibi(lesson_numbers *numbers);
int lesson_compare(lesson_numbers *numbers);
int lesson_exercises(lesson_numbers *numbers);
int lesson_checks(lesson_numbers *numbers);
int lesson_glossary(lesson_numbers *numbers);

#endif /* POSENC_CLI_LESSON_TOPICS_H */

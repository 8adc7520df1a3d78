/* SPDX-License-Identifier: MIT
 *
 * bits16.h - binary16 and bfloat16 by arithmetic, to judge the library's bit tricks
 */
#ifndef PE_TESTS_BITS16_H
#define PE_TESTS_BITS16_H

#include <stdint.h>

double test_f16_value(uint16_t bits);
double test_bf16_value(uint16_t bits);

/* Nearest, ties to even; NaN gives a quiet NaN of the same sign. */
uint16_t test_f16_nearest(double value);
uint16_t test_bf16_nearest(double value);

int test_f16_is_nan(uint16_t bits);
int test_bf16_is_nan(uint16_t bits);

#endif /* PE_TESTS_BITS16_H */

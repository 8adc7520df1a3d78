/* SPDX-License-Identifier: MIT
 *
 * loops_plain.c - the loops for every CPU of the kind the build is for
 */
#define LOOPS const lab_loops lab_loops_plain
#include "loops.inc"

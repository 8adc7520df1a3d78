/* SPDX-License-Identifier: MIT
 *
 * setjmp.h - cmocka's header wants it included; the shim jumps nowhere
 */
#ifndef SHIM_SETJMP_H
#define SHIM_SETJMP_H

typedef int jmp_buf[1];

#endif /* SHIM_SETJMP_H */

/* SPDX-License-Identifier: MIT
 *
 * abi_frozen.c - structs without struct_size keep their size and last field (LP64)
 *
 * Callers compiled against an older header pass these by pointer and nothing says how
 * old they are, so a change here is a change of SOVERSION.  Compiled, never run.
 */
#include "posenc/attention.h"
#include "posenc/env.h"
#include "posenc/posenc.h"
#include "posenc/positions.h"

#define FROZEN(type, size, last, last_offset) \
  _Static_assert(sizeof(type) == (size) && offsetof(type, last) == (last_offset), #type)

FROZEN(pe_allocator, 24, ctx, 16);
FROZEN(pe_axes, 32, pair_axis, 24);
FROZEN(pe_codec, 40, ctx, 32);
FROZEN(pe_error, 256, message, 16);
FROZEN(pe_executor, 24, reserved, 20);
FROZEN(pe_far, 32, k_at, 24);
FROZEN(pe_mrope_run, 32, time_step, 24);
FROZEN(pe_pairs, 24, reserved, 20);
FROZEN(pe_positions, 56, reserved, 52);
FROZEN(pe_resize, 64, scale_w, 56);
FROZEN(pe_temperature, 24, scale, 16);
FROZEN(pe_tensor, 136, reserved, 132);
FROZEN(pe_visibility, 24, chunk, 16);

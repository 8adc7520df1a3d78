/* SPDX-License-Identifier: MIT
 *
 * pool.h - the room's only header: what threads.h declares
 */
#ifndef PE_POOL_H
#define PE_POOL_H

#include "base/base.h"

#include "posenc/threads.h"

#endif /* PE_POOL_H */

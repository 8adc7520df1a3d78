/* SPDX-License-Identifier: MIT
 *
 * npy.h - the header of a NumPy .npy file, versions 1 to 3
 */
#ifndef PE_NPY_H
#define PE_NPY_H

#include "base/base.h"
#include "posenc/model.h"

int pe_npy_is(const void *data, size_t size);

/* Fills *weight, named "", whose data points into data.  C order and little endian
 * only.  PE_E_FORMAT with the byte offset, also when the file is shorter or longer than
 * its shape says; PE_E_UNSUPPORTED for Fortran order, other dtypes and ranks past 8. */
pe_status pe_npy_read(pe_weight *weight, const void *data, size_t size,
                      pe_error *error);

#endif /* PE_NPY_H */

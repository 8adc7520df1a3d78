/* SPDX-License-Identifier: MIT
 *
 * checkpoint.h - a lab_state as a safetensors file
 *
 * Tensors w.NAME, m.NAME and v.NAME (weights, first and second moment) under the names
 * of weights.h; the configuration, step, loss average and hash of the corpus are
 * metadata.  Numbers there read back to the same bits. */
#ifndef POSENC_LAB_CHECKPOINT_H
#define POSENC_LAB_CHECKPOINT_H

#include "trainer.h"

#define LAB_CHECKPOINT_FORMAT "posenc.lab/1" /* its metadata's "format" */

/* Under a temporary name beside path, synced, then renamed: a full disk or a crash
 * leaves the last good file, as does a value that is not finite: PE_E_ARGUMENT. */
pe_status lab_checkpoint_save(const lab_state *state, const char *corpus_sha256,
                              const char *path, pe_error *error);
/* Refuses, naming what: another program's file, missing or surplus tensors, other
 * shapes, a configuration out of range, values that are not finite. */
pe_status lab_checkpoint_load(lab_state *out, char corpus_sha256[65], const char *path,
                              pe_error *error);
/* The same from bytes in memory.  corpus_sha256 may be NULL in both. */
pe_status lab_checkpoint_parse(lab_state *out, char corpus_sha256[65], const void *data,
                               size_t size, pe_error *error);

#endif /* POSENC_LAB_CHECKPOINT_H */

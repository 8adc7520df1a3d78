/* SPDX-License-Identifier: MIT
 *
 * file.h - the bytes of a file, mapped read-only where it can be
 */
#ifndef PE_FILE_H
#define PE_FILE_H

#include "base/base.h"

/* What a pipe may deliver.  Large regular files are mapped and have no limit. */
enum { PE_STREAM_SIZE_MAX = 64 << 20 };

typedef struct pe_file {
    void *data;
    size_t size;
    size_t allocated; /* 0: data is a mapping */
} pe_file;

/* path may be a folder: then name inside it. */
pe_status pe_file_open(pe_file *out, const char *path, const char *name,
                       const pe_env *env, pe_error *error);
/* 1: there is an entry of that name in the folder. */
int pe_file_exists(const char *folder, const char *name);
int pe_file_is_folder(const char *path);
void pe_file_close(pe_file *file, const pe_env *env);

#endif /* PE_FILE_H */

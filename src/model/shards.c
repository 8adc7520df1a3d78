/* SPDX-License-Identifier: MIT
 *
 * shards.c - a folder with one safetensors file, or several and an index
 *
 * The index is {"metadata": ..., "weight_map": {name: file}}.  It is read twice: for
 * the files it names, and, once they are open, for whether they hold what it says. */
#include "model/safetensors.h"

#include "base/error.h"
#include "base/memory.h"
#include "model/json_scan.h"

#include <string.h>

enum { SHARDS_MAX = 4096, FILE_NAME_MAX = 255, INDEX_DEPTH_MAX = 32 };

static const char index_name[] = "model.safetensors.index.json";
static const char single_name[] = "model.safetensors";

typedef struct map_reader {
    pe_scan scan;
    char name[PE_WEIGHT_NAME_MAX + 1], file[FILE_NAME_MAX + 1];
    size_t name_at, file_at;
    int more;
} map_reader;

static pe_scan scan_of(const pe_file *index, pe_error *error)
{
    return (pe_scan){.text = index->data,
                     .size = index->size,
                     .what = "safetensors index",
                     .error = error};
}

/* To the first member of weight_map. */
static pe_status enter_map(map_reader *r, const pe_file *index, pe_error *error)
{
    memset(r, 0, sizeof *r);
    r->scan = scan_of(index, error);
    pe_status status = pe_scan_expect(&r->scan, '{');
    int more = status == PE_OK && !pe_scan_accept(&r->scan, '}');
    while (status == PE_OK && more) {
        size_t size = 0;
        status = pe_scan_string(&r->scan, r->name, PE_WEIGHT_NAME_MAX, &size);
        if (status == PE_OK)
            status = pe_scan_expect(&r->scan, ':');
        if (status == PE_OK && strcmp(r->name, "weight_map") == 0) {
            status = pe_scan_expect(&r->scan, '{');
            r->more = !pe_scan_accept(&r->scan, '}');
            return status;
        }
        if (status == PE_OK)
            status = pe_scan_skip(&r->scan, INDEX_DEPTH_MAX);
        if (status == PE_OK)
            status = pe_scan_next(&r->scan, '}', &more);
    }
    return status != PE_OK
               ? status
               : pe_scan_fail(&r->scan, PE_E_FORMAT, r->scan.pos, "has no weight_map");
}

/* One member into name and file. */
static pe_status take_member(map_reader *r)
{
    size_t size = 0;
    (void)pe_scan_peek(&r->scan);
    r->name_at = r->scan.pos;
    pe_status status = pe_scan_string(&r->scan, r->name, PE_WEIGHT_NAME_MAX, &size);
    if (status == PE_OK && size > PE_WEIGHT_NAME_MAX)
        return pe_scan_fail(&r->scan, PE_E_LIMIT, r->name_at,
                            "has a name of %llu bytes, at most %d are read",
                            (unsigned long long)size, PE_WEIGHT_NAME_MAX);
    if (status == PE_OK)
        status = pe_scan_expect(&r->scan, ':');
    (void)pe_scan_peek(&r->scan);
    r->file_at = r->scan.pos;
    if (status == PE_OK)
        status = pe_scan_string(&r->scan, r->file, FILE_NAME_MAX, &size);
    if (status != PE_OK)
        return status;
    if (size == 0 || size > FILE_NAME_MAX || strchr(r->file, '/') != NULL ||
        strcmp(r->file, ".") == 0 || strcmp(r->file, "..") == 0)
        return pe_scan_fail(&r->scan, PE_E_FORMAT, r->file_at,
                            "names the file \"%.100s\", must be one of its own folder",
                            r->file);
    return pe_scan_next(&r->scan, '}', &r->more);
}

/* The place of a name among sorted ones, and whether it is there. */
static int32_t place_of(char *const *names, int32_t num, const char *name, int *found)
{
    int32_t low = 0, high = num;
    *found = 0;
    while (low < high) {
        const int32_t middle = low + (high - low) / 2;
        const int order = strcmp(names[middle], name);
        if (order == 0) {
            *found = 1;
            return middle;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static pe_status name_files(pe_checkpoint *checkpoint, pe_error *error)
{
    map_reader r;
    int64_t capacity = 0;
    pe_status status = enter_map(&r, &checkpoint->index, error);
    while (status == PE_OK && r.more) {
        int found = 0;
        status = take_member(&r);
        if (status != PE_OK)
            break;
        char **names = checkpoint->file_names;
        const int32_t num = checkpoint->num_files;
        const int32_t at = place_of(names, num, r.file, &found);
        if (found)
            continue;
        if (num == SHARDS_MAX)
            return pe_scan_fail(&r.scan, PE_E_LIMIT, r.file_at,
                                "names more than %d files", SHARDS_MAX);
        if (num == capacity)
            names =
                pe_arena_grow(&checkpoint->arena, names, num, &capacity, sizeof *names);
        char *copy = pe_arena_copy(&checkpoint->arena, r.file, strlen(r.file));
        if (names == NULL || copy == NULL)
            return pe_fail(error, PE_E_NO_MEMORY, "out of memory for shards");
        memmove(names + at + 1, names + at, (size_t)(num - at) * sizeof *names);
        names[at] = copy;
        checkpoint->file_names = names;
        checkpoint->num_files++;
    }
    return status;
}

static pe_status read_files(pe_checkpoint *checkpoint, const char *path,
                            pe_error *error)
{
    const int32_t num = checkpoint->num_files;
    checkpoint->files =
        pe_arena_alloc(&checkpoint->arena, (size_t)num * sizeof *checkpoint->files);
    if (checkpoint->files == NULL)
        return pe_fail(error, PE_E_NO_MEMORY, "out of memory for shards");
    for (int32_t i = 0; i < num; i++) {
        pe_file *file = &checkpoint->files[i];
        pe_status status = pe_file_open(file, path, checkpoint->file_names[i],
                                        &checkpoint->env, error);
        if (status == PE_OK)
            status =
                pe_safetensors_read(checkpoint, file->data, file->size, i, 0, error);
        if (status != PE_OK)
            return status;
    }
    return PE_OK;
}

pe_status pe_safetensors_read_folder(pe_checkpoint *checkpoint, const char *path,
                                     pe_error *error)
{
    pe_status status = PE_OK;
    if (pe_file_exists(path, index_name)) {
        status =
            pe_file_open(&checkpoint->index, path, index_name, &checkpoint->env, error);
        if (status == PE_OK)
            status = name_files(checkpoint, error);
    } else if (pe_file_exists(path, single_name)) {
        checkpoint->file_names =
            pe_arena_alloc(&checkpoint->arena, sizeof *checkpoint->file_names);
        char *copy =
            pe_arena_copy(&checkpoint->arena, single_name, strlen(single_name));
        if (checkpoint->file_names == NULL || copy == NULL)
            return pe_fail(error, PE_E_NO_MEMORY, "out of memory for a file name");
        checkpoint->file_names[0] = copy;
        checkpoint->num_files = 1;
    }
    return status == PE_OK ? read_files(checkpoint, path, error) : status;
}

pe_status pe_safetensors_check_index(const pe_checkpoint *checkpoint, pe_error *error)
{
    map_reader r;
    if (checkpoint->index.data == NULL)
        return PE_OK;
    pe_status status = enter_map(&r, &checkpoint->index, error);
    while (status == PE_OK && r.more) {
        status = take_member(&r);
        if (status != PE_OK)
            break;
        const pe_weight_entry *entry = pe_weights_find(&checkpoint->weights, r.name);
        if (entry == NULL)
            return pe_scan_fail(&r.scan, PE_E_FORMAT, r.name_at,
                                "has the weight %.80s in %.60s, no file has it", r.name,
                                r.file);
        if (strcmp(checkpoint->file_names[entry->file], r.file) != 0)
            return pe_scan_fail(&r.scan, PE_E_FORMAT, r.file_at,
                                "has the weight %.60s in %.50s, it is in %.50s", r.name,
                                r.file, checkpoint->file_names[entry->file]);
    }
    return status;
}

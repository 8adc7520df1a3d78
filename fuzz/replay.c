/* SPDX-License-Identifier: MIT
 *
 * replay.c - main() for fuzz targets built without libFuzzer
 *
 * Runs the empty input, then every file of the folders named, through the target.  A
 * folder without files is an error, so that a lost corpus does not pass for a good one.
 */
#define _POSIX_C_SOURCE 200809L

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file) {
        perror(path);
        return 1;
    }
    fseek(file, 0, SEEK_END);
    long size = ftell(file);
    rewind(file);
    /* Exactly as long as the input, so that sanitizers see a read past its end. */
    uint8_t *data = size > 0 ? malloc((size_t)size) : NULL;
    size_t got = data ? fread(data, 1, (size_t)size, file) : 0;
    int failed = size < 0 || got != (size_t)size;
    fclose(file);
    if (failed)
        fprintf(stderr, "%s: cannot be read\n", path);
    else
        LLVMFuzzerTestOneInput(data, got);
    free(data);
    return failed;
}

static int replay_folder(const char *path)
{
    DIR *folder = opendir(path);
    if (!folder) {
        perror(path);
        return 1;
    }
    int failed = 0, num_files = 0;
    for (struct dirent *entry; (entry = readdir(folder));) {
        char name[4096];
        if (entry->d_name[0] == '.')
            continue;
        snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
        failed |= replay_file(name);
        num_files++;
    }
    closedir(folder);
    printf("%s: %d inputs\n", path, num_files);
    return failed || num_files == 0;
}

int main(int argc, char **argv)
{
    const uint8_t nothing[1] = {0};
    LLVMFuzzerTestOneInput(nothing, 0);
    int failed = 0;
    for (int i = 1; i < argc; i++)
        failed |= replay_folder(argv[i]);
    return failed;
}

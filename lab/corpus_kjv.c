/* SPDX-License-Identifier: MIT
 *
 * corpus_kjv.c - the King James text, as printed by Debian's bible
 *
 * bible -f prints a verse a line, "Ge1:1 In the beginning ...".  The program is run
 * directly, without a shell, and told where its data lie: it would look in the current
 * folder first. */
#include "corpus_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

#define PACKAGES "install the Debian packages bible-kjv and bible-kjv-text"

static pe_status start(pid_t *child, int *fd, pe_error *error)
{
    static const char *const arguments[] = {"bible",           "-f", "-p", "/usr/lib",
                                            "Gen1:1-Rev22:21", NULL};
    char *argv[LAB_COUNT(arguments)];
    posix_spawn_file_actions_t actions;
    int ends[2];
    memcpy(argv, arguments, sizeof argv);
    if (pipe2(ends, O_CLOEXEC) != 0)
        return lab_fail(error, PE_E_IO, "pipe: %s", strerror(errno));
    int failure = posix_spawn_file_actions_init(&actions);
    if (failure == 0) {
        failure =
            posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
        if (failure == 0)
            failure = posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
        if (failure == 0)
            failure =
                posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
        if (failure == 0)
            failure = posix_spawnp(child, "bible", &actions, NULL, argv, environ);
        (void)posix_spawn_file_actions_destroy(&actions);
    }
    (void)close(ends[1]);
    if (failure == 0) {
        *fd = ends[0];
        return PE_OK;
    }
    (void)close(ends[0]);
    if (failure == ENOENT)
        return lab_fail(error, PE_E_NOT_FOUND,
                        "the King James text needs the program bible; " PACKAGES);
    return lab_fail(error, PE_E_IO, "bible: %s", strerror(failure));
}

/* 1: the child ended well. */
static int wait_for(pid_t child)
{
    int state;
    while (waitpid(child, &state, 0) < 0)
        if (errno != EINTR)
            return 0;
    return WIFEXITED(state) && WEXITSTATUS(state) == 0;
}

/* Takes the references away, in place; an empty line, which takes less room than the
 * reference it replaces, where the chapter changes.  0: that is no verse. */
static int strip(lab_bytes *bytes)
{
    const uint8_t *end = bytes->data + bytes->size;
    uint8_t *out = bytes->data, chapter[32];
    size_t chapter_length = 0;
    for (const uint8_t *line = bytes->data; line < end;) {
        const uint8_t *stop = memchr(line, '\n', (size_t)(end - line));
        const uint8_t *space = memchr(line, ' ', (size_t)(end - line));
        if (stop == NULL || space == NULL || space > stop)
            return 0;
        const uint8_t *colon = memchr(line, ':', (size_t)(space - line));
        const size_t length = colon != NULL ? (size_t)(colon - line) : 0;
        if (length == 0 || length > sizeof chapter)
            return 0;
        const int is_new =
            length != chapter_length || memcmp(line, chapter, length) != 0;
        if (is_new && chapter_length > 0)
            *out++ = '\n';
        memcpy(chapter, line, length);
        chapter_length = length;
        const size_t text = (size_t)(stop - space);
        memmove(out, space + 1, text);
        out += text;
        line = stop + 1;
    }
    bytes->size = (size_t)(out - bytes->data);
    return chapter_length > 0;
}

pe_status lab_corpus_kjv(lab_corpus *out, pe_error *error)
{
    lab_bytes bytes = {0};
    pid_t child = 0;
    int fd = -1;
    pe_status status = start(&child, &fd, error);
    if (status != PE_OK)
        return status;
    status = lab_bytes_read(&bytes, fd, "bible", error);
    (void)close(fd);
    const int ended_well = wait_for(child);
    if (status != PE_OK)
        return status;
    if (!ended_well)
        status = lab_fail(error, PE_E_NOT_FOUND, "bible has no text; " PACKAGES);
    else if (!strip(&bytes))
        status = lab_fail(error, PE_E_FORMAT,
                          "bible printed %zu bytes that are not one verse a line with "
                          "its reference",
                          bytes.size);
    else
        status = lab_corpus_split(out, &bytes, "kjv", error);
    free(bytes.data);
    return status;
}

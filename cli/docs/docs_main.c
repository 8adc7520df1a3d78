/* SPDX-License-Identifier: MIT
 *
 * docs_main.c - posenc_docs FOLDER: writes the manual and the completions
 *
 * FOLDER/man1/posenc.1, FOLDER/man1/posenc-VERB.1 (posenc-GROUP-VERB.1),
 * FOLDER/man7/posenc-lesson.7 and the same in FOLDER/ko, and posenc, _posenc and
 * posenc.fish in the folders bash, zsh and fish, all of which exist. */
#include "docs.h"

#include <stdlib.h>

static FILE *create(const char *folder, const char *name)
{
    char path[1024];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *out = fopen(path, "w");
    if (out == NULL) {
        perror(path);
        exit(EXIT_FAILURE);
    }
    return out;
}

static void finish(FILE *out)
{
    if (fclose(out) != 0) {
        perror("posenc_docs");
        exit(EXIT_FAILURE);
    }
}

static void lesson_en(FILE *out)
{
    docs_lesson(out, LESSON_EN);
}

static void lesson_ko(FILE *out)
{
    docs_lesson(out, LESSON_KO);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*write)(FILE *out);
    } files[] = {{"man1/posenc.1", docs_man_overview},
                 {"man7/posenc-lesson.7", lesson_en},
                 {"ko/man7/posenc-lesson.7", lesson_ko},
                 {"bash/posenc", docs_bash},
                 {"zsh/_posenc", docs_zsh},
                 {"fish/posenc.fish", docs_fish}};
    if (argc != 2) {
        (void)fputs("usage: posenc_docs FOLDER\n", stderr);
        return EXIT_FAILURE;
    }
    for (size_t i = 0; i < CLI_COUNT(files); i++) {
        FILE *out = create(argv[1], files[i].name);
        files[i].write(out);
        finish(out);
    }
    for (size_t i = 0; cli_verb_at(i) != NULL; i++) {
        char page[64], name[128];
        docs_man_name(page, sizeof page, cli_verb_at(i));
        (void)snprintf(name, sizeof name, "man1/%s.1", page);
        FILE *out = create(argv[1], name);
        docs_man_verb(out, cli_verb_at(i));
        finish(out);
    }
    return EXIT_SUCCESS;
}

/* SPDX-License-Identifier: MIT
 *
 * main.c - posenc VERB ...: finds the verb and runs it
 *
 * Exit code 0: done; 1: the answer is no, or the work failed; 2: wrong usage. */
#include "pending.h"
#include "report.h"
#include "suggest.h"
#include "verbs.h"
#include "version.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int print_overview(void)
{
    (void)fputs("posenc - exact positional encodings of transformers, from a model's "
                "settings\n\nUsage: posenc VERB ...\n\nVerbs:\n",
                stdout);
    for (size_t i = 0; i < cli_num_verbs; i++)
        (void)printf("  %-10s %s\n", cli_verbs[i]->name, cli_verbs[i]->summary);
    (void)fputs("\nposenc VERB --help (or posenc help VERB) explains a verb; posenc "
                "--version.\nExit code: 0 done, 1 the answer is no or the work failed, "
                "2 wrong usage.\n\nExample:\n  posenc inspect llama-3.1-8b\n",
                stdout);
    return CLI_DONE;
}

static const cli_verb *find_member(const cli_verb *group, const char *word)
{
    for (size_t i = 0; i < group->num_members; i++)
        if (strcmp(cli_verb_word(group->members[i]), word) == 0)
            return group->members[i];
    return NULL;
}

static const char *member_word(void *context, size_t index)
{
    const cli_verb *group = context;
    return index < group->num_members ? cli_verb_word(group->members[index]) : NULL;
}

static int fail_unknown(const cli_verb *group, const char *word)
{
    const char *space = *group->name ? " " : "";
    const char *near = cli_suggest(word, member_word, (void *)(uintptr_t)group);
    if (near != NULL)
        return cli_fail(CLI_USAGE, "unknown verb '%s%s%s'; did you mean %s?",
                        group->name, space, word, near);
    return cli_fail(CLI_USAGE,
                    "unknown verb '%s%s%s'; posenc %s%s--help lists the verbs",
                    group->name, space, word, group->name, space);
}

static int is_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 ||
           strcmp(word, "help") == 0;
}

static int print_group(const cli_verb *group)
{
    if (*group->name == '\0')
        return print_overview();
    cli_print_help(group);
    return CLI_DONE;
}

static int run(int argc, char **argv)
{
    const cli_verb root = {
        .name = "", .members = cli_verbs, .num_members = cli_num_verbs};
    const cli_verb *verb = &root;
    int wants_help = 0, at = 1;
    if (argc > 1 && (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0))
        return cli_print_version();
    while (verb->members != NULL) {
        if (at < argc && is_help(argv[at])) {
            wants_help = 1;
            at++;
        }
        if (at >= argc && wants_help)
            return print_group(verb);
        if (at >= argc)
            return cli_fail(CLI_USAGE, "a verb is missing; see posenc %s%s--help",
                            verb->name, *verb->name ? " " : "");
        const cli_verb *member = find_member(verb, argv[at]);
        if (member == NULL)
            return fail_unknown(verb, argv[at]);
        verb = member;
        at++;
    }
    if (wants_help) {
        cli_print_help(verb);
        return CLI_DONE;
    }
    cli_set_verb(verb->name);
    return verb->run(argc - at + 1, argv + at - 1);
}

/* A descriptor that the caller closed would be taken by the next file to be opened,
 * and reports would go into it.  The wrong direction makes using it an error. */
static void occupy_standard_files(void)
{
    static const int directions[] = {O_WRONLY, O_RDONLY, O_RDONLY};
    for (int fd = 0; fd < 3; fd++)
        if (fcntl(fd, F_GETFD) == -1)
            (void)open("/dev/null", directions[fd]);
}

int main(int argc, char **argv)
{
    occupy_standard_files();
    /* A write then fails with EPIPE or EFBIG, and is cleaned up after. */
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGXFSZ, SIG_IGN);
    const int code = run(argc, argv);
    cli_pending_end_folder();
    return cli_finish_output(code);
}

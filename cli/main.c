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

static const char *verb_name(void *context, size_t index)
{
    (void)context;
    return index < cli_num_verbs ? cli_verbs[index]->name : NULL;
}

static int print_overview(void)
{
    (void)fputs("posenc - positional encodings of transformers, exact, from a model's "
                "configuration\n\nUsage: posenc VERB ...\n\nVerbs:\n",
                stdout);
    for (size_t i = 0; i < cli_num_verbs; i++)
        (void)printf("  %-10s %s\n", cli_verbs[i]->name, cli_verbs[i]->summary);
    (void)fputs("\nposenc VERB --help (or posenc help VERB) explains a verb; posenc "
                "--version.\nExit code: 0 done, 1 the answer is no or the work failed, "
                "2 wrong usage.\n\nExample:\n  posenc inspect llama-3.1-8b\n",
                stdout);
    return CLI_DONE;
}

static const cli_verb *find_verb(const char *name)
{
    for (size_t i = 0; i < cli_num_verbs; i++)
        if (strcmp(cli_verbs[i]->name, name) == 0)
            return cli_verbs[i];
    return NULL;
}

static int fail_unknown(const char *name)
{
    const char *near = cli_suggest(name, verb_name, NULL);
    if (near != NULL)
        return cli_fail(CLI_USAGE, "unknown verb '%s'; did you mean %s?", name, near);
    return cli_fail(CLI_USAGE, "unknown verb '%s'; posenc --help lists the verbs",
                    name);
}

static int run(int argc, char **argv)
{
    if (argc < 2)
        return cli_fail(CLI_USAGE, "a verb is missing; see posenc --help");
    const char *first = argv[1];
    if (strcmp(first, "--version") == 0 || strcmp(first, "-V") == 0)
        return cli_print_version();
    int wants_help = strcmp(first, "--help") == 0 || strcmp(first, "-h") == 0 ||
                     strcmp(first, "help") == 0;
    if (wants_help && argc == 2)
        return print_overview();
    const char *name = wants_help ? argv[2] : first;
    const cli_verb *verb = find_verb(name);
    if (verb == NULL)
        return fail_unknown(name);
    if (wants_help) {
        cli_print_help(verb);
        return CLI_DONE;
    }
    cli_set_verb(verb->name);
    return verb->run(argc - 1, argv + 1);
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

/* SPDX-License-Identifier: MIT
 *
 * lesson.c - posenc lesson: positional encodings explained, with the numbers computed
 */
#include "lesson_text.h"
#include "lesson_topics.h"
#include "report.h"
#include "suggest.h"
#include "terminal.h"
#include "verbs.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MAX_COLUMNS = 100 }; /* longer lines are hard to find the next one of */

typedef struct lesson_args {
    lesson_language language;
    int32_t step, json;
} lesson_args;

static const lesson_topic topics[] = {
    {"order", lesson_order},         {"recurrent", lesson_recurrent},
    {"where", lesson_where},         {"sinusoidal", lesson_sinusoidal},
    {"mixing", lesson_mixing},       {"learned", lesson_learned},
    {"rope", lesson_rope},           {"direction", lesson_direction},
    {"pairs", lesson_pairs},         {"complex", lesson_complex},
    {"alibi", lesson_alibi},         {"compare", lesson_compare},
    {"exercises", lesson_exercises}, {"checks", lesson_checks},
    {"glossary", lesson_glossary}};

static const cli_choice languages[] = {{"en", LESSON_EN}, {"ko", LESSON_KO}, {NULL, 0}};

const lesson_topic *lesson_topic_at(size_t index)
{
    return index < CLI_COUNT(topics) ? &topics[index] : NULL;
}

static const char *topic_name(void *context, size_t index)
{
    (void)context;
    return index < CLI_COUNT(topics) ? topics[index].name : NULL;
}

/* Waits for Enter; 0: the reader has had enough. */
static int ask_to_go_on(void)
{
    char answer[64];
    (void)fflush(stdout);
    (void)fputs("-- Enter: go on, q: quit -- ", stderr);
    (void)fflush(stderr);
    if (fgets(answer, sizeof answer, stdin) == NULL) {
        (void)fputc('\n', stderr);
        return 0;
    }
    return answer[0] != 'q' && answer[0] != 'Q';
}

/* 1 to go on, 0 to stop, -1 after an error. */
static int print_topic(const lesson_section *section, const lesson_numbers *numbers,
                       const lesson_page *page, int is_stepping)
{
    const char *at = section->body;
    lesson_print_title(section, page);
    while ((at = lesson_print(section, at, numbers, page)) != section->end) {
        if (at == NULL)
            return -1;
        if (is_stepping && !ask_to_go_on())
            return 0;
    }
    return 1;
}

static void add_json(json_object *list, const lesson_topic *topic,
                     const lesson_section *section, const lesson_numbers *numbers)
{
    json_object *object = json_object_new_object();
    cli_json_set_text(object, "topic", topic->name);
    (void)json_object_object_add(
        object, "title",
        json_object_new_string_len(section->title, section->title_size));
    (void)json_object_object_add(object, "numbers", lesson_numbers_json(numbers));
    (void)json_object_array_add(list, object);
}

static int teach(const lesson_args *args, size_t first, size_t last)
{
    static lesson_numbers numbers;
    const int is_stepping =
        args->step && !args->json && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    const int columns = cli_columns();
    const lesson_page page = {.columns = columns < MAX_COLUMNS ? columns : MAX_COLUMNS,
                              .is_ascii =
                                  !cli_is_utf8() && args->language != LESSON_KO};
    json_object *root = cli_json_start("posenc.lesson/1"),
                *list = json_object_new_array();
    cli_json_set_text(root, "lang", cli_choice_name(languages, args->language));
    (void)json_object_object_add(root, "topics", list);

    int status = CLI_DONE;
    for (size_t i = first; i < last && status == CLI_DONE; i++) {
        lesson_section section;
        lesson_clear(&numbers);
        status = topics[i].compute(&numbers);
        if (status == CLI_DONE &&
            !lesson_find(&section, args->language, topics[i].name))
            status = cli_fail(CLI_FAILED, "there is no text for '%s'", topics[i].name);
        if (status != CLI_DONE)
            break;
        if (args->json) {
            add_json(list, &topics[i], &section, &numbers);
            continue;
        }
        const int more = print_topic(&section, &numbers, &page, is_stepping);
        if (more < 0)
            status = CLI_FAILED;
        if (more <= 0 || (is_stepping && i + 1 < last && !ask_to_go_on()))
            break;
    }
    if (args->json && status == CLI_DONE)
        return cli_json_print(root);
    (void)json_object_put(root);
    return status;
}

static int run(int argc, char **argv)
{
    lesson_args args = {.language = cli_speaks("ko") ? LESSON_KO : LESSON_EN};
    const char *name;
    int status = cli_parse(&cli_verb_lesson, argc, argv, &args, &name);
    if (status != CLI_CONTINUE)
        return status;
    if (args.language == LESSON_KO && isatty(STDOUT_FILENO) && !cli_is_utf8())
        cli_note("the locale is not UTF-8; Korean is written in UTF-8 all the same");
    if (name == NULL)
        return teach(&args, 0, CLI_COUNT(topics));
    for (size_t i = 0; i < CLI_COUNT(topics); i++)
        if (strcmp(topics[i].name, name) == 0)
            return teach(&args, i, i + 1);
    const char *near = cli_suggest(name, topic_name, NULL);
    if (near != NULL)
        return cli_fail(CLI_USAGE, "unknown topic '%s'; did you mean %s?", name, near);
    return cli_fail(CLI_USAGE,
                    "unknown topic '%s'; posenc lesson --help lists the topics", name);
}

static const cli_option options[] = {
    {.name = "lang",
     .argument = "LANG",
     .type = CLI_CHOICE,
     .choices = languages,
     .offset = offsetof(lesson_args, language),
     .help = "en or ko (default: ko in a Korean locale, else en)"},
    {.name = "step",
     .type = CLI_FLAG,
     .offset = offsetof(lesson_args, step),
     .help = "on a terminal, wait for Enter between sections and before answers; q and "
             "Enter ends the lesson"},
    {.name = "json",
     .type = CLI_FLAG,
     .offset = offsetof(lesson_args, json),
     .help = "the numbers alone: schema posenc.lesson/1"}};

const cli_verb cli_verb_lesson = {
    .name = "lesson",
    .summary = "positional encodings explained, with every number computed",
    .operands = "[TOPIC]",
    .about =
        "Sinusoidal, learned, RoPE and ALiBi positions by small examples: formula,\n"
        "numbers put in, result.  No TOPIC: all of them, in this order:\n"
        "\n"
        "  order       why attention alone loses the order of words\n"
        "  recurrent   why recurrent networks need none of this\n"
        "  where       where in a transformer each method enters\n"
        "  sinusoidal  sines and cosines added to the input, filled in for d = 4\n"
        "  mixing      why adding them blurs distance once words are mixed in\n"
        "  learned     a table that is trained, and its end\n"
        "  rope        queries and keys that turn, in two dimensions and more\n"
        "  direction   before and after are told apart\n"
        "  pairs       a vector of 16 numbers as 8 pairs; how elements pair up\n"
        "  complex     the same rotation in complex numbers\n"
        "  alibi       scores that lose with distance; slopes and softmax\n"
        "  compare     the four methods side by side\n"
        "  exercises   four exercises, with their solutions\n"
        "  checks      three questions to check yourself, with answers\n"
        "  glossary    the words\n"
        "\n"
        "Text is broken at the width of the terminal, of COLUMNS or 80, and at 100\n"
        "at most.  In a locale that is not UTF-8, English comes out in ASCII; Korean\n"
        "is written in UTF-8 anywhere, with a note on a terminal that may not show it.",
    .examples = "posenc lesson\n"
                "posenc lesson rope --step\n"
                "posenc lesson alibi --lang ko\n"
                "posenc lesson sinusoidal --json",
    .kind_at = topic_name,
    .options = options,
    .num_options = CLI_COUNT(options),
    .num_optional = 1,
    .run = run};

/* SPDX-License-Identifier: MIT
 *
 * identify_weights.c - which pairing turns the rows of one file into those of another
 *
 * Rows are compared byte for byte, so nothing here depends on a dtype. */
#include "identify.h"

#include "input.h"
#include "names.h"
#include "report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { UNEXPLAINED_MAX = 4 };

static const int32_t widths[] = {128, 64, 96,  80, 256, 192, 512,
                                 32,  48, 112, 40, 24,  16,  8};

typedef struct tally {
    int64_t same, moved, unexplained;
    char first_unexplained[160];
} tally;

static int is_moved(const pe_weight *a, const pe_weight *b, const int64_t *rows)
{
    const size_t size = (size_t)(a->size / (uint64_t)a->shape[0]);
    for (int64_t r = 0; r < a->shape[0]; r++)
        if (memcmp((const char *)b->data + (size_t)r * size,
                   (const char *)a->data + (size_t)rows[r] * size, size) != 0)
            return 0;
    return 1;
}

typedef struct explanation {
    pe_pairs pairs;
    int32_t head_dim;
} explanation;

static int explains(const explanation *e, const pe_weight *a, const pe_weight *b,
                    int64_t *rows)
{
    if (a->shape[0] % e->head_dim != 0)
        return 0;
    return pe_pairs_permutation(&e->pairs, a->shape[0] / e->head_dim, e->head_dim, rows,
                                NULL) == PE_OK &&
           is_moved(a, b, rows);
}

/* Several windows may move these rows alike: the widest head that does is taken. */
static int find(explanation *out, const pe_weight *a, const pe_weight *b, int64_t *rows,
                int32_t stated)
{
    for (size_t w = 0; w < CLI_COUNT(widths); w++) {
        const int32_t dim = stated ? stated : widths[w];
        for (int32_t rotary = dim; rotary >= 4; rotary -= 2)
            for (int tail = 0; tail < (rotary < dim ? 2 : 1); tail++)
                for (int way = 0; way < 2; way++) {
                    *out = (explanation){
                        .head_dim = dim,
                        .pairs = {.pairing = way ? PE_INTERLEAVED : PE_HALF_SPLIT,
                                  .out_pairing = way ? PE_HALF_SPLIT : PE_INTERLEAVED,
                                  .rotary_dim = rotary,
                                  .rotary_start = tail ? dim - rotary : 0}};
                    if (explains(out, a, b, rows))
                        return 1;
                }
        if (stated)
            break;
    }
    return 0;
}

static void say_found(cli_answers *out, const explanation *e, const tally *t)
{
    json_object *d = json_object_new_object();
    cli_json_text(d, "from", cli_choice_name(cli_pairing_names, e->pairs.pairing));
    cli_json_text(d, "to", cli_choice_name(cli_pairing_names, e->pairs.out_pairing));
    cli_json_set_integer(d, "head_dim", e->head_dim);
    cli_json_set_integer(d, "rotary_dim", e->pairs.rotary_dim);
    cli_json_set_integer(d, "rotary_start", e->pairs.rotary_start);
    cli_json_set_integer(d, "moved", t->moved);
    cli_json_set_integer(d, "same", t->same);
    cli_answers_add(out, 0, d, "%s to %s, %d of %d%s turn",
                    cli_choice_name(cli_pairing_names, e->pairs.pairing),
                    cli_choice_name(cli_pairing_names, e->pairs.out_pairing),
                    e->pairs.rotary_dim, e->head_dim,
                    e->pairs.rotary_start ? " (the last)" : "");
    cli_answers_say(out, "%lld tensors have their rows moved so, %lld are the same",
                    (long long)t->moved, (long long)t->same);
}

static int compare(cli_answers *out, const pe_checkpoint *a, const pe_checkpoint *b,
                   const cli_identify_args *args)
{
    tally t = {0};
    explanation e = {.head_dim = 0};
    int64_t common = 0;
    int64_t *rows = NULL;
    for (int64_t i = 0; i < pe_checkpoint_num_weights(a); i++) {
        const pe_weight *x = pe_checkpoint_weight(a, i);
        const pe_weight *y = pe_checkpoint_find_weight(b, x->name);
        if (y == NULL || x->rank < 1 || x->rank != y->rank || x->size != y->size ||
            x->size == 0 || memcmp(x->shape, y->shape, sizeof x->shape) != 0)
            continue;
        common++;
        if (memcmp(x->data, y->data, (size_t)x->size) == 0) {
            t.same++;
            continue;
        }
        int64_t *wider = realloc(rows, (size_t)x->shape[0] * sizeof *rows);
        if (wider == NULL) {
            free(rows);
            return cli_fail(CLI_FAILED, "out of memory");
        }
        rows = wider;
        /* Files that differ otherwise do so everywhere: a few tensors tell. */
        if (e.head_dim != 0 ? explains(&e, x, y, rows)
            : t.unexplained < UNEXPLAINED_MAX
                ? find(&e, x, y, rows, (int32_t)args->head_dim)
                : 0) {
            t.moved++;
        } else {
            if (t.moved == 0)
                e.head_dim = 0;
            if (t.unexplained++ == 0)
                (void)snprintf(t.first_unexplained, sizeof t.first_unexplained, "%s",
                               x->name);
        }
    }
    free(rows);
    if (common == 0)
        return cli_fail(CLI_FAILED, "the files have no tensor of one name and shape in "
                                    "common");
    if (t.unexplained > 0)
        cli_answers_say(out, "%lld tensors differ in another way, the first is %s",
                        (long long)t.unexplained, t.first_unexplained);
    if (t.moved > 0 && t.unexplained == 0)
        say_found(out, &e, &t);
    else if (t.moved == 0 && t.unexplained == 0)
        cli_answers_add(out, 0, NULL, "the same rows: %lld tensors are equal",
                        (long long)t.same);
    return CLI_DONE;
}

int cli_identify_weights(cli_answers *out, const cli_identify_args *args,
                         const char *const *operands)
{
    pe_checkpoint *a = NULL, *b = NULL;
    const char *name;
    int status = cli_input_open(&a, &name, operands[0]);
    if (status == CLI_DONE)
        status = cli_input_open(&b, &name, operands[1]);
    if (status == CLI_DONE)
        status = compare(out, a, b, args);
    pe_checkpoint_destroy(a);
    pe_checkpoint_destroy(b);
    return status;
}

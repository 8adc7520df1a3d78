/* SPDX-License-Identifier: MIT
 *
 * convert_report.c - what convert says: --dry-run, --list, --json, and the last line
 */
#include "convert_job.h"

#include "names.h"
#include "print.h"
#include "report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_tensor(const cli_convert_job *job, const cli_convert_tensor *t,
                         json_object *list)
{
    const pe_weight *w = t->weight;
    if (t->kind == CLI_ROWS_KEPT)
        return;
    if (list != NULL) {
        json_object *item = json_object_new_object();
        cli_json_text(item, "name", w->name);
        cli_json_text(item, "dtype", w->dtype_name);
        cli_json_set_integer(item, "rows", t->num_rows);
        cli_json_text(item, "role", t->role);
        cli_json_text(item, "skipped", t->reason);
        if (t->role != NULL) {
            cli_json_set_integer(item, "head_dim", t->head_dim);
            cli_json_set_integer(item, "rotary_start", t->pairs.rotary_start);
            cli_json_set_integer(item, "rotary_dim",
                                 t->pairs.rotary_dim ? t->pairs.rotary_dim
                                                     : t->head_dim);
            cli_json_set_integer(item, "heads", t->num_heads);
        }
        json_object_array_add(list, item);
    } else if (job->args->dry_run && t->role != NULL) {
        cli_print("  %-11s %s, %s, %lld rows\n", t->role, w->name, w->dtype_name,
                  (long long)t->num_rows);
    } else if (job->args->dry_run) {
        cli_print("  %-11s %s: %s\n", "kept", w->name, t->reason);
    }
}

/* One head is enough: the others follow the same order. */
static int print_rows(const cli_convert_tensor *t)
{
    const int64_t count = t->kind == CLI_ROWS_TAIL ? t->num_rows : t->head_dim;
    int64_t *rows = calloc((size_t)t->num_rows, sizeof *rows);
    if (rows == NULL)
        return cli_fail(CLI_FAILED, "out of memory");
    const int status = cli_convert_rows(t, 0, rows);
    if (status == CLI_DONE) {
        cli_print("%s: each %s's rows come from\n", t->weight->name,
                  t->kind == CLI_ROWS_TAIL ? "tensor" : "head");
        for (int64_t r = 0; r < count; r++) {
            cli_print("%s%lld", r % 16 == 0 ? "  " : " ", (long long)rows[r]);
            if (r % 16 == 15 || r + 1 == count)
                cli_print("\n");
        }
    }
    free(rows);
    return status;
}

int cli_convert_list_rows(const cli_convert_file *file)
{
    const char *seen[8];
    size_t num_seen = 0;
    int status = CLI_DONE;
    for (int64_t i = 0; i < file->num_tensors && status == CLI_DONE; i++) {
        const cli_convert_tensor *t = &file->tensors[i];
        size_t k = 0;
        while (t->role != NULL && k < num_seen && strcmp(seen[k], t->role) != 0)
            k++;
        if (t->role == NULL || k < num_seen || num_seen == CLI_COUNT(seen))
            continue;
        seen[num_seen++] = t->role;
        status = print_rows(t);
    }
    return status;
}

void cli_convert_report_file(cli_convert_job *job, cli_convert_item *item,
                             const cli_convert_file *file)
{
    json_object *tensors = NULL;
    item->num_tensors = file->num_tensors;
    item->num_changed = file->num_changed;
    item->size = file->size;
    item->changed_size = file->changed_size;
    if (job->files != NULL) {
        json_object *object = json_object_new_object();
        tensors = json_object_new_array();
        cli_json_text(object, "input", item->input);
        cli_json_text(object, "output", item->output);
        cli_json_set_integer(object, "num_tensors", item->num_tensors);
        cli_json_set_integer(object, "num_changed", item->num_changed);
        cli_json_set_integer(object, "bytes", item->size);
        cli_json_set_integer(object, "changed_bytes", item->changed_size);
        json_object_object_add(object, "tensors", tensors);
        json_object_array_add(job->files, object);
    } else if (job->args->dry_run) {
        cli_print("%s: %lld of %lld tensors change\n", item->input,
                  (long long)item->num_changed, (long long)item->num_tensors);
    }
    for (int64_t i = 0; i < file->num_tensors; i++)
        print_tensor(job, &file->tensors[i], tensors);
}

int cli_convert_report(cli_convert_job *job)
{
    const char *from = cli_choice_name(cli_pairing_names, job->rule.from);
    const char *to = cli_choice_name(cli_pairing_names, job->rule.to);
    int64_t changed = 0, tensors = 0;
    for (size_t i = 0; i < job->num_items; i++) {
        changed += job->items[i].num_changed;
        tensors += job->items[i].num_tensors;
    }
    if (changed == 0)
        cli_note("no tensor has a name of a q or k projection: nothing changes");
    if (job->files != NULL) {
        json_object *root = cli_json_start("posenc.convert/1");
        cli_json_text(root, "from", from);
        cli_json_text(root, "to", to);
        cli_json_flag(root, "checked", job->args->check);
        json_object_object_add(root, "files", job->files);
        job->files = NULL;
        return cli_json_print(root);
    }
    cli_say("%s to %s: %lld of %lld tensors%s%s%s\n", from, to, (long long)changed,
            (long long)tensors, job->args->output ? ", written to " : " would change",
            job->args->output ? job->args->output : "",
            job->args->check ? ", checked" : "");
    return CLI_DONE;
}

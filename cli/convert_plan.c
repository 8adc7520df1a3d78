/* SPDX-License-Identifier: MIT
 *
 * convert_plan.c - which rows of which tensors change places
 */
#include "convert_plan.h"

#include "npy_in.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct module {
    const char *name; /* a part of the tensor's name between dots */
    char which;       /* q, k, f fused, t latent k, Q and K: norms of heads */
} module;

static const module modules[] = {
    {"q_proj", 'q'},
    {"wq", 'q'},
    {"query", 'q'},
    {"q_lin", 'q'},
    {"to_q", 'q'},
    {"q_b_proj", 'q'},
    {"k_proj", 'k'},
    {"wk", 'k'},
    {"key", 'k'},
    {"k_lin", 'k'},
    {"to_k", 'k'},
    {"kv_a_proj_with_mqa", 't'},
    {"qkv_proj", 'f'},
    {"query_key_value", 'f'},
    {"Wqkv", 'f'},
    {"W_pack", 'f'},
    {"wqkv", 'f'},
    {"c_attn", 'f'},
    {"q_norm", 'Q'},
    {"q_layernorm", 'Q'},
    {"k_norm", 'K'},
    {"k_layernorm", 'K'},
    {"query_layernorm", 'Q'},
    {"key_layernorm", 'K'},
};

/* Parts of a name below which heads are not those of the text model's self attention. */
static const char *const foreign[] = {"vision_tower", "vision_model",  "visual",
                                      "audio_tower",  "image_encoder", "vision_encoder",
                                      "cross_attn",   "encoder_attn",  "mtp"};

static int is_part(const char *part, size_t length, const char *name)
{
    return strlen(name) == length && memcmp(part, name, length) == 0;
}

/* The module a name ends in, what follows it, and the layer's number (-1: none). */
static const module *parse_name(const char *name, const char **suffix, int64_t *layer,
                                int *is_foreign)
{
    const module *found = NULL;
    *suffix = "";
    *layer = -1;
    *is_foreign = 0;
    for (const char *part = name; *part != '\0';) {
        const size_t length = strcspn(part, ".");
        const char *next = part[length] == '.' ? part + length + 1 : part + length;
        if (*layer < 0 && length > 0 && length < 10 &&
            strspn(part, "0123456789") >= length)
            *layer = strtoll(part, NULL, 10);
        for (size_t i = 0; i < CLI_COUNT(modules); i++)
            if (is_part(part, length, modules[i].name)) {
                found = &modules[i];
                *suffix = next;
            }
        for (size_t i = 0; i < CLI_COUNT(foreign); i++)
            *is_foreign = *is_foreign || is_part(part, length, foreign[i]);
        part = next;
    }
    return found;
}

static int fail_shape(const char *file, const pe_weight *weight, const char *wanted)
{
    cli_shape shape;
    return cli_fail(CLI_FAILED, "%s: %s is %s %s, %s", file, weight->name,
                    weight->dtype_name,
                    cli_shape_text(&shape, weight->rank, weight->shape), wanted);
}

/* The window of the rope that this layer has; stated numbers win. */
static int find_pairs(cli_convert_tensor *t, const cli_convert_rule *rule,
                      const char *file, int64_t layer, int *rotates)
{
    *rotates = 1;
    t->head_dim = rule->head_dim;
    t->pairs = (pe_pairs){.pairing = rule->from,
                          .out_pairing = rule->to,
                          .rotary_dim = rule->rotary_dim,
                          .rotary_start = rule->rotary_start};
    if (rule->model == NULL || (rule->head_dim != 0 && rule->rotary_dim != 0))
        return CLI_DONE;
    pe_rope_spec spec = {.struct_size = sizeof spec};
    pe_error error;
    const pe_site *site =
        layer < 0 || layer > INT32_MAX
            ? NULL
            : pe_model_find_site(rule->model, (int32_t)layer, PE_SITE_SELF);
    if (site == NULL && pe_model_get_info(rule->model)->num_ropes != 1)
        return cli_fail(CLI_FAILED,
                        "%s: %s names no layer of the model, whose layers differ", file,
                        t->weight->name);
    if (site != NULL && site->rope < 0) {
        *rotates = 0;
        return CLI_DONE;
    }
    if (pe_model_rope_spec(rule->model, site == NULL ? 0 : site->rope, &spec, &error) !=
        PE_OK)
        return cli_fail_with(file, &error);
    if (t->head_dim == 0)
        t->head_dim = spec.head_dim;
    if (t->pairs.rotary_dim == 0) {
        t->pairs.rotary_dim = spec.pairs.rotary_dim;
        t->pairs.rotary_start = spec.pairs.rotary_start;
    }
    return CLI_DONE;
}

/* GPT-NeoX, Falcon and InternLM2 keep q, k and v of a key head together. */
static int is_grouped(const cli_convert_rule *rule, const char *name)
{
    if (rule->qkv != CLI_QKV_AUTO)
        return rule->qkv == CLI_QKV_GROUPED;
    if (strcmp(name, "wqkv") == 0)
        return 1;
    const char *type = rule->model ? pe_model_get_info(rule->model)->model_type : "";
    return strcmp(name, "query_key_value") == 0 && strstr(type, "glm") == NULL;
}

static int count_heads(cli_convert_tensor *t, const char *file, char which,
                       int64_t known, const char *what)
{
    t->num_heads = t->num_rows / t->head_dim;
    if (t->num_rows % t->head_dim != 0 || (known != 0 && t->num_heads != known)) {
        char wanted[120];
        if (known == 0)
            (void)snprintf(wanted, sizeof wanted,
                           "rows must be a multiple of head_dim (%d)", t->head_dim);
        else
            (void)snprintf(
                wanted, sizeof wanted, "rows must be %lld: %lld %s heads of %d",
                (long long)(known * t->head_dim), (long long)known, what, t->head_dim);
        return fail_shape(file, t->weight, wanted);
    }
    t->kind = CLI_ROWS_HEADS;
    t->role = which == 'q' ? "q" : "k";
    return CLI_DONE;
}

static int plan_fused(cli_convert_tensor *t, const cli_convert_rule *rule,
                      const char *file, const char *name)
{
    if (rule->num_heads == 0 || rule->num_kv_heads == 0)
        return cli_fail(CLI_FAILED,
                        "%s: %s holds q, k and v, so the counts of heads must be known "
                        "(--config, or --heads and --kv-heads)",
                        file, t->weight->name);
    t->num_heads = rule->num_heads;
    t->num_kv_heads = rule->num_kv_heads;
    const int64_t rows = (t->num_heads + 2 * t->num_kv_heads) * t->head_dim;
    t->kind = is_grouped(rule, name) ? CLI_ROWS_GROUPED : CLI_ROWS_CONCAT;
    t->role = t->kind == CLI_ROWS_GROUPED ? "qkv grouped" : "qkv concat";
    if (t->num_rows != rows || t->num_heads % t->num_kv_heads != 0) {
        char wanted[120];
        (void)snprintf(wanted, sizeof wanted,
                       "rows must be %lld: %lld + 2 * %lld heads of %d",
                       (long long)rows, (long long)t->num_heads,
                       (long long)t->num_kv_heads, t->head_dim);
        return fail_shape(file, t->weight, wanted);
    }
    return CLI_DONE;
}

/* One vector for all heads, or one for each. */
static int plan_norm(cli_convert_tensor *t, const cli_convert_rule *rule,
                     const char *file, char which)
{
    int64_t count = 1;
    const int64_t known = which == 'Q' ? rule->num_heads : rule->num_kv_heads;
    for (int32_t i = 0; i < t->weight->rank; i++)
        count *= t->weight->shape[i];
    t->num_rows = count;
    t->num_heads = count / t->head_dim;
    if (count % t->head_dim != 0 ||
        (t->num_heads != 1 && known != 0 && t->num_heads != known)) {
        char wanted[120];
        (void)snprintf(wanted, sizeof wanted,
                       "must have head_dim (%d) elements, or as many for each head",
                       t->head_dim);
        return fail_shape(file, t->weight, wanted);
    }
    t->kind = CLI_ROWS_HEADS;
    t->role = which == 'Q' ? "q norm" : "k norm";
    return CLI_DONE;
}

/* Packed rows (GPTQ, AWQ) or scales of blocks cannot follow their rows. */
static int check_suffix(const char *file, const pe_weight *weight, const char *suffix)
{
    static const char *const packed[] = {"qweight", "qzeros",           "scales",
                                         "g_idx",   "weight_scale_inv", "weight_packed",
                                         "SCB"};
    for (size_t i = 0; i < CLI_COUNT(packed); i++)
        if (strcmp(suffix, packed[i]) == 0)
            return cli_fail(CLI_FAILED,
                            "%s: %s is part of a packed weight, whose rows cannot be "
                            "moved; convert the model before it is quantised",
                            file, weight->name);
    return CLI_DONE;
}

static void keep(cli_convert_tensor *t, cli_rows kind, const char *reason)
{
    t->kind = kind;
    t->reason = reason;
    t->role = NULL;
}

int cli_convert_plan(cli_convert_tensor *out, const cli_convert_rule *rule,
                     const char *file, const pe_weight *weight)
{
    const char *suffix;
    int64_t layer;
    int is_foreign, rotates;
    *out = (cli_convert_tensor){.weight = weight, .kind = CLI_ROWS_KEPT};
    const module *m = parse_name(weight->name, &suffix, &layer, &is_foreign);
    if (m == NULL || weight->size == 0 || weight->rank == 0)
        return CLI_DONE;
    if (is_foreign) {
        keep(out, CLI_ROWS_SKIPPED, "not the text model's self attention");
        return CLI_DONE;
    }
    if (strncmp(suffix, "lora_A", 6) == 0 ||
        strncmp(suffix, "lora_embedding", 14) == 0) {
        keep(out, CLI_ROWS_SKIPPED, "rows of LoRA A are ranks");
        return CLI_DONE;
    }
    out->num_rows = weight->shape[0];
    if (out->num_rows == 1 && weight->rank == 1) {
        keep(out, CLI_ROWS_SKIPPED, "one number");
        return CLI_DONE;
    }
    int status = check_suffix(file, weight, suffix);
    if (status == CLI_DONE)
        status = find_pairs(out, rule, file, layer, &rotates);
    if (status != CLI_DONE)
        return status;
    if (!rotates) {
        keep(out, CLI_ROWS_SKIPPED, "this layer does not rotate");
        return CLI_DONE;
    }
    if (out->head_dim == 0)
        return cli_fail(CLI_FAILED, "%s: head_dim is not known; say --head-dim", file);
    if (m->which == 'q')
        status = count_heads(out, file, 'q', rule->num_heads, "query");
    else if (m->which == 'k')
        status = count_heads(out, file, 'k', rule->num_kv_heads, "key");
    else if (m->which == 'f')
        status = plan_fused(out, rule, file, m->name);
    else if (m->which != 't')
        status = plan_norm(out, rule, file, m->which);
    out->block_rows = out->head_dim;
    if (m->which == 't') {
        const int64_t dim = out->pairs.rotary_dim;
        if (dim == 0 || out->num_rows < dim)
            return fail_shape(file, weight, "must end in the rows that turn");
        out->kind = CLI_ROWS_TAIL;
        out->role = "k latent";
        out->num_heads = 1;
        out->block_rows = out->num_rows;
    }
    if (status == CLI_DONE && weight->size % (uint64_t)out->num_rows != 0)
        return fail_shape(file, weight, "rows must be whole bytes");
    out->row_size = (int64_t)(weight->size / (uint64_t)out->num_rows);
    return status;
}

/* heads of one window, from rows[first] on, which are rows first ... of the source. */
static int fill(const cli_convert_tensor *t, int is_inverse, int64_t first,
                int64_t heads, int64_t *rows)
{
    pe_pairs pairs = t->pairs;
    pe_error error;
    int32_t head_dim = t->head_dim;
    if (is_inverse) {
        pairs.pairing = t->pairs.out_pairing;
        pairs.out_pairing = t->pairs.pairing;
    }
    if (t->kind == CLI_ROWS_TAIL) {
        head_dim = pairs.rotary_dim;
        pairs.rotary_start = 0;
    }
    if (pe_pairs_permutation(&pairs, heads, head_dim, rows + first, &error) != PE_OK)
        return cli_fail_with(t->weight->name, &error);
    for (int64_t i = 0; i < heads * head_dim; i++)
        rows[first + i] += first;
    return CLI_DONE;
}

int cli_convert_rows(const cli_convert_tensor *t, int is_inverse, int64_t *rows)
{
    const int64_t dim = t->head_dim;
    int status = CLI_DONE;
    for (int64_t r = 0; r < t->num_rows; r++)
        rows[r] = r;
    if (t->kind == CLI_ROWS_HEADS)
        return fill(t, is_inverse, 0, t->num_heads, rows);
    if (t->kind == CLI_ROWS_CONCAT)
        return fill(t, is_inverse, 0, t->num_heads + t->num_kv_heads, rows);
    if (t->kind == CLI_ROWS_TAIL)
        return fill(t, is_inverse, t->num_rows - t->pairs.rotary_dim, 1, rows);
    const int64_t group = t->num_heads / t->num_kv_heads;
    for (int64_t g = 0; g < t->num_kv_heads && status == CLI_DONE; g++)
        status = fill(t, is_inverse, g * (group + 2) * dim, group + 1, rows);
    return status;
}

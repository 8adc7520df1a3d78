/* SPDX-License-Identifier: MIT
 *
 * identify_rules.c - the rules for angles that identify knows
 *
 * Those of every preset, computed as the library does, and plain ones of thetas that
 * public models have, for widths that no preset has. */
#include "identify.h"

#include "names.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double thetas[] = {1e4, 2.5e4, 5e4, 1e5, 1.3e5, 1.5e5, 1.6e5, 2.5e5,
                                5e5, 1e6,   2e6, 4e6, 5e6,   8e6,   1e7,   1e8};

static int is_same(const cli_rules *rules, const cli_rule *rule,
                   const pe_rope_info *info, int32_t start)
{
    if (rule->num_pairs != info->num_pairs ||
        rule->attention_factor != info->attention_factor ||
        (!rules->by_pairs &&
         (rule->head_dim != info->head_dim || rule->rotary_dim != info->rotary_dim ||
          rule->rotary_start != start)))
        return 0;
    return memcmp(rule->inv_freq, info->inv_freq,
                  (size_t)info->num_pairs * sizeof *info->inv_freq) == 0;
}

static int add_name(cli_rule *rule, const char *name)
{
    const size_t used = rule->presets ? strlen(rule->presets) : 0;
    const char *found = rule->presets ? strstr(rule->presets, name) : NULL;
    const size_t length = strlen(name);
    if (found != NULL && (found[length] == ',' || found[length] == '\0') &&
        (found == rule->presets || found[-1] == ' '))
        return CLI_DONE;
    char *wider = realloc(rule->presets, used + strlen(name) + 3);
    if (wider == NULL)
        return cli_fail(CLI_FAILED, "out of memory");
    (void)sprintf(wider + used, "%s%s", used ? ", " : "", name);
    rule->presets = wider;
    return CLI_DONE;
}

static void describe(cli_rule *rule, const pe_freqs *freqs)
{
    int used = snprintf(rule->text, sizeof rule->text, "theta %.9g", freqs->rope_theta);
    if (freqs->rope_type != PE_ROPE_DEFAULT)
        used += snprintf(rule->text + used, sizeof rule->text - (size_t)used, ", %s",
                         cli_choice_name(cli_rope_type_names, freqs->rope_type));
    if (freqs->factor != 0 && freqs->factor != 1)
        (void)snprintf(rule->text + used, sizeof rule->text - (size_t)used,
                       " factor %.6g", freqs->factor);
}

static int add_rule(cli_rules *rules, const pe_rope_spec *spec, const char *preset)
{
    pe_rope *plan = NULL;
    pe_error error;
    if (pe_rope_create(&plan, spec, NULL, &error) != PE_OK)
        return CLI_DONE;
    const pe_rope_info *info = pe_rope_get_info(plan);
    cli_rule *rule = NULL;
    for (size_t i = 0; i < rules->count && rule == NULL; i++)
        if (is_same(rules, &rules->items[i], info, spec->pairs.rotary_start))
            rule = &rules->items[i];
    int status = CLI_DONE;
    if (rule == NULL) {
        cli_rule *wider =
            realloc(rules->items, (rules->count + 1) * sizeof *rules->items);
        double *copy = malloc((size_t)info->num_pairs * sizeof *copy);
        if (wider == NULL || copy == NULL) {
            rules->items = wider ? wider : rules->items;
            free(copy);
            pe_rope_destroy(plan);
            return cli_fail(CLI_FAILED, "out of memory");
        }
        memcpy(copy, info->inv_freq, (size_t)info->num_pairs * sizeof *copy);
        rules->items = wider;
        rule = &wider[rules->count++];
        *rule = (cli_rule){.head_dim = info->head_dim,
                           .rotary_dim = info->rotary_dim,
                           .rotary_start = spec->pairs.rotary_start,
                           .num_pairs = info->num_pairs,
                           .inv_freq = copy,
                           .attention_factor = info->attention_factor,
                           .rope_theta = spec->freqs.rope_theta};
        describe(rule, &spec->freqs);
    }
    if (preset != NULL)
        status = add_name(rule, preset);
    pe_rope_destroy(plan);
    return status;
}

static int add_preset(cli_rules *rules, const char *name, int32_t head_dim)
{
    pe_model *model = NULL;
    pe_error error;
    int status = CLI_DONE;
    if (pe_model_create_preset(&model, name, 0, NULL, &error) != PE_OK)
        return cli_fail_with(name, &error);
    for (int32_t i = 0; i < pe_model_get_info(model)->num_ropes && status == CLI_DONE;
         i++) {
        pe_rope_spec spec = {.struct_size = sizeof spec};
        if (pe_model_rope_spec(model, i, &spec, &error) == PE_OK &&
            (head_dim == 0 || spec.head_dim == head_dim))
            status = add_rule(rules, &spec, name);
        /* The same for what LongRoPE and dynamic do past the trained length. */
        const int64_t longest = spec.freqs.max_position_embeddings;
        if (status == CLI_DONE && spec.freqs.rope_type == PE_ROPE_LONGROPE &&
            (head_dim == 0 || spec.head_dim == head_dim)) {
            spec.freqs.seq_len = longest;
            status = add_rule(rules, &spec, name);
        }
    }
    pe_model_destroy(model);
    return status;
}

/* num_pairs 0: all are wanted. */
static void drop_others(cli_rules *rules, int32_t num_pairs)
{
    size_t kept = 0;
    for (size_t i = 0; i < rules->count; i++) {
        cli_rule *rule = &rules->items[i];
        if (num_pairs == 0 || rule->num_pairs == num_pairs) {
            rules->items[kept++] = *rule;
        } else {
            free(rule->inv_freq);
            free(rule->presets);
        }
    }
    rules->count = kept;
}

int cli_rules_make(cli_rules *out, int32_t head_dim, int32_t num_pairs)
{
    int status = CLI_DONE;
    const pe_preset *preset;
    *out = (cli_rules){.by_pairs = num_pairs != 0};
    for (int32_t i = 0; status == CLI_DONE && (preset = pe_model_preset(i)) != NULL;
         i++)
        status = add_preset(out, preset->name, head_dim);
    drop_others(out, num_pairs);
    const int32_t width = head_dim != 0 ? head_dim : 2 * num_pairs;
    for (int32_t part = 1; part <= (head_dim ? 4 : 1); part *= 2) {
        for (size_t i = 0; i < CLI_COUNT(thetas) && status == CLI_DONE; i++) {
            pe_rope_spec spec = {.struct_size = sizeof spec, .head_dim = width};
            spec.pairs.pairing = PE_HALF_SPLIT;
            spec.pairs.rotary_dim = width / part / 2 * 2;
            spec.freqs.rope_theta = thetas[i];
            if (spec.pairs.rotary_dim >= 2)
                status = add_rule(out, &spec, NULL);
        }
    }
    return status;
}

void cli_rules_free(cli_rules *rules)
{
    for (size_t i = 0; i < rules->count; i++) {
        free(rules->items[i].inv_freq);
        free(rules->items[i].presets);
    }
    free(rules->items);
    *rules = (cli_rules){0};
}

/* SPDX-License-Identifier: MIT
 *
 * turns.c - what a scaling rule did to each pair, and which pairs training saw whole
 *
 * Everything is read off the frequencies that the plan has, next to those of the same
 * spec without its rule, so it holds for every rule and for divisors from a file. */
#include "turns.h"

#include "report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const double two_pi = 6.283185307179586;

static int unscaled_of(double *out, const pe_rope_spec *spec, const pe_rope_info *info)
{
    const size_t size = (size_t)info->num_pairs * sizeof *out;
    const double factor = spec->freqs.factor > 0 ? spec->freqs.factor : 1;
    pe_rope_spec plain = *spec;
    pe_rope *plan;
    pe_error error;
    memcpy(out, info->inv_freq, size);
    if (spec->freqs.rope_type == PE_ROPE_CUSTOM)
        return CLI_DONE;
    if (spec->freqs.rope_type == PE_ROPE_PROPORTIONAL) {
        for (int32_t i = 0; i < info->num_pairs; i++)
            out[i] *= factor;
        return CLI_DONE;
    }
    plain.freqs = (pe_freqs){.rope_theta = spec->freqs.rope_theta};
    plain.table_len = 0;
    if (pe_rope_create(&plan, &plain, NULL, &error) != PE_OK)
        return cli_fail_with("frequencies without scaling", &error);
    memcpy(out, pe_rope_get_info(plan)->inv_freq, size);
    pe_rope_destroy(plan);
    return CLI_DONE;
}

static void count(cli_turns *turns, int32_t i, double divisor, double whole)
{
    const double margin = 1e-6; /* divisors from files are single precision */
    if (fabs(divisor - 1) <= margin) {
        turns->kept++;
    } else if (fabs(divisor - whole) <= margin * whole) {
        turns->divided++;
    } else {
        if (turns->blended++ == 0)
            turns->first_blended = i;
        turns->last_blended = i;
    }
}

int cli_turns_read(cli_turns *out, const pe_rope_spec *spec, const pe_rope_info *info,
                   int64_t trained_len)
{
    memset(out, 0, sizeof *out);
    out->num_pairs = info->num_pairs;
    int status = unscaled_of(out->unscaled, spec, info);
    if (status != CLI_DONE)
        return status;
    for (int32_t i = 0; i < info->num_pairs; i++) {
        const double divisor = out->unscaled[i] / info->inv_freq[i];
        if (info->inv_freq[i] == 0)
            continue;
        out->least = out->most == 0 || divisor < out->least ? divisor : out->least;
        out->most = divisor > out->most ? divisor : out->most;
    }
    for (int32_t i = 0; i < info->num_pairs; i++) {
        if (info->inv_freq[i] == 0) {
            out->still++;
            continue;
        }
        count(out, i, out->unscaled[i] / info->inv_freq[i], out->most);
        if (fabs(out->unscaled[i]) * (double)trained_len >= two_pi || trained_len == 0)
            continue;
        if (out->unfinished++ == 0)
            out->first_unfinished = i;
        out->last_unfinished = i;
    }
    return CLI_DONE;
}

void cli_turns_describe(char *out, size_t size, const cli_turns *turns)
{
    cli_number most;
    size_t used = 0;
    *out = '\0';
    (void)snprintf(most.text, sizeof most.text, "%.6g", turns->most);
    if (turns->kept <= 2 && turns->divided <= 2 &&
        turns->blended > turns->kept + turns->divided) {
        (void)snprintf(out, size, "%d divided, each by its own number from %.6g to %s",
                       (int)(turns->num_pairs - turns->still), turns->least, most.text);
        return;
    }
    if (turns->kept > 0)
        used += (size_t)snprintf(out, size, "%d kept", (int)turns->kept);
    if (turns->blended > 0 && used < size)
        used += (size_t)snprintf(out + used, size - used, "%s%d blended (%d-%d)",
                                 used > 0 ? ", " : "", (int)turns->blended,
                                 (int)turns->first_blended, (int)turns->last_blended);
    if (turns->divided > 0 && used < size)
        used += (size_t)snprintf(out + used, size - used, "%s%d divided by %s",
                                 used > 0 ? ", " : "", (int)turns->divided, most.text);
    if (turns->still > 0 && used < size)
        (void)snprintf(out + used, size - used, "%s%d still", used > 0 ? ", " : "",
                       (int)turns->still);
    if (turns->kept == turns->num_pairs)
        *out = '\0';
}

int64_t cli_horizon(double slope, const pe_bias_spec *spec)
{
    const double ln_2 = 0.6931471805599453;
    const double steps = 24 * ln_2 / (slope * (spec->scale != 0 ? spec->scale : 1));
    return steps >= 0 && steps < 1e15 ? (int64_t)floor(steps) + 1 : INT64_MAX;
}

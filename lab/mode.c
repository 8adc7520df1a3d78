/* SPDX-License-Identifier: MIT
 *
 * mode.c - names of modes, what they apply to, and the rotations they ask for
 *
 * YaRN's ramp is the paper's (Peng et al. 2023 eqs. 17-20): linear in the turns that a
 * pair makes within the trained length.  Hugging Face's code, which PE_ROPE_YARN
 * follows, is linear in the pair's index instead; the two agree only at the ends. */
#include "mode.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double theta = 10000, alpha = 1, default_beta = 32;

static const struct {
    const char *name;
    lab_mode_type type;
} plain[] = {{"base", LAB_MODE_BASE},    {"window", LAB_MODE_WINDOW},
             {"pi", LAB_MODE_PI},        {"ntk", LAB_MODE_NTK},
             {"dyn", LAB_MODE_DYN},      {"yarn", LAB_MODE_YARN},
             {"clamp", LAB_MODE_CLAMP},  {"wrap", LAB_MODE_WRAP},
             {"interp", LAB_MODE_INTERP}};

/* A decimal number, digits and one point only, and nothing else. */
static int read_number(const char *text, double *out)
{
    if (*text == '\0' || strlen(text) > 12 || text[strspn(text, "0123456789.")] != '\0')
        return 0;
    char *end;
    *out = strtod(text, &end);
    return *end == '\0';
}

pe_status lab_mode_parse(lab_mode *out, const char *name, pe_error *error)
{
    *out = (lab_mode){.times = 1, .beta = default_beta};
    for (size_t i = 0; i < LAB_COUNT(plain); i++)
        if (strcmp(name, plain[i].name) == 0) {
            out->type = plain[i].type;
            return PE_OK;
        }
    if (strncmp(name, "ntkx", 4) == 0 && read_number(name + 4, &out->times) &&
        out->times >= 1) {
        out->type = LAB_MODE_NTK;
        return PE_OK;
    }
    if (strncmp(name, "ntk@", 4) == 0 && read_number(name + 4, &out->fixed) &&
        out->fixed > 1) {
        out->type = LAB_MODE_NTK;
        return PE_OK;
    }
    out->type = LAB_MODE_YARN;
    if (strncmp(name, "yarn-b", 6) == 0 && read_number(name + 6, &out->beta) &&
        out->beta > alpha)
        return PE_OK;
    out->no_temperature = 1;
    if (strncmp(name, "parts-b", 7) == 0 && read_number(name + 7, &out->beta) &&
        out->beta > alpha)
        return PE_OK;
    *out = (lab_mode){.times = 1, .beta = default_beta};
    return lab_fail(
        error, PE_E_ARGUMENT,
        "mode %.40s is none of base, window, pi, ntk, ntkxM (M at least 1), "
        "ntk@S (S above 1), dyn, yarn, yarn-bN, parts-bN (N above 1), clamp, "
        "wrap, interp",
        name);
}

void lab_mode_name(const lab_mode *mode, char *out, size_t size)
{
    if (mode->type == LAB_MODE_NTK && mode->fixed > 0)
        (void)snprintf(out, size, "ntk@%.12g", mode->fixed);
    else if (mode->type == LAB_MODE_NTK && mode->times != 1)
        (void)snprintf(out, size, "ntkx%.12g", mode->times);
    else if (mode->type == LAB_MODE_YARN && mode->no_temperature)
        (void)snprintf(out, size, "parts-b%.12g", mode->beta);
    else if (mode->type == LAB_MODE_YARN && mode->beta != default_beta)
        (void)snprintf(out, size, "yarn-b%.12g", mode->beta);
    else
        for (size_t i = 0; i < LAB_COUNT(plain); i++)
            if (plain[i].type == mode->type)
                (void)snprintf(out, size, "%s", plain[i].name);
}

static int is_extended(const lab_config *config)
{
    return config->extension.type != LAB_MODE_BASE &&
           config->extension.type != LAB_MODE_INTERP;
}

pe_status lab_mode_check(const lab_mode *mode, const lab_config *config,
                         pe_error *error)
{
    char name[40], model[LAB_NAME_SIZE];
    const int is_learned = config->input == LAB_LEARNED;
    lab_mode_name(mode, name, sizeof name);
    lab_config_name(config, model, sizeof model);
    switch (mode->type) {
    case LAB_MODE_BASE:
        return PE_OK;
    case LAB_MODE_WINDOW:
        if (is_learned)
            return lab_fail(error, PE_E_ARGUMENT,
                            "mode window reads a learned table past its end; %.100s "
                            "takes clamp, wrap or interp",
                            model);
        return PE_OK;
    case LAB_MODE_CLAMP:
    case LAB_MODE_WRAP:
    case LAB_MODE_INTERP:
        if (!is_learned)
            return lab_fail(error, PE_E_ARGUMENT,
                            "mode %s is for a learned table, which %.100s has not",
                            name, model);
        return PE_OK;
    default:
        break;
    }
    const int takes_sin = mode->type == LAB_MODE_PI;
    if (!lab_config_has(config, LAB_ROPE) && !(takes_sin && config->input == LAB_SIN))
        return lab_fail(error, PE_E_ARGUMENT, "mode %s is for %s, which %.100s has not",
                        name, takes_sin ? "rope layers or a sin input" : "rope layers",
                        model);
    if (is_extended(config))
        return lab_fail(error, PE_E_ARGUMENT,
                        "mode %s scales again what training at length %d has scaled; "
                        "%.100s takes base or window",
                        name, (int)config->length, model);
    if (is_learned)
        return lab_fail(
            error, PE_E_ARGUMENT,
            "mode %s reads a learned table past its end; %.100s takes clamp, "
            "wrap or interp",
            name, model);
    const int32_t head_dim = config->width / config->heads;
    if ((mode->type == LAB_MODE_NTK || mode->type == LAB_MODE_DYN) && head_dim < 4)
        return lab_fail(error, PE_E_ARGUMENT,
                        "width / heads is %d, must be at least 4 for mode %s", head_dim,
                        name);
    return PE_OK;
}

/* Pairs that turn more than beta times within the trained length stay, those that turn
 * less than once are slowed by s, the others lie between, linearly in their turns. */
static void fill_yarn(double *inv_freq, int32_t head_dim, double length, double s,
                      double beta)
{
    for (int32_t i = 0; i < head_dim / 2; i++) {
        const double kept = pow(theta, -2.0 * i / head_dim);
        const double turns = length * kept / 6.283185307179586;
        const double ramp = (turns - alpha) / (beta - alpha);
        const double share = ramp < 0 ? 0 : ramp > 1 ? 1 : ramp;
        inv_freq[i] = (1 - share) * kept / s + share * kept;
    }
}

/* The mode that decides, and its s and L: those of training where that had scaled. */
static const lab_mode *deciding(const lab_mode *mode, const lab_config *config,
                                int64_t tokens, double *s, double *length)
{
    if (is_extended(config)) {
        *length = config->first_length;
        *s = config->length / *length;
        return &config->extension;
    }
    *length = config->length;
    *s = mode->fixed > 0 ? mode->fixed : (double)tokens / *length;
    return mode;
}

double lab_mode_sin_stretch(const lab_mode *mode, const lab_config *config,
                            int64_t tokens)
{
    double s, length;
    const int is_pi = deciding(mode, config, tokens, &s, &length)->type == LAB_MODE_PI;
    return is_pi && s > 1 ? s : 1;
}

void lab_mode_rope(const lab_mode *mode, const lab_config *config, int64_t tokens,
                   double *inv_freq, pe_rope_spec *out)
{
    double s, length;
    mode = deciding(mode, config, tokens, &s, &length);
    const int32_t head_dim = config->width / config->heads;
    *out = (pe_rope_spec){.struct_size = sizeof *out,
                          .head_dim = head_dim,
                          .table_len = tokens,
                          .pairs = {.pairing = PE_HALF_SPLIT},
                          .freqs = {.rope_type = PE_ROPE_DEFAULT, .rope_theta = theta}};
    if (s <= 1) /* what fits is read as it was trained */
        return;
    switch (mode->type) {
    case LAB_MODE_PI:
        out->freqs.rope_type = PE_ROPE_LINEAR;
        out->freqs.factor = s;
        break;
    case LAB_MODE_NTK:
    case LAB_MODE_DYN:
        out->freqs.rope_type = PE_ROPE_NTK;
        out->freqs.factor = s * mode->times;
        break;
    case LAB_MODE_YARN:
        fill_yarn(inv_freq, head_dim, length, s, mode->beta);
        out->freqs =
            (pe_freqs){.rope_type = PE_ROPE_CUSTOM,
                       .inv_freq = inv_freq,
                       .attention_factor = mode->no_temperature ? 1 : 0.1 * log(s) + 1};
        break;
    default:
        break;
    }
}

/* SPDX-License-Identifier: MIT
 *
 * mode.h - how a trained model is read at a length it was not trained on
 *
 * With s = T / L, T tokens read by a model that was trained on L:
 *     base                 as it is
 *     window               keys limited to the last L positions
 *     pi                   positions / s (rope: Chen et al. 2023; sin: the same)
 *     ntk, ntkxM, ntk@S    base * s^(d / (d - 2)); s times M; s = S at every length
 *     dyn                  NTK, query block c of L tokens rotated, with all its keys,
 *                          for s = c + 1: what a cache of unrotated keys allows
 *     yarn, yarn-bN        alpha 1, beta 32 or N, q and k times 0.1 ln s + 1
 *     parts-bN             YaRN without that factor
 *     clamp, wrap, interp  learned: row min(i, L - 1), i mod L, or the table stretched
 *                          linearly with its ends kept (align_corners)
 * A learned table read past its end in any other mode is refused.  A model that was
 * extended (config.h) has the frequencies of its extension in base and window; a mode
 * that would scale them again is refused. */
#ifndef POSENC_LAB_MODE_H
#define POSENC_LAB_MODE_H

#include "config.h"

/* PE_E_ARGUMENT names the mode. */
pe_status lab_mode_parse(lab_mode *out, const char *name, pe_error *error);
/* The name that parses to it; size at least 40. */
void lab_mode_name(const lab_mode *mode, char *out, size_t size);
/* Whether the mode says anything about that configuration: pi of an ALiBi model does
 * not.  The reason, naming both, in error. */
pe_status lab_mode_check(const lab_mode *mode, const lab_config *config,
                         pe_error *error);
/* Fills all of a rope spec for T = tokens (LAB_MODE_DYN: for s = T / L).  inv_freq
 * [width / heads / 2] is the caller's; the spec may point into it until the plan is
 * made. */
void lab_mode_rope(const lab_mode *mode, const lab_config *config, int64_t tokens,
                   double *inv_freq, pe_rope_spec *out);

/* What a sin input's positions are divided by for T = tokens: s of PI, else 1. */
double lab_mode_sin_stretch(const lab_mode *mode, const lab_config *config,
                            int64_t tokens);

#endif /* POSENC_LAB_MODE_H */

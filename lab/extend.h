/* SPDX-License-Identifier: MIT
 *
 * extend.h - a trained model made ready to go on training at a longer length
 */
#ifndef POSENC_LAB_EXTEND_H
#define POSENC_LAB_EXTEND_H

#include "trainer.h"

/* Of a trained configuration, the one that goes on at length: longer, with what a mode
 * by that name does to positions.  mode NULL: base where nothing would be read past what
 * it was trained on (ALiBi, T5, KERPLE, none), else refused.  base leaves the positions
 * as they are; a learned table takes interp only; an extended model goes on by the mode
 * that it has. */
pe_status lab_extend_config(lab_config *config, int64_t length, const char *mode,
                            pe_error *error);

/* The weights of from, with a learned table stretched linearly, its ends kept; moments
 * and step 0.  config: of lab_extend_config, from from's. */
pe_status lab_extend_state(lab_state *out, const lab_state *from,
                           const lab_config *config, pe_error *error);

#endif /* POSENC_LAB_EXTEND_H */

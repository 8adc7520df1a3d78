/* SPDX-License-Identifier: MIT
 *
 * png.h - a picture with a palette as PNG (W3C PNG, third edition)
 */
#ifndef POSENC_CLI_PNG_H
#define POSENC_CLI_PNG_H

#include "cli.h"

/* pixels[height][width] are indices below num_colours <= 256; colour 0 is transparent.
 * width and height are at least 1, their product at most 2^24.  Returns *size bytes in
 * new memory, NULL when that is out. */
unsigned char *cli_png(const unsigned char *pixels, int64_t width, int64_t height,
                       const uint32_t *colours, int num_colours, size_t *size);

#endif /* POSENC_CLI_PNG_H */

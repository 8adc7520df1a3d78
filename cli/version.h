/* SPDX-License-Identifier: MIT
 *
 * version.h - posenc --version
 */
#ifndef POSENC_CLI_VERSION_H
#define POSENC_CLI_VERSION_H

/* Version on the first line, how it was built below; returns an exit code. */
int cli_print_version(void);

#endif /* POSENC_CLI_VERSION_H */

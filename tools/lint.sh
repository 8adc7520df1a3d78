#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# lint.sh BUILD_DIR - every house rule that a machine can check
#
# Each finding is one line, file:line: reason.  BUILD_DIR holds the libraries whose
# symbols are checked.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
failed=0
mapfile -t sources < <(git ls-files -co --exclude-standard '*.c' '*.h')
clang-format-14 --dry-run -Werror "${sources[@]}" || failed=1
for check in check_files check_layers; do
    tools/$check.py || failed=1
done
tools/check_symbols.py "$1" || failed=1
tools/check_docs.sh "$1/docs" || failed=1
((failed)) || echo "lint: no findings in ${#sources[@]} C files"
exit $failed

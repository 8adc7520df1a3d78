#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# valgrind.sh BUILD_DIR - what MemorySanitizer cannot watch: the code that uses json-c
set -euo pipefail
failed=0
for program in "$1"/bin/test_model_* "$1"/bin/example_*; do
    [[ -x $program ]] || continue
    echo "$(basename "$program")"
    valgrind -q --error-exitcode=9 --leak-check=full --errors-for-leak-kinds=definite \
        "$program" >/dev/null || {
        echo "valgrind: $program failed" >&2
        failed=1
    }
done
exit $failed

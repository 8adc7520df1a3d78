#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# valgrind.sh BUILD_DIR - what MemorySanitizer cannot watch: the code that uses json-c
set -uo pipefail
bin=$1/bin
failed=0
watch() {
    echo "$*"
    valgrind -q --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite \
        "$@" >/dev/null || {
        echo "valgrind: $* failed" >&2
        failed=1
    }
}
watch "$bin/posenc" presets --json
watch "$bin/posenc" inspect llama-3.1-8b --json
watch "$bin/posenc" freqs llama-3.1-8b
watch "$bin/posenc-vectors" tests/data/vectors/mrope.json
for program in "$bin"/test_model_* "$bin"/test_rope_bad_* "$bin"/example_*; do
    [[ ! -x $program ]] || watch "$program"
done
exit $failed

#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# matrix.sh - the same table bits from every compiler and level
#
# Builds the core with one plain compiler line, no build system, and compares the hash
# over the table entries with the pinned one.  -ffp-contract=fast and -march=native
# invite the compiler to fuse; the sources must not let it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
sources=()
for room in src src/base src/kernels src/angle src/rope src/absolute src/sinusoidal \
    src/learned src/bias src/positions src/attention src/thread; do
    for file in "$room"/*.c; do
        [[ -e $file ]] && sources+=("$file")
    done
done
failed=0
# shellcheck disable=SC2086 # flags are words
for cc in gcc clang-14; do
    for flags in -O0 -O2 -O3 "-O3 -march=native" "-O3 -march=native -ffp-contract=fast"; do
        $cc $flags -Iinclude -Isrc "${sources[@]}" tests/hash/table_hash.c \
            -o "$work/table_hash" -lm
        got=$("$work/table_hash")
        printf '%-48s %s\n' "$cc $flags" "$got"
        [[ $got == "$(<tests/hash/pinned)" ]] || failed=1
    done
done
((!failed)) || echo "hash: expected $(<tests/hash/pinned)" >&2
exit $failed

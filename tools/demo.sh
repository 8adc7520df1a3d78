#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# demo.sh POSENC - the main job on a built-in preset, with every step shown
#
# q and k are all ones, so that each rotated pair reads (cos - sin, sin + cos), which can
# be checked by eye against the table.
set -euo pipefail
posenc=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# ones FILE HEADS: float32 ones of shape (1, 4, HEADS, 128), as an npy file.
ones() {
    local header="{'descr': '<f4', 'fortran_order': False, 'shape': (1, 4, $2, 128), }"
    {
        printf '\x93NUMPY\x01\x00\x76\x00%-117s\n' "$header"
        head -c $((4 * $2 * 128 * 4)) /dev/zero | tr '\0' 'x' |
            LC_ALL=C sed 's/xxxx/\x00\x00\x80\x3f/g'
    } >"$1"
}

show() {
    printf '\n$ posenc %s\n' "$*"
    "$posenc" "$@"
}

# element FILE TOKEN INDEX: one element of head 0 of q.
element() {
    od -A n -t fF -j $((128 + ($2 * 32 * 128 + $3) * 4)) -N 4 "$1" | tr -d ' '
}

ones q.npy 32
ones k.npy 8
show inspect llama-3.1-8b
show apply llama-3.1-8b --q q.npy --k k.npy --positions 1000 -o out
printf '\n$ posenc table llama-3.1-8b --positions 1000:1004 --csv   # its first pair\n'
"$posenc" table llama-3.1-8b --positions 1000:1004 --csv | grep -E 'pair|,0,'
printf '\nq, head 0, first pair (elements 0 and 64), before and after:\n'
for token in 0 1 2 3; do
    printf 'position %d   (%s, %s)  ->  (%s, %s)\n' $((1000 + token)) \
        "$(element q.npy $token 0)" "$(element q.npy $token 64)" \
        "$(element out/q.npy $token 0)" "$(element out/q.npy $token 64)"
done
printf 'Every pair reads (cos - sin, sin + cos), since q is all ones.\n'

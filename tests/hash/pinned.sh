#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# pinned.sh PROGRAM - the hash that PROGRAM prints is the one in the file pinned
set -euo pipefail
got=$("$1")
echo "$got"
[[ $got == "$(<tests/hash/pinned)" ]] || {
    echo "hash: expected $(<tests/hash/pinned)" >&2
    exit 1
}

#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# completion.sh DOCS_DIR POSENC - bash's completion, called as bash calls it
#
# Prints a line for each finding.  What the other shells make of theirs is for
# tools/check_docs.sh, which has them installed.
set -u
# shellcheck disable=SC1091
source "$1/bash/posenc"
posenc=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
mkdir folder
touch q.npy 'two words.npy' my.json my.gguf my.txt picture.svg w.safetensors
failed=0

# expect "WORDS SO FAR..." WANTED...: all of the suggestions, in order.
expect() {
    local line=$1 got want
    shift
    read -ra COMP_WORDS <<<"$line"
    [[ $line == *' ' ]] && COMP_WORDS+=('')
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    _posenc
    got=$(printf '[%s]' "${COMPREPLY[@]}")
    want=$(printf '[%s]' "$@")
    if [[ $got != "$want" ]]; then
        echo "completion of '$line': got $got, expected $want"
        failed=1
    fi
}

# offers "WORDS SO FAR..." WORD...: among others.
offers() {
    local line=$1 word
    shift
    read -ra COMP_WORDS <<<"$line"
    [[ $line == *' ' ]] && COMP_WORDS+=('')
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    _posenc
    for word; do
        if [[ ! " ${COMPREPLY[*]} " == *" $word "* ]]; then
            echo "completion of '$line' does not offer $word"
            failed=1
        fi
    done
}

complete -p posenc >/dev/null || failed=1
expect 'posenc pl' plot
expect 'posenc help pl' plot
expect 'posenc --v' --version
expect 'posenc freqs --la' --layer
expect 'posenc freqs --role v' vision
expect 'posenc freqs --role = v' vision
expect 'posenc freqs --layer ' ''
expect 'posenc apply --layout ' bshd bhsd
expect 'posenc apply --q q' q.npy
expect 'posenc apply --q two' 'two words.npy'
expect 'posenc apply m -o f' folder
expect 'posenc freqs my' my.gguf my.json
expect 'posenc freqs --layer 3 llama-3.1' llama-3.1-70b llama-3.1-8b
expect 'posenc freqs llama-3.1-8b llama' ''
expect 'posenc convert w' w.safetensors
expect 'posenc plot d' dials decay
expect 'posenc plot decay --model gemma-3-4' gemma-3-4b
expect 'posenc positions str' streaming
expect 'posenc lesson al' alibi
expect 'posenc attend llama-3.1-8b q.npy --layer 3 two' 'two words.npy'
expect 'posenc nosuchverb ' ''
expect 'posenc lab insp' inspect
expect 'posenc help lab insp' inspect
expect 'posenc lab inspect --js' --json
expect 'posenc lab inspect w' w.safetensors
# verbs_of [GROUP]: what --help lists.
verbs_of() {
    "$posenc" ${1:+"$1"} --help | sed -n '/^Verbs:/,/^$/s/^  \([a-z]*\) .*/\1/p'
}

# All verbs, and all options of each: what --help shows.
mapfile -t verbs < <(verbs_of)
offers 'posenc ' help --help --version "${verbs[@]}"
all=()
for verb in "${verbs[@]}"; do
    mapfile -t members < <(verbs_of "$verb")
    if ((${#members[@]})); then
        offers "posenc $verb " help --help "${members[@]}"
        expect "posenc help $verb " "${members[@]}"
        all+=("${members[@]/#/$verb }")
    else
        all+=("$verb")
    fi
done
for verb in "${all[@]}"; do
    # shellcheck disable=SC2086
    mapfile -t options < <("$posenc" $verb --help |
        sed -n '/^Options:/,/^$/s/^  \(-., \|    \)\(--[a-z0-9-]*\).*/\2/p')
    offers "posenc $verb --" "${options[@]}"
    page=$1/man1/posenc-${verb/ /-}.1
    for option in "${options[@]}"; do
        grep -q -- "^\.It.* Fl \\\\-${option#--}\( \|$\)" "$page" || {
            echo "$page has no $option"
            failed=1
        }
    done
done
((${#verbs[@]} > 10)) || failed=1

# posenc-lesson(7): every number of the lesson as it is computed now, marks of lists apart.
numbers() { grep -o '[^ ]*[0-9][^ ]*' | LC_ALL=C sort; }
for lang in en ko; do
    page=$1/man7/posenc-lesson.7
    [[ $lang == en ]] || page=$1/$lang/man7/posenc-lesson.7
    LC_ALL=C.UTF-8 "$posenc" lesson --lang $lang | sed 's/^[0-9]*\. //' | numbers >shown
    sed '/^\./d; s/\\ / /g; s/\\-/-/g; s/\\e/\\/g' "$page" | numbers >written
    if ! cmp shown written || (($(wc -l <shown) < 500)); then
        echo "$page has other numbers than posenc lesson"
        failed=1
    fi
done
exit $failed

#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# check_docs.sh DOCS_DIR - manual pages and completions, by the programs that read them
#
# mandoc's warnings and style; the syntax of bash, zsh and fish; what fish suggests.
# References are checked here, since mandoc looks for them among installed pages.  It
# takes the end of its own escape for Hangul, \[uXXXX], for a bracket that ends a line.
set -uo pipefail
docs=$1
failed=0
report() {
    echo "$1"
    failed=1
}

for page in "$docs"/man1/*.1 "$docs"/man7/*.7 "$docs"/ko/man7/*.7; do
    findings=$(mandoc -Tlint -W style "$page" 2>&1 |
        grep -v -e 'referenced manual not found' -e 'function name without markup' \
            -e 'trailing delimiter:.*\\\[u[0-9A-F]*\]$')
    [[ -z $findings ]] || report "$findings"
    while read -r name section; do
        [[ -e $docs/man$section/$name.$section ]] || report "$page: no page $name"
    done < <(sed -n 's/^\.\(It \)\?Xr \([a-z-]*\) \([0-9]\).*/\2 \3/p' "$page")
done
bash -n "$docs/bash/posenc" || failed=1
zsh -n "$docs/zsh/_posenc" || failed=1
fish --no-execute "$docs/fish/posenc.fish" || failed=1

# suggests "LINE" WORD...: all that fish suggests there, sorted.
suggests() {
    local line=$1 got
    shift
    got=$(fish --no-config -c "source $docs/fish/posenc.fish; complete -C'$line'" |
        cut -f1 | sort | tr '\n' ' ')
    [[ $got == "$* " ]] || report "fish: $line suggests $got, expected $*"
}
suggests 'posenc pl' plot
suggests 'posenc plot d' decay dials
suggests 'posenc freqs --role v' vision
suggests 'posenc freqs llama-3.1' llama-3.1-70b llama-3.1-8b
suggests 'posenc plot table --rol' --role
suggests 'posenc lab insp' inspect
suggests 'posenc help lab insp' inspect
suggests 'posenc lab inspect --js' --json

# zsh's function has to define itself and its helpers when it is loaded.
zsh -fc "autoload -Uz compinit && compinit -u -D
fpath=('$docs/zsh' \$fpath); autoload +X -Uz _posenc && (( \$+functions[_posenc] ))" ||
    report "zsh: _posenc cannot be loaded"
exit $failed

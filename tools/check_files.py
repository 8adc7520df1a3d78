#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# check_files.py - licence lines, file heads, lengths, words and executable bits
#
# Looks at every file that git tracks or would track.
import os
import re
import subprocess
import sys

MAX_LINES = 600
SCRIPTS = (".sh", ".py", ".cmake", ".cmake.in", "CMakeLists.txt")
# Written in pieces, so that this file does not find itself.
FORBIDDEN = [
    (r"\bTO" r"DO\b|\bFIX" r"ME\b|\bX" r"XX\b", "unfinished work goes to an issue"),
    (r"/wor" r"k/|/roo" r"t/|/tm" r"p/wt-|\.\./sha" r"red", "a path of one machine"),
]

findings = 0


def report(path, line, reason):
    global findings
    findings += 1
    print(f"{path}:{line}: {reason}")


def check_c_head(path, lines):
    name = os.path.basename(path)
    if lines[:1] != ["/* SPDX-License-Identifier: MIT"]:
        report(path, 1, "must begin with /* SPDX-License-Identifier: MIT")
    elif lines[1:2] != [" *"] or not lines[2].startswith(f" * {name} - "):
        report(path, 3, f'must say " * {name} - purpose"')


def check_text(path, text, executable):
    lines = text.split("\n")
    is_c = path.endswith((".c", ".h"))
    is_script = path.endswith(SCRIPTS) or text.startswith("#!")
    if is_c:
        check_c_head(path, lines)
    elif is_script and "# SPDX-License-Identifier: MIT" not in lines[:2]:
        report(path, 1, "must begin with # SPDX-License-Identifier: MIT")
    if (is_c or is_script) and len(lines) - 1 > MAX_LINES:
        report(path, MAX_LINES + 1, f"has {len(lines) - 1} lines, at most {MAX_LINES}")
    if executable != text.startswith("#!"):
        report(path, 1, "must be executable" if not executable else "is executable")
    if (is_c or is_script or path.endswith(".md")) and not text.endswith("\n"):
        report(path, len(lines), "does not end in a newline")
    for number, line in enumerate(lines, 1):
        for pattern, reason in FORBIDDEN:
            match = re.search(pattern, line)
            if match:
                report(path, number, f'"{match[0]}": {reason}')
        if (is_c or is_script) and line != line.rstrip():
            report(path, number, "ends in white space")


def check_corpora():
    for name in sorted(os.listdir("fuzz")):
        if name.startswith("fuzz_") and name.endswith(".c"):
            corpus = f"fuzz/corpus/{name[5:-2]}"
            if not os.path.isdir(corpus) or not os.listdir(corpus):
                report(f"fuzz/{name}", 1, f"{corpus}/ holds no input")


listing = subprocess.run(
    ["git", "ls-files", "-coz", "--exclude-standard"], check=True, capture_output=True
)
for path in sorted(listing.stdout.decode().split("\0")):
    if not os.path.isfile(path):
        continue
    with open(path, "rb") as file:
        data = file.read()
    executable = os.access(path, os.X_OK)
    try:
        if b"\0" in data:
            raise ValueError
        check_text(path, data.decode(), executable)
    except ValueError:
        if executable:
            report(path, 1, "is executable, but is data")
check_corpora()
sys.exit(findings > 0)

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# check_symbols.py BUILD_DIR - what the libraries export, and what they need
#
# Each shared library exports exactly what its public headers declare with PE_API.  The
# core needs libc and libm alone, and nothing from them that prints, exits, reads the
# environment, or is rounded differently from one libm to the next.
import glob
import os
import re
import subprocess
import sys

DECLARATION = re.compile(r"^PE_API\b[^;(]*?\b(pe_\w+)\(", re.MULTILINE)
INEXACT = "sin cos tan sincos asin acos atan atan2 exp exp2 expm1 log log2 log10 log1p pow"
FORBIDDEN = {name + suffix for name in INEXACT.split() for suffix in ("", "f", "l")} | set(
    "printf puts putchar fprintf fputs vprintf vfprintf exit abort getenv secure_getenv "
    "stdout stderr".split()
)
findings = 0


def report(path, line, reason):
    global findings
    findings += 1
    print(f"{path}:{line}: {reason}")


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def declared(headers):
    """Names in headers, each with its file and line."""
    result = {}
    for header in headers:
        with open(header, encoding="utf-8") as file:
            text = file.read()
        for match in DECLARATION.finditer(text):
            result[match[1]] = (header, text.count("\n", 0, match.start()) + 1)
        if text.count("\nPE_API ") != len(DECLARATION.findall(text)):
            report(header, 1, "holds a PE_API that this check cannot read")
    return result


def check_exports(library, headers):
    names = declared(headers)
    output = run("nm", "-D", "--defined-only", "--format=posix", library)
    exported = {line.split()[0] for line in output.splitlines()}
    for name in sorted(names.keys() - exported):
        report(*names[name], f"{name} is declared, but {library} does not export it")
    for name in sorted(exported - names.keys()):
        report(library, 1, f"{name} is exported, but no public header declares it")


def check_needs(library):
    needed = re.findall(r"NEEDED.*\[(.*)\]", run("readelf", "-dW", library))
    for name in needed:
        if not name.startswith(("libc.so", "libm.so", "ld-linux")):
            report(library, 1, f"needs {name}; the core needs libc alone")
    output = run("nm", "-D", "--undefined-only", "--format=posix", library)
    for line in output.splitlines():
        name = line.split()[0].split("@")[0]
        if name in FORBIDDEN:
            report(library, 1, f"uses {name}")


build = sys.argv[1]
headers = glob.glob("include/posenc/*.h")
model = [header for header in headers if os.path.basename(header) == "model.h"]
core = [header for header in headers if header not in model]
check_exports(f"{build}/lib/libposenc.so", core)
check_needs(f"{build}/lib/libposenc.so")
if os.path.exists(f"{build}/lib/libposenc-model.so"):
    check_exports(f"{build}/lib/libposenc-model.so", model)
elif model:
    report(model[0], 1, "is declared, but there is no libposenc-model.so")
sys.exit(findings > 0)

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# check_layers.py - the house law: which room may include which
#
# A room is a folder of src/, or a file of src/ itself, named by its stem up to the
# first underscore.  Programs (cli, lab, examples, bench, fuzz) see public headers only.
import glob
import os
import re
import sys

KERNEL = {"base", "kernels", "angle"}
MAY_INCLUDE = {
    "base": set(),
    "kernels": {"base"},
    "angle": {"base", "kernels"},
    "rope": KERNEL,
    "absolute": {"base", "kernels"},
    "sinusoidal": KERNEL | {"absolute"},
    "learned": KERNEL | {"absolute"},
    "bias": KERNEL,
    "positions": KERNEL,
    "temperature": KERNEL,
    "copy": {"base", "kernels"},
    "thread": {"base"},
    "attention": KERNEL | {"rope", "bias", "positions"},
    "model": {"base"},
}

C11 = set(
    """assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp
    signal stdalign stdarg stdatomic stdbool stddef stdint stdio stdlib stdnoreturn
    string tgmath threads time uchar wchar wctype""".split()
)
C11 = {name + ".h" for name in C11}
POSIX = {"dirent.h", "fcntl.h", "sys/ioctl.h", "sys/mman.h", "sys/stat.h",
         "sys/types.h", "unistd.h"}
JSON = re.compile(r"json-c/\w+\.h|json\.h")
# Beyond C11: what a room may take from the system.
SYSTEM = {
    "base": {"cpuid.h"},
    "kernels": {"immintrin.h", "arm_neon.h", "wasm_simd128.h"},
    "thread": {"pthread.h", "sched.h"},
    "model": POSIX | {"pthread.h"},
    "cli": POSIX | {"getopt.h", "immintrin.h", "sched.h", "signal.h", "sys/file.h", "sys/resource.h"},
    "lab": POSIX | {"dlfcn.h", "sha2.h", "spawn.h", "sys/wait.h"},
    "bench": POSIX | {"pthread.h"},
    "examples": {"pthread.h"},
    "fuzz": POSIX,
}
MAY_USE_JSON = {"model", "cli", "lab"}
PROGRAMS = ("cli", "lab", "examples", "bench", "fuzz")
LAYERED = ("cli", "lab", "fuzz", "bench")  # may have headers of their own

INCLUDE = re.compile(r'\s*#\s*include\s+([<"])([^>"]+)[>"]')
findings = 0


def report(path, line, reason):
    global findings
    findings += 1
    print(f"{path}:{line}: {reason}")


def room_of(path):
    """The room of a path relative to src."""
    first = path.split("/")[0]
    return first if "/" in path else os.path.splitext(first)[0].split("_")[0]


def includes(path):
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            match = INCLUDE.match(line)
            if match:
                yield number, match[2], match[1] == '"'


def check_system(path, line, name, room):
    if name in C11 or name in SYSTEM.get(room, ()):
        return
    if JSON.fullmatch(name) and room in MAY_USE_JSON:
        return
    report(path, line, f"{room} may not use <{name}>")


def check_library(path):
    room = room_of(path.removeprefix("src/"))
    if room not in MAY_INCLUDE:
        report(path, 1, f"{room} is no known room; add it to the law in {__file__}")
        return
    for line, name, quoted in includes(path):
        if name.startswith("posenc/"):
            continue
        if not quoted:
            check_system(path, line, name, room)
        elif not os.path.exists(f"src/{name}"):
            report(path, line, f'"{name}" is not relative to src/')
        elif room_of(name) != room and room_of(name) not in MAY_INCLUDE[room]:
            report(path, line, f"{room} may not know {room_of(name)} (house law)")


def check_program(path):
    room = path.split("/")[0]
    for line, name, quoted in includes(path):
        if name.startswith("posenc/"):
            if not os.path.exists(f"include/{name}"):
                report(path, line, f"{name} is no public header")
        elif not quoted:
            check_system(path, line, name, room)
        elif room not in LAYERED or os.path.exists(f"src/{name}"):
            report(path, line, f"{room} uses public headers only, not {name}")


def check_public(path):
    for line, name, quoted in includes(path):
        if name not in (
            "stddef.h", "stdint.h", "posenc.h", "env.h", "positions.h",
        ):
            report(path, line, f"a public header may not include {name}")


for path in sorted(glob.glob("src/**/*.[ch]", recursive=True)):
    check_library(path)
for program in PROGRAMS:
    for path in sorted(glob.glob(f"{program}/**/*.[ch]", recursive=True)):
        check_program(path)
for path in sorted(glob.glob("include/posenc/*.h")):
    check_public(path)
sys.exit(findings > 0)

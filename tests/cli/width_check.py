# SPDX-License-Identifier: MIT
#
# width_check.py - nothing is wider than the page
#
# Every transcript in cases/, every help page, every preset: at most 80 columns, or what
# COLUMNS or --width asks for.  Not measured are what programs read (JSON, CSV, SVG, files
# on standard output), terminal codes made visible, and errors and notes, which are one
# line each.  A word that is wider by itself, as a long path, stays whole.
import os
import re
import subprocess

import lesson_pages

MACHINE = re.compile(r"--json|--csv|--format (csv|svg)|cat -v|cat \S+\.svg| -o -(\W|$)")
ASKED = re.compile(r"COLUMNS=(\d+)|--width (\d+)")


class Checker:
    def __init__(self, posenc):
        self.posenc = posenc
        self.count = self.failed = 0

    def measure(self, name, lines, limit):
        wide = [line for line in lines if lesson_pages.columns_of(line) > limit
                and len(line.split()) > 1]
        self.count += 1
        if wide:
            self.failed += 1
            print(f"{name}: {lesson_pages.columns_of(wide[0])} columns, at most {limit}: "
                  f"{wide[0]}")

    def run(self, *arguments, columns=80):
        done = subprocess.run([self.posenc, *arguments], check=True, capture_output=True,
                              stdin=subprocess.DEVNULL, timeout=60,
                              env=dict(os.environ, COLUMNS=str(columns), LC_ALL="C.UTF-8"))
        return done.stdout.decode().splitlines()


def transcripts(check, folder):
    for name in sorted(os.listdir(folder)):
        command, lines = None, []
        with open(f"{folder}/{name}", encoding="utf-8") as file:
            for line in file.read().splitlines() + ["$ end"]:
                if line.startswith("$ "):
                    if command and not MACHINE.search(command):
                        asked = ASKED.search(command)
                        limit = int(asked[1] or asked[2]) if asked else 80
                        check.measure(f"{name}: {command}", lines, max(limit, 80))
                    command, lines = line[2:], []
                elif line[:1] in "|!" and not line.startswith("! posenc: "):
                    lines.append(line[2:])


def verbs(overview):
    begin = overview.index("Verbs:") + 1
    return [line.split()[0] for line in overview[begin : overview.index("", begin)]]


def run(posenc, folder):
    check = Checker(posenc)
    overview = check.run("--help")
    check.measure("--help", overview, 80)
    for verb in verbs(overview):
        page = check.run(verb, "--help")
        check.measure(f"{verb} --help", page, 80)
        for member in verbs(page) if "Verbs:" in page else []:
            check.measure(f"{verb} {member} --help",
                          check.run(verb, member, "--help"), 80)
    transcripts(check, folder)
    check.measure("presets", check.run("presets"), 80)
    for line in check.run("presets"):
        preset = line.split()[0]
        if line[0] == " ":
            continue
        for columns in (60, 80, 200):
            check.measure(f"inspect {preset}, {columns} columns",
                          check.run("inspect", preset, "--layers", columns=columns),
                          columns)
    assert check.count > 500
    return check.count, check.failed

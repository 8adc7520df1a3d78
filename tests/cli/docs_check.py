# SPDX-License-Identifier: MIT
#
# docs_check.py - what the documents show at the prompt is what happens
#
# In a block between ``` lines, "$ posenc ..." is run in a checkout and what follows is
# its output; an ellipsis stands for any lines, or for any part of one.  A command
# without output below it has to succeed; a picture whose title is a command has to be
# what the command draws.  --update draws, fills in the outputs below commands that show
# none, and writes anew those without an ellipsis.
import os
import re
import subprocess

DOCUMENTS = ("docs/command.md", "docs/extrapolation.md", "README.md", "README.ko.md")
ELLIPSIS = "…"


def run_line(line, folder):
    env = dict(os.environ, PATH=f"{folder}/bin:{os.environ['PATH']}", COLUMNS="80",
               LC_ALL="C.UTF-8")
    done = subprocess.run(["bash", "-c", line], cwd=folder, env=env, timeout=300,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    return [l.rstrip() for l in done.stdout.decode().splitlines()], done.returncode


def blocks_of(text):
    """The lines of each block in which posenc is run, as [(command, output)]."""
    for block in re.findall(r"^```\w*\n(.*?)^```", text, flags=re.M | re.S):
        commands = []
        for line in block.splitlines():
            if line.startswith("$ "):
                commands.append((line[2:], []))
            elif commands:
                commands[-1][1].append(line.rstrip())
        if any("posenc " in command for command, _ in commands):
            yield block, commands


def trimmed(lines):
    while lines and not lines[-1]:
        lines = lines[:-1]
    return lines


def matches(shown, got):
    pattern = "".join("(?:.*\n)*" if line == ELLIPSIS else
                      ".*".join(map(re.escape, line.split(ELLIPSIS))) + "\n"
                      for line in shown)
    return re.fullmatch(pattern, "".join(line + "\n" for line in got)) is not None


def fill_in(command, shown, got):
    return shown if ELLIPSIS in "".join(shown) else got


def check_document(path, folder, update):
    """READMEs show some commands for themselves: only docs/ is written to."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    count = failed = 0
    for block, commands in blocks_of(text):
        filled = []
        for command, output in commands:
            shown = trimmed(output)
            got, code = run_line(command, folder)
            got = trimmed(got)
            count += 1
            if not (matches(shown, got) if shown else code == 0):
                failed += 1
                if not update:
                    print(f"{path}: $ {command}\n  shown {shown}\n  got   {got}, {code}")
            filled.append("\n".join([f"$ {command}"] + fill_in(command, shown, got)
                                    + output[len(shown):]))
        if update and "/docs/" in path:
            text = text.replace(block, "\n".join(filled) + "\n")
    if update:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    return count, failed


def check_pictures(path, folder, update):
    """A picture whose title is a command is what the command draws."""
    with open(path, encoding="utf-8") as file:
        pictures = re.findall(r'!\[[^]]*\]\((\S+\.svg) "(posenc [^"]+)"\)', file.read())
    failed = 0
    for name, command in pictures:
        _, code = run_line(f"{command} -o picture.svg", folder)
        with open(f"{folder}/picture.svg", "rb") as file:
            drawn = file.read()
        picture = f"{os.path.dirname(path)}/{name}"
        if update:
            with open(picture, "wb") as file:
                file.write(drawn)
        with open(picture, "rb") as file:
            if code or file.read() != drawn:
                failed += 1
                print(f"{picture} is not what {command} draws; --update docs draws it")
    return len(pictures), failed


def shape_of(path):
    """What a translation has in common with its original: links, code, sections, rows."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    code = re.findall(r"^```c\n.*?^```", text, flags=re.M | re.S)
    links = re.findall(r"\]\(([^) ]+)", text)
    return {"links": sorted(link for link in links if not link.startswith("README")),
            "code": [re.sub(r"/\*.*?\*/", "", block) for block in code],
            "sections": len(re.findall(r"^## ", text, flags=re.M)),
            "rows": [len(table.splitlines()) for table in
                     re.findall(r"(?:^\|.*\n)+", text, flags=re.M)]}


def check_translation(original, translation):
    """0 or 1 that failed."""
    shapes = shape_of(original), shape_of(translation)
    apart = [name for name in shapes[0] if shapes[0][name] != shapes[1][name]]
    for name in apart:
        print(f"{name} of {original} and {translation} differ: "
              f"{shapes[0][name]}, {shapes[1][name]}")
    return len(apart) > 0


def check_verbs(path, folder):
    """Every verb has a section, in the order of the overview."""
    overview = run_line("posenc --help", folder)[0]
    begin = overview.index("Verbs:") + 1
    verbs = [line.split()[0] for line in overview[begin : overview.index("", begin)]]
    with open(path, encoding="utf-8") as file:
        heads = re.findall(r"^## ([a-z-]+(?:, [a-z-]+)*)$", file.read(), flags=re.M)
    sections = ", ".join(heads).split(", ")
    if sections == verbs:
        return 1, 0
    print(f"{path}: sections {sections}, verbs {verbs}")
    return 1, 1


def run(folder, root, update=False):
    total = total_failed = 0
    for document in DOCUMENTS:
        if not os.path.exists(f"{root}/{document}"):
            continue
        for check in (check_document, check_pictures):
            count, failed = check(f"{root}/{document}", folder, update)
            total, total_failed = total + count, total_failed + failed
    count, failed = check_verbs(f"{root}/{DOCUMENTS[0]}", folder)
    failed += check_translation(f"{root}/README.md", f"{root}/README.ko.md")
    return total + count + 1, total_failed + failed

# SPDX-License-Identifier: MIT
#
# plot_check.py - pictures on terminals, pictures in files, and what is left of them
#
# A terminal's output is compared with what options ask for through a pipe, which the
# transcripts in cases/ pin.  PNGs are decoded with zlib and checked pixel by pixel.
import base64
import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
import xml.etree.ElementTree
import zlib

UTF8, C = {"LC_ALL": "C.UTF-8"}, {"LC_ALL": "C"}
KINDS = ("table", "waves", "dials", "decay", "freqs", "alibi", "slopes", "error",
         "mrope")
# (environment, --color), and the --color that must give the same.
TERMINALS = [({"TERM": "xterm"}, [], "never"),
             ({"TERM": "xterm-256color"}, [], "256"),
             ({"TERM": "xterm-256color", "COLORTERM": "truecolor"}, [], "truecolor"),
             ({"TERM": "xterm-direct"}, [], "truecolor"),
             ({"TERM": "dumb"}, [], "never"),
             ({}, [], "never"),
             ({"TERM": "xterm-256color", "NO_COLOR": "1"}, [], "never"),
             ({"TERM": "xterm-256color", "NO_COLOR": ""}, [], "256"),
             ({"TERM": "xterm-256color", "NO_COLOR": "1", "CLICOLOR_FORCE": "1"}, [],
              "never"),
             ({"TERM": "xterm-256color", "NO_COLOR": "1"}, ["--color", "always"], "256"),
             ({"TERM": "xterm"}, ["--color", "always"], "256"),
             ({"TERM": "xterm", "COLORTERM": "24bit"}, ["--color", "always"],
              "truecolor"),
             ({"TERM": "xterm-256color"}, ["--color", "never"], "never")]
PIPES = [({"TERM": "xterm-256color"}, "never"),
         ({"TERM": "xterm-256color", "CLICOLOR_FORCE": "1"}, "256"),
         ({"TERM": "xterm-256color", "CLICOLOR_FORCE": "0"}, "never"),
         ({"TERM": "xterm-256color", "CLICOLOR_FORCE": "1", "NO_COLOR": "1"}, "never")]


class Checker:
    def __init__(self, posenc, folder):
        self.posenc, self.folder = posenc, folder
        self.count = self.failed = 0

    def run(self, *arguments, env=C, **keywords):
        return subprocess.run([self.posenc, *map(str, arguments)], cwd=self.folder,
                              env=env, timeout=120, capture_output=True, **keywords)

    def report(self, name, problem):
        self.count += 1
        if problem:
            self.failed += 1
            print(f"{name}: {problem}")

    def on_terminal(self, arguments, env, width):
        """What a terminal of that width receives."""
        parent, child = pty.openpty()
        fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("4H", 50, width, 0, 0))
        process = subprocess.Popen([self.posenc, *arguments], cwd=self.folder, env=env,
                                   stdin=subprocess.DEVNULL, stdout=child,
                                   stderr=subprocess.STDOUT)
        os.close(child)
        data = b""
        while True:
            try:
                piece = os.read(parent, 65536)
            except OSError:  # the terminal was closed: all has been read
                break
            if not piece:
                break
            data += piece
        os.close(parent)
        process.wait()
        return data.replace(b"\r\n", b"\n")


def visible_width(line):
    return len(re.sub("\x1b\\[[0-9;]*m", "", line))


def check_terminals(checker):
    for locale in (UTF8, C):
        for width in (80, 200):
            for env, options, color in TERMINALS:
                env = dict(env, **locale)
                kind = "alibi"
                got = checker.on_terminal(["plot", kind, *options], env, width)
                want = checker.run("plot", kind, "--color", color, "--width", width,
                                   env=locale).stdout
                problem = got != want or not want
                checker.report(f"plot {kind} in {env}, {width} columns",
                               problem and f"differs from --color {color}")
    for env, color in PIPES:
        got = checker.run("plot", "slopes", env=dict(env, **C)).stdout
        want = checker.run("plot", "slopes", "--color", color, "--width", 80).stdout
        checker.report(f"plot slopes through a pipe in {env}",
                       got != want and f"differs from --color {color}")
    got = checker.run("plot", "slopes", env=dict(C, COLUMNS="60")).stdout
    want = checker.run("plot", "slopes", "--width", 60).stdout
    checker.report("COLUMNS", got != want and "is not heeded")


def check_widths(checker):
    """No line is wider than the terminal, and ASCII is what the C locale gets."""
    for kind in KINDS:
        for width in (80, 200):
            for locale in (UTF8, C):
                for color in ("never", "256", "truecolor"):
                    out = checker.run("plot", kind, "--width", width, "--color", color,
                                      env=locale).stdout.decode()
                    wide = max(map(visible_width, out.split("\n")))
                    problem = wide > width and f"a line of {wide} columns"
                    if locale is C and not out.isascii():
                        problem = "not ASCII"
                    if (color == "never") == ("\x1b" in out):
                        problem = "colours where there should be none, or none"
                    checker.report(f"plot {kind} --width {width} --color {color} "
                                   f"{locale}", problem)


def decode_png(data):
    """(width, height, rows of RGB, or None where transparent)."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, chunks = 8, {}
    while at < len(data):
        (size,) = struct.unpack(">I", data[at : at + 4])
        kind, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + size]
        (crc,) = struct.unpack(">I", data[at + 8 + size : at + 12 + size])
        assert crc == zlib.crc32(kind + body), f"crc of {kind}"
        assert kind not in chunks, f"{kind} twice"
        chunks[kind] = body
        at += 12 + size
    assert list(chunks) == [b"IHDR", b"PLTE", b"tRNS", b"IDAT", b"IEND"]
    width, height = struct.unpack(">II", chunks[b"IHDR"][:8])
    assert chunks[b"IHDR"][8:] == b"\x08\x03\x00\x00\x00"
    raw = zlib.decompress(chunks[b"IDAT"])
    assert len(raw) == (width + 1) * height
    palette = [tuple(chunks[b"PLTE"][i : i + 3])
               for i in range(0, len(chunks[b"PLTE"]), 3)]
    rows = []
    for y in range(height):
        line = raw[y * (width + 1) : (y + 1) * (width + 1)]
        assert line[0] == 0
        rows.append([palette[i] if i else None for i in line[1:]])
    return width, height, rows


def images_of(svg):
    return [decode_png(base64.b64decode(text))
            for text in re.findall(r"data:image/png;base64,([A-Za-z0-9+/=]+)", svg)]


def check_svg(checker):
    counts = {"table": 2, "alibi": 2, "mrope": 1}
    for kind in KINDS:
        done = checker.run("plot", kind, "-o", f"{kind}.svg")
        problem = done.stderr or (done.returncode and "exit code")
        try:
            with open(f"{checker.folder}/{kind}.svg", encoding="ascii") as file:
                svg = file.read()
            xml.etree.ElementTree.fromstring(svg)
            images = images_of(svg)
            if len(images) != counts.get(kind, 0):
                problem = f"{len(images)} images"
            if kind in counts:
                problem = problem or check_cells(checker, kind, images[0])
        except (AssertionError, ValueError, OSError,
                xml.etree.ElementTree.ParseError) as reason:
            problem = repr(reason)
        checker.report(f"plot {kind} -o {kind}.svg", problem)
    # A picture of more than one deflate block, a cell to a pixel.
    svg = checker.run("plot", "table", "--dim", 400, "-p", "0:400", "--format",
                      "svg").stdout.decode()
    width, height, _ = images_of(svg)[0]
    checker.report("plot table of 400 x 400", (width, height) != (400, 400) and
                   f"{width} x {height} pixels")


def check_cells(checker, kind, image):
    """Equal colours for equal values, and as many as there are."""
    width, height, rows = image
    lines = checker.run("plot", kind, "--format", "csv").stdout.decode().split("\n")
    cells = [line.split(",") for line in lines[1:-1]]
    if kind == "alibi":
        cells = [cell[1:] for cell in cells if cell[0] == "softmax"]
    names = list(dict.fromkeys(cell[0] for cell in cells))
    cols = len(cells) // len(names)
    colours = {}
    for i, cell in enumerate(cells):
        y, x = i // cols * height // len(names), i % cols * width // cols
        colours.setdefault(cell[2], set()).add(rows[y][x])
        colours[cell[2]].add(rows[y + height // len(names) - 1][x + width // cols - 1])
    if any(len(seen) != 1 or None in seen for seen in colours.values()):
        return "equal values differ in colour"
    if kind == "mrope" and len(set(map(str, colours.values()))) != len(colours):
        return "two axes share a colour"
    return None


def check_cleaning(checker):
    """Names from outside cannot break the picture."""
    name = "<b>&'\u00e9\u001b\"x"
    path = os.path.join(checker.folder, name)
    with open(f"{checker.folder}/llama.json", "rb") as file:
        data = file.read()
    with open(path, "wb") as file:
        file.write(data)
    svg = checker.run("plot", "decay", "--model", name, "--format", "svg").stdout
    try:
        title = xml.etree.ElementTree.fromstring(svg.decode())[0].text
        wanted = "RoPE score against distance: <b>&'\u00e9?\"x"
        problem = title != wanted and f"the title is {title!r}"
    except xml.etree.ElementTree.ParseError as reason:
        problem = repr(reason)
    checker.report("plot --model with an odd name, svg", problem)
    text = checker.run("plot", "decay", "--model", name).stdout
    checker.report("plot --model with an odd name, text",
                   b"\x1b" in text and "an escape goes through")


def run(posenc, folder):
    checker = Checker(posenc, folder)
    for check in (check_terminals, check_widths, check_svg, check_cleaning):
        check(checker)
    return checker.count, checker.failed

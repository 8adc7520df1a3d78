# SPDX-License-Identifier: MIT
#
# lesson_pages.py - what posenc lesson has to print, from the words and the numbers
#
# Placeholders, line breaks and ASCII are done here once more, by regular expressions
# and textwrap's rule, to compare with every page of the command, byte for byte.
import re
import unicodedata

TIE = "~"
ASCII = str.maketrans({"θ": "theta", "π": "pi", "Δ": "D", "·": "*", "×": "x",
                       "√": "sqrt", "−": "-", "─": "-", "│": "|", "┌": "+", "┐": "+",
                       "└": "+", "┘": "+", "├": "+", "▶": ">", "▼": "v"})


def columns_of(line):
    return sum(0 if unicodedata.combining(c) else
               2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line)


def sections(path):
    """[(topic, title, lines)]"""
    with open(path, encoding="utf-8") as file:
        parts = re.split(r"^= (\w+) \| (.*)\n", file.read(), flags=re.M)[1:]
    return [(parts[i], parts[i + 1], parts[i + 2].split("\n")[:-1])
            for i in range(0, len(parts), 3)]


class Literal(float):
    """A number of JSON that remembers how it was written."""

    def __new__(cls, text):
        number = float.__new__(cls, text)
        number.text = text
        return number


def number_text(value, how):
    if isinstance(value, str):
        return value
    if how == "g":
        return value.text
    width, _, digits = how.rpartition(".")
    text = f"{value:{width or 0}.{digits or 3}f}"
    return text if float(text) else f"{0:{width or 0}.{digits or 3}f}"


def fill_in(line, numbers):
    def value_of(match):
        name, *path = match[1].split(".")
        value = numbers[name]
        if isinstance(value, Literal) and not match[2] and value.text.lstrip("-").isdigit():
            return value.text  # a count: whole measurements say how they are shown
        for index in path:
            value = value[int(index)]
        if not isinstance(value, list):
            return number_text(value, match[2] or "")
        space = TIE if len(value) <= 4 else " "
        return "(" + f",{space}".join(number_text(v, match[2] or "") for v in value) + ")"

    return re.sub(r"{([\w.]+?)(?::([\w.]+))?}", value_of, line)


def wrapped(paragraph, columns):
    item = re.match(r"- |\d+\. ", paragraph)
    indent = " " * len(item[0]) if item else ""
    line = None
    for word in paragraph.split():
        if line is None:
            line = word
        elif columns_of(line) > len(indent) and columns_of(f"{line} {word}") > columns:
            yield line
            line = indent + word
        else:
            line += f" {word}"
    yield line


def body_lines(lines, numbers, columns, to_page):
    paragraph = []
    for line in lines + [""]:
        ends = not line or line == "%" or re.match(r"  |- |\d+\. ", line)
        if ends and paragraph:
            yield from wrapped(to_page(" ".join(paragraph)), columns)
            paragraph = []
        if line.startswith("  "):
            yield to_page(fill_in(line, numbers))
        elif line and line != "%":
            paragraph.append(fill_in(line, numbers))
        elif not line:
            yield ""


def page(path, numbers, columns, is_ascii):
    """The whole lesson; numbers by topic, as JSON gives them, parsed with Literal."""
    def to_page(text):
        return text.translate(ASCII) if is_ascii else text

    out = []
    for topic, title, lines in sections(path):
        out += [title, ("-" if is_ascii else "─") * columns_of(title)]
        out += list(body_lines(lines, numbers[topic], columns, to_page))[:-1]
    return "".join(line.replace(TIE, " ") + "\n" for line in out)

# SPDX-License-Identifier: MIT
#
# lesson_check.py - the lesson: its numbers, its two languages, its pages, its pauses
#
# Every number that the Korean lesson on which this one is modelled prints is pinned
# here, in JSON and in the text; all others are computed again in double.
import fcntl
import json
import math
import os
import pty
import re
import select
import struct
import subprocess
import termios

import lesson_pages

LANGUAGES = ("en", "ko")
FLOAT = 6e-8  # of one rounding to float, relative to 1 or to the value if larger


def run_lesson(folder, *arguments, columns=80, locale="C.UTF-8"):
    env = dict(os.environ, PATH=f"{folder}/bin:{os.environ['PATH']}", LC_ALL=locale,
               COLUMNS=str(columns))
    done = subprocess.run(["posenc", "lesson", *arguments], env=env, cwd=folder,
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
    if done.returncode:
        raise ValueError(f"{arguments}: exit code {done.returncode}, {done.stderr}")
    return done.stdout.decode()


def dot(a, b):
    return sum(x * y for x, y in zip(a, b))


def turn(pair, angle):
    (a, b), c, s = pair, math.cos(angle), math.sin(angle)
    return [a * c - b * s, a * s + b * c]


def sinusoid(position, dim):
    row = []
    for j in range(0, dim, 2):
        angle = position / 10000 ** (j / dim)
        row += [math.sin(angle), math.cos(angle)]
    return row


def rotate(x, position, inv_freq, pairs):
    y = list(x)
    for f, (a, b) in zip(inv_freq, pairs):
        y[a], y[b] = turn((x[a], x[b]), position * f)
    return y


def interleaved(dim):
    return [(i, i + 1) for i in range(0, dim, 2)]


def half_split(dim):
    return [(i, i + dim // 2) for i in range(dim // 2)]


def theta_freqs(dim):
    return [10000 ** (-2 * i / dim) for i in range(dim // 2)]


def rope_score(q, m, k, n, inv_freq, pairs):
    return dot(rotate(q, m, inv_freq, pairs), rotate(k, n, inv_freq, pairs))


def softmax(scores):
    e = [math.exp(s - max(scores)) for s in scores]
    return [x / sum(e) for x in e]


def attend(words):
    out = []
    for q in words:
        w = softmax([dot(q, k) / math.sqrt(len(q)) for k in words])
        out.append([dot(w, column) for column in zip(*words)])
    return out


def plane(q, m, k, n):
    return rope_score(q, m, k, n, [0.5], [(0, 1)])


def expected_order():
    words = [[1, 0], [0, 1], [1, 1]]
    sines = [sinusoid(t, 2) for t in range(3)]
    placed = [[a + b for a, b in zip(w, s)] for w, s in zip(words, sines)]
    placed_back = [[a + b for a, b in zip(w, s)] for w, s in zip(words[::-1], sines)]
    scores = [dot(words[0], w) / math.sqrt(2) for w in words]
    return {"words": words, "sinusoids": sines, "scores": scores,
            "weights": softmax(scores), "out": attend(words),
            "out_reversed": attend(words)[::-1], "placed_out": attend(placed),
            "placed_out_reversed": attend(placed_back)}


def expected_mixing():
    x, y = [1, 0, 0.5, 1], [0, 1, 1, 0.5]
    terms, turned = [], []
    for m, n in ((2, 0), (5, 3), (9, 7)):
        pm, pn = sinusoid(m, 4), sinusoid(n, 4)
        parts = [dot(x, y), dot(x, pn), dot(pm, y), dot(pm, pn)]
        terms.append(parts + [sum(parts)])
        turned.append(rope_score(x, m, y, n, theta_freqs(4), interleaved(4)))
    return {"x": x, "y": y, "terms": terms, "rope": turned}


def expected_rope():
    q, k = [1, 2], [3, 1]
    c, s = math.cos(1), math.sin(1)
    places = ((2, 0), (5, 3), (9, 7))
    return {"theta": 0.5, "q": q, "k": k, "dot": 5, "cross": -5, "delta": 1,
            "unit_scores": [math.cos(1), math.cos(1), math.cos(2)], "cos": c, "sin": s,
            "formula": 5 * c - 5 * s, "scores": [plane(q, m, k, n) for m, n in places],
            "q_turned": turn(q, 2.5), "k_turned": turn(k, 1.5),
            "length": math.sqrt(5), "length_turned": math.sqrt(5),
            "decay": [sum(math.cos(d * f) for f in theta_freqs(128)) / 64
                      for d in (0, 1, 4, 16, 64, 256, 1024)],
            "interpolated": 8191 / 4}


def expected_pairs():
    x, f = list(range(1, 17)), theta_freqs(16)
    length = math.sqrt(dot(x, x))
    return {"inv_freq": f, "wavelengths": [2 * math.pi / v for v in f],
            "angles": [5 * v for v in f], "cos": [math.cos(5 * v) for v in f],
            "sin": [math.sin(5 * v) for v in f], "entries": 256, "nonzero": 32, "x": x,
            "interleaved": rotate(x, 5, f, interleaved(16)),
            "half_split": rotate(x, 5, f, half_split(16)),
            "length": length, "length_turned": length, "rotate_half_difference": 0}


def expected_alibi():
    scores, distances = [2, 1, 3, 2], [-3, -2, -1, 0]
    values = {"scores": scores, "distances": distances,
              "slopes_8": [2.0**-h for h in range(1, 9)],
              "slopes_16": [2 ** (-h / 2) for h in range(1, 17)],
              "slopes_12": [2.0**-h for h in range(1, 9)]
              + [2 ** (-h / 2) for h in (1, 3, 5, 7)]}
    for name, m in (("none", 0), ("half", 1 / 2), ("256th", 1 / 256)):
        values[f"biased_{name}"] = [s + m * d for s, d in zip(scores, distances)]
        values[f"softmax_{name}"] = softmax(values[f"biased_{name}"])
    return values


def arbitrary(n):
    return ((n + 1) * 2654435761 % 2**32 >> 22) / 1024 - 0.5


def expected_compare():
    q, k = [1, 0, 0.5, 1], [0, 1, 1, 0.5]
    add = lambda x, p: [a + b for a, b in zip(x, p)]
    learned = lambda t: [arbitrary(4 * t + i) for i in range(4)]
    places = ((2, 0), (102, 100))
    scores = [
        [dot(add(q, sinusoid(m, 4)), add(k, sinusoid(n, 4))) for m, n in places],
        [dot(add(q, learned(m)), add(k, learned(n))) for m, n in places],
        [rope_score(q, m, k, n, theta_freqs(4), interleaved(4)) for m, n in places],
        [dot(q, k) - (m - n) / 2 for m, n in places]]
    return {"q": q, "k": k, "dot": 1, "scores": scores,
            "changes": [b - a for a, b in scores]}


def expected_numbers():
    q, k = [1, 2], [3, 1]
    c, s = math.cos(1), math.sin(1)
    return {
        "order": expected_order(),
        "recurrent": {"x": [1, 2, 3], "states": [1, 2.5, 4.25],
                      "states_reversed": [3, 3.5, 2.75]},
        "where": {},
        "sinusoidal": {"divisors": [1, 100],
                       "wavelengths": [2 * math.pi, 200 * math.pi],
                       "longest": 2 * math.pi * 10000 ** (510 / 512),
                       "pe": [sinusoid(i, 4) for i in range(5)],
                       "cos": [math.cos(2), math.cos(0.02)],
                       "sin": [math.sin(2), math.sin(0.02)],
                       "moved": [math.sin(3), math.cos(3)],
                       "far": sinusoid(1000000, 4)},
        "mixing": expected_mixing(),
        "learned": {"rows": 512, "tokens": 600, "capacity": 512, "last": 511,
                    "last_token": 599, "missing": 88, "longer_capacity": 600,
                    "parameters": 393216, "row_3": [3, -3],
                    "source_300": 300.5 * 512 / 600 - 0.5,
                    "error": "position is 512 at row 0, token 512, must be in 0 .. 511: "
                             "the table has 512 rows, position_offset is 0",
                    "resized": [[v, -v] for v in (0, 1.5 * 512 / 600 - 0.5,
                                                  300.5 * 512 / 600 - 0.5, 511)]},
        "rope": expected_rope(),
        "direction": {"dot": 5, "cross": -5, "delta": -1, "cos": c, "sin": -s,
                      "formula": 5 * c + 5 * s,
                      "scores": [plane(q, 5, k, 3), plane(q, 3, k, 5)],
                      "unit_scores": [c, c]},
        "pairs": expected_pairs(),
        "complex": {"cos_5": math.cos(2.5), "sin_5": math.sin(2.5),
                    "product": turn(q, 2.5), "turned": turn(q, 2.5), "re": 5, "im": 5,
                    "cos": c, "sin": s, "formula": 5 * c - 5 * s,
                    "score": plane(q, 5, k, 3)},
        "alibi": expected_alibi(),
        "compare": expected_compare(),
        "exercises": {"pe_4": sinusoid(4, 4), "score_10_4": math.cos(3),
                      "score_6_0": math.cos(3),
                      "slopes_16": expected_alibi()["slopes_16"], "rows": 512,
                      "tokens": 600, "first_missing": 512, "last_missing": 599,
                      "missing": 88},
        "checks": {"score_5_3": c, "score_105_103": c,
                   "reach": [2.0**h for h in range(1, 9)]},
        "glossary": {},
    }


# What the Korean lesson prints: topic, number, its place, the printed text.  All are
# rounded correctly.  One line of it, 5 * 0.540 + (-5) * 0.841 = -1.506, holds for the
# exact cosine and sine; of the rounded ones shown, the sum is -1.505.  The lesson shows
# four digits, of which it is -1.506.
PRINTED = [
    ("sinusoidal", "divisors", (0,), "1"), ("sinusoidal", "divisors", (1,), "100"),
    ("exercises", "pe_4", (), "-0.757 -0.654 0.040 0.999"),
    ("rope", "unit_scores", (), "0.540 0.540 -0.416"),
    ("rope", "dot", (), "5"), ("rope", "cross", (), "-5"), ("rope", "delta", (), "1"),
    ("rope", "cos", (), "0.540"), ("rope", "sin", (), "0.841"),
    ("rope", "scores", (), "-1.506 -1.506 -1.506"),
    ("direction", "delta", (), "-1"),
    ("direction", "scores", (), "-1.506 6.909"),
    ("exercises", "score_10_4", (), "-0.990"),
    ("exercises", "score_6_0", (), "-0.990"),
    ("alibi", "distances", (), "-3 -2 -1 0"), ("alibi", "scores", (), "2 1 3 2"),
    ("alibi", "slopes_8", (), "0.5 0.25 0.125 0.0625 0.03125 0.015625 0.0078125 "
                              "0.00390625"),
    ("alibi", "softmax_none", (), "0.197 0.072 0.534 0.197"),
    ("alibi", "biased_half", (), "0.5 0 2.5 2"),
    ("alibi", "softmax_half", (), "0.074 0.045 0.548 0.333"),
    ("alibi", "softmax_256th", (), "0.195 0.072 0.535 0.198"),
    ("exercises", "slopes_16", (0,), "0.707"), ("exercises", "slopes_16", (1,), "0.500"),
    ("exercises", "slopes_16", (2,), "0.354"),
    ("learned", "rows", (), "512"), ("learned", "tokens", (), "600"),
    ("exercises", "first_missing", (), "512"), ("exercises", "last_missing", (), "599"),
]

# What it states without computing, and what the summary of a talk on RoPE states beside
# it: in both languages, or English and Korean.
STATED = [
    ("where", "RoPE ALiBi"), ("sinusoidal", "10000 2π 2017"),
    ("learned", "512 GPT-1 BERT"),
    ("rope", "(2,~0) (5,~3) (9,~7) (4,~0) (1,~0) (1,~2) (3,~1) 0.5 LLaMA"),
    ("direction", "(5,~3) (3,~5)"), ("pairs", "16 8 rotate_half"),
    ("alibi", "1024 2048 11% 1/2 1/256 2^(−8/n) 1/2^1 1/2^8 8 16"),
    ("alibi", ("1.3~billion", "13억")), ("exercises", "(10,~4) (6,~0) 2^(−8/16)"),
    ("learned", ("last~tenth", "10분의~1")), ("exercises", "(1,~0) 0.5 600 512 16"),
    ("checks", "m~θ n~θ (n~−~m)~θ"), ("mixing", "PE(m)"), ("compare", "RoPE ALiBi"),
    ("complex", "e^(i"), ("glossary", "RoPE")]

# The golden case of each, and where the lesson has it.
GOLDEN = {
    "lesson/sinusoidal-d4-pos4": ("exercises", "pe_4", ()),
    "lesson/rope-q10-k10-2-0": ("rope", "unit_scores", (0,)),
    "lesson/rope-q10-k10-5-3": ("rope", "unit_scores", (1,)),
    "lesson/rope-q10-k10-4-0": ("rope", "unit_scores", (2,)),
    "lesson/rope-q10-k10-10-4": ("exercises", "score_10_4", ()),
    "lesson/rope-q12-k31-5-3": ("rope", "scores", (1,)),
    "lesson/rope-q12-k31-9-7": ("rope", "scores", (2,)),
    "lesson/alibi-16-heads": ("alibi", "slopes_16", ()),
    "lesson/softmax-none": ("alibi", "softmax_none", ()),
    "lesson/softmax-half": ("alibi", "softmax_half", ()),
}


class Checks:
    def __init__(self):
        self.count = self.failed = 0

    def check(self, name, holds, what=""):
        self.count += 1
        if not holds:
            self.failed += 1
            print(f"lesson, {name}: {what}")


def flat(value):
    return [v for row in value for v in flat(row)] if isinstance(value, list) else [value]


def at(value, path):
    for index in path:
        value = value[index]
    return flat(value)


def check_numbers(checks, folder, root):
    reports = {lang: json.loads(run_lesson(folder, "--json", "--lang", lang))
               for lang in LANGUAGES}
    numbers = {t["topic"]: t["numbers"] for t in reports["en"]["topics"]}
    checks.check("languages", numbers == {t["topic"]: t["numbers"]
                                          for t in reports["ko"]["topics"]},
                 "numbers differ between languages")
    for topic in reports["en"]["topics"]:
        alone = json.loads(run_lesson(folder, topic["topic"], "--json"))
        checks.check(f"{topic['topic']} alone", alone["topics"] == [topic], alone)
    expected = expected_numbers()
    checks.check("topics", list(numbers) == list(expected), list(numbers))
    for topic, values in expected.items():
        checks.check(topic, set(values) == set(numbers[topic]),
                     f"numbers {set(values) ^ set(numbers[topic])}")
        for name, value in values.items():
            want, got = flat(value), flat(numbers[topic][name])
            # a score is a sum of products, each of numbers rounded to float
            good = len(want) == len(got) and all(
                w == g if isinstance(w, str) else
                abs(w - g) <= 16 * FLOAT * max(1, abs(w)) for w, g in zip(want, got))
            checks.check(f"{topic}.{name}", good, f"expected {want}, got {got}")
    for topic, name, path, text in PRINTED:
        printed = text.split()
        got = at(numbers[topic][name], path)
        rounded = [f"{v:.{len(p.partition('.')[2])}f}" for v, p in zip(got, printed)]
        checks.check(f"{topic}.{name} as printed", rounded == printed, got)
    with open(f"{root}/tests/data/vectors/lesson.json", encoding="utf-8") as file:
        cases = json.load(file)["cases"]
    checks.check("golden cases", {c["id"] for c in cases} == set(GOLDEN), "names")
    for case in cases:
        topic, name, path = GOLDEN[case["id"]]
        got, expect = at(numbers[topic][name], path), case["expect"]
        checks.check(case["id"], len(got) == len(expect["exact"]) and all(
            abs(g - e) <= 16 * FLOAT for g, e in zip(got, expect["exact"])), got)
        for value, printed, good in zip(got, expect["printed"],
                                        expect["printed_rounding_correct"]):
            checks.check(case["id"], (round(value, 3) == printed) == good, value)


def check_printed(checks, folder):
    """The printed digits stand in the page of their topic, in both languages."""
    pages = {}
    for lang in LANGUAGES:
        for topic in expected_numbers():
            pages[topic, lang] = " ".join(run_lesson(folder, topic, "--lang", lang,
                                                     columns=100).split())
    for topic, name, _, text in PRINTED:
        for lang in LANGUAGES:
            missing = [p for p in text.split() if p not in pages[topic, lang]]
            checks.check(f"{topic}.{name}, {lang}", not missing, f"no {missing}")
    for topic, stated in STATED:
        for i, lang in enumerate(LANGUAGES):
            words = stated[i] if isinstance(stated, tuple) else stated
            missing = [w for w in words.split()
                       if w.replace("~", " ") not in pages[topic, lang]]
            checks.check(f"{topic}, {lang}", not missing, f"no {missing}")


def sections(root, lang):
    """{topic: text}"""
    return {topic: "\n".join(lines) for topic, _, lines in
            lesson_pages.sections(f"{root}/data/lesson.{lang}.txt")}


def check_texts(checks, root, folder):
    texts = {lang: sections(root, lang) for lang in LANGUAGES}
    checks.check("texts", list(texts["en"]) == list(texts["ko"]), "topics differ")
    for topic in texts["en"]:
        mentions, pauses = ([sorted(set(re.findall(r"{[^}]*}", texts[lang][topic])))
                             for lang in LANGUAGES],
                            [texts[lang][topic].count("\n%\n") for lang in LANGUAGES])
        checks.check(topic, mentions[0] == mentions[1],
                     f"mentions {set(mentions[0]) ^ set(mentions[1])}")
        checks.check(topic, pauses[0] == pauses[1], f"pauses {pauses}")
    shown = run_lesson(folder, "--help")
    listed = re.findall(r"^  (\w+)  +\w", shown.split("Options:")[0], flags=re.M)
    checks.check("help", listed == list(texts["en"]), listed)


def check_pages(checks, root, folder):
    """Every page, exactly; nothing is wider than it may be, formulas included."""
    report = json.loads(run_lesson(folder, "--json"), parse_float=lesson_pages.Literal,
                        parse_int=lesson_pages.Literal)
    numbers = {t["topic"]: t["numbers"] for t in report["topics"]}
    for lang in LANGUAGES:
        for columns in (20, 40, 80, 200):
            for locale in ("C.UTF-8", "C"):
                is_ascii = lang == "en" and locale == "C"
                want = lesson_pages.page(f"{root}/data/lesson.{lang}.txt", numbers,
                                         min(columns, 100), is_ascii).splitlines()
                got = run_lesson(folder, "--lang", lang, columns=columns,
                                 locale=locale).splitlines()
                name = f"{lang}, {columns} columns, {locale}"
                checks.check(name, want == got, next(
                    (pair for pair in zip(want, got) if pair[0] != pair[1]),
                    "other number of lines"))
                checks.check(f"{name}, width", columns < 80 or not [
                    l for l in got if lesson_pages.columns_of(l) > min(columns, 100)])
                checks.check(f"{name}, characters",
                             not is_ascii or "".join(got).isascii())
    korean = run_lesson(folder, "checks", locale="ko_KR.UTF-8")
    checks.check("locale", korean == run_lesson(folder, "checks", "--lang", "ko"),
                 "ko_KR does not choose Korean")


def on_terminal(folder, arguments, keys, locale="C.UTF-8"):
    """What a terminal of 60 columns shows when keys are typed, one for each prompt."""
    child, fd = pty.fork()
    if child == 0:
        os.environ.update(PATH=f"{folder}/bin:{os.environ['PATH']}", LC_ALL=locale)
        os.execvp("posenc", ["posenc", "lesson", *arguments])
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 60, 0, 0))
    shown, answered = b"", 0
    while select.select([fd], [], [], 20)[0]:
        try:
            part = os.read(fd, 4096)
        except OSError:
            break
        if not part:
            break
        shown += part
        if answered < len(keys) and shown.count(b"q: quit -- ") > answered:
            os.write(fd, keys[answered])
            answered += 1
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os.close(fd)
    return shown.decode(), answered, code


def check_steps(checks, folder):
    shown, answered, code = on_terminal(folder, ["exercises", "--step"], [b"\n"])
    checks.check("step", answered == 1 and code == 0 and
                 shown.index("slope of the first?") < shown.index("q: quit")
                 < shown.index("Solutions"), shown)
    shown, answered, code = on_terminal(folder, ["--step"], [b"\n", b"q\n"])
    checks.check("quit", answered == 2 and code == 0 and shown.count("q: quit") == 2,
                 shown)
    shown, answered, code = on_terminal(folder, ["--step"], [b"\x04"])
    checks.check("end of input", answered == 1 and code == 0, shown)
    shown, _, code = on_terminal(folder, ["checks"], [])
    checks.check("no step", code == 0 and "q: quit" not in shown and
                 "Answers" in shown, shown)
    shown, _, code = on_terminal(folder, ["checks", "--lang", "ko"], [], locale="C")
    checks.check("note", code == 0 and "locale is not UTF-8" in shown, shown)


def run(posenc, folder, root):
    checks = Checks()
    check_numbers(checks, folder, root)
    check_printed(checks, folder)
    check_texts(checks, root, folder)
    check_pages(checks, root, folder)
    check_steps(checks, folder)
    return checks.count, checks.failed

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# report.py FILE.json [--markdown | --docs docs/performance.md] - what ./dev bench --json
# printed, as text, as Markdown, or put between the marks of a document
import json
import sys

BEGIN, END = "<!-- begin {} -->", "<!-- end {} -->"


def place(machine, size):
    for name in ("l1", "l2", "l3"):
        if size <= machine[name + "_size"]:
            return name
    return "dram"


def speed(row):
    if row["bytes"]:
        return f"{row['bytes'] / row['ns']:.1f} GB/s"
    return f"{row['flops'] / row['ns']:.1f} GFLOP/s" if row["flops"] else "-"


def duration(ns):
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if ns >= size:
            return f"{ns / size:.3g} {unit}"
    return f"{ns:.3g} ns"


def spread(row):
    return f"{100 * (row['ns_high'] - row['ns_low']) / row['ns']:.0f}%"


def cells_of_row(report, row):
    fraction = row["limit_fraction"]
    where = place(report["machine"], row["working_set"]) if row["working_set"] else ""
    return [row["id"], where, duration(row["ns"]), spread(row), speed(row),
            "-" if fraction is None else f"{fraction:.2f}",
            ", ".join(f"{name} {ratio:.3g}" for name, ratio in row["vs"].items())]


def cells_of_goal(goal):
    if goal["got"] is None:
        return [goal["id"], f"{goal['goal']:g}", "-", "not measured"]
    got = f"{goal['got']:.3g}"
    if not goal["met"] and float(got) == goal["goal"]:
        got = f"{goal['got']:.4g}"
    return [goal["id"], f"{goal['goal']:.4g}", got, "yes" if goal["met"] else "no"]


ROW_HEAD = ["row", "in", "time", "spread", "speed", "of limit", "times longer"]
GOAL_HEAD = ["goal", "wanted", "got", "met"]


def text_table(head, rows):
    rows = [head] + rows
    widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths))
                     .rstrip() for row in rows)


def markdown_table(head, rows):
    lines = ["| " + " | ".join(cells) + " |" for cells in [head] + rows]
    return "\n".join([lines[0], "|" + " --- |" * len(head)] + lines[1:])


def machine_line(report):
    m = report["machine"]
    caches = ", ".join(f"{m[f'l{i}_size'] >> 10} KiB" for i in (1, 2, 3))
    return (f"{m['cpu']}, {m['num_cpus']} CPUs, caches {caches}; {m['compiler']}, "
            f"{m['flags']}; instruction set {m['isa']}; load {m['load']:.1f} at the end")


def counted(report):
    known = [g for g in report["goals"] if g["met"] is not None]
    return f"{sum(g['met'] for g in known)} of {len(known)} measured goals met"


def families(report):
    """Rows by the first word of their names, in order."""
    result = {}
    for row in report["rows"]:
        result.setdefault(row["id"].split(".")[0], []).append(row)
    return result


def tables(report, table):
    result = {name: table(ROW_HEAD, [cells_of_row(report, row) for row in rows])
              for name, rows in families(report).items()}
    result["goals"] = table(GOAL_HEAD, [cells_of_goal(g) for g in report["goals"]])
    result["goals"] += "\n\n" + counted(report)
    result["machine"] = machine_line(report)
    if report.get("notes"):
        result["machine"] += "\n\n" + "\n".join(f"- {note}" for note in report["notes"])
    return result


def text(report):
    rows = [cells_of_row(report, row) for row in report["rows"]]
    parts = [machine_line(report), text_table(ROW_HEAD, rows)]
    if report["goals"]:
        parts.append(text_table(GOAL_HEAD, [cells_of_goal(g) for g in report["goals"]]))
        parts.append(counted(report))
    parts += report.get("notes", [])
    return "\n\n".join(parts)


def fill(path, report):
    with open(path, encoding="utf-8") as file:
        document = file.read()
    for name, table in tables(report, markdown_table).items():
        begin, end = BEGIN.format(name), END.format(name)
        if begin not in document:
            continue
        before, rest = document.split(begin, 1)
        document = f"{before}{begin}\n{table}\n{end}{rest.split(end, 1)[1]}"
    with open(path, "w", encoding="utf-8") as file:
        file.write(document)


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        report = json.load(file)
    if sys.argv[2:3] == ["--docs"]:
        fill(sys.argv[3], report)
    elif sys.argv[2:] == ["--markdown"]:
        print("\n\n".join(f"## {name}\n\n{table}" for name, table
                          in tables(report, markdown_table).items()))
    else:
        print(text(report))


if __name__ == "__main__":
    main()

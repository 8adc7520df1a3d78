#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# run.py BUILD_DIR [options] - posenc bench, then the peers that are here, as one report
#
# A peer that is missing is a note, not an error.
import argparse
import glob
import json
import os
import subprocess
import sys

import report

HERE = os.path.dirname(os.path.abspath(__file__))


def arguments():
    parser = argparse.ArgumentParser(
        prog="./dev bench", description="The kernels against this machine's limits and "
        "against other programs.  posenc bench --help explains the rows.")
    parser.add_argument("build", help=argparse.SUPPRESS)
    parser.add_argument("--json", action="store_true",
                        help="print schema posenc.bench/1 instead of tables")
    parser.add_argument("--quick", action="store_true",
                        help="under two minutes instead of fifteen")
    parser.add_argument("--rows", metavar="TEXT",
                        help="only rows with this in their names; no peers")
    parser.add_argument("--isa", help="instruction set of ours; see posenc cpu")
    parser.add_argument("-o", "--output", metavar="FILE.svg", help="plot to write")
    parser.add_argument("--peers", action="store_true",
                        help="install ONNX Runtime and NumPy under build/peers first; "
                        "PyTorch is used if Python has it")
    parser.add_argument("--ggml", metavar="PATH", help="libggml-cpu.so or libggml.so")
    return parser.parse_args()


def python(args):
    """The interpreter of build/peers, made when asked for."""
    folder = os.path.join(os.path.dirname(args.build), "peers")
    program = os.path.join(folder, "bin", "python")
    if args.peers and not os.path.exists(program):
        print("== installing peers", file=sys.stderr)
        # The system's interpreter, if there is one: Debian's PyTorch belongs to it.
        system = "/usr/bin/python3"
        system = system if os.path.exists(system) else sys.executable
        subprocess.run([system, "-m", "venv", "--system-site-packages", folder],
                       check=True, stdout=sys.stderr)
        # NumPy 1: PyTorch of the same age cannot talk to a later one.
        subprocess.run([program, "-m", "pip", "install", "--quiet", "onnxruntime",
                        "onnx", "numpy<2"], check=True, stdout=sys.stderr)
    return program if os.path.exists(program) else sys.executable


def own_rows(args):
    command = [f"{args.build}/bin/posenc", "bench", "--json"]
    for name in ("rows", "isa", "output"):
        if getattr(args, name):
            command += [f"--{name}", getattr(args, name)]
    if args.quick:
        command.append("--quick")
    print("== measuring", file=sys.stderr)
    done = subprocess.run(command, stdout=subprocess.PIPE)
    if done.returncode != 0:
        sys.exit(done.returncode)
    return json.loads(done.stdout)


def peer_lines(args):
    for script in sorted(glob.glob(f"{HERE}/peers/peer_*.py")):
        name = os.path.basename(script)[len("peer_") : -len(".py")]
        print(f"== measuring {name}", file=sys.stderr)
        command = [python(args), script, "--lib", f"{args.build}/lib/libbench_peers.so"]
        if args.quick:
            command.append("--quick")
        if name.endswith("ggml") and args.ggml:
            command += ["--ggml", args.ggml]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True)
        yield from (json.loads(line) for line in done.stdout.splitlines())
        if done.returncode != 0:
            last = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
            yield {"peer": name.replace("_", " "), "missing": f"it stopped: {last}"}


def set_goal(result, name, got):
    for goal in result["goals"]:
        if goal["id"] == name:
            goal["got"], goal["met"] = got, got >= goal["goal"]


def add_peers(args, result):
    rows = {row["id"]: row for row in result["rows"]}
    for line in peer_lines(args):
        if "missing" in line:
            result["notes"].append(f"{line['peer']}: {line['missing']}")
        elif "wrong" in line:
            result["notes"].append(
                f"{line['peer']}: {line['row']} differs from ours by {line['wrong']:.2g}, "
                f"more than {line['bound']:.2g}; not compared")
        elif "goals" in line:
            result["goals"] += line["goals"]
        elif line["row"] in rows:
            rows[line["row"]]["vs"][line["peer"]] = line["ratio"]
            set_goal(result, f"{line['row']} vs {line['peer']}", line["ratio"])


def add_apply(args, result):
    """4 GiB is the goal's size; 256 MiB tells as much in a quick run."""
    mib, pairs = (256, 5) if args.quick else (4096, 3)
    print("== measuring posenc apply", file=sys.stderr)
    done = subprocess.run([sys.executable, f"{HERE}/apply_copy.py",
                           f"{args.build}/bin/posenc", args.build, str(mib), str(pairs)],
                          stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        result["notes"].append("posenc apply against cp: could not be measured")
        return
    line = json.loads(done.stdout)
    name = f"apply.{mib}MiB"
    result["rows"].append({
        "id": name, "ns": line["ns"], "ns_low": line["ns"], "ns_high": line["ns"],
        "bytes": 2 * line["size"], "flops": 0, "working_set": 2 * line["size"],
        "limit_fraction": None, "vs": {"cp": line["ratio"]}, "samples": [line["ns"]]})
    result["goals"].append({"id": f"{name} vs cp", "goal": 0.8, "got": line["ratio"],
                            "met": line["ratio"] >= 0.8})
    result["goals"].append({"id": f"{name} memory, 128 MiB over it", "goal": 1.0,
                            "got": 128 / line["memory_mib"],
                            "met": line["memory_mib"] <= 128})


def add_model_files(args, result):
    mib, pairs = (256, 5) if args.quick else (1024, 5)
    print("== measuring model files", file=sys.stderr)
    done = subprocess.run([sys.executable, f"{HERE}/model_files.py",
                           f"{args.build}/bin/posenc", args.build, str(mib), str(pairs)],
                          stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        result["notes"].append("inspect and convert: could not be measured")
        return
    result["goals"] += json.loads(done.stdout)


def main():
    args = arguments()
    result = own_rows(args)
    result["notes"] = []
    if not args.rows:
        add_peers(args, result)
        add_apply(args, result)
        add_model_files(args, result)
    print(json.dumps(result, indent=1) if args.json else report.text(result))


main()

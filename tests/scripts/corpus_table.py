#!/usr/bin/env python3
"""Writes docs/corpus.md: which files of other projects the tool can import and plan a training step for, and why it refuses the others.

    python3 tests/scripts/corpus_table.py [--tool build/tandem] [--corpus ../shared/corpus] [--jobs 2] [--to docs/corpus.md]

The corpus is the folder `corpus` of TANDEM_SHARED. Needs only Python.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TRAINS, BARE, OPEN, REFUSED, BROKEN = "trains", "no weights", "open size", "refused", "not a model"
MEANING = {
    TRAINS: "imported, has weights, and a training step of it is planned: each node has a kernel",
    BARE: "imported; there is no weight to train, as in tests of single operators",
    OPEN: "imported once `model.bind` says the size of an axis",
    REFUSED: "imports in part: an operator, a form of one or a type is refused by name",
    BROKEN: "cannot be read as an ONNX model, or breaks the standard",
}
WITHOUT_WEIGHTS, FREE = "nothing_trainable", "free_dimension"


def shortened(text):
    """Without the names of one file."""
    text = re.sub(r"'[^']*'", "…", text)
    text = re.sub(r": expected a constant or a value computed from shapes.*", "", text)
    text = re.sub(r"(extents|entries|often)(.*): (\w+) at .* chooses them", r"\1\2: \3 chooses them", text)
    return re.sub(r"\s+", " ", text)[:140]


def inspect(tool, path, *more):
    done = subprocess.run([str(tool), "inspect", "--json", *more, str(path)], capture_output=True, text=True, timeout=120)
    try:
        return done.returncode, json.loads(done.stdout)
    except json.JSONDecodeError:
        return done.returncode, {"errors": [{"message": done.stderr.strip()[-200:] or f"exit code {done.returncode}"}]}


def state_of(tool, path):
    """The state, and the reasons of what is refused."""
    code, found = inspect(tool, path)
    if "errors" in found:
        return BROKEN, [shortened(e["message"]) for e in found["errors"][:1]]
    problems = found.get("problems", [])
    kinds = {p["kind"] for p in problems}
    others = [p for p in problems if p["kind"] not in (WITHOUT_WEIGHTS, FREE)]
    if others:
        return REFUSED, list(dict.fromkeys(shortened(p["reason"]) for p in others))
    if FREE in kinds:
        return OPEN, []
    if WITHOUT_WEIGHTS in kinds:
        return BARE, []
    code, planned = inspect(tool, path, "--stage", "plan")
    if "stage" in planned:
        return TRAINS, []
    errors = [e["message"] for e in planned.get("errors", [])] or ["no plan"]
    return REFUSED, [shortened("a plan: " + e) for e in errors[:1]]


def group_of(name):
    """The collection, and its part where it has some."""
    parts = name.split("/")
    return "/".join(parts[:2]) if len(parts) > 2 else parts[0]


def page(states):
    order = [TRAINS, BARE, OPEN, REFUSED, BROKEN]
    total = collections.Counter(state for state, _ in states.values())
    lines = [
        "# Files of other projects",
        "",
        f"What the tool makes of {len(states)} ONNX files of other projects: "
        + ", ".join(f"{total[s]} {s}" for s in order)
        + ". Written by `python3 tests/scripts/corpus_table.py`; do not edit.",
        "",
        *(f"- **{state}**: {MEANING[state]}." for state in order),
        "",
        "What ONNX's node tests compute is compared with their data in `tests/importer/`.",
        "",
        "| collection | files | " + " | ".join(order) + " |",
        "|" + "---|" * (2 + len(order)),
    ]
    groups = collections.defaultdict(collections.Counter)
    for name, (state, _) in states.items():
        groups[group_of(name)][state] += 1
    for group, counts in sorted(groups.items()):
        lines.append(f"| {group} | {counts.total()} | " + " | ".join(str(counts[s] or "") for s in order) + " |")
    lines += ["", "## What is refused", "", "| reason | files | one of them |", "|---|---|---|"]
    reasons = collections.defaultdict(list)
    for name, (_, why) in states.items():
        for reason in why:
            reasons[reason].append(name)
    for reason, names in sorted(reasons.items(), key=lambda item: (-len(item[1]), item[0])):
        lines.append(f"| {reason.replace('|', chr(92) + '|')} | {len(names)} | {names[0]} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", type=pathlib.Path, default=ROOT / "build" / "tandem")
    shared = pathlib.Path(os.environ.get("TANDEM_SHARED", ROOT.parent / "shared"))
    parser.add_argument("--corpus", type=pathlib.Path, default=shared / "corpus")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--to", type=pathlib.Path, default=ROOT / "docs" / "corpus.md")
    options = parser.parse_args()
    paths = sorted(options.corpus.rglob("*.onnx"))
    if not paths:
        raise SystemExit(f"{options.corpus}: no ONNX files; TANDEM_SHARED names the folder that holds corpus/")
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        found = pool.map(lambda path: state_of(options.tool.resolve(), path), paths)
        states = {str(p.relative_to(options.corpus)): s for p, s in zip(paths, found)}
    options.to.write_text(page(states))
    total = collections.Counter(state for state, _ in states.values())
    print(", ".join(f"{n} {state}" for state, n in total.most_common()))


if __name__ == "__main__":
    main()

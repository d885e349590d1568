"""Runs the zoo: exports the networks that are missing, inspects, trains and checks each by the tool, compares with PyTorch, and writes docs/zoo.md.

    python models/zoo/run.py [--tool build/tandem] [--to FOLDER] [--only GLOB]… [--jobs N] [--again] [--table FILE]

FOLDER (default build/zoo) keeps the exports and results.jsonl, one line for each export; a second run continues where the first ended. --again
trains again, --only runs a part. docs/zoo.md is written if all networks were run (--table names another file). --tensorflow-python names an interpreter
that has tensorflow, keras and tf2onnx; without it their rows are left out.

PyTorch's own results spread: a unit whose input is a hundred-millionth of the largest may be on either side of its ReLU. One other set of weights does
not always show how far. Networks that differ therefore get the spread of MOVED sets, and are trained again with the steps that follow from it.
"""

import argparse
import collections
import fnmatch
import json
import pathlib
import subprocess
import sys

from rows import all_rows, is_stale
from table import AGREES, TRAINED, checks_line, reason_of, write_table

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
MOVED = 8


def export_missing(options, only, *extra):
    flags = [*extra, *(part for glob in only for part in ("--only", glob))]
    if options.tensorflow_python:
        flags += ["--tensorflow-python", options.tensorflow_python]
    script = [sys.executable, str(HERE / "export.py"), "--to", str(options.to), *flags]
    subprocess.run(script, check=True)


def may_spread_more(result):
    return result["state"] == TRAINED and result.get("moved", 1) < MOVED


def read_results(log):
    """The last line of each name; an incomplete last line of a killed run is left out."""
    results = {}
    for line in log.read_text().splitlines() if log.exists() else []:
        try:
            entry = json.loads(line)
        except json.JSONDecodeError:
            continue
        results[entry.pop("name")] = entry
    return results


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tool", type=pathlib.Path, default=ROOT / "build" / "tandem")
    parser.add_argument("--to", type=pathlib.Path, default=ROOT / "build" / "zoo")
    parser.add_argument("--only", action="append", help="a glob over SOURCE/NAME; may be repeated")
    parser.add_argument("--jobs", type=int, default=1, help="how many exports run at the same time")
    parser.add_argument("--again", action="store_true", help="train again what was trained")
    parser.add_argument("--failing", action="store_true", help="with --again: what did not agree")
    parser.add_argument("--no-export", action="store_true", help="only what was exported before")
    parser.add_argument("--limit", type=int, default=60, help="seconds for one call of the tool")
    parser.add_argument("--table", type=pathlib.Path)
    parser.add_argument("--tensorflow-python", help="an interpreter with tensorflow, keras, tf2onnx")
    options = parser.parse_args()
    options.to.mkdir(parents=True, exist_ok=True)
    only = options.only or ["*"]
    if not options.no_export:
        export_missing(options, only)
    log = options.to / "results.jsonl"
    results = read_results(log)
    folders = sorted(
        p.parent for p in options.to.glob("*/*/*/*") if p.name in ("expected.json", "failed.txt")
    )

    def train_rows():
        work = []
        for folder in dict.fromkeys(folders):
            name = str(folder.relative_to(options.to))
            if not any(fnmatch.fnmatch(name, glob + "/*") for glob in only):
                continue
            if name in results and not options.again and not is_stale(folder, results[name]):
                continue
            if options.failing and results.get(name, {}).get("state") == AGREES:
                continue
            work.append((name, folder))
        with log.open("a") as file:
            for name, result in all_rows(options.tool.resolve(), work, options.limit, options.jobs):
                results[name] = result
                file.write(json.dumps({"name": name, **result}) + "\n")
                file.flush()
                numbers = f"{result.get('difference', float('nan')):.1e}"
                checks = result.get("checks", {})
                broken = "; ".join(f"{n}: {c['why']}" for n, c in checks.items() if not c["ok"])
                print(f"{name}: {result['state']} {numbers} {reason_of(result)} {broken}", flush=True)

    train_rows()
    differing = {name.rsplit("/", 1)[0] for name, r in results.items() if may_spread_more(r)}
    if differing and not options.no_export:
        export_missing(options, sorted(differing), "--expected", "--moved", str(MOVED))
        options.again = False
        train_rows()
    there = {str(folder.relative_to(options.to)) for folder in folders}
    results = {name: r for name, r in sorted(results.items()) if name in there}
    table = options.table or (ROOT / "docs" / "zoo.md" if not options.only else None)
    if table:
        write_table(results, table)
    counts = collections.Counter(r["state"] for r in results.values())
    print(", ".join(f"{n} {state}" for state, n in counts.items()))
    print(checks_line(results))


if __name__ == "__main__":
    main()

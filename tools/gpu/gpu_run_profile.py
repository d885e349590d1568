#!/usr/bin/env python3
"""The kernels of a program that take longest on the GPU, by Nsight Compute: their shares, and a full profile of the worst.

    tools/gpu_run_profile.py --ncu NCU --out DIR [--skip N] [--count N] [--worst N] -- PROGRAM ARGUMENTS…

First the duration alone of --count kernels after the first --skip, the warming up; then the worst by their sum with all of ncu's
sections, one launch of each, into DIR/profile_N.csv. Prints JSON lines as gpu_check does. Clocks are left alone.
"""

import argparse
import collections
import csv
import json
import pathlib
import subprocess
import sys

DURATION = "gpu__time_duration.sum"
# What the full profile says about a kernel in the report: ncu's name in its details, ours.
DETAILS = {
    "Duration": "time",
    "Compute (SM) Throughput": "SM throughput",
    "Memory Throughput": "memory throughput",
    "DRAM Throughput": "DRAM throughput",
    "Achieved Occupancy": "occupancy",
    "Registers Per Thread": "registers",
}


def say(**line):
    print(json.dumps(line), flush=True)


def end(verdict, why, code):
    say(verdict=verdict, checks=0, failed=int(verdict == "failed"), why=why)
    return code


def rows_of(text):
    """The rows of ncu's CSV by column, wherever it begins; in the wide form the row of units is left out."""
    lines = text.splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if start is None:
        return []
    return [row for row in csv.DictReader(lines[start:]) if row.get("ID")]


def number(text):
    return float(text.replace(",", ""))


def durations(text):
    """[(kernel, launches, nanoseconds together)], the longest first."""
    sums = collections.defaultdict(lambda: [0, 0.0])
    for row in rows_of(text):
        if row.get("Metric Name", DURATION) != DURATION:
            continue
        value = row.get("Metric Value") or row.get(DURATION)
        if value:
            entry = sums[row["Kernel Name"]]
            entry[0] += 1
            entry[1] += number(value)
    return sorted(((name, *entry) for name, entry in sums.items()), key=lambda kernel: -kernel[2])


def details(text):
    """What DETAILS names, of the first kernel of ncu's CSV of its details page."""
    found = {}
    for row in rows_of(text):
        name = DETAILS.get(row.get("Metric Name"))
        if name and name not in found:
            found[name] = f"{row['Metric Value']} {row['Metric Unit']}".strip()
    return found


def ncu(options, path, *arguments):
    """Runs ncu over the program; its own output, without the program's. None: it failed, and has been said."""
    command = [options.ncu, "--clock-control", "none", "--csv", "--print-units", "base", "--log-file", path, *arguments]
    ended = subprocess.run([*map(str, command), *options.program], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    text = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
    if ended.returncode != 0 or not rows_of(text):
        print(ended.stdout[-2000:], file=sys.stderr)
        last = next((line for line in reversed(text.splitlines()) if "==ERROR==" in line), f"exit code {ended.returncode}")
        return None, last
    return text, ""


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ncu", default="ncu")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("."))
    parser.add_argument("--skip", type=int, default=500)
    parser.add_argument("--count", type=int, default=1500)
    parser.add_argument("--worst", type=int, default=5)
    parser.add_argument("program", nargs="+")
    options = parser.parse_args(arguments)
    which = ("--launch-skip", str(options.skip), "--launch-count", str(options.count))
    text, why = ncu(options, options.out / "kernels.csv", "--metrics", DURATION, *which)
    if text is None:
        return end("failed", f"ncu has measured no kernel: {why}", 1)
    kernels = durations(text)
    total = sum(kernel[2] for kernel in kernels)
    say(note="kernels", content={"launches": sum(kernel[1] for kernel in kernels), "names": len(kernels), "ns": total})
    failed = 0
    for rank, (name, launches, ns) in enumerate(kernels[: options.worst], 1):
        content = {"kernel": name, "launches": launches, "ns": ns, "share": round(ns / total, 4)}
        path = options.out / f"profile_{rank}.csv"
        # All kernels of Tandem are one function template: its arguments tell them apart.
        only = ("--kernel-name-base", "demangled", "--kernel-name", name, "--launch-skip", "5", "--launch-count", "1")
        text, why = ncu(options, path, "--set", "full", "--page", "details", *only)
        failed += text is None
        content.update(details(text) if text else {"profile": why})
        say(note=f"kernel {rank}", content=content)
    if failed:
        say(check="profiles of the worst kernels", ok=False, why=f"{failed} of {min(options.worst, len(kernels))} have none")
    say(verdict="failed" if failed else "passed", checks=1, failed=int(bool(failed)))
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Prints where the time of a build and of its tests went.

    tools/build_times.py [BUILD]            the 40 slowest steps and tests of BUILD (build), with sums per folder
    tools/build_times.py BUILD --top 10     the ten slowest of each
    tools/build_times.py BUILD --phases 10  also compiles the ten slowest C++ files again, one by one, and splits their time
    tools/build_times.py BUILD --since T    only steps that ended after T (seconds since 1970)

Steps come from BUILD/.ninja_log. Their times are wall times, so steps that run at the same time slow each other down. A compiler cache
makes them short. Tests come from BUILD/test_times/, which tools/run_tests.py writes.
"""
import argparse
import collections
import json
import os
import re
import shlex
import subprocess
import sys

KINDS = [(r"\.gch$", "headers"), (r"\.cu\.o$", "CUDA"), (r"\.o$", "C++"), (r"\.a$", "archive"), (r"", "link")]


def kind_of(output):
    return next(kind for pattern, kind in KINDS if re.search(pattern, output))


def folder_of(output):
    """The target that a step belongs to: tandem_kernels, test_api."""
    found = re.search(r"CMakeFiles/([^/]+)\.dir/", output)
    return found[1] if found else os.path.basename(output)


def short(output):
    return re.sub(r"CMakeFiles/[^/]+\.dir/(Unity/)?", "", output).removesuffix(".o")


def read_steps(build, since):
    """The last run of each step: (seconds, start, end, output)."""
    steps = {}
    path = os.path.join(build, ".ninja_log")
    if not os.path.isfile(path):
        return []
    with open(path) as log:
        for line in log:
            fields = line.rstrip("\n").split("\t")
            if line.startswith("#") or len(fields) != 5:
                continue
            start, end, written, output = int(fields[0]) / 1e3, int(fields[1]) / 1e3, int(fields[2]) / 1e9, fields[3]
            # Steps without a file of their own, and those of CMake, are no work of a compiler.
            if written < since or output.endswith(("build.ninja", "verify_globs", ".cmake")):
                continue
            # A step with several outputs has a line for each.
            steps[start, end, fields[4]] = (end - start, start, end, output)
    latest = {}
    for step in steps.values():
        latest[step[3]] = step
    return sorted(latest.values(), reverse=True)


def read_tests(build):
    """(seconds, program, name, result) of every test."""
    folder = os.path.join(build, "test_times")
    tests = []
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
        with open(os.path.join(folder, name)) as file:
            share = json.load(file)
        tests += [(test["seconds"], share["program"], test["name"], test["result"]) for test in share["tests"]]
    return sorted(tests, reverse=True)


def print_table(title, rows):
    if rows:
        print(f"\n{title}")
        for row in rows:
            print(f"{row[0]:9.1f} s  " + "  ".join(str(cell) for cell in row[1:]))


def sums(rows, key):
    total, count = collections.Counter(), collections.Counter()
    for row in rows:
        total[key(row)] += row[0]
        count[key(row)] += 1
    return [(seconds, f"{count[name]:5d}", name) for name, seconds in total.most_common()]


def print_phases(build, steps, top):
    """The times that GCC reports for each file, compiled separately: parsing with templates, and the optimiser with the rest."""
    listed = subprocess.run(["ninja", "-C", build, "-t", "compdb"], capture_output=True, text=True, check=True)
    commands = {entry["output"]: entry["command"] for entry in json.loads(listed.stdout) if entry.get("output")}
    rows = []
    for step in [step for step in steps if kind_of(step[3]) == "C++"][:top]:
        words = shlex.split(commands.get(step[3], ""))
        compiler = next((index for index, word in enumerate(words) if re.search(r"(\+\+|g\+\+|gcc)[-\d.]*$", word)), None)
        if compiler is None:
            continue
        words = words[compiler:]
        words[words.index("-o") + 1] = os.devnull
        words = [word for word in words if not re.match(r"-M", word) and not re.search(r"\.o(\.d)?$", word)]
        report = subprocess.run([*words, "-ftime-report"], cwd=build, capture_output=True, text=True).stderr
        seconds = {name.strip(): float(user) + float(system)
                   for name, user, system in re.findall(r"^ ([\w ,/&:+|-]+?)\s+:\s+([\d.]+) \([^)]*\)\s+([\d.]+)", report, re.M)}
        phase = {name: time for name, time in seconds.items() if name.startswith("phase ")}
        front = sum(time for name, time in phase.items() if "opt and" not in name)
        rows.append((front + phase.get("phase opt and generate", 0), f"front end {front:6.1f} s",
                     f"optimiser {phase.get('phase opt and generate', 0):6.1f} s", short(step[3])))
    print_table(f"Where the {len(rows)} slowest C++ files spend it, each alone", rows)


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("build", nargs="?", default="build")
    arguments.add_argument("--top", type=int, default=40)
    arguments.add_argument("--phases", type=int, default=0, metavar="N")
    arguments.add_argument("--since", type=float, default=0, metavar="T")
    asked = arguments.parse_args()

    steps, tests = read_steps(asked.build, asked.since), read_tests(asked.build)
    if not steps and not tests:
        print(f"{asked.build}: no build step and no test has run there")
        return 0
    compiles = [step for step in steps if kind_of(step[3]) in ("C++", "CUDA", "headers")]
    links = [step for step in steps if kind_of(step[3]) in ("archive", "link")]
    print_table("Steps by kind", sums(steps, lambda step: kind_of(step[3])))
    print_table("Steps by target", sums(steps, lambda step: folder_of(step[3]))[: asked.top])
    print_table(f"The slowest of {len(compiles)} compiled files", [(s[0], short(s[3])) for s in compiles[: asked.top]])
    print_table(f"The slowest of {len(links)} links", [(s[0], short(s[3])) for s in links[: asked.top]])
    if asked.phases:
        print_phases(asked.build, steps, asked.phases)
    print_table("Tests by folder", sums(tests, lambda test: test[1].removeprefix("test_")))
    print_table(f"The slowest of {len(tests)} tests", [(t[0], t[2]) for t in tests[: asked.top]])
    results = collections.Counter(test[3] for test in tests)
    if tests:
        print(f"\n{len(tests)} tests: " + ", ".join(f"{count} {result}" for result, count in results.most_common()))
    return 0


if __name__ == "__main__":
    sys.exit(main())

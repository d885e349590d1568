#!/usr/bin/env python3
"""Measures Tandem against PyTorch, alternating processes, and writes docs/bench/DATE-CPU.md. bench/README.md explains the report.

python3 bench/run.py [--only ROW …] [--continue] [--pairs 7] [--seconds 2] [--binary build/tandem] [--results FILE] [--to FILE]
python3 bench/run.py --report-only      the report again from the saved measurements

Every pair is saved in the results file at once. --only measures the named rows again and keeps the others. --continue, with or without
--only, measures what is missing. The peer's variants are compared only once; --choose-again compares them again.
"""

import argparse
import datetime
import json
import os
import pathlib
import platform
import re
import statistics
import subprocess
import sys

import report
from saved import CpuUse, Results, build_of, cpu_name

ROOT = report.ROOT
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "tandem"
PEER = ROOT / "bench" / "peers"
# What glibc needs to hear so that it keeps memory between steps: without it page faults cost PyTorch up to a tenth of a step.
KEEP_MEMORY = {"MALLOC_MMAP_THRESHOLD_": "4294967296", "MALLOC_TRIM_THRESHOLD_": "17179869184"}
ALSO = report.ALSO
# A variant whose first process takes longer than this times the fastest one is not tried again. Processes of one variant differ by up to
# 1.4 times where steps are small.
HOPELESS = 1.5
EXECUTOR_REPETITIONS = 7


class Failed(Exception):
    pass


MEASURING_FAILED = (Failed, OSError, KeyError, IndexError, ValueError, subprocess.TimeoutExpired)


def run_json(command, env=None, timeout=900):
    """The JSON object that `command` prints: all of its output or the last line."""
    result = subprocess.run(
        list(map(str, command)),
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=timeout,
        env={**os.environ, **(env or {})},
    )
    if result.returncode:
        raise Failed(
            f"exit code {result.returncode}: {(result.stderr.strip().splitlines() or ['no message'])[-1]}"
        )
    text = result.stdout.strip()
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return json.loads(text.splitlines()[-1])


def peer_python(given):
    """The interpreter with PyTorch; makes a virtual environment in the cache if none is named."""
    given = given or os.environ.get("TANDEM_PEER_PYTHON")
    if given:
        return pathlib.Path(given)
    folder, pins = CACHE / "peer-venv", (PEER / "requirements.txt").read_text()
    stamp = folder / "requirements.txt"
    if not stamp.exists() or stamp.read_text() != pins:
        print(f"making {folder} (several GB, minutes)", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        subprocess.run(
            [folder / "bin" / "pip", "install", "--quiet", "-r", PEER / "requirements.txt"],
            check=True,
        )
        stamp.write_text(pins)
    add_deepspeed(folder)
    return folder / "bin" / "python"


def add_deepspeed(folder):
    """Installs DeepSpeed into that environment, tried once for each version. Without it, its rows say that it is missing."""
    wanted = (PEER / "requirements-deepspeed.txt").read_text()
    stamp = folder / "requirements-deepspeed.txt"
    if stamp.exists() and stamp.read_text() == wanted:
        return
    result = subprocess.run(
        [folder / "bin" / "pip", "install", "--quiet", "-r", PEER / "requirements-deepspeed.txt"],
        env={**os.environ, "DS_BUILD_OPS": "0"},
    )
    if result.returncode:
        print("DeepSpeed cannot be installed: its CPUAdam is left out", file=sys.stderr)
    stamp.write_text(wanted)


def models_folder(python, rows):
    """The folder of the exported networks of these rows and their synthetic data, which are written once each."""
    return write_networks(python, rows_of_models(rows))


def write_networks(python, names):
    """The folder of exported networks, to which missing networks of these names are written."""
    folder = pathlib.Path(os.environ.get("TANDEM_MODELS", CACHE / "models"))
    missing = [name for name in names if not (folder / name / "bench.npz").exists()]
    if missing:
        only = [word for name in missing for word in ("--only", name)]
        subprocess.run([python, ROOT / "models" / "make_all.py", "--to", folder, *only], check=True)
    return folder


def rows_of_models(rows):
    """The networks that these rows train."""
    names = ["resnet18" if row == ALSO else row.rpartition("_b")[0] for row in rows]
    return [name for name in dict.fromkeys(names) if name]


class Bench:
    def __init__(self, options):
        self.options = options
        self.by_processor = options.clock == "processor"
        self.threads = options.threads or (
            1 if self.by_processor else len(os.sched_getaffinity(0))
        )
        self.python = peer_python(options.python)
        self.env = {
            "TANDEM_MODELS": str(models_folder(self.python, options.only or report.WORK)),
            "OMP_NUM_THREADS": str(self.threads),
        }
        listed = run_json([self.python, PEER / "torch_step.py", "--list"])
        self.variants = {name: names for name, names in listed.items() if name in report.WORK}
        self.build = build_of(options.binary)
        machine = {
            "cpu": cpu_name(),
            "threads": self.threads,
            "memory_gib": round(
                os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30, 1
            ),
            "system": f"{platform.system()} {platform.release()}",
            "torch": re.search(
                r"^torch==(\S+)", (PEER / "requirements.txt").read_text(), re.M
            ).group(1),
        }
        if self.by_processor:
            machine["clock"] = "processor"
        self.results = Results(options.results, machine, bool(options.only or options.go_on))

    def ours(self, workload):
        if self.by_processor and workload == "adamw_64mi":
            raise Failed("a single update is measured by the wall clock only")
        config = ROOT / "bench" / "workloads" / f"{workload}.toml"
        adamw = ["--kernel", "adamw", "--elements", report.ADAMW_ELEMENTS]
        line = run_json(
            [self.options.binary, "bench"]
            + (adamw if workload == "adamw_64mi" else [config, f"threads={self.threads}"])
            + ["--seconds", self.options.seconds, "--json"],
            self.env,
        )
        return {
            "ms": line["step_cpu_ms"] if self.by_processor else line["step_ms"],
            "p10": line["step_ms_p10"],
            "p90": line["step_ms_p90"],
            "mib": line["peak_rss_mib"],
        }

    def peer(self, workload, variant, seconds):
        name, keep = variant
        line = run_json(
            [self.python, PEER / "torch_step.py", workload, "--variant", name]
            + ["--threads", self.threads, "--seconds", seconds],
            {**self.env, **(KEEP_MEMORY if keep else {})},
        )
        measured = {key: line[key] for key in ("ms", "p10", "p90", "torch")}
        if self.by_processor:
            measured["ms"] = line["cpu_ms"]
        return {**measured, "mib": line["peak_rss_mib"]}

    def limits(self):
        """Rates that `tandem doctor` measures now."""
        doctor = run_json([self.options.binary, "doctor", "--json"], self.env)
        return {key: doctor[key] for key in ("gemm_gflops", "bandwidth_gb_s") if doctor.get(key)}

    def fastest_variant(self, workload):
        """The variant [name, memory kept] with the least median: one process of each, then two more for each that is near the fastest."""
        known = self.results["variants"].get(workload)
        every = {
            report.variant_name((name, keep))
            for name in self.variants[workload]
            for keep in (False, True)
        }
        tried = {*known["ms"], *known.get("failed", {})} if known else set()
        if known and not self.options.choose_again and every <= tried:
            return known["fastest"]
        times, failures = {}, {}
        for name in self.variants[workload]:
            for keep in (False, True):
                try:
                    seconds = min(1.0, self.options.seconds)
                    times[name, keep] = [self.peer(workload, (name, keep), seconds)["ms"]]
                except MEASURING_FAILED as error:
                    failures[report.variant_name((name, keep))] = str(error)
        if not times:
            reasons = "; ".join(f"{name}: {error}" for name, error in failures.items())
            raise Failed("no variant of the peer runs: " + reasons)
        near = HOPELESS * min(rows[0] for rows in times.values())
        for _ in range(2):
            for variant, rows in times.items():
                if rows[0] <= near:
                    rows.append(
                        self.peer(workload, variant, min(1.0, self.options.seconds))["ms"]
                    )
        fastest = list(min(times, key=lambda v: statistics.median(times[v])))
        self.results["variants"][workload] = {
            "fastest": fastest,
            "ms": {report.variant_name(v): rows for v, rows in times.items()},
            "failed": failures,
        }
        self.results.save()
        return fastest

    def measure(self, workload):
        rows = self.results["rows"]
        row = rows.get(workload)
        if not self.options.go_on:
            row = None
        elif row and len(row["pairs"]) >= self.options.pairs:
            return row
        self.ours(workload)  # fails at once where there is nothing to compare
        variant = self.fastest_variant(workload)
        if row is None or row["build"] != self.build or row["variant"] != variant:
            row = {
                "date": str(datetime.date.today()),
                "build": self.build,
                "variant": variant,
                "pairs": [],
                "limits": [],
                "cpu": [],
            }
        use = CpuUse()
        row["limits"].append(self.limits())
        rows[workload] = row
        while len(row["pairs"]) < self.options.pairs:
            pair = {}
            for side in ("ours", "peer") if len(row["pairs"]) % 2 == 0 else ("peer", "ours"):
                pair[side] = (
                    self.ours(workload)
                    if side == "ours"
                    else self.peer(workload, variant, self.options.seconds)
                )
            row["pairs"].append(pair)
            self.results.save()
        row["limits"].append(self.limits())
        row["cpu"].append(use.so_far())
        return row

    def measure_executor(self):
        done = self.results.content.get(ALSO)
        if done and self.options.go_on:
            return
        program = self.options.executor or self.options.binary.parent / "bench" / "bench_executor"
        if not program.exists():
            raise Failed("bench_executor is not built (tools/build.sh cpu benches)")
        use = CpuUse()
        output = run_json(
            [
                program,
                ROOT / "bench" / "workloads" / "resnet18_b32.toml",
                "--benchmark_format=json",
                f"--benchmark_repetitions={EXECUTOR_REPETITIONS}",
                "--benchmark_enable_random_interleaving=true",
                f"--benchmark_min_time={min(0.3, self.options.seconds)}",
            ],
            self.env,
        )
        self.results.content[ALSO] = {
            "date": str(datetime.date.today()),
            "build": self.build,
            "cpu": use.so_far(),
            "benchmarks": [b for b in output["benchmarks"] if b["run_type"] == "iteration"],
        }

    def run(self):
        wanted = self.options.only or list(report.WORK) + [ALSO]
        for name in wanted:
            try:
                if name == ALSO:
                    self.measure_executor()
                else:
                    print(report.summary(name, self.measure(name)), flush=True)
                self.results["failed"].pop(name, None)
            except MEASURING_FAILED as error:
                self.results["failed"][name] = f"{type(error).__name__}: {error}"
                print(f"{name:13s} failed: {self.results['failed'][name]}", flush=True)
            self.results.save()


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", action="append", choices=[*report.WORK, ALSO])
    parser.add_argument("--continue", dest="go_on", action="store_true")
    parser.add_argument("--report-only", action="store_true")
    parser.add_argument("--choose-again", action="store_true", help="compare the peer's variants again")
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument(
        "--seconds", type=float, default=2.0, help="how long one process measures steps, at least 10 of them"
    )
    parser.add_argument("--threads", type=int, default=0, help="0: all cores, or 1 with --clock processor")
    parser.add_argument(
        "--clock",
        choices=("wall", "processor"),
        default="wall",
        help="processor: the processor time of the process, for a machine that others use, too",
    )
    parser.add_argument("--binary", type=pathlib.Path, default=ROOT / "build" / "tandem")
    parser.add_argument("--executor", type=pathlib.Path, help="default: bench/bench_executor next to --binary")
    parser.add_argument(
        "--python", type=pathlib.Path, help="an interpreter that has bench/peers/requirements.txt"
    )
    parser.add_argument(
        "--results", type=pathlib.Path, default=ROOT / "build" / "bench" / "results.json"
    )
    parser.add_argument("--to", type=pathlib.Path, help="the file of the report (default: docs/bench/DATE-CPU.md)")
    options = parser.parse_args()
    options.binary = options.binary.absolute()
    if options.report_only:
        if not options.results.exists():
            sys.exit(f"{options.results} is not there: measure first")
        results = Results(options.results, None, True)
    else:
        bench = Bench(options)
        bench.run()
        results = bench.results
    path = options.to or report.default_path(results.content)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(report.compose(results.content, options.pairs))
    print(path)
    sys.exit(1 if report.missing(results.content, options.pairs) else 0)


if __name__ == "__main__":
    main()

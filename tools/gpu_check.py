#!/usr/bin/env python3
"""The stages of tools/gpu_check.sh: each a process of its own with a time limit, results as JSON lines, a table at the end.

--binary DIR   a finished build folder instead of configuring and building the preset `cuda`
--out DIR      results.jsonl, summary.md, a log of each stage (default: $OUT, else build-cuda/gpu_check_results)
--stages A,B   only these
--minutes N    the whole check, at least 1; what does not fit is skipped (default 10, with --torch 40; building not counted)
--models DIR   exported networks for the step times (default: $TANDEM_MODELS, else build/models)
--torch PYTHON an interpreter with PyTorch: the same models on the same card, alternating with ours
--tf32         step times of float32 models with TF32, ours and PyTorch's alike

No clock is changed, nothing is reset. Exit codes: 0 all passed, 1 something failed or nothing passed, 2 usage, 3 no card.
"""

import argparse
import ctypes
import json
import math
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import threading
import time

from gpu_check_summary import summary

ROOT = pathlib.Path(__file__).resolve().parents[1]
RESULTS = pathlib.Path("build-cuda") / "gpu_check_results"  # beside the program `gpu_check`, which the build makes there
# Most information first: seconds that each may take.
LIMITS = {
    "env": 40,
    "smoke": 90,
    "parity": 150,
    "parity_tf32": 60,
    "parity16": 90,
    "gradients": 90,
    "partitions": 60,
    "times": 90,  # of each workload
    "graphs": 60,
    "overlap": 60,
    "nccl": 60,
    "memcheck": 120,
}
TORCH_LIMIT = 240  # of each variant: compiling takes minutes
TORCH_VARIANTS = ("eager", "compile", "graphs")
SKIPPED, NO_CARD = 77, 3


PROBE_LIMIT = 60  # seconds that the driver may take to start


def probe():
    """Prints the driver's answer: "opened", its status and the number of cards, or "closed" and the loader's error."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        print("closed", error)
        return
    try:
        start, count_cards = driver.cuInit, driver.cuDeviceGetCount
    except AttributeError as error:
        print("closed", error)
        return
    count = ctypes.c_int(0)
    status = start(0)
    if status == 0:
        status = count_cards(ctypes.byref(count))
    print("opened", status, count.value)


def missing_card():
    """Why no card can be used, in one sentence; None: one can. Another process asks: a file that was cut short ends it, a pipe stops it."""
    program = "import sys; sys.path.insert(0, sys.argv[1]); import gpu_check; gpu_check.probe()"
    command = [sys.executable, "-c", program, pathlib.Path(__file__).resolve().parent]
    broken = "the NVIDIA driver's library (libcuda.so.1) cannot be used: "
    try:
        asked = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=PROBE_LIMIT)
    except subprocess.TimeoutExpired:
        return broken + f"it does not answer within {PROBE_LIMIT} s."
    if asked.returncode < 0:
        return broken + f"it ends the process by signal {-asked.returncode}."
    how, _, said = (asked.stdout.splitlines() or [""])[-1].partition(" ")
    if how == "closed":
        is_absent = said.startswith("libcuda.so.1:") and said.endswith("No such file or directory")
        return "this machine has no NVIDIA driver (libcuda.so.1)." if is_absent else broken + said + "."
    if how != "opened":
        return broken + (asked.stderr.strip().rpartition("\n")[2] or f"exit code {asked.returncode}") + "."
    status, count = map(int, said.split())
    if status == 100 or (status == 0 and count == 0):  # CUDA_ERROR_NO_DEVICE
        return "the NVIDIA driver sees no card."
    if status != 0:
        return f"the NVIDIA driver does not start (error {status})."
    return None


class Results:
    """results.jsonl, written line by line, and what the table needs."""

    def __init__(self, folder):
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.lines = []
        self.verdicts = []  # of each process
        self.file = open(folder / "results.jsonl", "w", encoding="utf-8")

    def add(self, line):
        self.lines.append(line)
        self.file.write(json.dumps(line) + "\n")
        self.file.flush()
        if "verdict" in line:
            self.verdicts.append(line)

    def verdict(self, stage, verdict, why, **more):
        self.add({"stage": stage, "verdict": verdict, "checks": 0, "failed": 0, "why": why, **more})

    @property
    def failed(self):
        return any(line["verdict"] == "failed" for line in self.verdicts)

    @property
    def passed(self):
        return any(line["verdict"] == "passed" for line in self.verdicts)


def stop(process):
    """Ends the process group: kindly, then at once."""
    for kind, patience in ((signal.SIGTERM, 5), (signal.SIGKILL, 30)):
        try:
            os.killpg(process.pid, kind)
            process.wait(patience)
            return
        except subprocess.TimeoutExpired:
            continue
        except ProcessLookupError:
            return


def object_of(text):
    """The JSON object of a line; None: it is something else."""
    try:
        line = json.loads(text)
    except json.JSONDecodeError:
        return None
    return line if isinstance(line, dict) else None


def run_stage(results, stage, command, limit, env=None, label=None):
    """Runs one process; its JSON lines become results, everything goes into its log. Returns its last verdict."""
    label = label or stage
    start = time.monotonic()
    log_path = results.folder / (label.replace("/", "_").replace(" ", "_") + ".log")
    verdict, late = None, threading.Event()
    with open(log_path, "w", encoding="utf-8") as log:
        log.write("$ " + " ".join(map(str, command)) + "\n")
        log.flush()
        try:
            process = subprocess.Popen(
                list(map(str, command)),
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                errors="replace",
                start_new_session=True,
                cwd=ROOT,
                env={**os.environ, **(env or {})},
            )
        except OSError as error:
            results.verdict(stage, "failed", f"{command[0]} does not start: {error}", label=label)
            return results.verdicts[-1]

        def end():
            late.set()
            stop(process)

        timer = threading.Timer(limit, end)
        timer.start()
        with process:
            for text in process.stdout:
                log.write(text)
                line = object_of(text)
                if line is None:
                    continue
                line = {"stage": stage, **line}
                if "verdict" in line:
                    verdict = line
                else:
                    results.add(line)
        timer.cancel()
    code = process.returncode
    seconds = round(time.monotonic() - start, 1)
    if late.is_set():
        verdict = {"stage": stage, "verdict": "failed", "why": f"not done within {limit:.0f} s"}
    elif code not in (0, 1, SKIPPED) or verdict is None:
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        verdict = {"stage": stage, "verdict": "failed", "why": f"ended with {how}: see {log_path.name}"}
    elif verdict["verdict"] == "passed" and code != 0:
        verdict = {**verdict, "verdict": "failed", "why": f"exit code {code}"}
    verdict = {**verdict, "label": label, "seconds": seconds}
    results.add(verdict)
    why = f": {verdict['why']}" if verdict.get("why") else ""
    print(f"{label:32} {verdict['verdict']:8} {seconds:7.1f} s{why}", flush=True)
    return verdict


def build():
    """The build folder of the preset `cuda`, with the program and the check."""
    subprocess.run([ROOT / "tools" / "build.sh", "cuda", "tandem_tool", "gpu_check"], check=True)
    return ROOT / "build-cuda"


class Check:
    def __init__(self, options, results):
        self.options, self.results = options, results
        self.program = options.binary / "gpu_check"
        self.end = time.monotonic() + 60 * options.minutes

    def limit(self, seconds):
        """Seconds that a process may take; 0: the time is up."""
        left = self.end - time.monotonic()
        return min(seconds, left) if left > 5 else 0

    def command(self, stage, *more):
        return [self.program, stage, "--json", "--out", self.results.folder, "--models", self.options.models, *more]

    def run(self, stage):
        limit = self.limit(LIMITS[stage])
        if not limit:
            self.results.verdict(stage, "skipped", "the time is up", label=stage)
        elif stage == "times":
            self.run_times()
        elif stage == "memcheck":
            self.run_memcheck(limit)
        else:
            run_stage(self.results, stage, self.command(stage), limit)

    def run_memcheck(self, limit):
        tool = shutil.which("compute-sanitizer")
        if tool is None:
            self.results.verdict("memcheck", "skipped", "compute-sanitizer is not in PATH", label="memcheck")
            return
        command = [tool, "--tool", "memcheck", "--error-exitcode", "9", "--log-file"]
        command += [self.results.folder / "memcheck.txt", *self.command("smoke")]
        run_stage(self.results, "memcheck", command, limit)

    def run_times(self):
        listed = subprocess.run([self.program, "list"], capture_output=True, text=True)
        names = listed.stdout.split()
        if listed.returncode or not names:
            self.results.verdict("times", "failed", "gpu_check names no workloads", label="times")
            return
        for name in names:
            if not self.one_time(name, "") or not self.options.torch:
                continue
            for variant in TORCH_VARIANTS:
                self.torch_time(name, variant)
            self.one_time(name, ", again")

    def one_time(self, name, again):
        limit = self.limit(LIMITS["times"])
        if not limit:
            self.results.verdict("times", "skipped", "the time is up", label=name + again)
            return False
        command = self.command("times", "--only", name, *self.tf32())
        verdict = run_stage(self.results, "times", command, limit, label=name + again)
        return verdict["verdict"] == "passed"

    def tf32(self):
        return ["--tf32"] if self.options.tf32 else []

    def torch_time(self, name, variant):
        label, limit = f"{name} torch {variant}", self.limit(TORCH_LIMIT)
        if not limit:
            self.results.verdict("torch", "skipped", "the time is up", label=label)
            return
        command = [self.options.torch, ROOT / "bench" / "peers" / "gpu_torch.py", name, "--variant", variant]
        command += self.tf32()
        run_stage(self.results, "torch", command, limit, label=label)


def parse(arguments):
    parser = argparse.ArgumentParser(
        prog="tools/gpu_check.sh", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--binary", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--stages", default=",".join(LIMITS))
    parser.add_argument("--minutes", type=float)
    models = os.environ.get("TANDEM_MODELS", ROOT / "build" / "models")
    parser.add_argument("--models", type=pathlib.Path, default=models)
    parser.add_argument("--torch", type=pathlib.Path)
    parser.add_argument("--tf32", action="store_true")
    options = parser.parse_args(arguments)
    options.stages = [name for name in options.stages.split(",") if name]
    if not options.stages:
        parser.error("no stages")
    for name in options.stages:
        if name not in LIMITS:
            parser.error(f"there is no stage {name}: {', '.join(LIMITS)}")
    if options.minutes is None:
        options.minutes = 40 if options.torch else 10
    if not (options.minutes >= 1 and math.isfinite(options.minutes)):
        parser.error(f"--minutes: expected 1 or more, got {options.minutes:g}")
    options.models = options.models.absolute()
    if options.binary is not None:
        options.binary = options.binary.absolute()
        if not os.access(options.binary / "gpu_check", os.X_OK):
            parser.error(f"there is no program gpu_check in {options.binary}")
    if options.torch is not None and shutil.which(options.torch) is None:
        parser.error(f"there is no program {options.torch}")
    options.out = (options.out or pathlib.Path(os.environ.get("OUT") or ROOT / RESULTS)).absolute()
    there = next(folder for folder in (options.out, *options.out.parents) if os.path.exists(folder))
    if not os.path.isdir(there) or not os.access(there, os.W_OK | os.X_OK):
        parser.error(f"--out: {options.out} is no folder that can be written to, because of {there}")
    return options


def main(arguments=None):
    options = parse(arguments)
    why = missing_card()
    if why:
        print(f"gpu_check: no card can be checked: {why}", file=sys.stderr)
        return NO_CARD
    if options.binary is None:
        try:
            options.binary = build()
        except subprocess.CalledProcessError as error:
            print(f"gpu_check: the build failed with exit code {error.returncode}", file=sys.stderr)
            return 1
    try:
        results = Results(options.out)
    except OSError as error:
        print(f"gpu_check: --out: {error}", file=sys.stderr)
        return 2
    check = Check(options, results)
    try:
        for stage in LIMITS:
            if stage in options.stages:
                check.run(stage)
    finally:
        results.file.close()
        text = summary(results)
        (options.out / "summary.md").write_text(text, encoding="utf-8")
    print("\n" + text)
    print(f"results in {options.out}")
    if not results.failed and not results.passed:
        print("gpu_check: no stage has passed: nothing is proven", file=sys.stderr)
    return 1 if results.failed or not results.passed else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Checks and measures on a machine with a GPU what only a GPU can show, in parts of at most four minutes, the most telling first.

    tools/gpu_run.sh 1 | check      every kernel once, parity, gradients, graphs; then environment and NCCL
    tools/gpu_run.sh 2 | times      step times of one workload, and PyTorch's eager, CUDA-graph and compiled runs
    tools/gpu_run.sh 3 | sanitize   16 bits, TF32, partitions, overlap; memcheck and racecheck of what uses shared memory
    tools/gpu_run.sh 4 | profile    which kernels of that workload take longest, and a profile of each
    tools/gpu_run.sh report [ARCHIVE…]   docs/gpu/DATE-CARD.md from the archives of all parts

It runs the programs of a pack, which tools/gpu_pack.sh makes on a machine without a GPU. Each part is a number of processes with time
limits of their own. After each, what is there is put into one archive, partN.tar.gz: results.jsonl, report.md, a log of each process. What
has no time left is unfinished; the same call with --resume goes on there. No clock is changed, nothing is reset.

Exit codes: 0 all passed, 1 something failed or nothing passed, 2 usage, 3 no GPU, 4 out of time: --resume goes on.
"""

import argparse
import datetime
import json
import math
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import tarfile
import time

import gpu_run_card
import gpu_run_report
from gpu_run_parts import PARTS, WITH_WORKLOAD, Parts, find_tool
from gpu_run_stage import Results, is_done, run_stage

ROOT = pathlib.Path(__file__).resolve().parents[2]
HOME = ROOT / "build-gpu-pack"  # git ignores it
USAGE, NO_CARD, OUT_OF_TIME = 2, 3, 4
MINUTES = 4  # for a part, where nothing is asked: three of them fit into a visit of a quarter of an hour
MOST_BYTES = 8 << 20  # for one file in an archive
LEAST_SECONDS = 5  # less than that is not worth a start
FACTS = """\
import json, torch
p = torch.cuda.get_device_properties(0) if torch.cuda.is_available() else None
print(json.dumps({"torch": torch.__version__, "cuda": torch.version.cuda, "cudnn": torch.backends.cudnn.version(), "sees": p and p.name}))
"""


class UsageError(Exception):
    pass


def said(command, limit=60):
    """The first line that a command prints, or why there is none."""
    try:
        ended = subprocess.run(list(map(str, command)), capture_output=True, text=True, errors="replace", timeout=limit)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{error}"
    lines = (ended.stdout if ended.returncode == 0 else ended.stderr).strip().splitlines() or [""]
    return lines[0] if ended.returncode == 0 else f"exit code {ended.returncode}: {lines[-1]}"


def tell_machine(results, run):
    """Notes of what the other stages do not say: driver, tools, PyTorch, and what was packed."""
    label = "machine"
    if results.verdict_of(label):
        return
    query = "name,driver_version,memory.total,clocks.max.sm,power.limit"
    pack = run.binary / "pack.json"
    notes = {
        "card": said(["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader"]),
        "system": f"{platform.system()} {platform.release()}, {os.cpu_count()} processors",
        "python": platform.python_version(),
        "torch": said([run.python, "-c", FACTS]),
        "pack": json.loads(pack.read_text(encoding="utf-8")) if pack.exists() else str(run.binary),
        "tree": said(["git", "-C", ROOT, "rev-parse", "HEAD"]),
        "compute-sanitizer": find_tool("compute-sanitizer") or "none",
        "ncu": find_tool("ncu") or "none",
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
    }
    for name, content in notes.items():
        results.add({"stage": label, "label": label, "note": name, "content": content})
    results.verdict(label, "noted", "")


def unpack(archive, to):
    """The pack's folder; it is unpacked once for each archive."""
    mark = f"{archive} {archive.stat().st_size} {archive.stat().st_mtime_ns}"
    marker, folder = to / "unpacked", to / "tandem-gpu"
    if not (marker.exists() and marker.read_text() == mark):
        shutil.rmtree(folder, ignore_errors=True)
        to.mkdir(parents=True, exist_ok=True)
        with tarfile.open(archive) as tar:
            tar.extractall(to, filter="data") if hasattr(tarfile, "data_filter") else tar.extractall(to)
        marker.write_text(mark)
    return folder


class Run:
    """One part: its folder, its stages, its archive."""

    def __init__(self, options):
        self.options = options
        self.python, self.models, self.tf32, self.workload = options.python, options.models, options.tf32, options.workload
        self.part = options.part
        # The libraries of the GPU are looked for among this interpreter's packages.
        self.env = {"VIRTUAL_ENV": said([self.python, "-c", "import sys; print(sys.prefix)"])} if self.python != "python3" else {}
        self.name = f"part{self.part}" + (f"-{self.workload}" if self.part in WITH_WORKLOAD else "")
        self.folder = HOME / "run" / self.name
        self.end = time.monotonic() + 60 * options.minutes
        self.binary = options.binary or unpack(options.pack, HOME / "run")

    def left(self):
        """Seconds of the part."""
        return self.end - time.monotonic()

    def prepare(self):
        """The folder as the last call left it with --resume, else empty."""
        shutil.rmtree(self.folder, ignore_errors=True)
        if self.options.resume is None:
            return
        archive = self.options.resume or next((p for p in self.archives() if p.exists()), None)
        if archive is None:
            raise UsageError(f"--resume: there is no {self.name}.tar.gz in {self.options.out}")
        with tarfile.open(archive) as tar:
            names = {pathlib.PurePath(name).parts[0] for name in tar.getnames()}
            if names != {self.name}:
                raise UsageError(f"--resume: {archive} is not of {self.name}, but of {', '.join(sorted(names))}")
            tar.extractall(self.folder.parent, filter="data") if hasattr(tarfile, "data_filter") else tar.extractall(self.folder.parent)

    def archives(self):
        """Where the archive goes. A folder that is emptied between calls is not the only one."""
        return dict.fromkeys(folder / f"{self.name}.tar.gz" for folder in (self.options.out, HOME / "results"))

    def archive(self, results):
        (self.folder / "report.md").write_text(gpu_run_report.report([results.lines]), encoding="utf-8")
        first = None
        for path in self.archives():
            path.parent.mkdir(parents=True, exist_ok=True)
            new = path.with_suffix(".new")
            if first:
                shutil.copyfile(first, new)
            else:
                with tarfile.open(new, "w:gz") as tar:
                    tar.add(self.folder, self.name, filter=lambda item: item if item.size <= MOST_BYTES else None)
            os.replace(new, path)  # a call that is killed leaves the last whole one
            first = first or path

    def stage(self, results, stage):
        if isinstance(stage, tuple):  # what cannot run here, and why
            label, why = stage
            if results.verdict_of(label) is None:
                results.verdict(label, "skipped", why)
                print(f"{label:44} skipped: {why}", flush=True)
            return
        before = results.verdict_of(stage.label)
        if before is not None and is_done(before):
            print(f"{stage.label:44} {before['verdict']:10} before", flush=True)
            return
        left = self.left()
        if left < LEAST_SECONDS:
            results.verdict(stage.label, "unfinished", "the time is up")
            print(f"{stage.label:44} unfinished: the time is up", flush=True)
        else:
            run_stage(results, stage, min(stage.limit, left))

    def all(self):
        self.prepare()
        results = Results(self.folder, self.options.resume is not None)
        try:
            tell_machine(results, self)
            for stage in Parts(self).stages(self.part):
                self.stage(results, stage)
                self.archive(results)
        finally:
            results.file.close()
            self.archive(results)
        return results


def write_report(options):
    """docs/gpu/DATE-CARD.md from archives."""
    archives = options.archives or sorted((HOME / "results").glob("part*.tar.gz"))
    if not archives:
        raise UsageError(f"there are no archives in {HOME / 'results'}: name them")
    parts = []
    for archive in archives:
        with tarfile.open(archive) as tar:
            member = next((m for m in tar.getmembers() if m.name.endswith("/results.jsonl")), None)
            if member is None:
                raise UsageError(f"{archive} has no results.jsonl")
            lines = tar.extractfile(member).read().decode("utf-8").splitlines()
        parts.append([json.loads(line) for line in lines])
    path = options.to or ROOT / "docs" / "gpu" / f"{gpu_run_report.name_of(parts)}.md"
    path.write_text(gpu_run_report.report(parts), encoding="utf-8")
    print(path)
    return 0


def parse(arguments):
    parser = argparse.ArgumentParser(
        prog="tools/gpu_run.sh", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", help="1 check, 2 times, 3 sanitize, 4 profile, or report")
    parser.add_argument("archives", nargs="*", type=pathlib.Path, help="of report: those to read (default: build-gpu-pack/results)")
    parser.add_argument("--pack", type=pathlib.Path, default=HOME / "tandem-gpu.tar.xz", help="what tools/gpu_pack.sh has made")
    parser.add_argument("--binary", type=pathlib.Path, help="a finished build folder instead of a pack")
    parser.add_argument("--out", type=pathlib.Path, help="where the archive goes (default: $OUT, else build-gpu-pack/results)")
    parser.add_argument("--minutes", type=float, default=MINUTES, help=f"the whole part, at least 1 (default {MINUTES})")
    parser.add_argument(
        "--resume", nargs="?", type=pathlib.Path, const=pathlib.Path(), help="go on from this archive (default: the part's last)"
    )
    parser.add_argument("--workload", default="mlp_b32", help="of times and profile: a name of `gpu_check list` (default mlp_b32)")
    parser.add_argument("--models", type=pathlib.Path, help="where models are exported to (default: $TANDEM_MODELS, else build-gpu-pack/models)")
    parser.add_argument("--python", default="python3", help="an interpreter with PyTorch (default: python3)")
    parser.add_argument("--tf32", action="store_true", help="of times and profile: float32 models with TF32, ours and PyTorch's alike")
    parser.add_argument("--to", type=pathlib.Path, help="of report: the file")
    options = parser.parse_args(arguments)
    names = {**{number: number for number in PARTS}, **{name: number for number, name in PARTS.items()}}
    if options.part == "report":
        return options
    if options.part not in names:
        parser.error(f"there is no part {options.part}: {', '.join(f'{k} {v}' for k, v in PARTS.items())}, report")
    options.part = names[options.part]
    if options.archives:
        parser.error(f"unexpected: {options.archives[0]}")
    if not (options.minutes >= 1 and math.isfinite(options.minutes)):
        parser.error(f"--minutes: expected 1 or more, got {options.minutes:g}")
    options.models = (options.models or pathlib.Path(os.environ.get("TANDEM_MODELS") or HOME / "models")).absolute()
    if options.binary is not None:
        options.binary = options.binary.absolute()
        if not os.access(options.binary / "gpu_check", os.X_OK):
            parser.error(f"there is no program gpu_check in {options.binary}")
    if options.resume == pathlib.Path():
        options.resume = False  # not None: go on, from the part's own archive
    options.out = (options.out or pathlib.Path(os.environ.get("OUT") or HOME / "results")).absolute()
    there = next(folder for folder in (options.out, *options.out.parents) if os.path.exists(folder))
    if not os.path.isdir(there) or not os.access(there, os.W_OK | os.X_OK):
        parser.error(f"--out: {options.out} is no folder that can be written to, because of {there}")
    return options


def check_workload(run):
    listed = subprocess.run([run.binary / "gpu_check", "list"], capture_output=True, text=True)
    if listed.returncode != 0:
        raise UsageError(f"{run.binary / 'gpu_check'} does not run: {(listed.stderr.strip().splitlines() or ['no word'])[-1]}")
    if run.part in WITH_WORKLOAD and run.workload not in listed.stdout.split():
        raise UsageError(f"--workload: there is no {run.workload}: {', '.join(listed.stdout.split())}")


def run_part(options):
    why = gpu_run_card.missing_card()
    if why:
        print(f"gpu_run: no card can be checked: {why}", file=sys.stderr)
        return NO_CARD
    if options.binary is None and not options.pack.exists():
        raise UsageError(f"there is no {options.pack}: tools/gpu_pack.sh makes it, or --binary names a build folder")
    run = Run(options)
    check_workload(run)
    results = run.all()
    print("\n" + (run.folder / "report.md").read_text(encoding="utf-8"))
    print(f"results in {options.out / (run.name + '.tar.gz')}; at home, tools/gpu_run.sh report ARCHIVE… writes docs/gpu/DATE-CARD.md")
    if results.has("unfinished"):
        print("gpu_run: the time is up: --resume goes on", file=sys.stderr)
        return OUT_OF_TIME
    if not results.has("failed") and not results.has("passed"):
        print("gpu_run: no stage has passed: nothing is proven", file=sys.stderr)
    return 1 if results.has("failed") or not results.has("passed") else 0


def main(arguments=None):
    options = parse(arguments)
    try:
        return write_report(options) if options.part == "report" else run_part(options)
    except (UsageError, OSError, tarfile.TarError) as error:
        print(f"gpu_run: {error}", file=sys.stderr)
        return USAGE if isinstance(error, UsageError) else 1


if __name__ == "__main__":
    sys.exit(main())

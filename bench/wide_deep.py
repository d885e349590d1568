#!/usr/bin/env python3
"""Measures Wide & Deep at its published size against PyTorch and MindSpore, alternating processes; prints and writes a Markdown report.

    PYTHON bench/wide_deep.py [--pairs 7] [--seconds 4] [--ids zipf uniform] [--binary build/tandem] [--to FILE]
                              [--mindspore PYTHON]

184,968 rows of widths 1 and 80, 16,000 × 39 ids, MLP 3120-1024-512-256-128-1; all have the same ids. PYTHON needs peers/requirements.txt,
the interpreter of --mindspore peers/requirements-mindspore.txt. Without --mindspore its rows are left out. Nothing else should run meanwhile.

The sparse part is both lookups, the sums of gradients by row and both updates; for Tandem, the times that `tandem bench` reports for these
operators. A ratio is the median over pairs of peer time ÷ Tandem's. PyTorch and MindSpore keep their memory between steps (see run.py).

Each number is next to its limit. The four host operators are next to those of a published log of MindSpore, which trained the same network on
host and device of another machine.
"""

import argparse
import datetime
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys

import run

ROOT, PEER = run.ROOT, run.PEER
sys.path.insert(0, str(PEER))
SPARSE = ("Gather", "GatherRows", "EmbeddingBag", "UniqueIndices", "RowsUpdate")
LOOK_UPS = ("Gather", "GatherRows", "EmbeddingBag")
PUBLISHED_MS = {"look-up, wide": 3.1, "look-up, deep": 15.5, "FTRL, wide": 54.5, "LazyAdam, deep": 142.9}
UPDATES = ("FTRL, wide", "LazyAdam, deep")
# The least ratios, one for all ids or by their kind; the most that the others may be.
LEAST = {
    "sparse part, PyTorch": 7,
    "sparse part, MindSpore": {"zipf": 9, "uniform": 14},
    "step, PyTorch with sparse gradients": 1.1,
    "step, PyTorch with dense gradients": 1.02,
    "step, MindSpore": 1.35,
}
MOST_OF_PRODUCTS, MOST_OF_BANDWIDTH = 1.08, 2
GEMM = """
import json, time, torch
torch.set_num_threads({threads})
a, b = torch.randn(16000, 3120), torch.randn(3120, 1024)
best = 1e9
for _ in range(8):
    start = time.perf_counter(); a @ b; best = min(best, time.perf_counter() - start)
print(json.dumps({{"gflops": 2e-9 * 16000 * 1024 * 3120 / best}}))
"""


def write_data(folder, kind):
    """One batch, the peers' own; returns its path."""
    import numpy as np
    import wide_deep_common as common

    path = folder / f"bench_{kind}.npz"
    if not path.exists():
        np.savez(path, ids=common.ids(kind), label=common.labels().reshape(-1))
    return path


def host_operator(row):
    """The name in PUBLISHED_MS for a row of `operators` of `tandem bench --json`, or None."""
    table = next((t for t in ("wide", "deep") if t in row["path"]), None)
    if table and row["op"] in LOOK_UPS and row["phase"] == "forward":
        return f"look-up, {table}"
    if table and row["op"] == "RowsUpdate":
        return UPDATES[table == "deep"]
    return None


def with_range(values, digits):
    """The median, with the least and the largest where there are several."""
    text = f"{statistics.median(values):.{digits}f}"
    if len(values) == 1:
        return text
    return f"{text} ({min(values):.{digits}f}–{max(values):.{digits}f})"


class Measured:
    """Numbers of all pairs by name; medians, and ratios pair by pair."""

    def __init__(self):
        self.rows = {}

    def add(self, name, value):
        self.rows.setdefault(name, []).append(value)

    def median(self, name):
        return statistics.median(self.rows[name]) if name in self.rows else None

    def ratios(self, peer, own):
        return [p / o for p, o in zip(self.rows[peer], self.rows[own])]

    def text(self, name, digits=2):
        return with_range(self.rows[name], digits)


class WideDeep:
    def __init__(self, options):
        self.options = options
        self.threads = len(os.sched_getaffinity(0))
        self.env = {"TANDEM_MODELS": str(options.models), "OMP_NUM_THREADS": str(self.threads)}

    def ours(self, kind, to):
        config = ROOT / "bench" / "workloads" / f"wide_deep_{kind}.toml"
        command = [self.options.binary, "bench", config, "--seconds", self.options.seconds, "--json"]
        self.take(run.run_json(command, self.env), to)

    @staticmethod
    def take(line, to):
        """The numbers of one `tandem bench --json`."""
        to.add("tandem", line["step_ms"])
        sparse, times, moved = 0.0, dict.fromkeys(PUBLISHED_MS, 0.0), dict.fromkeys(UPDATES, 0.0)
        for row in line["operators"]:
            if row["op"] in SPARSE or (row["op"] == "Copy" and "wide" in row["path"]):
                sparse += row["ms"]
                to.add(f"{row['path']} {row['op']} {row['phase']}", row["ms"])
            name = host_operator(row)
            if name:
                times[name] += row["ms"]
                if name in moved:
                    moved[name] += row["bytes"]
        to.add("tandem sparse", sparse)
        missing = [name for name, ms in times.items() if not ms]
        if missing:
            raise KeyError(f"tandem bench lists no operator that is {', nor '.join(missing)}")
        for name, ms in times.items():
            to.add(f"tandem {name}", ms)
        bandwidth = line["host_updates"].get("machine_gb_per_s")
        if bandwidth:
            to.add("tandem bandwidth", bandwidth)
            for name, count in moved.items():
                to.add(f"tandem bytes {name}", count)
                to.add(f"tandem factor {name}", times[name] * bandwidth * 1e6 / count)

    def peer(self, python, script, workload, variant, name, to):
        command = [python, PEER / script, workload, "--seconds", self.options.seconds]
        command += ["--threads", self.threads] + (["--variant", variant] if variant else [])
        line = run.run_json(command, {**self.env, **run.KEEP_MEMORY})
        to.add(name, line["ms"])

    def measure(self, kind):
        to, options = Measured(), self.options
        write_data(options.models / "wide_deep", kind)
        for pair in range(options.pairs):
            jobs = [lambda: self.ours(kind, to)]
            torch = (options.python, "wide_deep_torch.py")
            for variant in ("sparse", "dense"):
                jobs.append(
                    lambda v=variant: self.peer(*torch, f"wide_deep_{kind}", v, f"torch {v}", to)
                )
            for variant in ("embedding_out", "index_select_out"):
                jobs.append(
                    lambda v=variant: self.peer(
                        *torch, f"wide_deep_sparse_{kind}", v, f"torch {v}", to
                    )
                )
            if options.mindspore:
                other = (options.mindspore, "wide_deep_mindspore.py")
                jobs.append(
                    lambda: self.peer(*other, f"wide_deep_{kind}", None, "mindspore", to)
                )
                jobs.append(
                    lambda: self.peer(*other, f"wide_deep_sparse_{kind}", None, "mindspore sparse", to)
                )
            jobs.append(lambda: to.add("gemm", self.gemm()))
            for job in jobs if pair % 2 == 0 else reversed(jobs):
                job()
            print(f"{kind}: pair {pair + 1} of {options.pairs}", file=sys.stderr)
        return to

    def gemm(self):
        code = GEMM.format(threads=self.threads)
        return run.run_json([self.options.python, "-c", code], self.env)["gflops"]


def kept(is_kept):
    return "kept" if is_kept else "**missed**"


def peer_rows(kind, to):
    """A line for each number of a peer: (text, own name, peer's name, the smallest ratio that is allowed)."""
    best = min(("torch embedding_out", "torch index_select_out"), key=to.median)
    pairs = {
        "sparse part, PyTorch": (best, "tandem sparse"),
        "sparse part, MindSpore": ("mindspore sparse", "tandem sparse"),
        "step, PyTorch with sparse gradients": ("torch sparse", "tandem"),
        "step, PyTorch with dense gradients": ("torch dense", "tandem"),
        "step, MindSpore": ("mindspore", "tandem"),
    }
    for text, (peer, own) in pairs.items():
        if to.median(peer) is None:
            continue
        least = LEAST[text][kind] if isinstance(LEAST[text], dict) else LEAST[text]
        yield text, own, peer, least


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    return ["", *lines, *("| " + " | ".join(row) + " |" for row in rows)]


def report_of(kind, to):
    import wide_deep_common as common

    widths = (*common.WIDTHS, 1)
    flops = 6.0 * common.BATCH * sum(a * b for a, b in zip(widths, widths[1:]))
    bound = flops / (to.median("gemm") * 1e9) * 1e3
    of_bound = to.median("tandem") / bound
    lines = ["", f"## {kind} ids"]
    rows = []
    for text, own, peer, least in peer_rows(kind, to):
        ratios = to.ratios(peer, own)
        is_kept = kept(statistics.median(ratios) >= least)
        ms = (to.text(own, 1), to.text(peer, 1))
        rows.append((text, *ms, with_range(ratios, 2), f"≥ {least}", is_kept))
    lines += table(("", "Tandem ms", "peer ms", "ratio", "limit", ""), rows)
    lines += [
        "",
        f"Products alone at the rate of 16000 × 3120 × 1024, {to.text('gemm', 0)} GFLOP/s: {bound:.0f} ms; "
        f"the step is {of_bound:.3f} times that (limit: ≤ {MOST_OF_PRODUCTS}, {kept(of_bound <= MOST_OF_PRODUCTS)}).",
    ]
    lines += table(
        ("host operator", "Tandem ms", "MindSpore's published log, ms on its machine"),
        [
            (name, to.text(f"tandem {name}"), f"{ms}")
            for name, ms in PUBLISHED_MS.items()
        ],
    )
    rate = to.median("tandem bandwidth")
    if rate is None:
        lines += ["", "In-place updates' bandwidth was not measured: too few bytes are updated."]
    else:
        rows = []
        for name in UPDATES:
            count, factor = to.median(f"tandem bytes {name}"), f"tandem factor {name}"
            rows.append(
                (
                    name,
                    f"{count / 1e6:.1f}",
                    f"{count / rate / 1e6:.2f}",
                    to.text(f"tandem {name}"),
                    to.text(factor),
                    f"≤ {MOST_OF_BANDWIDTH}",
                    kept(to.median(factor) <= MOST_OF_BANDWIDTH),
                )
            )
        head = ("update", "declared MB", f"ms at {rate:.1f} GB/s", "Tandem ms", "factor", "limit", "")
        lines += table(head, rows)
        measured = to.text("tandem bandwidth", 1)
        lines += ["", f"{measured} GB/s: in-place updates alone, measured by the same processes."]
    own = ("tandem", "torch", "mindspore", "gemm")
    names = [name for name in to.rows if not name.startswith(own)]
    lines += table(
        ("operator of the sparse part", "ms"), [(name, to.text(name)) for name in names]
    )
    return lines


def report(results, options):
    lines = [
        f"# Wide & Deep, {datetime.date.today()}, {run.cpu_name()}",
        "",
        f"{platform.system()} {platform.release()}, {len(os.sched_getaffinity(0))} threads, {options.pairs} pairs of processes. "
        "Medians in ms, in brackets the least and the largest; a ratio is the median over pairs of peer ÷ Tandem.",
    ]
    for kind, to in results.items():
        lines += report_of(kind, to)
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--ids", nargs="+", default=["zipf", "uniform"], choices=["zipf", "uniform"])
    parser.add_argument("--binary", type=pathlib.Path, default=ROOT / "build" / "tandem")
    parser.add_argument("--python", type=pathlib.Path, default=pathlib.Path(sys.executable))
    parser.add_argument("--mindspore", type=pathlib.Path)
    parser.add_argument("--models", type=pathlib.Path, default=run.CACHE / "models")
    parser.add_argument("--to", type=pathlib.Path)
    options = parser.parse_args()
    model = options.models / "wide_deep" / "torchscript.onnx"
    if not model.exists():
        script = ROOT / "models" / "wide_deep" / "make_model.py"
        env = {**os.environ, "TANDEM_MODELS": str(options.models)}
        subprocess.run([options.python, script, "--full"], check=True, env=env)
    bench = WideDeep(options)
    results = {}
    for kind in options.ids:
        results[kind] = bench.measure(kind)
        text = report(results, options)
        if options.to:
            options.to.write_text(text)
    print(report(results, options))


if __name__ == "__main__":
    main()

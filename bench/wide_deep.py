#!/usr/bin/env python3
"""Measures Wide & Deep at its published size beside PyTorch and MindSpore, alternating processes; prints and writes a Markdown report.

    PYTHON bench/wide_deep.py [--pairs 7] [--seconds 4] [--ids zipf uniform] [--binary build/tandem] [--to FILE]
                              [--mindspore PYTHON]

184,968 rows of widths 1 and 80, 16,000 × 39 ids, MLP 3120-1024-512-256-128-1; the same ids for all. PYTHON has peers/requirements.txt,
that of --mindspore peers/requirements-mindspore.txt; without it MindSpore's rows are left out. Nothing else should run meanwhile.

Sparse part: both look-ups, the gradients' sums by row and both updates; of Tandem, the operators that `tandem bench` times for that.
A ratio is the median over pairs of peer time ÷ Tandem's; PyTorch and MindSpore keep their memory between steps (see run.py).
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


class Measured:
    """Numbers of all pairs by name; medians, and ratios pair by pair."""

    def __init__(self):
        self.rows = {}

    def add(self, name, value):
        self.rows.setdefault(name, []).append(value)

    def median(self, name):
        return statistics.median(self.rows[name]) if name in self.rows else None

    def ratio(self, peer, own):
        pairs = list(zip(self.rows.get(peer, []), self.rows[own]))
        return statistics.median(p / o for p, o in pairs) if pairs else None


class WideDeep:
    def __init__(self, options):
        self.options = options
        self.threads = len(os.sched_getaffinity(0))
        self.env = {"TANDEM_MODELS": str(options.models), "OMP_NUM_THREADS": str(self.threads)}

    def ours(self, kind, to):
        config = ROOT / "bench" / "workloads" / f"wide_deep_{kind}.toml"
        command = [self.options.binary, "bench", config, "--seconds", self.options.seconds, "--json"]
        line = run.run_json(command, self.env)
        to.add("tandem", line["step_ms"])
        sparse = 0.0
        for row in line["operators"]:
            if row["op"] in SPARSE or (row["op"] == "Copy" and "wide" in row["path"]):
                sparse += row["ms"]
                to.add(f"{row['path']} {row['op']} {row['phase']}", row["ms"])
        to.add("tandem sparse", sparse)

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


def report(results, options):
    import wide_deep_common as common

    widths = (*common.WIDTHS, 1)
    flops = 6.0 * common.BATCH * sum(a * b for a, b in zip(widths, widths[1:]))
    lines = [
        f"# Wide & Deep, {datetime.date.today()}, {run.cpu_name()}",
        "",
        f"{platform.system()} {platform.release()}, {len(os.sched_getaffinity(0))} threads, {options.pairs} pairs of processes. "
        "Medians in ms; a ratio is the median over pairs of peer ÷ Tandem.",
    ]
    for kind, to in results.items():
        bound = flops / (to.median("gemm") * 1e9) * 1e3
        lines += ["", f"## {kind} ids", "", "| | Tandem ms | peer ms | ratio |", "|---|---|---|---|"]
        best = min(("torch embedding_out", "torch index_select_out"), key=to.median)
        rows = [
            ("sparse part, PyTorch", best, "tandem sparse"),
            ("sparse part, MindSpore", "mindspore sparse", "tandem sparse"),
            ("step, PyTorch with sparse gradients", "torch sparse", "tandem"),
            ("step, PyTorch with dense gradients", "torch dense", "tandem"),
            ("step, MindSpore", "mindspore", "tandem"),
        ]
        for text, peer, own in rows:
            if to.median(peer) is None:
                continue
            lines.append(
                f"| {text} | {to.median(own):.1f} | {to.median(peer):.1f} | {to.ratio(peer, own):.2f} |"
            )
        lines += [
            "",
            f"Products alone at the rate of 16000 × 3120 × 1024, {to.median('gemm'):.0f} GFLOP/s: {bound:.0f} ms; "
            f"the step is {to.median('tandem') / bound:.3f} times that.",
            "",
            "| operator of the sparse part | ms |",
            "|---|---|",
        ]
        own = ("tandem", "torch", "mindspore", "gemm")
        lines += [
            f"| {name} | {to.median(name):.2f} |" for name in to.rows if not name.startswith(own)
        ]
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

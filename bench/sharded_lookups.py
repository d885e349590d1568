#!/usr/bin/env python3
"""Measures tables whose rows are divided among ranks of this machine against PyTorch over gloo's all_to_all, processes alternating.

python3 bench/sharded_lookups.py [--ids zipf uniform] [--ranks 2] [--threads 1] [--pairs 5] [--seconds 4] [--binary build/tandem] [--python PYTHON]

The network has two embedding bags of Wide & Deep's published sizes (184,968 rows of widths 1 and 80, 16,000 x 39 ids in a step of all ranks) and a
product with a vector, so a step consists of lookups, exchanges and updates of rows. Tandem updates by FTRL and LazyAdam, PyTorch
by Adagrad and SparseAdam. Prints a line for each pair, and a table: ms of a step (medians over processes, for the peer's fastest variant), and peer ÷ Tandem.
"""

import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import launched
import run
from saved import cpu_name

POLICY = 'policy = 1\nrules = [ { at = "{wide,deep}.**", shard = "rows" } ]\n'
# The data of bench/wide_deep.py.
WRITE_DATA = "import pathlib, sys; sys.path[:0] = sys.argv[1:3]; import wide_deep; wide_deep.write_data(pathlib.Path(sys.argv[3]), sys.argv[4])"


def peer_ms(options, kind, variant, env):
    command = [options.python, run.PEER / "torch_sharded_lookups.py", kind, "--variant", variant, "--ranks", options.ranks,
               "--threads", options.threads, "--seconds", options.seconds]  # fmt: skip
    return run.run_json(command, env={**env, **run.KEEP_MEMORY})["ms"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ids", nargs="+", default=["zipf", "uniform"], choices=["zipf", "uniform"])
    parser.add_argument("--pairs", type=int, default=5)
    launched.add_options(parser)
    options = parser.parse_args()
    options.python = run.peer_python(options.python)
    models = pathlib.Path(os.environ.get("TANDEM_MODELS", run.CACHE / "models"))
    data = models / "wide_deep"
    data.mkdir(parents=True, exist_ok=True)
    env = {**os.environ, "TANDEM_MODELS": str(models)}
    table = []
    with tempfile.TemporaryDirectory() as folder:
        model, policy = pathlib.Path(folder, "lookups.onnx"), pathlib.Path(folder, "policy.toml")
        policy.write_text(POLICY)
        script = run.PEER / "torch_sharded_lookups.py"
        subprocess.run([options.python, script, "--model", model], check=True, stdout=sys.stderr)
        variants = run.run_json([options.python, script, "--list"])
        keys = [f"model.file={model}", f"policy={policy}"]
        for kind in options.ids:
            subprocess.run([options.python, "-c", WRITE_DATA, run.ROOT / "bench", run.PEER, data, kind], check=True)
            config = run.ROOT / "bench" / "workloads" / f"wide_deep_{kind}.toml"
            tried = {variant: peer_ms(options, kind, variant, env) for variant in variants}
            variant = min(tried, key=tried.get)
            pairs = []
            sides = (lambda: launched.step_ms(options, config, env, keys), lambda: peer_ms(options, kind, variant, env))
            for own, peer in launched.alternated(sides, options.pairs):
                pairs.append((own, peer))
                print(f"{kind}: {own:.3f} ms, peer ({variant}) {peer:.3f} ms", flush=True)
            own, peer = (statistics.median(values) for values in zip(*pairs))
            ratios = sorted(b / a for a, b in pairs)
            table.append(f"| {kind} | {own:.2f} | {peer:.2f} ({variant}) | {statistics.median(ratios):.2f} ({ratios[0]:.2f}–{ratios[-1]:.2f}) |")
    print(f"\n{cpu_name()}, {options.ranks} ranks of {options.threads} thread(s), {options.pairs} pairs\n")
    print("| ids | Tandem, ms a step | PyTorch, ms a step | PyTorch ÷ Tandem |\n|---|---|---|---|")
    print("\n".join(table))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Measures data parallel training on ranks of this machine beside PyTorch's DistributedDataParallel (gloo), processes alternating.

python3 bench/ranks.py [--only ROW …] [--ranks 2] [--threads 1] [--pairs 5] [--seconds 4] [--binary build/tandem] [--python PYTHON]

Prints a line a pair, and a table: ms of a step on both sides (medians over processes; of the peer's fastest variant), and peer ÷ Tandem.
Ranks of one thread each, as many as cores: more say how a machine shares its cores, not how ranks share their work.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile

import run
from saved import cpu_name

ROWS = ("mlp_b256", "resnet18_b32", "gpt_b16")


def tandem_ms(options, row, env):
    """The median over log lines but the first ones, of a run that is as long as `options.seconds` ask."""
    toml = run.ROOT / "bench" / "workloads" / f"{row}.toml"

    def step_times(steps, every):
        with tempfile.TemporaryDirectory() as folder:
            launch = [options.binary, "launch", "-n", options.ranks, "--"] if options.ranks > 1 else [options.binary]
            command = [*launch, "train", toml, f"steps={steps}", f"log.every={every} steps", f"threads={options.threads}",
                       "--run-dir", f"{folder}/run"]  # fmt: skip
            result = subprocess.run(list(map(str, command)), capture_output=True, text=True, env=env, timeout=900)
            if result.returncode:
                raise run.Failed(f"exit code {result.returncode}: {result.stderr.strip()[-300:]}")
            lines = [json.loads(line) for line in open(f"{folder}/run/metrics.jsonl")]
        lines = [line for line in lines if line.get("phase", "train") == "train"]
        batch = int(row.rpartition("_b")[2])
        return [1e3 * batch / line["samples_per_second"] for line in lines[1:-1]]  # between the first and the last step

    first = statistics.median(step_times(20, 5))
    every = max(2, int(1e3 * options.seconds / first / 10))
    return statistics.median(step_times(12 * every, every)[1:])


def peer_ms(options, row, variant, env):
    command = [options.python, run.PEER / "torch_ranks.py", row, "--variant", variant, "--ranks", options.ranks,
               "--threads", options.threads, "--seconds", options.seconds]  # fmt: skip
    return run.run_json(command, env={**env, **run.KEEP_MEMORY})["ms"]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="*", choices=ROWS, default=ROWS)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--binary", type=pathlib.Path, default=run.ROOT / "build" / "tandem")
    parser.add_argument("--python")
    options = parser.parse_args()
    options.python = run.peer_python(options.python)
    env = {**os.environ, "TANDEM_MODELS": str(run.models_folder(options.python, options.only))}
    listed = run.run_json([options.python, run.PEER / "torch_step.py", "--list"])
    table = []
    for row in options.only:
        tried = {variant: peer_ms(options, row, variant, env) for variant in listed[row]}
        variant = min(tried, key=tried.get)
        pairs = []
        for i in range(options.pairs):
            sides = [lambda: tandem_ms(options, row, env), lambda: peer_ms(options, row, variant, env)]
            if i % 2:
                peer, own = sides[1](), sides[0]()
            else:
                own, peer = sides[0](), sides[1]()
            pairs.append((own, peer))
            print(f"{row}: {own:.3f} ms, peer ({variant}) {peer:.3f} ms", flush=True)
        own, peer = (statistics.median(values) for values in zip(*pairs))
        ratio = statistics.median(b / a for a, b in pairs)
        table.append(f"| {row} | {own:.2f} | {peer:.2f} ({variant}) | {ratio:.2f} |")
    print(f"\n{cpu_name()}, {options.ranks} ranks of {options.threads} thread(s), {options.pairs} pairs\n")
    print("| row | Tandem, ms a step | DDP, ms a step | DDP ÷ Tandem |\n|---|---|---|---|")
    print("\n".join(table))


if __name__ == "__main__":
    main()

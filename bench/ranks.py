#!/usr/bin/env python3
"""Measures data parallel training on ranks of this machine against PyTorch's DistributedDataParallel (gloo), processes alternating.

python3 bench/ranks.py [--only ROW …] [--ranks 2] [--threads 1] [--pairs 5] [--seconds 4] [--binary build/tandem] [--python PYTHON]

Prints a line for each pair, and a table: ms of a step on both sides (medians over processes, for the peer's fastest variant), and peer ÷ Tandem.
Use ranks of one thread each, at most as many as cores: with more, the times show how the machine schedules its cores.
"""

import argparse
import os
import statistics

import launched
import run
from saved import cpu_name

ROWS = ("mlp_b256", "resnet18_b32", "gpt_b16")


def tandem_ms(options, row, env):
    return launched.step_ms(options, run.ROOT / "bench" / "workloads" / f"{row}.toml", env)


def peer_ms(options, row, variant, env):
    command = [options.python, run.PEER / "torch_ranks.py", row, "--variant", variant, "--ranks", options.ranks,
               "--threads", options.threads, "--seconds", options.seconds]  # fmt: skip
    return run.run_json(command, env={**env, **run.KEEP_MEMORY})["ms"]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="*", choices=ROWS, default=ROWS)
    parser.add_argument("--pairs", type=int, default=5)
    launched.add_options(parser)
    options = parser.parse_args()
    options.python = run.peer_python(options.python)
    env = {**os.environ, "TANDEM_MODELS": str(run.models_folder(options.python, options.only))}
    listed = run.run_json([options.python, run.PEER / "torch_step.py", "--list"])
    table = []
    for row in options.only:
        tried = {variant: peer_ms(options, row, variant, env) for variant in listed[row]}
        variant = min(tried, key=tried.get)
        pairs = []
        sides = (lambda: tandem_ms(options, row, env), lambda: peer_ms(options, row, variant, env))
        for own, peer in launched.alternated(sides, options.pairs):
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

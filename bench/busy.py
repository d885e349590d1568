#!/usr/bin/env python3
"""How much longer a training step takes while other programs are busy, for Tandem and PyTorch.

python3 bench/busy.py [WORKLOAD …] [--loops 2] [--rounds 5] [--seconds 2] [--limit 2.2] [--sides tandem]

Every round measures both sides on the machine as it is, then both while --loops other processes compute all the time. The factor of a side
is the median over rounds of its busy time divided by its quiet time. If nothing else runs, and there are as many loops as cores, half of
the time of the cores is left: the best possible factor is 2. The exit code is 1 if Tandem's factor is above --limit.
"""

import argparse
import pathlib
import statistics
import subprocess
import sys

from run import PEER, ROOT, models_folder, peer_python, run_json

LOOP = "while True: pass"


class Loops:
    """Runs processes that compute all the time, for the duration of the block."""

    def __init__(self, count):
        self.count = count

    def __enter__(self):
        self.processes = [
            subprocess.Popen([sys.executable, "-c", LOOP]) for _ in range(self.count)
        ]

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
            process.wait()


def ours(options, workload, env):
    config = ROOT / "bench" / "workloads" / f"{workload}.toml"
    command = [options.binary, "bench", config, f"threads={options.threads}"]
    return run_json([*command, "--seconds", options.seconds, "--json"], env)["step_ms"]


def peer(options, workload, env):
    command = [options.python, PEER / "torch_step.py", workload, "--threads", options.threads]
    command += ["--variant", options.variants[workload][0], "--seconds", options.seconds]
    return run_json(command, env)["ms"]


SIDES = {"tandem": ours, "pytorch": peer}


def measure(options, workload, env):
    sides = {side: SIDES[side] for side in options.sides}
    times = {side: {"quiet": [], "busy": []} for side in sides}
    for _ in range(options.rounds):
        for state, loops in (("quiet", 0), ("busy", options.loops)):
            with Loops(loops):
                for side, step in sides.items():
                    times[side][state].append(step(options, workload, env))
    return times


def factor(times):
    return statistics.median(b / q for b, q in zip(times["busy"], times["quiet"]))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("workloads", nargs="*", default=["lstm_b32", "mlp_b32", "gpt_b16", "resnet18_b32"])
    parser.add_argument("--loops", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0, help="how long one process measures steps")
    parser.add_argument("--limit", type=float, default=2.2)
    parser.add_argument("--threads", type=int, default=2, help="threads of each side")
    parser.add_argument("--binary", type=pathlib.Path, default=ROOT / "build" / "tandem")
    parser.add_argument("--python", type=pathlib.Path, help="an interpreter that has bench/peers/requirements.txt")
    parser.add_argument("--sides", nargs="+", choices=SIDES, default=list(SIDES))
    options = parser.parse_args()
    options.binary = options.binary.absolute()
    options.python = peer_python(options.python)
    options.variants = run_json([options.python, PEER / "torch_step.py", "--list"])
    env = {
        "TANDEM_MODELS": str(models_folder(options.python, options.workloads)),
        "OMP_NUM_THREADS": str(options.threads),
    }
    print(f"{'workload':18s} {'side':8s} {'quiet ms':>9s} {'busy ms':>9s} {'factor':>7s}  factors of the rounds")
    above = []
    for workload in options.workloads:
        for side, times in measure(options, workload, env).items():
            quiet, busy = (statistics.median(times[state]) for state in ("quiet", "busy"))
            rounds = " ".join(f"{b / q:.2f}" for b, q in zip(times["busy"], times["quiet"]))
            print(f"{workload:18s} {side:8s} {quiet:9.2f} {busy:9.2f} {factor(times):7.2f}  {rounds}", flush=True)
            if side == "tandem" and factor(times) > options.limit:
                above.append(workload)
    if above:
        print(f"above {options.limit}: {', '.join(above)}")
    return 1 if above else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Checks whether the cost model orders the ways to divide a network as measured times do, for five networks on two ranks of this machine.

python3 bench/predicted_order.py [--only NETWORK …] [--ranks 2] [--threads 1] [--rounds 3] [--seconds 4] [--network MEASURED]
                                 [--apart 0.05] [--binary build/tandem] [--python PYTHON]

Each way is a policy. `policy plan --ranks` predicts its time, from times of kernels that `policy auto --measure` takes here and the network that
`doctor --ranks` measures. `launch -n` trains it, one way after the other in each round; the median over rounds counts. Two ways are in order
if prediction and measurement agree on which one is faster. Pairs that differ by less than --apart in one of the two are not judged. The exit
code is 1 if a pair is out of order.
"""

import argparse
import itertools
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

import launched
import run
from saved import cpu_name

STATE = '{ at = "**", min = "64KiB", shard = "state" }'
GRADIENT = '{ at = "**", min = "64KiB", shard = "state+gradient" }'
# The ways of each network by name: the rules of the policy.
WAYS = {
    "mlp_b256": {"data parallel": [], "states": [STATE], "states and gradients": [GRADIENT]},
    "resnet18_b32": {"data parallel": [], "states": [STATE], "states and gradients": [GRADIENT]},
    "gpt_b16": {"data parallel": [], "states": [STATE], "states and gradients": [GRADIENT]},
    "vit_b16_b4": {"data parallel": [], "states": [STATE], "states and gradients": [GRADIENT]},
    "wide_deep": {
        "data parallel": [],
        "rows": ['{ at = "{wide,deep}.**", shard = "rows" }'],
        "whole tables": ['{ at = "{wide,deep}.**", shard = "table" }'],
    },
}
# For networks whose configuration evaluates.
NO_EVALUATION = {"wide_deep": ["eval.every=1000 epochs"]}


def config_of(network):
    if network == "wide_deep":
        return run.ROOT / "models" / "wide_deep" / "train.toml"
    return run.ROOT / "bench" / "workloads" / f"{network}.toml"


def output_of(command, env):
    result = subprocess.run(list(map(str, command)), capture_output=True, text=True, env=env, timeout=1800)
    if result.returncode:
        sys.exit(f"exit code {result.returncode}: {' '.join(map(str, command))}\n{result.stderr.strip()[-1000:]}")
    return result.stdout


def measured_network(options, env):
    """As --network takes it."""
    text = output_of([options.binary, "launch", "-n", options.ranks, "--", "doctor", "--ranks"], env)
    found = re.search(r"--network ([^ )]+)", text)
    return found.group(1) if found else sys.exit(f"doctor --ranks names no network:\n{text}")


def measured_profile(options, network, folder, env):
    """The file with measured times of the kernels of its training."""
    profile = folder / f"{network}.json"
    command = [options.binary, "policy", "auto", folder / "auto.toml", "--config", config_of(network), "--ranks", options.ranks,
               "--network", options.network, "--measure", "--save-profile", profile, f"threads={options.threads}"]  # fmt: skip
    output_of(command, env)
    (folder / "auto.toml").unlink()
    return profile


def predicted_ms(options, network, policy, profile, env):
    command = [options.binary, "policy", "plan", policy, "--config", config_of(network), "--ranks", options.ranks, "--profile", profile,
               "--network", options.network, "--json", f"threads={options.threads}"]  # fmt: skip
    return json.loads(output_of(command, env))["time"]["step_ms"]


def judged(options, predicted, measured):
    """Pairs of ways, and whether prediction and measurement agree; None if they are too close."""
    for a, b in itertools.combinations(predicted, 2):
        by_plan, by_clock = predicted[a] / predicted[b] - 1, measured[a] / measured[b] - 1
        close = abs(by_plan) < options.apart or abs(by_clock) < options.apart
        yield a, b, None if close else (by_plan < 0) == (by_clock < 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", choices=list(WAYS), default=list(WAYS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--network", help="the network between the ranks (default: what doctor --ranks measures)")
    parser.add_argument("--apart", type=float, default=0.05)
    launched.add_options(parser)
    options = parser.parse_args()
    options.python = run.peer_python(options.python)
    models = run.models_folder(options.python, [name for name in options.only if name != "wide_deep"])
    env = {**os.environ, "TANDEM_MODELS": str(models)}
    if "wide_deep" in options.only and not (models / "wide_deep" / "train.npz").exists():
        make = [options.python, run.ROOT / "models" / "wide_deep" / "make_data.py", "npz", "--to", models / "wide_deep"]
        subprocess.run(make, check=True, stdout=sys.stderr)
    options.network = options.network or measured_network(options, env)
    table, wrong, known = [], 0, 0
    with tempfile.TemporaryDirectory() as folder:
        for network in options.only:
            policies = {}
            for i, (way, rules) in enumerate(WAYS[network].items()):
                policies[way] = pathlib.Path(folder) / f"{network}{i}.toml"
                policies[way].write_text("policy = 1\nrules = [\n" + "".join(f"  {rule},\n" for rule in rules) + "]\n")
            profile = measured_profile(options, network, pathlib.Path(folder), env)
            predicted = {way: predicted_ms(options, network, policy, profile, env) for way, policy in policies.items()}
            times = {way: [] for way in policies}
            for _ in range(options.rounds):
                for way, policy in policies.items():
                    keys = [f"policy={policy}", *NO_EVALUATION.get(network, ())]
                    times[way].append(launched.step_ms(options, config_of(network), env, keys))
                    print(f"{network}, {way}: {times[way][-1]:.3f} ms, predicted {predicted[way]:.3f} ms", flush=True)
            measured = {way: statistics.median(all_of) for way, all_of in times.items()}
            table += [f"| {network} | {way} | {predicted[way]:.2f} | {measured[way]:.2f} |" for way in policies]
            for a, b, agrees in judged(options, predicted, measured):
                word = "too close" if agrees is None else "in order" if agrees else "OUT OF ORDER"
                print(f"{network}: {a} and {b}: {word}", flush=True)
                wrong += agrees is False
                known += agrees is not None
    print(f"\n{cpu_name()}, {options.ranks} ranks of {options.threads} thread(s), {options.network}, medians of {options.rounds}\n")
    print("| network | way | predicted, ms | measured, ms |\n|---|---|---|---|")
    print("\n".join(table))
    print(f"\n{'passed' if wrong == 0 else 'FAILED'}: {known - wrong} of {known} pairs in order")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

"""Runs the recipes of models/: compares each run.sh with its expected numbers, then kills and resumes its training at random times.

    python3 tests/check_all/recipes.py [--only NAME]… [--kills 5] [--seed 1] [--keep FOLDER] [key=value …]

A recipe is a folder of models/ with a run.sh.

1. run.sh, as a user calls it, trains for seconds, evaluates, exports and verifies. The numbers must keep the limits of expected.json
   (`recipe`: {metric: {at_least} or {at_most}}).
2. The same training runs twice, with a checkpoint every few steps. One run is not interrupted; SIGKILL ends the other several times, at random
   times, and --resume continues it. All checkpoints that both keep must have the same bytes in every file, and metrics.jsonl the same losses.

If packages or data of a recipe are missing, it is skipped by name.
"""

import argparse
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from common import BINARY, ROOT, peer_python, verdict

MISSING = 77  # exit code of a run.sh that cannot run here
TIMES = ("wall", "samples_per_second", "data.wait")  # what differs between runs that compute the same


def recipes():
    return sorted(path.parent.name for path in (ROOT / "models").glob("*/run.sh"))


def lines_of(run):
    """The lines of metrics.jsonl without times."""
    lines = map(json.loads, (run / "metrics.jsonl").read_text().splitlines())
    return [{key: value for key, value in line.items() if key not in TIMES} for line in lines]


def meets_expectations(name, run):
    """The numbers of the last evaluation, and those of expected.json."""
    path = ROOT / "models" / name / "expected.json"
    wanted = json.loads(path.read_text()).get("recipe", {}) if path.exists() else {}
    ok = verdict(bool(wanted), f"{name}: expected.json says what its run.sh reaches")
    last = [line for line in lines_of(run) if line.get("phase") == "eval"][-1]
    for metric, bound in wanted.items():
        value = float(last.get(metric, "nan"))
        if "at_least" in bound:
            ok &= verdict(value >= bound["at_least"], f"{name}: {metric} {value:.4g}, at least {bound['at_least']}")
        if "at_most" in bound:
            ok &= verdict(value <= bound["at_most"], f"{name}: {metric} {value:.4g}, at most {bound['at_most']}")
    return ok


def start(arguments, run, resume):
    """A training in a group of its own; its log goes next to the run directory."""
    command = [str(BINARY), "train", *arguments, "--run-dir", str(run), *(["--resume"] if resume else [])]
    log = open(f"{run}.log", "ab")
    return subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log, start_new_session=True)


def train_whole(arguments, run):
    """Exit code, seconds until the first step, and seconds of training."""
    begin = time.monotonic()
    code = start(arguments, run, False).wait()
    seconds = time.monotonic() - begin
    lines = (run / "metrics.jsonl").read_text().splitlines() if code == 0 else ["{}"]
    training = json.loads(lines[-1]).get("wall", 0.0)
    return code, max(seconds - training, 0.0), training


def train_killed(arguments, run, times):
    """Kills the training after each of these times and resumes it, the last time to its end. Returns how often it was killed, and the exit code."""
    killed = 0
    for limit in (*times, None):
        begun = (run / "metrics.jsonl").exists()
        if run.exists() and not begun:
            shutil.rmtree(run)  # killed before there was anything to go on with
        process = start(arguments, run, begun)
        try:
            return killed, process.wait(limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            killed += 1


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def same_runs(name, whole, killed):
    """Checkpoints of the same step have the same bytes, and metrics.jsonl the same steps and numbers."""
    steps = [{path.name for path in (run / "checkpoints").glob("step-*") if path.is_dir()} for run in (whole, killed)]
    ok = verdict(steps[0] == steps[1] and bool(steps[0]), f"{name}: both keep {', '.join(sorted(steps[0]))}")
    for step in sorted(steps[0] & steps[1]):
        ours, theirs = (contents(run / "checkpoints" / step) for run in (whole, killed))
        differing = sorted(file for file in ours.keys() | theirs.keys() if ours.get(file) != theirs.get(file))
        ok &= verdict(not differing, f"{name}: {step} has the same bytes" + (f", except for {', '.join(differing)}" if differing else ""))
    ours, theirs = lines_of(whole), lines_of(killed)
    # A process logs its first step as well.
    expected = {json.dumps(line, sort_keys=True) for line in ours}
    key = lambda line: (line.get("phase", "train"), line["step"])  # noqa: E731
    keys = [key(line) for line in theirs]
    ok &= verdict(len(keys) == len(set(keys)), f"{name}: no step is logged twice")
    common = {key(line) for line in ours}
    differing = [line for line in theirs if key(line) in common and json.dumps(line, sort_keys=True) not in expected]
    return ok & verdict(not differing and common <= set(keys), f"{name}: the same {len(common)} lines" + (f", except for {differing[:1]}" if differing else ""))


def resumes(name, folder, arguments, kills, generator):
    config, *keys = arguments
    keys += ["log.every=10 steps", "checkpoint.every=20 steps", "checkpoint.keep=4"]
    code, begin, training = train_whole([config, *keys], folder / "whole")
    if not verdict(code == 0, f"{name}: trains with many checkpoints in {begin + training:.0f} s"):
        print(pathlib.Path(f"{folder}/whole.log").read_text()[-2000:])
        return False
    for part in (1, 2, 4):  # where the machine is faster the second time, the run may end before it is killed often enough
        shutil.rmtree(folder / "killed", ignore_errors=True)
        # From the middle of reading model and data to a part of the training that leaves some for the other times.
        times = [generator.uniform(begin / 2, begin + training / (kills + 1) / part) for _ in range(kills)]
        killed, code = train_killed([config, *keys], folder / "killed", times)
        if code or killed == kills:
            break
    if not verdict(code == 0 and killed == kills, f"{name}: killed {killed} times and resumed, exit code {code}"):
        print(pathlib.Path(f"{folder}/killed.log").read_text()[-2000:])
        return False
    return same_runs(name, folder / "whole", folder / "killed")


def check(name, folder, keys, kills, generator):
    environment = {**os.environ, "TANDEM_BINARY": str(BINARY), "TANDEM_RUNS": str(folder)}
    script = ROOT / "models" / name / "run.sh"
    done = subprocess.run([script, *keys], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode == MISSING:
        print(done.stderr.strip().splitlines()[-1], flush=True)
        return True
    if not verdict(done.returncode == 0, f"{name}: run.sh"):
        print(done.stdout[-1000:], done.stderr[-2000:])
        return False
    ok = meets_expectations(name, folder / f"{name}-0001")
    listed = subprocess.run([script, "--arguments", *keys], env=environment, stdout=subprocess.PIPE, text=True, check=True)
    arguments = listed.stdout.splitlines()
    for line in [line for line in arguments if line.startswith("env:")]:
        variable, value = line[4:].split("=", 1)
        os.environ[variable] = value
    arguments = [line for line in arguments if not line.startswith("env:")]
    return ok & resumes(name, folder, arguments, kills, generator)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("keys", nargs="*", help="keys of train.toml for all recipes, such as threads=1")
    parser.add_argument("--only", action="append", choices=recipes(), help="one recipe; may be repeated")
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=pathlib.Path, help="a folder for the runs (default: a temporary one)")
    options = parser.parse_args()
    os.environ.setdefault("TANDEM_PEER_PYTHON", str(peer_python(None)))
    generator, ok = random.Random(options.seed), True
    with tempfile.TemporaryDirectory() as temporary:
        for name in options.only or recipes():
            folder = (options.keep or pathlib.Path(temporary)) / name
            folder.mkdir(parents=True, exist_ok=True)
            ok &= check(name, folder, options.keys, options.kills, generator)
            if not options.keep:
                shutil.rmtree(folder)
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())

"""Checks that losses do not depend on the number of ranks.

MNIST with one seed has the same losses on 8 ranks x 32 samples and on 1 x 256. Wide & Deep trains on four ranks that shard its tables; one
process and three processes then read its checkpoint, get the same metrics and continue with the same losses.

    python3 tests/check_all/rank_shares.py [mnist] [wide_deep]"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

from common import BINARY, ROOT, models, peer_python, shared_data, verdict

TABLES = 'policy = 1\nrules = [ { at = "{wide,deep}.**", shard = "rows" }, { at = "mlp.**", shard = "state" } ]\n'


def launched(ranks, *arguments):
    """build/tandem on that many ranks; its standard output. Ends the script where it fails."""
    launch = ["launch", "-n", str(ranks), "--"] if ranks > 1 else []
    command = [str(BINARY), *launch, *map(str, arguments)]
    result = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    if result.returncode:
        print(f"exit code {result.returncode}: {' '.join(command)}")
        sys.exit(1)
    return result.stdout


def losses(run_dir):
    lines = [json.loads(line) for line in (run_dir / "metrics.jsonl").read_text().splitlines()]
    return {line["step"]: line["loss"] for line in lines if line.get("phase") != "eval"}


def worst(found, wanted, steps):
    return max(abs(found[step] - wanted[step]) / abs(wanted[step]) for step in steps)


def mnist(folder):
    shared_data("data/mnist")
    models("mlp")
    config, steps = ROOT / "models" / "mlp" / "train.toml", 100
    keys = ["batch_size=256", f"steps={steps}", "data.drop_last=true", "log.every=1 steps", "eval.every=1000 epochs",
            "checkpoint.every=1000 epochs", "threads=1"]  # fmt: skip
    found = {}
    for ranks in (1, 8):
        run_dir = folder / f"mnist{ranks}"
        launched(ranks, "train", config, "--run-dir", run_dir, *keys)
        found[ranks] = losses(run_dir)
    ok = verdict(set(found[8]) == set(found[1]), f"mnist: {len(found[8])} losses of 8 ranks x 32")
    first = worst(found[8], found[1], range(1, 11))
    ok &= verdict(first <= 1e-5, f"mnist: losses of the first 10 steps differ by {first:.1e}")
    later = worst(found[8], found[1], sorted(found[1]))
    ok &= verdict(later <= 1e-3, f"mnist: losses of {steps} steps differ by {later:.1e}")
    return ok


def copy_at(run_dir, to, step):
    """The run as it was right after it saved that step."""
    subprocess.run(["cp", "-al", run_dir, to], check=True)
    for checkpoint in (to / "checkpoints").glob("step-*"):
        if checkpoint.name != f"step-{step:08d}":
            subprocess.run(["rm", "-r", checkpoint], check=True)
    lines = (run_dir / "metrics.jsonl").read_text().splitlines(keepends=True)
    for name in ("metrics.jsonl", "summary.json"):
        (to / name).unlink(missing_ok=True)  # not the other run's, which has the same files
    (to / "metrics.jsonl").write_text("".join(line for line in lines if json.loads(line)["step"] <= step))


def metrics_of(text):
    """Numbers of `tandem eval --json`, by name."""
    values = json.loads(text)["metrics"]
    return {name: value for name, value in values.items() if isinstance(value, float)}


def wide_deep(folder):
    os.environ["TANDEM_MODELS"] = str(folder)
    python = peer_python(os.environ.get("TANDEM_PEER_PYTHON"))
    make = [python, ROOT / "models" / "wide_deep" / "make_data.py", "npz", "--samples", "100000",
            "--eval-samples", "20000", "--to", folder / "wide_deep"]  # fmt: skip
    subprocess.run(make, check=True, stdout=sys.stderr)
    policy = folder / "policy.toml"
    policy.write_text(TABLES)
    config, half, steps = ROOT / "models" / "wide_deep" / "train.toml", 30, 60
    keys = [f"policy={policy}", f"steps={steps}", "log.every=1 steps", "eval.every=1000 epochs", "threads=1", "checkpoint.keep=9"]
    whole = folder / "whole"
    launched(4, "train", config, "--run-dir", whole, *keys, f"checkpoint.every={half} steps")
    wanted = losses(whole)
    evaluated = metrics_of(launched(4, "eval", whole, "--json"))
    ok = verdict(bool(evaluated), f"wide_deep: 4 ranks evaluate {', '.join(sorted(evaluated))}")
    for ranks in (1, 3):
        found = metrics_of(launched(ranks, "eval", whole, "--json"))
        apart = max((abs(found[name] - evaluated[name]) for name in evaluated), default=1)
        ok &= verdict(set(found) == set(evaluated) and apart <= 1e-6, f"wide_deep: {ranks} read the run of 4: metrics differ by {apart:.1e}")
        again = folder / f"again{ranks}"
        copy_at(whole, again, half)
        launched(ranks, "train", config, "--run-dir", again, *keys, "checkpoint.every=1000 epochs", "--resume")
        apart = worst(losses(again), wanted, sorted(wanted))
        ok &= verdict(apart <= 1e-5, f"wide_deep: {ranks} continue from step {half} of 4: losses differ by {apart:.1e}")
    return ok


with tempfile.TemporaryDirectory(dir=os.environ.get("TANDEM_SCRATCH")) as place:
    chosen = sys.argv[1:] or ["wide_deep", "mnist"]
    results = []
    for name in chosen:
        part = pathlib.Path(place) / name
        part.mkdir()
        before = dict(os.environ)
        results.append({"mnist": mnist, "wide_deep": wide_deep}[name](part))
        os.environ.clear()
        os.environ.update(before)
sys.exit(0 if all(results) else 1)

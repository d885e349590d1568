"""Trains a table of 8 GiB that four ranks shard (GIB gives another size).

The ranks train it, write a checkpoint and resume. One process and three ranks then continue from the same checkpoint, and the table is
exported. No rank may hold more than its shard and what a step needs."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

from common import BINARY, ROOT, peer_python, verdict

RANKS, COLUMNS, STEPS = 4, 80, 6
GIB = float(os.environ.get("GIB", "8"))
ROWS = int(GIB * 2**30 / (4 * COLUMNS))
MOST = (GIB / RANKS + 1) * 2**30  # bytes that one of the ranks may hold, file pages apart
CONFIG = ROOT / "models" / "wide_deep" / "full.toml"
POLICY = 'policy = 1\nrules = [ { at = "{wide,deep}.**", shard = "rows" }, { at = "mlp.**", shard = "state" } ]\n'
KEYS = [
    f'parameters.shape=[{{ at = "{{wide,deep}}:weight", rows = {ROWS} }}]',
    'parameters.init=[{ at = "{wide,deep}:weight", kind = "normal", std = 0.01 }, { at = "mlp.*:weight", kind = "kaiming_normal" }]',
    'optimizer.groups=[{ at = "{wide,deep}:*", kind = "rowwise_adagrad", lr = 0.05 }]',
    "batch_size=1000",
    "log.every=1 steps",
    "checkpoint.keep=2",
    "threads=1",
]


def anonymous_bytes(process):
    try:
        for line in (pathlib.Path("/proc") / process / "status").read_text().splitlines():
            if line.startswith("RssAnon:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


def is_tandem(process):
    try:
        return os.readlink(f"/proc/{process}/exe") == str(BINARY.resolve())
    except OSError:
        return False


def run(*arguments):
    """Runs build/tandem with its children; returns the largest memory, in bytes, that one process had."""
    most, over = [0], threading.Event()

    def watch():
        while not over.wait(0.05):
            for process in filter(str.isdigit, os.listdir("/proc")):
                if is_tandem(process):
                    most[0] = max(most[0], anonymous_bytes(process))

    watcher = threading.Thread(target=watch)
    watcher.start()
    start = time.time()
    result = subprocess.run([str(BINARY), *map(str, arguments)], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    over.set()
    watcher.join()
    if result.returncode:
        print(f"exit code {result.returncode}: {' '.join(map(str, arguments))}")
        sys.exit(1)
    print(f"{' '.join(map(str, arguments[:4]))}: {time.time() - start:.1f} s, at most {most[0] / 2**30:.2f} GiB", file=sys.stderr)
    return most[0]


def train(ranks, run_dir, policy, *more):
    launch = ["launch", "-n", ranks, "--"] if ranks > 1 else []
    return run(*launch, "train", CONFIG, "--run-dir", run_dir, f"policy={policy}", *KEYS, *more)


def losses(run_dir):
    lines = [json.loads(line) for line in (run_dir / "metrics.jsonl").read_text().splitlines()]
    return {line["step"]: line["loss"] for line in lines if line.get("phase") != "eval"}


def copy_without(run_dir, to, step):
    """The run as it was when it had just saved that step; files of the checkpoint are shared."""
    subprocess.run(["cp", "-al", run_dir, to], check=True)
    for checkpoint in (to / "checkpoints").glob("step-*"):
        if checkpoint.name != f"step-{step:08d}":
            subprocess.run(["rm", "-r", checkpoint], check=True)
    lines = (run_dir / "metrics.jsonl").read_text().splitlines(keepends=True)
    for name in ("metrics.jsonl", "summary.json"):
        (to / name).unlink(missing_ok=True)  # not the other run's, which has the same files
    (to / "metrics.jsonl").write_text("".join(line for line in lines if json.loads(line)["step"] <= step))


with tempfile.TemporaryDirectory(dir=os.environ.get("TANDEM_SCRATCH")) as folder:
    folder = pathlib.Path(folder)
    os.environ["TANDEM_MODELS"] = str(folder)
    python = peer_python(os.environ.get("TANDEM_PEER_PYTHON"))
    scripts, data = ROOT / "models" / "wide_deep", folder / "wide_deep"
    sizes = ["--ids", "uniform", "--rows", str(ROWS), "--samples", "20000", "--eval-samples", "0"]
    subprocess.run([python, scripts / "make_data.py", "npz", *sizes, "--to", data / "uniform"], check=True, stdout=sys.stderr)
    subprocess.run([python, scripts / "make_model.py", "--full", "--rows", "64"], check=True, stdout=sys.stderr)
    policy = folder / "policy.toml"
    policy.write_text(POLICY)
    whole = folder / "whole"
    most = train(RANKS, whole, policy, f"steps={STEPS}", f"checkpoint.every={STEPS // 2} steps")
    ok = verdict(most <= MOST, f"{RANKS} ranks of {GIB:g} GiB held at most {most / 2**30:.2f} GiB each")
    wanted = losses(whole)
    for ranks in (RANKS, 3) + ((1,) if GIB <= 8 else ()):
        again = folder / "again"
        copy_without(whole, again, STEPS // 2)
        most = train(ranks, again, policy, f"steps={STEPS}", "checkpoint.every=1000 steps", "--resume")
        found = losses(again)
        worst = max(abs(found[step] - wanted[step]) / abs(wanted[step]) for step in wanted)
        ok &= verdict(
            set(found) == set(wanted) and worst <= (0 if ranks == RANKS else 1e-5),
            f"{ranks} ranks continue from the checkpoint: losses differ by {worst:.1e}",
        )
        if ranks == RANKS:
            end = f"checkpoints/step-{STEPS:08d}"
            same = subprocess.run(["diff", "-rq", whole / end, again / end], stdout=subprocess.PIPE, text=True)
            differing = [line for line in same.stdout.splitlines() if "state.json" not in line and "manifest" not in line]
            ok &= verdict(not differing, f"{ranks} ranks end with the bytes of the whole run: {differing}")
            ok &= verdict(most <= MOST, f"and held at most {most / 2**30:.2f} GiB each")
        subprocess.run(["rm", "-r", again], check=True)
    most = run("export", whole, "--to", folder / "weights.safetensors")
    ok &= verdict(most <= 2**30, f"the export held at most {most / 2**30:.2f} GiB")
sys.exit(0 if ok else 1)

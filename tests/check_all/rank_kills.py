"""Kills one of four ranks twenty times, at a random moment or (every second time) while a checkpoint is written.

The ranks shard a table and the optimizer states. Each time, all ranks must end within ten seconds, and --resume must continue. At the end, the
run must have the same bytes as one that was not killed.

    python3 tests/check_all/rank_kills.py [--kills 20] [--seed 1]"""

import argparse
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

from common import BINARY, ROOT, peer_python, verdict

RANKS, STEPS, EVERY = 4, 240, 4  # two epochs of 120 steps
CONFIG = ROOT / "models" / "wide_deep" / "train.toml"
POLICY = 'policy = 1\nrules = [ { at = "{wide,deep}.**", shard = "rows" }, { at = "mlp.**", shard = "state" } ]\n'
KEYS = [
    f"steps={STEPS}",
    f"checkpoint.every={EVERY} steps",
    "checkpoint.keep=2",
    "checkpoint.shard_mib=1",
    "eval.every=1000 steps",
    "log.every=20 steps",
    "threads=1",
]
MOST_SECONDS = 10.0  # until all ranks have ended


def command(run_dir, policy, *more):
    return [str(BINARY), "launch", "-n", str(RANKS), "--", "train", str(CONFIG), "--run-dir", str(run_dir), f"policy={policy}",
            *KEYS, *more]  # fmt: skip


def started(run_dir, policy, log, *more):
    return subprocess.Popen(command(run_dir, policy, *more), cwd=ROOT, stdout=subprocess.DEVNULL, stderr=log, start_new_session=True)


def ranks_of(run_dir):
    """Processes of the program that train in this run directory, by their own command lines."""
    found = []
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = pathlib.Path("/proc", process, "cmdline").read_bytes().split(b"\0")
            is_ours = os.readlink(f"/proc/{process}/exe") == str(BINARY.resolve())
        except OSError:
            continue
        if is_ours and b"launch" not in words and str(run_dir).encode() in words:
            found.append(int(process))
    return found


def wait_for(condition, seconds):
    end = time.time() + seconds
    while time.time() < end:
        if condition():
            return True
        time.sleep(0.002)
    return False


def unfinished(run_dir):
    return any((run_dir / "checkpoints").glob("step-*.new"))


def checkpoints(run_dir):
    return sorted(path.name for path in (run_dir / "checkpoints").glob("step-*") if not path.name.endswith(".new"))


def kill_one(run_dir, process, dice, while_writing, seconds):
    """Kills a rank; returns how many seconds the others ran on, or None if the run had ended before."""
    known = checkpoints(run_dir)
    if not wait_for(lambda: process.poll() is not None or len(ranks_of(run_dir)) == RANKS, 60):
        return None
    chosen = dice.choice(ranks_of(run_dir) or [0])  # now: to look for processes takes longer than to write
    if while_writing:
        # A new one, so that each try goes further than the one before.
        wait_for(lambda: process.poll() is not None or checkpoints(run_dir) != known, 120)
        wait_for(lambda: process.poll() is not None or unfinished(run_dir), 60)
        time.sleep(dice.uniform(0, 0.004))
    else:
        time.sleep(dice.uniform(0, seconds))
    if process.poll() is not None or chosen == 0:
        return None
    try:
        os.kill(chosen, signal.SIGKILL)
    except ProcessLookupError:
        return None
    start = time.time()
    process.wait(timeout=120)
    wait_for(lambda: not ranks_of(run_dir), 60)
    return time.time() - start


def differing(a, b):
    end = f"checkpoints/step-{STEPS:08d}"
    same = subprocess.run(["diff", "-rq", a / end, b / end], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return [line for line in same.stdout.splitlines() if "state.json" not in line and "manifest" not in line]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    dice = random.Random(options.seed)
    with tempfile.TemporaryDirectory(dir=os.environ.get("TANDEM_SCRATCH")) as folder:
        folder = pathlib.Path(folder)
        os.environ["TANDEM_MODELS"] = str(folder)
        python = peer_python(os.environ.get("TANDEM_PEER_PYTHON"))
        make = [python, ROOT / "models" / "wide_deep" / "make_data.py", "npz", "--samples", "120000",
                "--eval-samples", "20000", "--to", folder / "wide_deep"]  # fmt: skip
        subprocess.run(make, check=True, stdout=sys.stderr)
        policy = folder / "policy.toml"
        policy.write_text(POLICY)
        log = open(folder / "log", "w+")
        whole, run = folder / "whole", folder / "run"
        begin = time.time()
        if started(whole, policy, log).wait() != 0:
            return verdict(False, "the run that is not killed ends with an error")
        seconds = time.time() - begin
        kills, in_writes, longest = 0, 0, 0.0
        for attempt in range(4 * options.kills):
            if kills == options.kills:
                break
            more = ["--resume"] if checkpoints(run) or run.exists() else []
            process = started(run, policy, log, *more)
            while_writing = attempt % 2 == 1
            lived = kill_one(run, process, dice, while_writing, seconds / 4)
            if lived is None:
                process.wait(timeout=600)
                if process.returncode != 0:
                    print((folder / "log").read_text()[-2000:], file=sys.stderr)
                    return verdict(False, f"a resumed run ends with an error after {kills} kills")
                subprocess.run(["rm", "-r", run], check=True)  # it was done before it was killed: from the start
                continue
            kills += 1
            in_writes += while_writing and unfinished(run)
            longest = max(longest, lived)
            print(f"kill {kills}: the others ended after {lived:.1f} s, checkpoints {checkpoints(run)[-1:]}", file=sys.stderr)
        ok = verdict(kills == options.kills, f"{kills} kills of one of {RANKS} ranks, {in_writes} of them while a checkpoint was written")
        ok &= verdict(longest <= MOST_SECONDS, f"the other ranks ended within {longest:.1f} s, at most {MOST_SECONDS:.0f} s")
        ended = started(run, policy, log, "--resume").wait()
        ok &= verdict(ended == 0, f"the run continues to its end: exit code {ended}")
        if ended == 0:
            others = differing(whole, run)
            ok &= verdict(not others, f"and ends with the bytes of the run that was not killed: {others or 'no file differs'}")
        text = (folder / "log").read_text()
        named = text.count("has died") + text.count("connection")
        ok &= verdict(named > 0, f"the rank that was killed is named {named} times")
        return ok


sys.exit(0 if main() else 1)

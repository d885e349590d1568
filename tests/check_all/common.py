"""What the scripts of `make check-all` share: running build/tandem, reading metrics.jsonl, the folder of large data."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
from run import CACHE, peer_python, write_networks  # noqa: E402, F401

BINARY = pathlib.Path(os.environ.get("TANDEM_BINARY", ROOT / "build" / "tandem"))


def shared_data(part):
    """The folder of large data with PART in it; without it, the script ends as skipped."""
    folder = pathlib.Path(os.environ.get("TANDEM_SHARED", ROOT.parent / "shared"))
    if not (folder / part).exists():
        print(
            f"skipped: {folder / part} does not exist (TANDEM_SHARED names the folder of large data)"
        )
        sys.exit(0)
    os.environ["TANDEM_SHARED"] = str(folder)
    return folder


def models(*names):
    """Writes these networks of models/make_all.py where they are missing, and lets train.toml files find them."""
    python = peer_python(os.environ.get("TANDEM_PEER_PYTHON"))
    os.environ["TANDEM_MODELS"] = str(write_networks(python, names))


def tandem(*arguments):
    """Runs build/tandem; its log goes to our stderr. If it fails, the script ends with its exit code."""
    command = [str(BINARY), *map(str, arguments)]
    result = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    if result.returncode:
        print(f"exit code {result.returncode}: {' '.join(command)}")
        sys.exit(1)
    return result.stdout


def train(config, *overrides):
    """Trains in a temporary run directory; returns (training lines, evaluation lines) of metrics.jsonl."""
    with tempfile.TemporaryDirectory() as folder:
        run = pathlib.Path(folder) / "run"
        tandem("train", config, "--run-dir", run, *overrides)
        lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [x for x in lines if x.get("phase") != "eval"], [
        x for x in lines if x.get("phase") == "eval"
    ]


def expected(name):
    return json.loads((ROOT / "models" / name / "expected.json").read_text())


def verdict(ok, text):
    """Prints one line and returns `ok`."""
    print(f"{'passed' if ok else 'FAILED'}: {text}", flush=True)
    return ok

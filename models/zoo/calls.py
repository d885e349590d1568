"""Calls the tool, and reads what it writes into a run directory."""

import json
import os
import subprocess

THREADS = "threads=1"  # several runs at a time


def call(tool, arguments, folder, limit):
    """The exit code, standard output and standard error; 124 if it takes more than `limit` seconds."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    try:
        done = subprocess.run(
            [str(tool), *arguments],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=limit,
        )
        return done.returncode, done.stdout, done.stderr
    except subprocess.TimeoutExpired:
        return 124, "", f"more than {limit} seconds"


def train(tool, folder, run, limit, *arguments):
    """Trains as train.toml says; keys, then options. The error, or "", and the losses by step."""
    keys = [a for a in arguments if not a.startswith("--")]
    options = [a for a in arguments if a.startswith("--")]
    command = ["train", "train.toml", THREADS, *keys, "--run-dir", run, *options]
    code, _, error = call(tool, command, folder, limit)
    if code != 0:
        return error.strip() or f"exit code {code}", {}
    return "", losses_of(folder / run)


def losses_of(run):
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return {line["step"]: float(line["loss"]) for line in lines if "phase" not in line}


def first_words(text, most=120):
    """The first line of an error, without the program's name and folders."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("tandem: ")]
    line = (errors or lines or ["no message"])[0].removeprefix("tandem: ")
    return " ".join(word.rsplit("/", 1)[-1] if word.startswith("/") else word for word in line.split())[:most]


def relative(a, b):
    """|a - b| relative to b; not a number if one of them is none."""
    return abs(a - b) / max(abs(b), 1e-6)

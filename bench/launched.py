"""Measures a step of `tandem train`, in one process or on ranks that `tandem launch` starts."""

import json
import pathlib
import statistics
import subprocess
import tempfile

import run


def add_options(parser):
    """What all of them take."""
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--binary", type=pathlib.Path, default=run.ROOT / "build" / "tandem")
    parser.add_argument("--python")


def step_times(options, config, keys, env, steps, every):
    """ms of a step between neighbouring lines of the log, except for the first line, which includes the start, and the last one."""
    with tempfile.TemporaryDirectory() as folder:
        launch = ["launch", "-n", options.ranks, "--"] if options.ranks > 1 else []
        command = [options.binary, *launch, "train", config, f"steps={steps}", f"log.every={every} steps", f"threads={options.threads}",
                   "checkpoint.every=1000 epochs", "--run-dir", f"{folder}/run", *keys]  # fmt: skip
        result = subprocess.run(list(map(str, command)), capture_output=True, text=True, env=env, timeout=1800)
        if result.returncode:
            raise run.Failed(f"exit code {result.returncode}: {' '.join(map(str, command))}\n{result.stderr.strip()[-1000:]}")
        lines = [json.loads(line) for line in pathlib.Path(folder, "run", "metrics.jsonl").read_text().splitlines()]
    lines = [line for line in lines if line.get("phase", "train") == "train"]
    return [1e3 * (b["wall"] - a["wall"]) / (b["step"] - a["step"]) for a, b in zip(lines[1:-1], lines[2:-1])]


def step_ms(options, config, env, keys=()):
    """The median of a run of about `options.seconds`; `options` has binary, ranks, threads and seconds."""
    first = statistics.median(step_times(options, config, keys, env, 25, 5))
    every = max(2, int(1e3 * options.seconds / first / 10))
    return statistics.median(step_times(options, config, keys, env, 12 * every, every)[1:])


def alternated(sides, pairs):
    """Measurements by two functions, pair by pair; every second pair begins with the other one."""
    for i in range(pairs):
        if i % 2:
            peer, own = sides[1](), sides[0]()
        else:
            own, peer = sides[0](), sides[1]()
        yield own, peer

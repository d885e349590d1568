"""Reads the event files of a recipe with TensorBoard's EventAccumulator: each number of metrics.jsonl once, histograms, the graph, also after a resume.

    python tests/check_all/tensorboard_events.py [--keep FOLDER]

Trains models/digits in two parts with log.also = ["tensorboard", "csv"]. Without the package tensorboard it is skipped with a message.
"""

import argparse
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = pathlib.Path(os.environ.get("TANDEM_BINARY", ROOT / "build" / "tandem"))
sys.path.insert(0, str(ROOT / "tests" / "scripts"))

KEYS = ['log.also=["tensorboard", "csv"]', 'log.histograms=["**:weight"]', "log.histograms_every=20 steps", 'log.norms=["fc1.**"]', "log.every=10 steps",
        "eval.every=30 steps", "threads=1"]


def train(run, *more):
    command = [str(BINARY), "train", str(ROOT / "models" / "digits" / "train.toml"), *KEYS, *more, "--run-dir", str(run)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def check(run):
    from tensorboard.backend.event_processing import event_accumulator
    import tensorboard_check

    tensorboard_check.main(run)  # scalars compared with metrics.jsonl, names of the graph
    accumulator = event_accumulator.EventAccumulator(str(run / "tensorboard"), size_guidance={"histograms": 0})
    accumulator.Reload()
    tags = accumulator.Tags()["histograms"]
    assert "weights/fc1:weight" in tags, f"no histogram of fc1:weight among {tags}"
    for tag in tags:
        events = accumulator.Histograms(tag)
        steps = [event.step for event in events]
        assert len(steps) == len(set(steps)) >= 2, f"{tag}: steps {steps}"
        for event in events:
            value = event.histogram_value
            assert value.num == sum(value.bucket), f"{tag}: {value.num} values, {sum(value.bucket)} in buckets"
            assert value.min <= value.sum / value.num <= value.max, f"{tag}: {value}"
    modules = {node.name.split("/")[0] for node in accumulator.Graph().node}
    assert {"conv1", "fc1"} <= modules, f"scopes of the graph: {sorted(modules)}"
    print(f"passed: {len(tags)} histograms, scopes {', '.join(sorted(modules))}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", type=pathlib.Path)
    keep = parser.parse_args().keep
    if importlib.util.find_spec("tensorboard") is None:
        print("skipped: there is no package tensorboard")
        return 0
    with tempfile.TemporaryDirectory() as temporary:
        run = (keep or pathlib.Path(temporary)) / "digits"
        shutil.rmtree(run, ignore_errors=True)
        train(run, "epochs=2")
        train(run, "epochs=4", "--resume")
        check(run)
    return 0


if __name__ == "__main__":
    sys.exit(main())

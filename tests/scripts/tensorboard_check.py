"""Reads a run's event files with the package tensorboard and compares them with its metrics.jsonl.

    python tests/scripts/tensorboard_check.py RUN

Needs `pip install tensorboard`; without it the script says so and exits with 77. If the run was trained with log.also = ["tensorboard"]
and log.histograms = ["**"], histograms and the graph are checked, too.
"""

import json
import math
import pathlib
import sys

try:
    from tensorboard.backend.event_processing import event_accumulator
except ImportError:
    print("skipped: there is no package tensorboard")
    sys.exit(77)


def number(value):
    return float(value)  # "nan", "inf", "-inf" too


def main(run):
    accumulator = event_accumulator.EventAccumulator(str(run / "tensorboard"), size_guidance={"scalars": 0, "histograms": 0})
    accumulator.Reload()
    tags = accumulator.Tags()
    found = {}
    for tag in tags["scalars"]:
        for event in accumulator.Scalars(tag):
            key = (tag, event.step)
            assert key not in found, f"{tag} has step {event.step} twice"
            found[key] = event.value
    expected = {}
    for line in (run / "metrics.jsonl").read_text().splitlines():
        line = json.loads(line)
        phase, step = line.pop("phase", "train"), line.pop("step")
        for name, value in line.items():
            kind = next((kind for kind in ("norm.gradient.", "norm.update.") if name.startswith(kind)), None)
            tag = kind[:-1] + "/" + name[len(kind):] if kind else f"{phase}/{name}"
            if not isinstance(value, (dict, list)):
                expected[tag, step] = number(value)
    missing = [key for key in expected if key not in found]
    assert not missing, f"not in the event files: {missing[:5]}"
    for key, value in expected.items():
        same = math.isclose(found[key], value, rel_tol=1e-6) or found[key] == value or (math.isnan(value) and math.isnan(found[key]))
        assert same, f"{key}: {found[key]}, metrics.jsonl has {value}"
    graph = accumulator.Graph()
    assert len(graph.node) > 0, "the graph has no nodes"
    names = {node.name for node in graph.node}
    for node in graph.node:
        for name in node.input:
            assert name.split(":")[0] in names, f"{node.name} reads {name}, which nobody makes"
    print(f"{len(expected)} numbers of {len(tags['scalars'])} tags, {len(tags['histograms'])} histograms, {len(graph.node)} nodes: as they should be")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))

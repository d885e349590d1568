"""Trains 20 steps through the command line and compares each loss with PyTorch's, for both exporters and every optimizer.

    python3 tests/check_all/parity.py [--folder DIR] [--only NAME] [--tolerance 1e-3]

DIR holds what tests/scripts/make_parity.py writes; the default is the full-size set, made in the cache on the first run.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

from common import CACHE, ROOT, peer_python, train, verdict


def toml(value):
    return "true" if value is True else "false" if value is False else json.dumps(value)


def configuration(record, folder, file, loss_in_graph, optimizer):
    """The train.toml of one comparison."""
    options = {
        k: v for k, v in optimizer.items() if k not in ("name", "losses", "float64_difference")
    }
    feed = record["feeds"][record["input"]]
    functions = (
        f'[ "scale({feed["scale"]})", "normalize({-feed["offset"]}, 1)" ]'
        if "scale" in feed
        else "[]"
    )
    norm = ', batch_norm = "train"' if "_bn" in file or "resnet" in file else ""
    loss = (
        ""
        if loss_in_graph
        else (
            '[loss]\nterms = [ { name = "loss", kind = "softmax_cross_entropy", logits = "logits", labels = "labels" } ]\n'
        )
    )
    return (
        f'model = {{ file = "{folder / file}"{norm} }}\nbatch_size = {record["batch"]}\nsteps = {record["steps"]}\n{loss}'
        "[optimizer]\n"
        + "".join(f"{k} = {toml(v)}\n" for k, v in options.items())
        + f'[data]\nkind = "npz"\n[data.train]\nfiles = [ "{folder / record["batches"]}" ]\nshuffle = "none"\n'
        f'[data.fields]\n{record["input"]} = {{ from = "{record["input"]}", as = {functions} }}\nlabels = "labels"\n'
        '[log]\nevery = "1 steps"\n'
    )


def full_size_folder():
    folder = CACHE / "parity"
    if not (folder / "gpt.json").exists():
        subprocess.run(
            [
                peer_python(None),
                ROOT / "tests" / "scripts" / "make_parity.py",
                "--full",
                "--to",
                folder,
            ],
            check=True,
        )
    return folder


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", type=pathlib.Path)
    parser.add_argument("--only", action="append")
    parser.add_argument("--tolerance", type=float, default=1e-3)
    options = parser.parse_args()
    folder = (options.folder or full_size_folder()).resolve()
    ok = True
    for path in sorted(folder.glob("*.json")):
        record = json.loads(path.read_text())
        if options.only and record["name"] not in options.only:
            continue
        for output, files in record["files"].items():
            for exporter, file in files.items():
                for optimizer in record["optimizers"]:
                    with tempfile.TemporaryDirectory() as temporary:
                        config = pathlib.Path(temporary) / "train.toml"
                        config.write_text(
                            configuration(record, folder, file, output == "loss", optimizer)
                        )
                        losses = [line["loss"] for line in train(config)[0]]
                    wanted = optimizer["losses"]
                    worst = max((abs(a - b) / abs(b) for a, b in zip(losses, wanted)), default=1.0)
                    ok &= verdict(
                        len(losses) == len(wanted) and worst <= options.tolerance,
                        f"{file}, {optimizer['name']}: {len(losses)} losses, largest relative difference {worst:.1e}",
                    )
    sys.exit(0 if ok else 1)


if __name__ == "__main__":
    main()

"""Writes the bench and parity networks as ONNX files, by both exporters, and the data that their train.toml files read.

    python models/make_all.py [--to DIR] [--only NAME] [--shared DIR]

DIR (default build/models) receives NAME/torchscript.onnx, NAME/dynamo.onnx (+ .data), NAME/bench.npz (synthetic, seeded) and,
where the folder of shared data has the text, gpt/text_train.npz and gpt/text_eval.npz. Networks for GPUs, of hundreds of MB, are
written only where --only names them: bert_base and vit_b16 with data, resnet50_224 without.
"""

import argparse
import os
import pathlib

import numpy as np

from export import MODELS, export_both

NAMES = (
    *("mlp", "lenet5", "resnet18", "resnet50", "gpt"),
    *("lstm", "gru", "mobilenet_v2", "efficientnet_b0", "unet"),
)
LARGE = ("bert_base", "vit_b16", "resnet50_224")
WITHOUT_DATA = ("resnet50_224",)
# The input's name in bench.npz, the shape of a sample, how many there are, and the shape of a sample's labels with their classes.
DATA = {
    "mlp": ("images", (784,), 2048, (), 10),
    "lenet5": ("images", (1, 28, 28), 512, (), 10),
    "resnet18": ("images", (3, 32, 32), 256, (), 10),
    "resnet50": ("images", (3, 32, 32), 256, (), 10),
    "lstm": ("x", (50, 128), 256, (), 10),
    "gru": ("x", (50, 128), 256, (), 10),
    "mobilenet_v2": ("images", (3, 64, 64), 256, (), 10),
    "efficientnet_b0": ("images", (3, 64, 64), 256, (), 10),
    "unet": ("images", (3, 64, 64), 64, (64, 64), 4),
    "vit_b16": ("images", (3, 224, 224), 32, (), 10),
}
TEXTS = {"gpt": (65, 128), "bert_base": (30522, 64)}  # vocabulary, samples
TEXT, LENGTH = "data/text/tinyshakespeare_input.txt", 128


def write_bench_data(name, folder):
    """bench.npz: enough synthetic samples for eight batches of the workload's largest batch size."""
    random = np.random.default_rng(7)
    if name in TEXTS:
        vocabulary, samples = TEXTS[name]
        arrays = {
            field: random.integers(0, vocabulary, (samples, LENGTH))
            for field in ("tokens", "labels")
        }
    else:
        field, shape, samples, labels, classes = DATA[name]
        inputs = random.standard_normal((samples, *shape), dtype=np.float32)
        arrays = {field: inputs, "labels": random.integers(0, classes, (samples, *labels))}
    np.savez(folder / "bench.npz", **arrays)


def write_text_data(source, folder):
    """text_train.npz and text_eval.npz: `tokens` and `labels` int64 [N, 128], labels one character ahead.

    The vocabulary is the 65 distinct bytes in ascending order. The first 90 % of the text train: windows that start every 32
    characters; the rest is evaluated in windows that do not overlap.
    """
    text = np.frombuffer(source.read_bytes(), np.uint8)
    codes = np.searchsorted(np.unique(text), text).astype(np.int64)
    cut = len(codes) * 9 // 10
    for name, part, stride in (("train", codes[:cut], 32), ("eval", codes[cut:], LENGTH)):
        starts = np.arange(0, len(part) - LENGTH, stride)
        windows = part[starts[:, None] + np.arange(LENGTH + 1)]
        np.savez_compressed(
            folder / f"text_{name}.npz", tokens=windows[:, :-1], labels=windows[:, 1:]
        )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--to", type=pathlib.Path, default=MODELS.parent / "build" / "models")
    parser.add_argument(
        "--only", choices=NAMES + LARGE, action="append", help="one network; may be repeated"
    )
    shared = os.environ.get("TANDEM_SHARED", MODELS.parent.parent / "shared")
    parser.add_argument(
        "--shared", type=pathlib.Path, default=shared, help="folder of large test data"
    )
    options = parser.parse_args()
    for name in options.only or NAMES:
        folder = options.to / name
        folder.mkdir(parents=True, exist_ok=True)
        export_both(name, options.to)
        if name not in WITHOUT_DATA:
            write_bench_data(name, folder)
        if name == "gpt" and (options.shared / TEXT).exists():
            write_text_data(options.shared / TEXT, folder)
        print(f"{folder}: {', '.join(sorted(p.name for p in folder.iterdir()))}", flush=True)


if __name__ == "__main__":
    main()

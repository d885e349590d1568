"""Runs `tandem init` on thirty exported networks with data in five formats, and trains three steps with each configuration that it writes.

    python tests/check_all/init_zoo.py [--exports FOLDER] [--to FOLDER] [--format NAME] [--only GLOB]… [--table FILE] [--at-least 24]

The networks are those of models/zoo. If FOLDER (build/zoo) lacks one, PyTorch's classic exporter writes it there first. --format uses only that format,
for all networks whose inputs it can hold. A network passes if it trains, or if init says what to fill in because the data does not decide it.
FILE gets a table of the results. Needs the packages of bench/peers/requirements.txt and those of models/zoo.
"""

import argparse
import collections
import fnmatch
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = pathlib.Path(os.environ.get("TANDEM_BINARY", ROOT / "build" / "tandem"))
TRAINS, ASKS, FAILS = "trains", "says what to fill in", "FAILS"
NETWORKS = {
    "npz": ["torchvision/lraspp_mobilenet_v3", "torchvision/vit_b_16", "torchvision/mask_rcnn_mask_head", "transformers/bert_classifier",
            "transformers/gpt2", "torchvision/raft_small"],
    "images": ["torchvision/squeezenet1_1", "torchvision/mobilenet_v3_small", "torchvision/shufflenet_v2", "torchvision/efficientnet_b0",
               "torchvision/resnet18", "torchvision/swin"],
    "tokens": ["transformers/mamba", "transformers/xlnet", "transformers/gpt2", "transformers/llama", "transformers/opt", "transformers/qwen2"],
    "csv": ["own/dlrm", "own/wide_and_deep", "own/dcn_v2"],
    "tsv": ["own/deepfm", "own/ncf", "own/mixture_of_experts"],
    "jsonl": ["own/sasrec", "own/lstm", "own/gru", "own/linear_attention", "transformers/bert_classifier", "transformers/xlm-roberta"],
}


class Unsuited(Exception):
    """The format cannot hold the network's inputs."""


def png(pixels):
    """A PNG file of uint8 [height, width, 3]."""
    def chunk(name, content):
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))

    height, width, _ = pixels.shape
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def split(arrays):
    """Inputs by name, and labels."""
    inputs = {name: array for name, array in arrays.items() if not name.startswith("target_")}
    return inputs, {name.replace("target_", "label_") if len(arrays) - len(inputs) > 1 else "label": array
                    for name, array in arrays.items() if name.startswith("target_")}


def make_npz(arrays, folder):
    np.savez(folder / "train.npz", **arrays)
    return folder / "train.npz"


def make_images(arrays, folder):
    inputs, labels = split(arrays)
    if len(inputs) != 1 or len(labels) != 1 or next(iter(inputs.values())).shape[1:2] != (3,) or next(iter(labels.values())).ndim != 1:
        raise Unsuited("pictures with a class each")
    image, label = next(iter(inputs.values())), next(iter(labels.values()))
    random = np.random.default_rng(1)
    for place, (x, y) in enumerate(zip(image, label)):
        path = folder / "train" / f"class{y:03d}" / f"{place}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(png(random.integers(0, 256, (*x.shape[1:], 3), np.uint8)))
    return folder


def make_tokens(arrays, folder):
    inputs, _ = split(arrays)
    ids = [array for name, array in inputs.items() if array.dtype == np.int64 and "mask" not in name]
    if len(ids) != 1 or ids[0].ndim != 2:
        raise Unsuited("rows of ids")
    random = np.random.default_rng(1)
    for name, count in (("train", 3000), ("val", 600)):
        random.integers(0, ids[0].max() + 1, count).astype(np.uint16).tofile(folder / f"{name}.bin")
    return folder


def columns(arrays):
    """Columns of single numbers: their names and rows of values."""
    inputs, labels = split(arrays)
    names, values = [], []
    for name, array in {**inputs, **labels}.items():
        flat = array.reshape(len(array), -1)
        if flat.shape[1] > 2000:
            raise Unsuited("a column for each number")
        names += [name] if flat.shape[1] == 1 else [f"{name}{i}" for i in range(flat.shape[1])]
        values += list(flat.T)
    return names, zip(*values)


def make_table(arrays, folder, ending, separator):
    names, rows = columns(arrays)
    path = folder / f"train.{ending}"
    path.write_text(separator.join(names) + "\n" + "".join(separator.join(f"{x:.7g}" for x in row) + "\n" for row in rows))
    return path


def make_jsonl(arrays, folder):
    """Numbers and lists; ids with a mask become a text, with a tokenizer of words next to it."""
    inputs, labels = split(arrays)
    items = {name: [x.reshape(-1).tolist() if x.size > 1 else x.reshape(-1)[0].item() for x in array] for name, array in {**inputs, **labels}.items()}
    if "attention_mask" in inputs:
        rows = inputs["input_ids"]
        items = {"text": [" ".join(f"w{i}" for i in row) for row in rows], **{name: items[name] for name in labels}}
        vocabulary = {"[PAD]": 0, **{f"w{i}": i for i in range(1, int(rows.max()) + 1)}}
        tokenizer = dict(version="1.0", truncation=None, padding=None, added_tokens=[], normalizer=None, pre_tokenizer={"type": "WhitespaceSplit"},
                         post_processor=None, decoder=None, model={"type": "WordLevel", "vocab": vocabulary, "unk_token": "[PAD]"})
        (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    path = folder / "train.jsonl"
    path.write_text("".join(json.dumps(dict(zip(items, row))) + "\n" for row in zip(*items.values())))
    return path


MAKERS = {
    "npz": make_npz,
    "images": make_images,
    "tokens": make_tokens,
    "csv": lambda arrays, folder: make_table(arrays, folder, "csv", ","),
    "tsv": lambda arrays, folder: make_table(arrays, folder, "tsv", "\t"),
    "jsonl": make_jsonl,
}


def call(*arguments, folder):
    done = subprocess.run([str(BINARY), *map(str, arguments)], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600)
    return done.returncode, done.stdout + done.stderr


def open_places(config):
    """What the file leaves open: the texts after # TODO."""
    return [line.split("# TODO", 1)[1].strip(" :") for line in config.read_text().splitlines() if "# TODO" in line]


def try_one(model, data, folder):
    """(outcome, reason)"""
    code, text = call("init", model, "--data", data, "--to", folder, folder=folder)
    config = folder / "train.toml"
    if code or not config.exists():
        return FAILS, "init: " + last_line(text)
    asked = open_places(config)
    if asked:
        return ASKS, "; ".join(asked)
    code, text = call("train", config, "steps=3", "threads=1", "--run-dir", folder / "run", folder=folder)
    return (TRAINS, "") if code == 0 else (FAILS, "train: " + last_line(text))


def last_line(text):
    lines = [line for line in text.splitlines() if line.strip()]
    return next((line for line in lines if line.startswith("tandem:")), lines[-1] if lines else "no message")


def export_missing(names, exports):
    missing = [name for name in names if not (exports / name / "torchscript" / "data.npz").exists()]
    if missing:
        flags = [word for name in missing for word in ("--only", name)]
        subprocess.run([sys.executable, ROOT / "models" / "zoo" / "export.py", "--to", exports, *flags], check=True, stdout=sys.stderr)


def write_table(rows, path):
    counts = collections.Counter(outcome for _, _, outcome, _ in rows)
    lines = [", ".join(f"{count} {outcome}" for outcome, count in counts.items()) + f" of {len(rows)}", "", "| network | data | | |", "|---|---|---|---|"]
    lines += [f"| {name} | {kind} | {outcome} | {reason.replace('|', '/')} |" for name, kind, outcome, reason in rows]
    path.write_text("\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--exports", type=pathlib.Path, default=ROOT / "build" / "zoo")
    parser.add_argument("--to", type=pathlib.Path, help="a folder that keeps the data and what init writes (default: a temporary one)")
    parser.add_argument("--format", choices=MAKERS)
    parser.add_argument("--only", action="append", help="a glob over SOURCE/NAME; may be repeated")
    parser.add_argument("--table", type=pathlib.Path)
    parser.add_argument("--at-least", type=int, default=24, help="how many of the thirty networks must train")
    parser.add_argument("--no-export", action="store_true", help="use only networks that are in FOLDER")
    options = parser.parse_args()
    wanted = [(name, options.format or kind) for kind, names in NETWORKS.items() for name in names]
    if options.only:
        there = [str(path.parents[1].relative_to(options.exports)) for path in sorted(options.exports.glob("*/*/torchscript/data.npz"))]
        known = dict(wanted)
        wanted = [(name, options.format or known.get(name, "npz")) for name in there if any(fnmatch.fnmatch(name, glob) for glob in options.only)]
    if not options.no_export:
        export_missing([name for name, _ in wanted], options.exports)
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        for name, kind in dict.fromkeys(wanted):
            source = options.exports.resolve() / name / "torchscript"
            if not (source / "data.npz").exists():
                failed = source / "failed.txt"
                rows.append((name, kind, FAILS, failed.read_text().splitlines()[0] if failed.exists() else "there is no export"))
                continue
            folder = (options.to or pathlib.Path(temporary)).resolve() / name / kind
            shutil.rmtree(folder, ignore_errors=True)
            (folder / "data").mkdir(parents=True)
            try:
                data = MAKERS[kind](dict(np.load(source / "data.npz")), folder / "data")
                outcome, reason = try_one(source / "model.onnx", data, folder)
            except Unsuited as error:
                outcome, reason = FAILS, f"{kind} holds {error}"
            rows.append((name, kind, outcome, reason))
            print(f"{outcome}: {name} with {kind} {reason}", flush=True)
            shutil.rmtree(folder / "run", ignore_errors=True)
    if options.table:
        write_table(rows, options.table)
    trained, failed = (sum(outcome == wanted for _, _, outcome, _ in rows) for wanted in (TRAINS, FAILS))
    least = options.at_least * len(rows) / 30
    print(f"{trained} of {len(rows)} train, {len(rows) - trained - failed} ask, {failed} fail; wanted {least:.0f}")
    return 0 if trained >= least else 1


if __name__ == "__main__":
    sys.exit(main())

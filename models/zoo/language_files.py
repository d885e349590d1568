"""Trains files of language models as hub tools write them, and compares with PyTorch and PEFT.

    python models/zoo/language_files.py [--tool build/tandem] [--to FOLDER] [--shape NAME]… [--form NAME]… [--table FILE]

Each file gets a tokenizer and 64 conversations, `tandem init FILE --data chat.jsonl`, and five steps of adapters on the projections of the attention
by `tandem train`, without an edit of train.toml. PyTorch takes the same steps from the same adapters over the weights that the file holds. FOLDER
(default build/language_files) keeps the files. The table goes into docs/zoo.md if every shape and form was run, or into FILE.

Needs optimum-onnx 0.1, transformers 4.57, peft, onnxruntime, and a builder of onnxruntime-genai for this transformers (0.11).
"""

import argparse
import json
import os
import pathlib
import shutil
import sys
import warnings

os.environ["HF_HUB_OFFLINE"] = "1"
warnings.simplefilter("ignore")

import torch  # noqa: E402
from calls import call, first_words, losses_of, relative  # noqa: E402
from language_forms import FORMS  # noqa: E402
from language_reference import losses, samples, set_weights  # noqa: E402
from language_shapes import SHAPES, conversations, tokenizer_of  # noqa: E402
from language_table import write_section  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
STEPS, BATCH, RATE = 5, 8, 1e-2
BOUNDS = {"fp16": 1e-3}  # else BOUND
BOUND = 1e-4
LIMIT = 120  # seconds for one call of the tool


class Stopped(Exception):
    """The first message that stops a file."""


def tandem(tool, folder, *arguments):
    code, out, error = call(tool, arguments, folder, LIMIT)
    if code != 0:
        raise Stopped(f"{arguments[0]}: {first_words(error or out, 300)}")
    return out


def make_file(shape, form, folder):
    """The model's file with its tokenizer and the conversations."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    tokenizer_of(shape).save_pretrained(folder)
    with open(folder / "chat.jsonl", "w") as file:
        file.writelines(json.dumps(one) + "\n" for one in conversations())
    FORMS[form](shape.make(), folder)


def train(tool, folder, shape, form):
    """The losses of the tool, and where the adapters of the start are."""
    said = tandem(tool, folder, "init", "model.onnx", "--data", "chat.jsonl")
    open_ones = [line for line in said.splitlines() if line.startswith("TODO")]
    if open_ones:
        raise Stopped("init: " + " ".join(open_ones[0].split()))
    is_genai = form.startswith("genai")  # its weights are of ….q_proj.MatMul, which is no module for PEFT
    names = ",".join(shape.projections)
    keys = [
        f'parameters.lora=[{{ at = "**.{{{names}}}{".MatMul" if is_genai else ""}:weight", rank = 4, alpha = 8 }}]',
        f"optimizer.lr={RATE}",
        'optimizer.schedule={ kind = "constant" }',
        f"batch_size={BATCH}",
        'data.train.shuffle="none"',
        'data.eval={ files = ["chat.jsonl"] }',
        'log.every="1 step"',
        "threads=1",
    ]
    tandem(tool, folder, "train", "train.toml", *keys, f"steps={STEPS}", "--run-dir", "run")
    tandem(tool, folder, "train", "train.toml", *keys, "steps=1", "optimizer.lr=0", "--run-dir", "start")
    start = "adapter.safetensors" if is_genai else "adapter"
    form_of_adapters = ("--lora", "separate") if is_genai else ("--format", "peft")
    tandem(tool, folder, "export", "start", "--to", start, *form_of_adapters)
    return list(losses_of(folder / "run").values()), folder / start


def run_one(tool, shape, form, folder):
    """What goes into the cell of a shape and a form."""
    try:
        make_file(shape, form, folder)
    except Exception as error:
        return {"stopped": f"not written: {first_words(str(error) or type(error).__name__)}"}
    try:
        ours, start = train(tool, folder, shape, form)
    except Stopped as stopped:
        return {"stopped": str(stopped)}
    model = shape.make()
    set_weights(model, form, folder / "model.onnx")
    data = samples(tokenizer_of(shape), conversations())
    theirs = losses(model, start, data, BATCH, STEPS, RATE)
    difference = max(map(relative, ours, theirs))
    agrees = len(ours) == STEPS and difference <= BOUNDS.get(form, BOUND)
    return {"agrees": agrees, "difference": difference, "losses": ours, "expected": theirs}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", type=pathlib.Path, default=ROOT / "build" / "tandem")
    parser.add_argument("--to", type=pathlib.Path, default=ROOT / "build" / "language_files")
    parser.add_argument("--shape", action="append", choices=SHAPES)
    parser.add_argument("--form", action="append", choices=FORMS)
    parser.add_argument("--table", type=pathlib.Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    cells = {}
    for name in options.shape or SHAPES:
        for form in options.form or FORMS:
            folder = (options.to / name / form.replace(" ", "_")).resolve()
            cell = cells[name, form] = run_one(options.tool.resolve(), SHAPES[name], form, folder)
            text = cell.get("stopped") or f"{'agrees' if cell['agrees'] else 'DIFFERS'} {cell['difference']:.1e}"
            print(f"{name}, {form}: {text}", flush=True)
    whole = not options.shape and not options.form
    if options.table or whole:
        write_section(cells, options.table or ROOT / "docs" / "zoo.md")
    return 0 if all(cell.get("agrees") for cell in cells.values()) else 1


if __name__ == "__main__":
    sys.exit(main())

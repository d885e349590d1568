"""Makes the network of models/gpt for the characters of a text file.

    python models/characters/make_model.py TEXT FOLDER [--length 128] [--width 128] [--layers 3] [--heads 4]

Writes FOLDER/model.onnx, whose table has a row for each character of TEXT and row 0 for all others, as `tokenizer = "characters"` numbers them, and copies the first
nine tenths of TEXT to FOLDER/train.txt, the rest to FOLDER/eval.txt. Needs PyTorch: bench/peers/requirements.txt.
"""

import argparse
import pathlib
import sys

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import export  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    for name, value in (("length", 128), ("width", 128), ("layers", 3), ("heads", 4)):
        parser.add_argument(f"--{name}", type=int, default=value)
    options = parser.parse_args()
    with open(options.text, encoding="utf-8", newline="") as file:  # line ends as they are
        text = file.read()
    train, evaluate = text[: len(text) * 9 // 10], text[len(text) * 9 // 10 :]
    options.folder.mkdir(parents=True, exist_ok=True)
    for name, part in (("train.txt", train), ("eval.txt", evaluate)):
        (options.folder / name).write_text(part, encoding="utf-8", newline="")
    torch.manual_seed(0)
    vocabulary = len(set(train)) + 1
    gpt = export.load("gpt")
    model = gpt.build(vocabulary, options.length, options.width, options.heads, options.layers)
    example = gpt.example(vocabulary=vocabulary, length=options.length)
    export.export(model, example, options.folder / "model.onnx", "torchscript", gpt.INPUTS, gpt.OUTPUTS)
    print(f"{options.folder}/model.onnx: {vocabulary} rows, {options.length} characters")


if __name__ == "__main__":
    main()

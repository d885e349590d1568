"""Makes a byte-level BPE tokenizer of a text, and the network of models/gpt for its ids.

    python models/bpe/make_model.py TEXT FOLDER [--vocabulary 1024] [--length 128] [--width 128] [--layers 3] [--heads 4]

Writes FOLDER/tokenizer.json, which Hugging Face's tokenizers learn from the first nine tenths of TEXT, FOLDER/model.onnx with a row for each of its
ids, and the text as FOLDER/train.txt and FOLDER/eval.txt. Needs PyTorch, onnx and tokenizers: bench/peers/requirements.txt.
"""

import argparse
import pathlib
import sys

import tokenizers
import torch
from tokenizers import decoders, models, pre_tokenizers, trainers

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import export  # noqa: E402


def learn(path, vocabulary):
    """Byte-level BPE as GPT-2 has it, without special tokens."""
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=vocabulary, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
    tokenizer.train([str(path)], trainer)
    return tokenizer


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    for name, value in (("vocabulary", 1024), ("length", 128), ("width", 128), ("layers", 3), ("heads", 4)):
        parser.add_argument(f"--{name}", type=int, default=value)
    options = parser.parse_args()
    with open(options.text, encoding="utf-8", newline="") as file:  # line ends as they are
        text = file.read()
    cut = len(text) * 9 // 10
    options.folder.mkdir(parents=True, exist_ok=True)
    for name, part in (("train.txt", text[:cut]), ("eval.txt", text[cut:])):
        (options.folder / name).write_text(part, encoding="utf-8", newline="")
    tokenizer = learn(options.folder / "train.txt", options.vocabulary)
    tokenizer.save(str(options.folder / "tokenizer.json"))
    torch.manual_seed(0)
    gpt, rows = export.load("gpt"), tokenizer.get_vocab_size()
    model = gpt.build(rows, options.length, options.width, options.heads, options.layers)
    example = gpt.example(vocabulary=rows, length=options.length)
    export.export(model, example, options.folder / "model.onnx", "torchscript", gpt.INPUTS, gpt.OUTPUTS)
    held_out = len(tokenizer.encode(text[cut:]).ids)
    print(f"{options.folder}/model.onnx: {rows} rows, {options.length} tokens; {(len(text) - cut) / held_out:.2f} characters a token")


if __name__ == "__main__":
    main()

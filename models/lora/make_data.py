"""A small text classifier that was trained on one task, and samples of another one, for adapters.

    python models/lora/make_data.py build/models/lora

Writes base.onnx (four topics), train.npz and test.npz (six topics that share their words with the four). A text is 24
numbers of words; a topic prefers some words to others. Needs PyTorch and onnx: bench/peers/requirements.txt.
"""

import argparse
import pathlib
import sys

import numpy
import torch
import torch.nn as nn

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from export import export  # noqa: E402

WORDS, LENGTH, WIDTH = 500, 24, 64


class Classifier(nn.Module):
    """tokens int64 [B, 24] -> logits [B, topics]: attention over the words, then their mean."""

    def __init__(self, topics):
        super().__init__()
        self.embedding = nn.Embedding(WORDS, WIDTH)
        self.query, self.key, self.value = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.dense = nn.Linear(WIDTH, WIDTH)
        self.classifier = nn.Linear(WIDTH, topics)

    def forward(self, tokens):
        x = self.embedding(tokens)
        scores = self.query(x) @ self.key(x).transpose(1, 2) / WIDTH**0.5
        x = x + torch.softmax(scores, -1) @ self.value(x)
        x = torch.relu(self.dense(x.mean(1)))
        return self.classifier(x)


def texts(generator, preferences, count):
    labels = torch.randint(0, len(preferences), (count,), generator=generator)
    tokens = torch.multinomial(torch.softmax(preferences[labels], -1), LENGTH, replacement=True, generator=generator)
    return tokens, labels


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(1)
    known = torch.randn(4, WORDS, generator=generator)
    mixed = torch.randn(6, 4, generator=generator) @ known * 0.5 + 0.3 * torch.randn(6, WORDS, generator=generator)
    model = Classifier(4)
    optimizer = torch.optim.AdamW(model.parameters(), 2e-3)
    for _ in range(600):
        tokens, labels = texts(generator, known, 64)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(tokens), labels).backward()
        optimizer.step()
    export(model, (torch.zeros(2, LENGTH, dtype=torch.int64),), folder / "base.onnx", "torchscript",
           input_names=("tokens",))
    for name, count in (("train", 2000), ("test", 1000)):
        tokens, labels = texts(generator, mixed, count)
        numpy.savez(folder / f"{name}.npz", tokens=tokens.numpy(), labels=labels.numpy())


if __name__ == "__main__":
    main()

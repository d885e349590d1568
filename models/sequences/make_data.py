"""Makes sequences of different lengths, whose class is that of the last marker in them, and an LSTM.

    python models/sequences/make_data.py FOLDER [--train 4000] [--test 1000]

Writes FOLDER/model.onnx (tokens int64 [B, T], mask float32 [B, T] -> logits float32 [B, 4], T free), train.npz and test.npz: tokens int64 [N, 40],
0 after the end, mask float32 [N, 40], 1 up to the end, and labels int64 [N]. A sequence has 5 to 40 tokens: the markers 1 to 4, one token in
eight, among the fillers 5 to 19. Needs PyTorch and onnx: bench/peers/requirements.txt.
"""

import argparse
import pathlib
import sys

import numpy
import torch
import torch.nn as nn

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from export import OPSET, _quiet  # noqa: E402

TOKENS, LONGEST, CLASSES = 20, 40, 4


class LastState(nn.Module):
    """An LSTM and a classifier over its state at the last token that the mask leaves."""

    def __init__(self, width=48):
        super().__init__()
        self.embedding = nn.Embedding(TOKENS, 16, padding_idx=0)
        self.lstm = nn.LSTM(16, width, batch_first=True)
        self.head = nn.Linear(width, CLASSES)

    def forward(self, tokens, mask):
        states, _ = self.lstm(self.embedding(tokens))
        behind = torch.cat([mask[:, 1:], torch.zeros_like(mask[:, :1])], 1)
        return self.head(((mask - behind).unsqueeze(-1) * states).sum(1))


def sequences(random, count):
    lengths = random.integers(5, LONGEST + 1, count)
    tokens = numpy.where(random.random((count, LONGEST)) < 1 / 8, random.integers(1, 5, (count, LONGEST)), random.integers(5, TOKENS, (count, LONGEST)))
    tokens[numpy.arange(count), random.integers(0, lengths)] = random.integers(1, 5, count)  # one marker at least
    mask = numpy.arange(LONGEST) < lengths[:, None]
    tokens *= mask
    places = numpy.where((tokens > 0) & (tokens < 5), numpy.arange(LONGEST), -1).max(1)
    return dict(tokens=tokens, mask=mask.astype(numpy.float32), labels=tokens[numpy.arange(count), places] - 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--train", type=int, default=4000)
    parser.add_argument("--test", type=int, default=1000)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    random = numpy.random.default_rng(1)
    for name, count in (("train", options.train), ("test", options.test)):
        numpy.savez_compressed(options.folder / f"{name}.npz", **sequences(random, count))
    torch.manual_seed(0)
    axes = {0: "batch", 1: "time"}
    example = (torch.ones(2, LONGEST, dtype=torch.int64), torch.ones(2, LONGEST))
    with _quiet():
        torch.onnx.export(LastState(), example, str(options.folder / "model.onnx"), dynamo=False, opset_version=OPSET,
                          training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False,
                          input_names=["tokens", "mask"], output_names=["logits"],
                          dynamic_axes={"tokens": axes, "mask": axes, "logits": {0: "batch"}})


if __name__ == "__main__":
    main()

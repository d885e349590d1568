"""Makes pictures of discs and boxes with their places and sizes, and a small network that detects them.

    python models/detector/make_data.py FOLDER [--train 3000] [--test 500]

Writes FOLDER/model.onnx (image float32 [B, 1, 48, 48] -> logits [B, 2, 12, 12] and sizes [B, 2, 12, 12]), train.npz and test.npz: images uint8
[N, 1, 48, 48]; of each cell of 4x4 pixels centres uint8 [N, 2, 12, 12], 1 where a disc, or a box, has its centre; sizes float32 [N, 2, 12, 12],
the log of half the height and width in pixels at a centre; found float32 [N, 2, 12, 12], 1 where sizes count. Needs PyTorch and onnx:
bench/peers/requirements.txt.
"""

import argparse
import math
import pathlib
import sys

import numpy
import torch
import torch.nn as nn

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from export import export  # noqa: E402

SIDE, CELL = 48, 4
CELLS = SIDE // CELL
Y, X = numpy.mgrid[:SIDE, :SIDE]


class Detector(nn.Module):
    """A quarter of the resolution; a head for classes, whose bias says that they are rare (Lin et al. 2017, section 3.3), and one for sizes."""

    def __init__(self, width=16, prior=0.01):
        super().__init__()
        def layer(inputs, outputs, stride):
            return nn.Sequential(nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU())
        self.body = nn.Sequential(layer(1, width, 2), layer(width, 2 * width, 2), layer(2 * width, 2 * width, 1), layer(2 * width, 2 * width, 1))
        self.classes, self.sizes = nn.Conv2d(2 * width, 2, 1), nn.Conv2d(2 * width, 2, 1)
        nn.init.constant_(self.classes.bias, -math.log((1 - prior) / prior))

    def forward(self, image):
        features = self.body(image)
        return self.classes(features), self.sizes(features)


def picture(random):
    image = random.normal(random.uniform(60, 120), 15, (SIDE, SIDE))
    centres, sizes, found = (numpy.zeros((2, CELLS, CELLS)) for _ in range(3))
    for _ in range(random.integers(1, 4)):
        kind, y, x = random.integers(2), *random.uniform(6, SIDE - 6, 2)
        height, width = random.uniform(2, 5, 2) if kind else [random.uniform(2.5, 5)] * 2
        cell = int(y) // CELL, int(x) // CELL
        if found[0][cell]:
            continue
        covered = (abs(Y - y) <= height) & (abs(X - x) <= width) if kind else (Y - y) ** 2 + (X - x) ** 2 <= height**2
        image[covered] = random.normal(random.choice([20, 210]), 15, covered.sum())
        centres[kind][cell], sizes[:, cell[0], cell[1]], found[:, cell[0], cell[1]] = 1, numpy.log([height, width]), 1
    return image[None].clip(0, 255).astype(numpy.uint8), centres.astype(numpy.uint8), sizes.astype(numpy.float32), found.astype(numpy.float32)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--train", type=int, default=3000)
    parser.add_argument("--test", type=int, default=500)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    random = numpy.random.default_rng(1)
    for name, count in (("train", options.train), ("test", options.test)):
        arrays = map(numpy.stack, zip(*(picture(random) for _ in range(count))))
        numpy.savez_compressed(options.folder / f"{name}.npz", **dict(zip(("images", "centres", "sizes", "found"), arrays)))
    torch.manual_seed(0)
    export(Detector(), (torch.rand(2, 1, SIDE, SIDE),), options.folder / "model.onnx", "torchscript", ("image",), ("logits", "sizes"))


if __name__ == "__main__":
    main()

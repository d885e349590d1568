"""The residual network of He et al. 2016 for 32x32 images (arXiv:1512.03385, section 4.2), and CIFAR-10's records in two files.

    python models/cifar/make_model.py FOLDER [--cifar FILE]

Writes FOLDER/model.onnx with 6 n + 2 layers (n = 1: 78,042 parameters), and of FILE's 4,000 records the first 3,200 as train.bin, the others as
test.bin. Needs PyTorch and onnx: bench/peers/requirements.txt.
"""

import argparse
import os
import pathlib
import sys

import torch
import torch.nn as nn

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from export import export  # noqa: E402

SHARED = pathlib.Path(os.environ.get("TANDEM_SHARED", HERE.parents[2] / "shared"))
INPUTS, OUTPUTS = ("image",), ("logits",)
RECORD, TRAIN = 1 + 3 * 32 * 32, 3200


class Block(nn.Module):
    """Two convolutions and a shortcut; where the size changes, the shortcut is a convolution of one pixel."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norm1, self.norm2 = nn.BatchNorm2d(outputs), nn.BatchNorm2d(outputs)
        self.shortcut = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = torch.relu(self.norm1(self.conv1(x)))
        return torch.relu(self.norm2(self.conv2(y)) + self.shortcut(x))


def build(n=1, classes=10):
    """image [B, 3, 32, 32] -> logits [B, classes]."""
    layers, width = [nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU()], 16
    for stage, outputs in enumerate((16, 32, 64)):
        for i in range(n):
            layers.append(Block(width, outputs, 2 if stage and i == 0 else 1))
            width = outputs
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, classes))


def example(batch=2):
    return (torch.rand(batch, 3, 32, 32),)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--cifar", type=pathlib.Path, default=SHARED / "data" / "cifar10" / "data_batch_1_first4000.bin")
    options = parser.parse_args()
    records = options.cifar.read_bytes()
    options.folder.mkdir(parents=True, exist_ok=True)
    (options.folder / "train.bin").write_bytes(records[: TRAIN * RECORD])
    (options.folder / "test.bin").write_bytes(records[TRAIN * RECORD :])
    torch.manual_seed(0)
    export(build(), example(), options.folder / "model.onnx", "torchscript", INPUTS, OUTPUTS)


if __name__ == "__main__":
    main()

"""Writes model.onnx (a small convolutional network for 8x8 digits), digits_train.npz and digits_test.npz."""

import pathlib
import sys

import numpy as np
import torch
import torch.nn as nn

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
INPUTS, OUTPUTS = ("image",), ("logits",)
TRAIN_SAMPLES = 1437  # 1,797 in all


class Digits(nn.Module):
    """Two convolutions and two linear layers, 38,282 parameters. image [B, 1, 8, 8] -> logits [B, 10]."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.fc1 = nn.Linear(32 * 4 * 4, 64)
        self.fc2 = nn.Linear(64, 10)

    def forward(self, image):
        x = torch.relu(self.conv1(image))
        x = nn.functional.max_pool2d(torch.relu(self.conv2(x)), 2)
        x = torch.relu(self.fc1(torch.flatten(x, 1)))
        return self.fc2(x)


def build():
    return Digits()


def example(batch=2):
    return (torch.rand(batch, 1, 8, 8),)


def write_data(folder):
    """Shuffles the 1,797 samples with a fixed seed and splits them 1,437/360."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    order = np.random.RandomState(20240601).permutation(len(digits.target))
    images = digits.images.astype(np.uint8)[order][:, None]
    labels = digits.target.astype(np.int64)[order]
    for name, part in (("train", slice(0, TRAIN_SAMPLES)), ("test", slice(TRAIN_SAMPLES, None))):
        np.savez_compressed(folder / f"digits_{name}.npz", images=images[part], labels=labels[part])


def main():
    from export import export

    torch.manual_seed(1)
    model = build()
    export(
        model,
        example(),
        HERE / "model.onnx",
        "torchscript",
        input_names=INPUTS,
        output_names=OUTPUTS,
    )
    write_data(HERE)
    print(f"{HERE / 'model.onnx'}: {sum(p.numel() for p in model.parameters())} parameters")


if __name__ == "__main__":
    main()

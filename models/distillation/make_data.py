"""Makes a large teacher and a small student for the digits of models/digits.

    python models/distillation/make_data.py build/models/distillation

Writes teacher.onnx, trained on models/digits/digits_train.npz, and student.onnx with its initial weights. Needs PyTorch and onnx:
bench/peers/requirements.txt.
"""

import argparse
import pathlib
import sys

import numpy
import torch
import torch.nn as nn

MODELS = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(MODELS))
from export import export  # noqa: E402


def teacher():
    return nn.Sequential(nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(),
                         nn.MaxPool2d(2), nn.Flatten(), nn.Linear(1024, 128), nn.ReLU(), nn.Linear(128, 10))


def student():
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 10))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    data = numpy.load(MODELS / "digits" / "digits_train.npz")
    images, labels = torch.tensor(data["images"]).float() / 16, torch.tensor(data["labels"]).long()
    images = images.reshape(-1, 1, 8, 8)
    large = teacher()
    optimizer = torch.optim.AdamW(large.parameters(), 1e-3)
    for _ in range(30):
        for batch in torch.randperm(len(labels)).split(32):
            optimizer.zero_grad()
            nn.functional.cross_entropy(large(images[batch]), labels[batch]).backward()
            optimizer.step()
    for name, model in (("teacher", large), ("student", student())):
        export(model, (images[:2],), folder / f"{name}.onnx", "torchscript", input_names=("image",))


if __name__ == "__main__":
    main()

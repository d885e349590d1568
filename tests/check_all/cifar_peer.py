"""models/cifar in PyTorch: the same initial weights, data, augmentation, optimizer and schedule; prints the held-out accuracy of each seed as JSON.

    python tests/check_all/cifar_peer.py FOLDER [--seeds 1 2 3] [--epochs 60]

FOLDER is what models/cifar/make_model.py wrote. Needs PyTorch and onnx: bench/peers/requirements.txt.
"""

import argparse
import json
import math
import pathlib
import sys

import numpy
import onnx
import torch
from onnx import numpy_helper

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "models"))
import export  # noqa: E402

BATCH, RATE, MOMENTUM, DECAY, WARMUP, FINAL = 64, 0.1, 0.9, 5e-4, 2, 1e-4  # as in models/cifar/train.toml
MEAN, DEVIATION = 0.4734, 0.2516


def records(path):
    """Pixels uint8 [N, 3, 32, 32] and labels int64 [N] of CIFAR-10's binary layout."""
    rows = torch.from_numpy(numpy.fromfile(path, numpy.uint8).reshape(-1, 3073))
    return rows[:, 1:].reshape(-1, 3, 32, 32), rows[:, 0].long()


def normalized(pixels):
    return (pixels.float() / 255 - MEAN) / DEVIATION


def augmented(pixels, generator):
    """Zeros of four pixels around each, 32x32 of it at random, every second one mirrored."""
    padded = torch.nn.functional.pad(pixels, (4, 4, 4, 4))
    places = torch.randint(0, 9, (len(pixels), 2), generator=generator).tolist()
    parts = torch.stack([image[:, y : y + 32, x : x + 32] for image, (y, x) in zip(padded, places)])
    mirrored = torch.rand(len(pixels), generator=generator) < 0.5
    return torch.where(mirrored[:, None, None, None], parts.flip(-1), parts)


def rate(step, steps, warmup):
    """The rates of steps 1, 2, …: a linear rise from 0, then half a cosine towards FINAL, which the step after the last one would have."""
    if step <= warmup:
        return RATE * step / warmup
    return FINAL + (RATE - FINAL) * (1 + math.cos(math.pi * (step - 1 - warmup) / (steps - warmup))) / 2


def train(folder, seed, epochs):
    model = export.load("cifar").build()
    weights = {i.name: torch.tensor(numpy_helper.to_array(i)) for i in onnx.load(folder / "model.onnx").graph.initializer}
    model.load_state_dict(weights, strict=False)
    missing = [name for name, _ in model.named_parameters() if name not in weights]
    assert not missing, f"not in the file: {missing}"
    pixels, labels = records(folder / "train.bin")
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.SGD(model.parameters(), RATE, momentum=MOMENTUM, weight_decay=DECAY)
    each = math.ceil(len(labels) / BATCH)
    step = 0
    model.train()
    for _ in range(epochs):
        for part in torch.randperm(len(labels), generator=generator).split(BATCH):
            step += 1
            optimizer.param_groups[0]["lr"] = rate(step, each * epochs, each * WARMUP)
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(normalized(augmented(pixels[part], generator))), labels[part])
            loss.backward()
            optimizer.step()
    pixels, labels = records(folder / "test.bin")
    with torch.no_grad():
        return (model.eval()(normalized(pixels)).argmax(1) == labels).float().mean().item()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--epochs", type=int, default=60)
    options = parser.parse_args()
    print(json.dumps([train(options.folder, seed, options.epochs) for seed in options.seeds]))


if __name__ == "__main__":
    main()

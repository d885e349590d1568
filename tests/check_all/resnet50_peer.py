"""Measures how much losses of PyTorch's ResNet-50 on CIFAR-10 differ if only the order of float32 sums differs: the peer of resnet50_ranks.py.

    PYTHON tests/check_all/resnet50_peer.py [--lr 0.02] [--samples 256] [--steps 5]

One process trains four times with the same weights and samples by plain SGD: unchanged; with weights and samples channels-last; with the
samples of each batch in another order; in float64. It prints the losses of the first training, and how much each other one differs, step by step.
"""

import argparse
import os
import pathlib

import numpy
import torch
import torchvision

ROOT = pathlib.Path(__file__).resolve().parents[2]
PIXELS = 3 * 32 * 32


def batches(options):
    folder = pathlib.Path(os.environ.get("TANDEM_SHARED", ROOT.parent / "shared")) / "data" / "cifar10"
    content = numpy.fromfile(folder / "data_batch_1_first4000.bin", numpy.uint8, options.samples * options.steps * (1 + PIXELS))
    rows = content.reshape(options.steps, options.samples, 1 + PIXELS)
    images = (rows[:, :, 1:].astype(numpy.float32) / 255 - 0.4734) / 0.2516
    return torch.from_numpy(images).reshape(options.steps, options.samples, 3, 32, 32), torch.from_numpy(rows[:, :, 0].astype(numpy.int64))


def losses(options, images, labels, dtype=torch.float32, layout=torch.contiguous_format, is_permuted=False):
    torch.manual_seed(1)
    model = torchvision.models.resnet50(num_classes=10).train().to(dtype=dtype, memory_format=layout)
    optimizer = torch.optim.SGD(model.parameters(), options.lr)
    found = []
    for step, (x, y) in enumerate(zip(images, labels)):
        if is_permuted:
            order = torch.randperm(len(y), generator=torch.Generator().manual_seed(step))
            x, y = x[order], y[order]
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x.to(dtype=dtype, memory_format=layout)), y)
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lr", type=float, default=0.02)
    parser.add_argument("--samples", type=int, default=256)
    parser.add_argument("--steps", type=int, default=5)
    options = parser.parse_args()
    images, labels = batches(options)
    plain = losses(options, images, labels)
    print("losses: " + " ".join(f"{loss:.6f}" for loss in plain))
    others = {
        "channels-last": {"layout": torch.channels_last},
        "in another order": {"is_permuted": True},
        "in float64": {"dtype": torch.float64},
    }
    for name, how in others.items():
        apart = [abs(a - b) / abs(b) for a, b in zip(losses(options, images, labels, **how), plain)]
        print(f"{name}: apart by " + " ".join(f"{number:.1e}" for number in apart), flush=True)


if __name__ == "__main__":
    main()

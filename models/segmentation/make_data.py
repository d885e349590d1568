"""Makes pictures of discs and boxes with a mask for each of the two, and a small U-Net.

    python models/segmentation/make_data.py FOLDER [--train 2000] [--test 400]

Writes FOLDER/model.onnx (image float32 [B, 3, 32, 32] -> logits float32 [B, 2, 32, 32]), train.npz and test.npz: images uint8 [N, 3, 32, 32],
masks uint8 [N, 2, 32, 32], of discs and of boxes. Shapes of any colour overlap on a background of noise. Needs PyTorch and onnx:
bench/peers/requirements.txt.
"""

import argparse
import pathlib
import sys

import numpy
import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import export  # noqa: E402

SIDE = 32
Y, X = numpy.mgrid[:SIDE, :SIDE]


def picture(random):
    """One picture, and where its discs and its boxes are seen."""
    image = random.normal(random.uniform(40, 160, (3, 1, 1)), 12, (3, SIDE, SIDE))
    masks = numpy.zeros((2, SIDE, SIDE), bool)
    for _ in range(random.integers(1, 5)):
        kind, y, x = random.integers(2), *random.uniform(4, SIDE - 4, 2)
        if kind == 0:
            covered = (Y - y) ** 2 + (X - x) ** 2 <= random.uniform(3, 7) ** 2
        else:
            covered = (abs(Y - y) <= random.uniform(2, 6)) & (abs(X - x) <= random.uniform(2, 6))
        masks[:, covered] = False  # what lies below is not seen
        masks[kind, covered] = True
        colour = random.uniform(0, 255, (3, 1))
        image[:, covered] = random.normal(colour, 12, (3, covered.sum()))
    return image.clip(0, 255).astype(numpy.uint8), masks


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--train", type=int, default=2000)
    parser.add_argument("--test", type=int, default=400)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    random = numpy.random.default_rng(1)
    for name, count in (("train", options.train), ("test", options.test)):
        images, masks = map(numpy.stack, zip(*(picture(random) for _ in range(count))))
        numpy.savez_compressed(options.folder / f"{name}.npz", images=images, masks=masks.astype(numpy.uint8))
    torch.manual_seed(0)
    unet = export.load("unet")
    export.export(unet.build(width=8, classes=2), (torch.rand(2, 3, SIDE, SIDE),), options.folder / "model.onnx", "torchscript",
                  unet.INPUTS, unet.OUTPUTS)


if __name__ == "__main__":
    main()

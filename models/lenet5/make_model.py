"""LeNet-5 with ReLU and max pooling, for 28x28 images."""

import torch
import torch.nn as nn

INPUTS, OUTPUTS = ("image",), ("logits",)


def build(channels=(6, 16), hidden=(120, 84), classes=10):
    """image [B, 1, 28, 28] -> logits [B, classes]."""
    return nn.Sequential(
        nn.Conv2d(1, channels[0], 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(channels[0], channels[1], 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(channels[1] * 25, hidden[0]),
        nn.ReLU(),
        nn.Linear(hidden[0], hidden[1]),
        nn.ReLU(),
        nn.Linear(hidden[1], classes),
    )


def example(batch=2):
    return (torch.rand(batch, 1, 28, 28),)

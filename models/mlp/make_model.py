"""The MNIST perceptron 784-512-512-10."""

import torch
import torch.nn as nn

INPUTS, OUTPUTS = ("image",), ("logits",)


def build(inputs=784, hidden=512, classes=10):
    """image [B, inputs] -> logits [B, classes]."""
    return nn.Sequential(
        nn.Linear(inputs, hidden),
        nn.ReLU(),
        nn.Linear(hidden, hidden),
        nn.ReLU(),
        nn.Linear(hidden, classes),
    )


def example(batch=2):
    return (torch.rand(batch, 784),)

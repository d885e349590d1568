"""An LSTM of two layers, 128 wide, and a classifier over its last step."""

import torch
import torch.nn as nn

INPUTS, OUTPUTS = ("x",), ("logits",)


class Classifier(nn.Module):
    def __init__(self, width, layers, classes):
        super().__init__()
        self.layers = nn.LSTM(width, width, num_layers=layers, batch_first=True)
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        return self.head(self.layers(x)[0][:, -1])


def build(width=128, layers=2, classes=10):
    """x [B, T, width] -> logits [B, classes]."""
    return Classifier(width, layers, classes)


def example(batch=2, length=50, width=128):
    return (torch.rand(batch, length, width),)

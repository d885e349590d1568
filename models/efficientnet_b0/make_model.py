"""torchvision's EfficientNet-B0 with ten classes, for 64x64 images."""

import torch
import torchvision

INPUTS, OUTPUTS = ("image",), ("logits",)


def build(classes=10):
    """image [B, 3, 64, 64] -> logits [B, classes].

    Without stochastic depth, whose blocks differ from step to step: both sides do the same work.
    """
    return torchvision.models.efficientnet_b0(num_classes=classes, stochastic_depth_prob=0.0)


def example(batch=2):
    return (torch.rand(batch, 3, 64, 64),)

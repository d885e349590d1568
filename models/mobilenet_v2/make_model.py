"""torchvision's MobileNet-V2 with ten classes, for 64x64 images."""

import torch
import torchvision

INPUTS, OUTPUTS = ("image",), ("logits",)


def build(classes=10):
    """image [B, 3, 64, 64] -> logits [B, classes]."""
    return torchvision.models.mobilenet_v2(num_classes=classes)


def example(batch=2):
    return (torch.rand(batch, 3, 64, 64),)

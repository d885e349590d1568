"""torchvision's ResNet-50 with ten classes, for 32x32 images."""

import torch
import torchvision

INPUTS, OUTPUTS = ("image",), ("logits",)


def build(classes=10):
    """image [B, 3, 32, 32] -> logits [B, classes]."""
    return torchvision.models.resnet50(num_classes=classes)


def example(batch=2):
    return (torch.rand(batch, 3, 32, 32),)

"""torchvision's ResNet-50 with a thousand classes, for 224x224 images."""

import torch
import torchvision

INPUTS, OUTPUTS = ("image",), ("logits",)


def build(classes=1000):
    """image [B, 3, 224, 224] -> logits [B, classes]."""
    return torchvision.models.resnet50(num_classes=classes)


def example(batch=2):
    return (torch.rand(batch, 3, 224, 224),)

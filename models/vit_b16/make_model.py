"""torchvision's ViT-B/16 with ten classes, for 224x224 images: 197 tokens of width 768, 12 layers."""

import torch
import torchvision

INPUTS, OUTPUTS = ("image",), ("logits",)


def build(classes=10):
    """image [B, 3, 224, 224] -> logits [B, classes]."""
    return torchvision.models.vit_b_16(num_classes=classes)


def example(batch=2):
    return (torch.rand(batch, 3, 224, 224),)

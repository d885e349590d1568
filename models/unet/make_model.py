"""A U-Net of four scales (Ronneberger et al., 2015) with BatchNorm; the two coarse steps upwards are ConvTranspose, the fine one is a
bilinear Resize."""

import torch
import torch.nn as nn
import torch.nn.functional as F

INPUTS, OUTPUTS = ("image",), ("logits",)


def double(inputs, outputs):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(),
        nn.Conv2d(outputs, outputs, 3, padding=1, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(),
    )


class UNet(nn.Module):
    def __init__(self, width, classes):
        super().__init__()
        widths = [width, 2 * width, 4 * width, 8 * width]
        self.down = nn.ModuleList([double(a, b) for a, b in zip([3, *widths], widths)])
        self.raise3 = nn.ConvTranspose2d(widths[3], widths[2], 2, stride=2)
        self.raise2 = nn.ConvTranspose2d(widths[2], widths[1], 2, stride=2)
        self.raise1 = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False)
        self.up3, self.up2 = double(2 * widths[2], widths[2]), double(2 * widths[1], widths[1])
        self.up1 = double(widths[1] + widths[0], widths[0])
        self.head = nn.Conv2d(widths[0], classes, 1)

    def forward(self, image):
        a = self.down[0](image)
        b = self.down[1](F.max_pool2d(a, 2))
        c = self.down[2](F.max_pool2d(b, 2))
        d = self.down[3](F.max_pool2d(c, 2))
        c = self.up3(torch.cat([c, self.raise3(d)], 1))
        b = self.up2(torch.cat([b, self.raise2(c)], 1))
        a = self.up1(torch.cat([a, self.raise1(b)], 1))
        return self.head(a)


def build(width=32, classes=4):
    """image [B, 3, 64, 64] -> logits [B, classes, 64, 64]."""
    return UNet(width, classes)


def example(batch=2):
    return (torch.rand(batch, 3, 64, 64),)

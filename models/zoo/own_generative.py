"""Own networks that make images and densities."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F

from network import floats, own, tokens


def double(a, b):
    return nn.Sequential(
        nn.Conv2d(a, b, 3, padding=1),
        nn.BatchNorm2d(b),
        nn.ReLU(),
        nn.Conv2d(b, b, 3, padding=1),
        nn.BatchNorm2d(b),
        nn.ReLU(),
    )


class UNet(nn.Module):
    def __init__(self, up):
        super().__init__()
        self.a, self.b, self.c = double(3, 8), double(8, 16), double(16, 16)
        make = {
            "transposed": lambda: nn.ConvTranspose2d(16, 16, 2, stride=2),
            "bilinear": lambda: nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True),
            "nearest": lambda: nn.Upsample(scale_factor=2, mode="nearest"),
        }[up]
        self.up1, self.up2 = make(), make()
        self.d, self.e, self.head = double(32, 16), double(24, 8), nn.Conv2d(8, 2, 1)

    def forward(self, image):
        a = self.a(image)
        b = self.b(F.max_pool2d(a, 2))
        c = self.c(F.max_pool2d(b, 2))
        d = self.d(torch.cat([self.up1(c), b], 1))
        return self.head(self.e(torch.cat([self.up2(d), a], 1)))


def generator():
    return nn.Sequential(
        nn.ConvTranspose2d(8, 16, 4, 1, 0, bias=False), nn.BatchNorm2d(16), nn.ReLU(True),
        nn.ConvTranspose2d(16, 8, 4, 2, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU(True),
        nn.ConvTranspose2d(8, 3, 4, 2, 1, bias=False), nn.Tanh(),
    )  # fmt: skip


def discriminator(norm=False):
    wrap = nn.utils.parametrizations.spectral_norm if norm else lambda x: x
    return nn.Sequential(
        wrap(nn.Conv2d(3, 8, 4, 2, 1)), nn.LeakyReLU(0.2, True),
        wrap(nn.Conv2d(8, 16, 4, 2, 1)), nn.InstanceNorm2d(16, affine=True), nn.LeakyReLU(0.2, True),
        nn.Conv2d(16, 1, 4), nn.Flatten(),
    )  # fmt: skip


class CycleGenerator(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.ReflectionPad2d(3), nn.Conv2d(3, 8, 7), nn.InstanceNorm2d(8), nn.ReLU(),
            nn.Conv2d(8, 16, 3, 2, 1), nn.InstanceNorm2d(16), nn.ReLU(),
            nn.ReflectionPad2d(1), nn.Conv2d(16, 16, 3), nn.InstanceNorm2d(16),
            nn.ConvTranspose2d(16, 8, 3, 2, 1, 1), nn.InstanceNorm2d(8), nn.ReLU(),
            nn.ReflectionPad2d(3), nn.Conv2d(8, 3, 7), nn.Tanh(),
        )  # fmt: skip

    def forward(self, image):
        return self.body(image)


class VAE(nn.Module):
    def __init__(self, given):
        super().__init__()
        self.encoder, self.mu, self.log_var = nn.Linear(20, 16), nn.Linear(16, 4), nn.Linear(16, 4)
        self.decoder = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 20))
        self.given = given

    def forward(self, x, noise):
        h = torch.relu(self.encoder(x))
        mu, log_var = self.mu(h), self.log_var(h)
        return self.decoder(mu + torch.exp(0.5 * log_var) * noise), mu, log_var


class VectorQuantizer(nn.Module):
    """VQ-VAE with the straight-through estimator."""

    def __init__(self):
        super().__init__()
        self.encoder, self.decoder, self.codes = (
            nn.Conv2d(3, 4, 4, 2, 1),
            nn.ConvTranspose2d(4, 3, 4, 2, 1),
            nn.Embedding(6, 4),
        )

    def forward(self, image):
        z = self.encoder(image).permute(0, 2, 3, 1)
        distances = (
            z.pow(2).sum(-1, keepdim=True)
            - 2 * z @ self.codes.weight.T
            + self.codes.weight.pow(2).sum(1)
        )
        q = self.codes(distances.argmin(-1))
        through = z + (q - z).detach()
        return self.decoder(through.permute(0, 3, 1, 2)), q


class Denoiser(nn.Module):
    """A diffusion model's U-Net: time embedding, group normalization, attention, resize."""

    def __init__(self, width=16):
        super().__init__()
        self.time = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width))
        self.start, self.down = nn.Conv2d(3, width, 3, padding=1), nn.Conv2d(width, width, 3, 2, 1)
        self.norm1, self.norm2, self.norm3 = (nn.GroupNorm(4, width) for _ in range(3))
        self.conv1, self.qkv, self.out = (
            nn.Conv2d(width, width, 3, padding=1),
            nn.Conv2d(width, 3 * width, 1),
            nn.Conv2d(width, width, 1),
        )
        self.up, self.end, self.width = (
            nn.Conv2d(width, width, 3, padding=1),
            nn.Conv2d(2 * width, 3, 3, padding=1),
            width,
        )

    def forward(self, image, time):
        half = self.width // 2
        angles = time.float() * torch.exp(torch.arange(half) * (-math.log(1000.0) / half))
        t = self.time(torch.cat([angles.sin(), angles.cos()], 1))
        a = self.start(image)
        x = self.down(a)
        x = x + self.conv1(F.silu(self.norm1(x + t[:, :, None, None])))
        b, c, h, w = x.shape
        q, k, v = self.qkv(self.norm2(x)).reshape(b, 3, c, h * w).unbind(1)
        weights = torch.softmax(torch.einsum("bcq,bck->bqk", q, k) / math.sqrt(c), -1)
        x = x + self.out(torch.einsum("bqk,bck->bcq", weights, v).reshape(b, c, h, w))
        x = self.up(F.interpolate(F.silu(self.norm3(x)), scale_factor=2.0, mode="nearest"))
        return self.end(torch.cat([x, a], 1))


class StyledConvolution(nn.Module):
    """StyleGAN2's convolution whose weights a style scales, one group a sample."""

    def __init__(self):
        super().__init__()
        self.weight, self.style = nn.Parameter(torch.randn(6, 4, 3, 3)), nn.Linear(5, 4)
        self.start = nn.Parameter(torch.randn(1, 4, 8, 8))

    def forward(self, z):
        style = self.style(z) + 1
        weight = self.weight[None] * style[:, None, :, None, None]
        weight = weight * torch.rsqrt(weight.square().sum((2, 3, 4), keepdim=True) + 1e-8)
        x = self.start * style[:, :, None, None]
        y = torch.einsum("bchw,bocij->bohwij", x, weight).mean((-1, -2))
        return F.leaky_relu(y, 0.2) * math.sqrt(2)


class MixtureDensity(nn.Module):
    """The negative logarithm of a mixture of normal distributions, as a loss."""

    def __init__(self):
        super().__init__()
        self.body, self.pi, self.mu, self.sigma = (
            nn.Linear(3, 16),
            nn.Linear(16, 4),
            nn.Linear(16, 4),
            nn.Linear(16, 4),
        )

    def forward(self, x, y):
        h = torch.tanh(self.body(x))
        log_pi, sigma = F.log_softmax(self.pi(h), -1), F.elu(self.sigma(h)) + 1.001
        log_normal = (
            -0.5 * ((y - self.mu(h)) / sigma) ** 2 - torch.log(sigma) - 0.5 * math.log(2 * math.pi)
        )
        return -torch.logsumexp(log_pi + log_normal, -1, keepdim=True)


class Flow(nn.Module):
    """RealNVP: coupling layers with checkerboard masks, and the logarithm of the determinant."""

    def __init__(self):
        super().__init__()
        self.scale = nn.ModuleList(
            [
                nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, 6), nn.Tanh())
                for _ in range(3)
            ]
        )
        self.shift = nn.ModuleList(
            [nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 6)) for _ in range(3)]
        )
        self.register_buffer("mask", torch.arange(6) % 2 == 0)

    def forward(self, x):
        determinant = torch.zeros(x.shape[0])
        for i, (scale, shift) in enumerate(zip(self.scale, self.shift)):
            mask = (self.mask if i % 2 else ~self.mask).float()
            s = scale(x * mask) * (1 - mask)
            x = x * mask + (1 - mask) * (x * s.exp() + shift(x * mask))
            determinant = determinant + s.sum(1)
        return x, determinant.unsqueeze(1)


class SuperResolution(nn.Module):
    """EDSR with pixel shuffle, and a bicubic skip."""

    def __init__(self):
        super().__init__()
        self.head, self.a, self.b = (
            nn.Conv2d(3, 8, 3, padding=1),
            nn.Conv2d(8, 8, 3, padding=1),
            nn.Conv2d(8, 8, 3, padding=1),
        )
        self.tail = nn.Sequential(nn.Conv2d(8, 12, 3, padding=1), nn.PixelShuffle(2))

    def forward(self, image):
        x = self.head(image)
        x = x + 0.1 * self.b(torch.relu(self.a(x)))
        return self.tail(x) + F.interpolate(
            image, scale_factor=2.0, mode="bicubic", align_corners=False
        )


IMAGE = {"image": floats(3, 16, 16)}
NETWORKS = [
    own("unet_transposed", lambda: UNet("transposed"), IMAGE),
    own("unet_bilinear", lambda: UNet("bilinear"), IMAGE),
    own("unet_nearest", lambda: UNet("nearest"), IMAGE),
    own("dcgan_generator", generator, {"z": floats(8, 1, 1)}, "mse"),
    own("dcgan_discriminator", discriminator, IMAGE, "binary_cross_entropy"),
    own(
        "spectral_discriminator",
        lambda: discriminator(True),
        IMAGE,
        "binary_cross_entropy",
        note="the vectors of spectral_norm, which each call of the module changes, are constants in the file",
    ),
    own("cycle_generator", CycleGenerator, IMAGE, "mse"),
    own("styled_convolution", StyledConvolution, {"z": floats(5)}, "mse"),
    own("vae", lambda: VAE(True), {"x": floats(20), "noise": floats(4)}, "mse"),
    own("vector_quantizer", VectorQuantizer, IMAGE, "mse", note="no exporter writes detach()"),
    own("denoiser", Denoiser, {**IMAGE, "time": tokens(1, 100)}, "mse"),
    own("flow", Flow, {"x": floats(6)}, "mse"),
    own("mixture_density", MixtureDensity, {"x": floats(3), "y": floats(1)}, "mse"),
    own("super_resolution", SuperResolution, IMAGE, "mse"),
]

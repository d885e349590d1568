"""A variational autoencoder (Kingma and Welling 2013) for the digits of models/digits.

    python models/vae/make_model.py FOLDER

Writes FOLDER/model.onnx: image float32 [B, 1, 8, 8] -> logits [B, 1, 8, 8] of the reconstruction, mu and log_var [B, 6] of the code. The code is
drawn inside of the graph, by RandomNormalLike. Needs PyTorch and onnx: bench/peers/requirements.txt.
"""

import argparse
import pathlib
import sys

import torch
import torch.nn as nn

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from export import export  # noqa: E402

CODE, WIDTH = 6, 128


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Flatten(), nn.Linear(64, WIDTH), nn.ReLU())
        self.mu, self.log_var = nn.Linear(WIDTH, CODE), nn.Linear(WIDTH, CODE)
        self.decoder = nn.Sequential(nn.Linear(CODE, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 64), nn.Unflatten(1, (1, 8, 8)))

    def forward(self, image):
        hidden = self.encoder(image)
        mu, log_var = self.mu(hidden), self.log_var(hidden)
        code = mu + torch.exp(0.5 * log_var) * torch.randn_like(mu)
        return self.decoder(code), mu, log_var


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    torch.manual_seed(0)
    export(Autoencoder(), (torch.rand(2, 1, 8, 8),), parser.parse_args().folder / "model.onnx", "torchscript", ("image",), ("logits", "mu", "log_var"))


if __name__ == "__main__":
    main()

"""The networks of the parity fixtures: narrow ones that are committed, and the full-size ones of models/."""

import dataclasses
import pathlib
import sys
from typing import Callable, List

import torch
import torch.nn as nn
import torch.nn.functional as F
import torchvision
from torch._higher_order_ops.scan import scan
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from torchvision.models.resnet import BasicBlock, ResNet

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "models"))
from export import EXPORTERS, load  # noqa: E402


class NarrowResNet(ResNet):
    """torchvision's ResNet-18 with `width` instead of 64 channels in its first stage."""

    def __init__(self, width, classes=10):
        nn.Module.__init__(self)
        self._norm_layer, self.inplanes, self.dilation, self.groups, self.base_width = (
            nn.BatchNorm2d,
            width,
            1,
            1,
            64,
        )
        self.conv1 = nn.Conv2d(3, width, 7, stride=2, padding=3, bias=False)
        self.bn1, self.relu = nn.BatchNorm2d(width), nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
        self.layer1 = self._make_layer(BasicBlock, width, 2)
        self.layer2 = self._make_layer(BasicBlock, 2 * width, 2, stride=2)
        self.layer3 = self._make_layer(BasicBlock, 4 * width, 2, stride=2)
        self.layer4 = self._make_layer(BasicBlock, 8 * width, 2, stride=2)
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(8 * width, classes)


def conv_bn():
    """Convolutions (strided, grouped, with and without bias), BatchNorm, LeakyReLU, average pooling: [B, 3, 16, 16]."""
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1, bias=False),
        nn.BatchNorm2d(8),
        nn.LeakyReLU(0.1),
        nn.Conv2d(8, 16, 3, stride=2, padding=1),
        nn.BatchNorm2d(16),
        nn.LeakyReLU(0.2),
        nn.AvgPool2d(2),
        nn.Conv2d(16, 16, 3, padding=1, groups=2, bias=False),
        nn.BatchNorm2d(16, momentum=0.2),
        nn.LeakyReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(16, 10),
    )


class Encoder(nn.Module):
    """Two nn.TransformerEncoderLayer with (erf) GELU over embedded tokens, then the mean over positions."""

    def __init__(self, vocabulary=50, length=12, width=32, heads=2, classes=5):
        super().__init__()
        self.token, self.position = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        layer = nn.TransformerEncoderLayer(
            width, heads, 2 * width, dropout=0.0, activation="gelu", batch_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(width, classes)

    def forward(self, tokens):
        x = self.token(tokens) + self.position.weight[: tokens.shape[1]]
        return self.head(self.encoder(x).mean(1))


class LastState(nn.Module):
    """An LSTM over embedded tokens; its last state is classified."""

    def __init__(self, vocabulary=50, width=12, hidden=20, classes=5):
        super().__init__()
        self.token, self.lstm = nn.Embedding(vocabulary, width), nn.LSTM(width, hidden, batch_first=True)
        self.head = nn.Linear(hidden, classes)

    def forward(self, tokens):
        _, (h, _) = self.lstm(self.token(tokens))
        return self.head(h[-1])


class NextToken(nn.Module):
    """Two layers of GRU over embedded tokens, and the next token of each position."""

    def __init__(self, vocabulary=65, width=16, hidden=24):
        super().__init__()
        self.token, self.gru = nn.Embedding(vocabulary, width), nn.GRU(width, hidden, num_layers=2, batch_first=True)
        self.head = nn.Linear(hidden, vocabulary)

    def forward(self, tokens):
        return self.head(self.gru(self.token(tokens))[0])


class Tagger(nn.Module):
    """Two layers of LSTM in two directions over packed sequences, and a label of each position; those after the end of a sequence get the bias."""

    def __init__(self, vocabulary=65, width=16, hidden=12):
        super().__init__()
        self.token = nn.Embedding(vocabulary, width)
        self.lstm = nn.LSTM(width, hidden, num_layers=2, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * hidden, vocabulary)

    def forward(self, tokens, lengths):
        packed = pack_padded_sequence(self.token(tokens), lengths, batch_first=True, enforce_sorted=False)
        y, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True, total_length=tokens.shape[1])
        return self.head(y)


class Cell(nn.Module):
    """h <- tanh(W x + U h) as a module of its own."""

    def __init__(self, width, hidden):
        super().__init__()
        self.input, self.state = nn.Linear(width, hidden), nn.Linear(hidden, hidden, bias=False)

    def forward(self, x, h):
        return torch.tanh(self.input(x) + self.state(h))


class CellLoop(nn.Module):
    """A cell in a Python loop over embedded tokens, scripted: its export has Loop with a growing sequence, and If on data in it."""

    def __init__(self, vocabulary=65, width=16, hidden=24):
        super().__init__()
        self.hidden = hidden
        self.token, self.cell, self.head = nn.Embedding(vocabulary, width), Cell(width, hidden), nn.Linear(hidden, vocabulary)

    def forward(self, tokens):
        x = self.token(tokens)
        h = torch.zeros(tokens.size(0), self.hidden, dtype=x.dtype)
        states: List[torch.Tensor] = []
        for t in range(tokens.size(1)):
            h = self.cell(x[:, t], h)
            if bool(h.sum() > 0):
                h = h * 1.25
            states.append(h)
        return self.head(torch.stack(states, 1))


class CellScan(CellLoop):
    """The cell by torch's `scan` where it is exported, so that the file has Scan; where it is trained, which `scan` is slow at, by a loop."""

    def forward(self, tokens):
        x = self.token(tokens)

        def step(h, one):
            h = self.cell(one, h)
            return h, h.clone()

        h = torch.zeros(tokens.size(0), self.hidden, dtype=x.dtype)
        if torch.compiler.is_exporting():
            return self.head(scan(step, h, x.transpose(0, 1))[1].transpose(0, 1))
        states = []
        for t in range(x.shape[1]):
            h, state = step(h, x[:, t])
            states.append(state)
        return self.head(torch.stack(states, 1))


class WithLoss(nn.Module):
    """The network with the mean cross entropy in the graph: (input, labels) -> scalar loss."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, x, labels):
        logits = self.net(x)
        return F.cross_entropy(logits.flatten(0, -2), labels.flatten())


OPTIMIZER_NAMES = ("sgd", "sgd_momentum", "sgd_nesterov", "adam", "adamw")


@dataclasses.dataclass
class Case:
    """One network and how it is trained.

    shape: of one sample of the input `feed`; images have values, tokens are class numbers.
    lr: learning rates in the order of OPTIMIZER_NAMES.
    gain: factor on matrices and filters, where PyTorch's initial values let the signal fade.
    stable: how far a float64 run may differ (relative), so that 1e-3 is a fair tolerance.
    lengths: the network takes the length of each sample, too.
    exporters: those that can export it; torch.export does not know packed sequences.
    """

    name: str
    build: Callable
    feed: str
    shape: tuple
    batch: int
    classes: int
    lr: tuple
    loss_in_graph: bool = False
    gain: float = 1.0
    stable: float = 1e-5
    lengths: bool = False
    exporters: tuple = EXPORTERS


def narrow_gpt(tied=False):
    return load("gpt").build(65, 16, 32, 2, 2, tied=tied)


def full_resnet18():
    return torchvision.models.resnet18(num_classes=10)


# fmt: off
NARROW = [
    Case("mlp", lambda: load("mlp").build(64, 32), "image", (64,), 16, 10,
         (3e-1, 1e-1, 1e-1, 1e-2, 1e-2), loss_in_graph=True),
    Case("lenet5", lambda: load("lenet5").build((3, 6), (32, 24)), "image", (1, 28, 28), 16, 10,
         (1e-1, 3e-2, 3e-2, 5e-3, 5e-3), gain=2.0),
    Case("resnet18", lambda: NarrowResNet(3), "image", (3, 48, 48), 8, 10,
         (1.2e-3, 3e-4, 3e-4, 1.5e-4, 1.5e-4)),
    Case("gpt", narrow_gpt, "tokens", (16,), 8, 65,
         (2e-1, 5e-2, 5e-2, 3e-3, 3e-3), loss_in_graph=True),
    Case("conv_bn", conv_bn, "image", (3, 16, 16), 16, 10, (1e-1, 3e-2, 3e-2, 5e-3, 5e-3)),
    Case("encoder", Encoder, "tokens", (12,), 16, 5, (1e-1, 3e-2, 3e-2, 3e-3, 3e-3)),
    Case("tied_decoder", lambda: narrow_gpt(tied=True), "tokens", (16,), 8, 65,
         (5e-2, 1e-2, 1e-2, 2e-3, 2e-3)),
    Case("lstm", LastState, "tokens", (12,), 16, 5, (5e-1, 1e-1, 1e-1, 1e-2, 1e-2), gain=2.0),
    Case("gru", NextToken, "tokens", (16,), 8, 65, (2e0, 3e-1, 3e-1, 1e-2, 1e-2), gain=2.0),
    Case("tagger", Tagger, "tokens", (10,), 8, 65, (3e0, 8e-1, 2e-1, 3e-2, 3e-2), gain=4.0, lengths=True, exporters=("torchscript",)),
    Case("cell_loop", lambda: torch.jit.script(CellLoop()), "tokens", (16,), 8, 65, (2e0, 3e-1, 3e-1, 1e-2, 1e-2), exporters=("torchscript",)),
    Case("cell_scan", CellScan, "tokens", (16,), 8, 65, (2e0, 3e-1, 3e-1, 1e-2, 1e-2), exporters=("dynamo",)),
]
# ResNet-18 at 32x32 amplifies rounding (maps of one pixel, statistics over 32 values): from
# lr 1e-3 on, PyTorch's own float32 and float64 runs differ by 1e-3 within ten steps, so its
# learning rates are small.
FULL = [
    Case("mlp", lambda: load("mlp").build(), "image", (784,), 32, 10,
         (2e-2, 5e-3, 5e-3, 2e-4, 2e-4)),
    Case("lenet5", lambda: load("lenet5").build(), "image", (1, 28, 28), 64, 10,
         (4e-2, 1e-2, 1e-2, 1e-3, 1e-3), gain=2.0),
    Case("resnet18", full_resnet18, "image", (3, 32, 32), 32, 10,
         (1e-4, 3e-5, 3e-5, 1e-5, 1e-5), stable=3e-4),
    Case("gpt", lambda: load("gpt").build(), "tokens", (128,), 16, 65,
         (1e-1, 1e-2, 1e-2, 3e-4, 3e-4)),
]

"""Own networks over sequences: recurrent layers as people write them, convolutions over time."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F

from network import floats, own, tokens


class Recurrent(nn.Module):
    """A recurrent layer and a classifier over its last step, its last state, or all steps."""

    def __init__(self, kind, take="last", hidden=6, given=False, **settings):
        super().__init__()
        self.layer = kind(5, hidden, batch_first=True, **settings)
        directions = 2 if settings.get("bidirectional") else 1
        self.head = nn.Linear(settings.get("proj_size") or hidden * directions, 4)
        self.take, self.given = take, given

    def forward(self, x, *states):
        if self.given:
            states = tuple(s.transpose(0, 1) for s in states)
            result, state = self.layer(x, states if len(states) > 1 else states[0])
        else:
            result, state = self.layer(x)
        if self.take == "all":
            return self.head(result)
        if self.take == "state":
            return self.head((state[0] if isinstance(state, tuple) else state)[-1])
        return self.head(result[:, -1])


class Cells(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.cell, self.head = kind(5, 6), nn.Linear(6, 4)

    def forward(self, x):
        state = None
        for step in x.unbind(1):
            state = self.cell(step, state)
        return self.head(state[0] if isinstance(state, tuple) else state)


class Translator(nn.Module):
    """An LSTM that reads, one that writes from its state with attention over what was read."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(30, 8)
        self.encoder, self.decoder = nn.LSTM(8, 8, batch_first=True), nn.LSTM(
            8, 8, batch_first=True
        )
        self.head = nn.Linear(16, 30)

    def forward(self, source, target):
        read, state = self.encoder(self.embed(source))
        written, _ = self.decoder(self.embed(target), state)
        weights = torch.softmax(torch.bmm(written, read.transpose(1, 2)) / math.sqrt(8), -1)
        return self.head(torch.cat([written, torch.bmm(weights, read)], -1))


class ConvLSTM(nn.Module):
    def __init__(self, width=4):
        super().__init__()
        self.gates, self.head, self.width = (
            nn.Conv2d(1 + width, 4 * width, 3, padding=1),
            nn.Conv2d(width, 1, 1),
            width,
        )

    def forward(self, x):
        h = c = x.new_zeros(x.shape[0], self.width, x.shape[3], x.shape[4])
        for step in x.unbind(1):
            i, f, o, g = self.gates(torch.cat([step, h], 1)).chunk(4, 1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
        return self.head(h)


class Temporal(nn.Module):
    """A temporal convolutional network with weight normalization."""

    def __init__(self):
        super().__init__()
        norm = nn.utils.parametrizations.weight_norm
        self.convs = nn.ModuleList(
            [norm(nn.Conv1d(8 if i else 3, 8, 3, dilation=2**i)) for i in range(3)]
        )
        self.head = nn.Linear(8, 4)

    def forward(self, x):
        for i, conv in enumerate(self.convs):
            y = F.elu(conv(F.pad(x, (2 * 2**i, 0))))
            x = y if i == 0 else x + y
        return self.head(x[:, :, -1])


class WaveNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.start, self.end = nn.Conv1d(1, 8, 1), nn.Conv1d(8, 16, 1)
        self.filters = nn.ModuleList([nn.Conv1d(8, 16, 2, dilation=2**i) for i in range(4)])
        self.skips = nn.ModuleList([nn.Conv1d(8, 16, 1) for _ in range(4)])

    def forward(self, x):
        x, total = self.start(x), 0.0
        for filter, skip in zip(self.filters, self.skips):
            a, b = filter(x).chunk(2, 1)
            h = torch.tanh(a) * torch.sigmoid(b)
            s = skip(h)
            total = s if isinstance(total, float) else total[..., -s.shape[-1] :] + s
            x = h[:, :8] + x[..., -h.shape[-1] :]
        return torch.relu(total).mean(-1)


class TextRecognizer(nn.Module):
    """CRNN: convolutions, a bidirectional LSTM over columns, logits for CTC."""

    def __init__(self):
        super().__init__()
        self.convs = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(8, 8, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d((2, 1)),
        )
        self.rnn, self.head = nn.LSTM(16, 6, bidirectional=True, num_layers=2), nn.Linear(12, 11)

    def forward(self, image):
        x = self.convs(image).flatten(1, 2).permute(2, 0, 1)
        return self.head(self.rnn(x)[0]).transpose(0, 1)


class DiagonalStateSpace(nn.Module):
    """S4D in real numbers: a convolution with a kernel of decaying cosines."""

    def __init__(self, length=12, width=6, states=4):
        super().__init__()
        self.rate, self.frequency = nn.Parameter(torch.rand(width, states)), nn.Parameter(
            torch.randn(width, states)
        )
        self.c, self.step, self.head = (
            nn.Parameter(torch.randn(width, states)),
            nn.Parameter(torch.zeros(width)),
            nn.Linear(width, 4),
        )
        self.length = length

    def forward(self, x):
        time = torch.arange(self.length) * self.step.exp().unsqueeze(-1)
        kernel = (
            self.c[..., None]
            * torch.exp(-self.rate.exp()[..., None] * time[:, None])
            * torch.cos(self.frequency[..., None] * time[:, None])
        ).sum(1)
        y = F.conv1d(F.pad(x, (self.length - 1, 0)), kernel.flip(-1).unsqueeze(1), groups=6)
        return self.head(F.gelu(y).mean(-1))


class LinearAttention(nn.Module):
    """Causal linear attention by a cumulative sum."""

    def __init__(self):
        super().__init__()
        self.embed, self.qkv, self.head = nn.Embedding(30, 8), nn.Linear(8, 24), nn.Linear(8, 30)

    def forward(self, ids):
        q, k, v = self.qkv(self.embed(ids)).chunk(3, -1)
        q, k = F.elu(q) + 1, F.elu(k) + 1
        kv = torch.cumsum(k.unsqueeze(-1) * v.unsqueeze(-2), 1)
        z = torch.cumsum(k, 1)
        y = (q.unsqueeze(-2) @ kv).squeeze(-2) / ((q * z).sum(-1, keepdim=True) + 1e-6)
        return self.head(y)


SEQUENCE = {"x": floats(7, 5)}
TWO = {"source": tokens(6, 30), "target": tokens(6, 30)}
STATE = {"x": floats(7, 5), "h": floats(1, 6)}
NETWORKS = [
    own("lstm", lambda: Recurrent(nn.LSTM), SEQUENCE),
    own("lstm_state", lambda: Recurrent(nn.LSTM, "state"), SEQUENCE),
    own("lstm_two_layers", lambda: Recurrent(nn.LSTM, "all", num_layers=2), SEQUENCE),
    own(
        "lstm_bidirectional",
        lambda: Recurrent(nn.LSTM, "all", num_layers=2, bidirectional=True),
        SEQUENCE,
    ),
    own("lstm_given_state", lambda: Recurrent(nn.LSTM, given=True), {**STATE, "c": floats(1, 6)}),
    own("lstm_projection", lambda: Recurrent(nn.LSTM, proj_size=4), SEQUENCE),
    own("lstm_without_bias", lambda: Recurrent(nn.LSTM, bias=False), SEQUENCE),
    own("gru", lambda: Recurrent(nn.GRU), SEQUENCE),
    own(
        "gru_bidirectional",
        lambda: Recurrent(nn.GRU, "all", num_layers=2, bidirectional=True),
        SEQUENCE,
    ),
    own("gru_given_state", lambda: Recurrent(nn.GRU, "state", given=True), STATE),
    own("rnn", lambda: Recurrent(nn.RNN), SEQUENCE),
    own("rnn_relu", lambda: Recurrent(nn.RNN, nonlinearity="relu"), SEQUENCE),
    own("lstm_cells", lambda: Cells(nn.LSTMCell), SEQUENCE),
    own("gru_cells", lambda: Cells(nn.GRUCell), SEQUENCE),
    own("translator", Translator, TWO),
    own("conv_lstm", ConvLSTM, {"x": floats(4, 1, 6, 6)}, "mse"),
    own("text_recognizer", TextRecognizer, {"image": floats(1, 8, 20)}),
    own("temporal", Temporal, {"x": floats(3, 16)}),
    own("wavenet", WaveNet, {"x": floats(1, 32)}),
    own("diagonal_state_space", DiagonalStateSpace, {"x": floats(6, 12)}),
    own("linear_attention", LinearAttention, {"ids": tokens(8, 30)}),
]

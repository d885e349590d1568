"""Own networks of other kinds: attention, graphs, fields, points, physics, text, sound."""

import torch
import torch.nn as nn
import torch.nn.functional as F

from network import floats, fractions, own, tokens


class Language(nn.Module):
    def __init__(self, decoder):
        super().__init__()
        self.embed = nn.Embedding(30, 8)
        layer = nn.TransformerDecoderLayer if decoder else nn.TransformerEncoderLayer
        stack = nn.TransformerDecoder if decoder else nn.TransformerEncoder
        self.layers = stack(layer(8, 2, 16, batch_first=True), 2)
        self.head, self.decoder = nn.Linear(8, 30), decoder

    def forward(self, source, target):
        causal = nn.Transformer.generate_square_subsequent_mask(target.shape[1])
        if self.decoder:
            return self.head(self.layers(self.embed(target), self.embed(source), tgt_mask=causal))
        return self.head(self.layers(self.embed(target), mask=causal) + self.embed(source)[:, :1])


class FullTransformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.body = nn.Embedding(30, 8), nn.Transformer(
            8, 2, 1, 1, 16, batch_first=True
        )
        self.head = nn.Linear(8, 30)

    def forward(self, source, target):
        causal = nn.Transformer.generate_square_subsequent_mask(6)
        padding = source == 0
        return self.head(
            self.body(
                self.embed(source),
                self.embed(target),
                tgt_mask=causal,
                src_key_padding_mask=padding,
            )
        )


class RadianceField(nn.Module):
    """NeRF's network over sines and cosines of positions."""

    def __init__(self):
        super().__init__()
        self.register_buffer("frequencies", 2.0 ** torch.arange(4))
        self.body = nn.Sequential(
            nn.Linear(27, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 4)
        )

    def forward(self, x):
        angles = (x.unsqueeze(-1) * self.frequencies).flatten(1)
        y = self.body(torch.cat([x, angles.sin(), angles.cos()], 1))
        return torch.cat([torch.sigmoid(y[:, :3]), F.softplus(y[:, 3:])], 1)


class Siren(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(2, 16), nn.Linear(16, 16), nn.Linear(16, 3)

    def forward(self, x):
        return self.c(torch.sin(5 * self.b(torch.sin(5 * self.a(x)))))


class GraphConvolution(nn.Module):
    """GCN over a dense adjacency."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(5, 8), nn.Linear(8, 3)

    def forward(self, x, adjacency):
        links = (adjacency > 0.6).float() + torch.eye(6)
        degree = links.sum(-1).rsqrt()
        links = degree.unsqueeze(-1) * links * degree.unsqueeze(-2)
        return self.b(links @ torch.relu(self.a(links @ x)))


class GraphAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.w, self.left, self.right, self.head = (
            nn.Linear(5, 8),
            nn.Linear(8, 1),
            nn.Linear(8, 1),
            nn.Linear(8, 3),
        )

    def forward(self, x, adjacency):
        h = self.w(x)
        scores = F.leaky_relu(self.left(h) + self.right(h).transpose(1, 2), 0.2)
        scores = torch.where(adjacency > 0.4, scores, torch.full_like(scores, float("-inf")))
        scores = torch.nan_to_num(torch.softmax(scores, -1))
        return self.head(F.elu(scores @ h))


class MessagePassing(nn.Module):
    """Messages along a fixed list of edges, added up at their ends."""

    def __init__(self):
        super().__init__()
        self.message, self.update, self.head = nn.Linear(10, 8), nn.GRUCell(8, 5), nn.Linear(5, 3)
        self.register_buffer("source", torch.tensor([0, 1, 2, 3, 4, 5, 1, 2]))
        self.register_buffer("target", torch.tensor([1, 2, 3, 4, 5, 0, 0, 1]))

    def forward(self, x):
        pairs = torch.cat([x[:, self.source], x[:, self.target]], -1)
        messages = torch.relu(self.message(pairs))
        summed = torch.zeros(x.shape[0], 6, 8).index_add(1, self.target, messages)
        h = self.update(summed.flatten(0, 1), x.flatten(0, 1)).view(x.shape[0], 6, 5)
        return self.head(h.mean(1))


class PointNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.transform = nn.Sequential(nn.Conv1d(3, 8, 1), nn.BatchNorm1d(8), nn.ReLU())
        self.matrix = nn.Linear(8, 9)
        self.features = nn.Sequential(
            nn.Conv1d(3, 16, 1), nn.BatchNorm1d(16), nn.ReLU(), nn.Conv1d(16, 16, 1)
        )
        self.head = nn.Linear(16, 4)

    def forward(self, points):
        m = self.matrix(self.transform(points).max(2)[0]).view(-1, 3, 3) + torch.eye(3)
        x = torch.bmm(points.transpose(1, 2), m).transpose(1, 2)
        return self.head(torch.max(self.features(x), 2)[0])


class SpatialTransformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.where = nn.Sequential(
            nn.Conv2d(3, 4, 5, 2), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 6)
        )
        self.body = nn.Sequential(
            nn.Conv2d(3, 8, 3, 2), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 49, 4)
        )

    def forward(self, image):
        theta = self.where(image).view(-1, 2, 3) * 0.1 + torch.tensor(
            [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
        )
        grid = F.affine_grid(theta, [image.shape[0], 3, 16, 16], align_corners=False)
        return self.body(F.grid_sample(image, grid, align_corners=False))


class Capsules(nn.Module):
    """Routing by agreement between capsules, three rounds."""

    def __init__(self):
        super().__init__()
        self.conv, self.weight = nn.Conv2d(3, 16, 5, 3), nn.Parameter(
            0.1 * torch.randn(1, 64, 5, 6, 4)
        )

    def squash(self, s):
        n = s.pow(2).sum(-1, keepdim=True)
        return n / (1 + n) * s / torch.sqrt(n + 1e-8)

    def forward(self, image):
        u = self.squash(self.conv(image).view(image.shape[0], -1, 4))
        votes = (self.weight @ u[:, :, None, :, None]).squeeze(-1)
        b = torch.zeros(image.shape[0], 64, 5, 1)
        for _ in range(3):
            v = self.squash((torch.softmax(b, 2) * votes).sum(1))
            b = b + (votes * v.unsqueeze(1)).sum(-1, keepdim=True)
        return v.norm(dim=-1)


class Keyword(nn.Module):
    """A mobile classifier of sounds over depthwise one-dimensional convolutions."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv1d(1, 8, 9, 4), nn.BatchNorm1d(8), nn.Hardswish(),
            nn.Conv1d(8, 8, 5, 2, groups=8), nn.Conv1d(8, 16, 1), nn.GroupNorm(4, 16), nn.Mish(),
            nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Hardtanh(), nn.Linear(16, 6),
        )  # fmt: skip

    def forward(self, x):
        return self.body(x)


class Fourier(nn.Module):
    """A physics-informed network: the function's value and its residual by an explicit derivative."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(2, 16), nn.Linear(16, 1)

    def forward(self, x):
        h = torch.tanh(self.a(x))
        slope = ((1 - h * h) * self.b.weight) @ self.a.weight
        return torch.cat([self.b(h), slope[:, :1] + 0.3 * slope[:, 1:]], 1)


class Siamese(nn.Module):
    def __init__(self):
        super().__init__()
        self.tower = nn.Sequential(
            nn.Conv2d(3, 6, 3, 2), nn.ReLU(), nn.Flatten(), nn.Linear(6 * 49, 8)
        )

    def forward(self, left, right):
        a, b = F.normalize(self.tower(left)), F.normalize(self.tower(right))
        return torch.pairwise_distance(a, b).unsqueeze(1)


class BagOfWords(nn.Module):
    """fastText: the mean of embeddings of the words that are no padding."""

    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Embedding(40, 8, padding_idx=0), nn.Linear(8, 4)

    def forward(self, ids):
        present = (ids != 0).unsqueeze(-1).float()
        return self.head((self.embed(ids) * present).sum(1) / present.sum(1).clamp(min=1))


class TextCNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.convs = nn.Embedding(40, 8), nn.ModuleList(
            [nn.Conv1d(8, 6, k) for k in (2, 3, 4)]
        )
        self.head = nn.Linear(18, 4)

    def forward(self, ids):
        x = self.embed(ids).transpose(1, 2)
        return self.head(torch.cat([F.relu(c(x)).amax(-1) for c in self.convs], 1))


class ResidualGroupNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.start = nn.Conv2d(3, 8, 3, padding=1)
        self.a = nn.Sequential(
            nn.GroupNorm(2, 8), nn.SELU(), nn.Conv2d(8, 8, 3, padding=1, padding_mode="circular")
        )
        self.b = nn.Sequential(
            nn.LocalResponseNorm(3),
            nn.Softplus(),
            nn.Conv2d(8, 8, 3, 2, padding=1, padding_mode="reflect"),
        )
        self.head = nn.Linear(8, 4)

    def forward(self, image):
        x = self.start(image)
        x = x + self.a(x)
        x = F.adaptive_max_pool2d(self.b(x), 4)
        return self.head(F.lp_pool2d(x, 2, 2).abs().mean((2, 3)))


class SimSiam(nn.Module):
    """One encoder with batch normalization that sees two views in each step, and a predictor after it."""

    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(3, 8, 3, 2, 1, bias=False),
            nn.BatchNorm2d(8),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(2),
            nn.Flatten(),
            nn.Linear(32, 16),
            nn.BatchNorm1d(16),
        )
        self.predictor = nn.Sequential(
            nn.Linear(16, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 16)
        )

    def forward(self, left, right):
        return tuple(F.normalize(self.predictor(self.encoder(x)), dim=1) for x in (left, right))


IMAGE = {"image": floats(3, 16, 16)}
GRAPH = {"x": floats(6, 5), "adjacency": fractions(6, 6)}
TWO = {"source": tokens(6, 30), "target": tokens(6, 30)}
NETWORKS = [
    own(
        "mlp",
        lambda: nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)),
        {"x": floats(8)},
    ),
    own("encoder", lambda: Language(False), TWO),
    own("decoder", lambda: Language(True), TWO),
    own("transformer", FullTransformer, TWO),
    own("nerf", RadianceField, {"x": floats(3)}, "mse"),
    own("siren", Siren, {"x": floats(2)}, "mse"),
    own("physics", Fourier, {"x": floats(2)}, "mse"),
    own("gcn", GraphConvolution, GRAPH),
    own("gat", GraphAttention, GRAPH),
    own(
        "message_passing",
        MessagePassing,
        {"x": floats(6, 5)},
        note="the classic exporter writes index_add so that of several rows with one index the last stays",
    ),
    own("pointnet", PointNet, {"points": floats(3, 20)}),
    own("spatial_transformer", SpatialTransformer, IMAGE),
    own("capsules", Capsules, {"image": floats(3, 14, 14)}),
    own("keyword", Keyword, {"x": floats(1, 200)}),
    own("siamese", Siamese, {"left": floats(3, 16, 16), "right": floats(3, 16, 16)}, "mse"),
    own("simsiam", SimSiam, {"left": floats(3, 8, 8), "right": floats(3, 8, 8)}, "mse"),
    own("fasttext", BagOfWords, {"ids": tokens(6, 40)}),
    own("text_cnn", TextCNN, {"ids": tokens(9, 40)}),
    own("residual_group_norm", ResidualGroupNorm, IMAGE),
]

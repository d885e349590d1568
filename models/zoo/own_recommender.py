"""Own recommender networks."""

import torch
import torch.nn as nn
import torch.nn.functional as F

from network import floats, own, tokens


class DLRM(nn.Module):
    def __init__(self, rows=(40, 30, 20), width=8):
        super().__init__()
        self.tables = nn.ModuleList([nn.EmbeddingBag(r, width, mode="sum") for r in rows])
        self.bottom = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, width), nn.ReLU())
        pairs = (len(rows) + 1) * len(rows) // 2
        self.top = nn.Sequential(nn.Linear(width + pairs, 16), nn.ReLU(), nn.Linear(16, 1))
        self.register_buffer("places", torch.tril_indices(len(rows) + 1, len(rows) + 1, -1))

    def forward(self, dense, ids):
        x = self.bottom(dense)
        features = [x] + [t(ids[:, i : i + 1]) for i, t in enumerate(self.tables)]
        z = torch.stack(features, 1)
        products = torch.bmm(z, z.transpose(1, 2))[:, self.places[0], self.places[1]]
        return self.top(torch.cat([x, products], 1))


class WideAndDeep(nn.Module):
    def __init__(self):
        super().__init__()
        self.wide, self.deep = nn.Embedding(50, 1), nn.Embedding(50, 6)
        self.layers = nn.Sequential(nn.Linear(4 * 6 + 5, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, dense, ids):
        deep = self.layers(torch.cat([self.deep(ids).flatten(1), dense], 1))
        return self.wide(ids).sum(1) + deep


class DeepFM(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.bias = (
            nn.Embedding(50, 1),
            nn.Embedding(50, 6),
            nn.Parameter(torch.zeros(1)),
        )
        self.layers = nn.Sequential(
            nn.Linear(24, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 1)
        )

    def forward(self, ids):
        v = self.second(ids)
        pairs = 0.5 * (v.sum(1).pow(2) - v.pow(2).sum(1)).sum(1, keepdim=True)
        return self.first(ids).sum(1) + pairs + self.layers(v.flatten(1)) + self.bias


class CrossNetwork(nn.Module):
    """DCN-v2."""

    def __init__(self):
        super().__init__()
        self.embed, self.cross = nn.Embedding(50, 4), nn.ModuleList(
            [nn.Linear(21, 21) for _ in range(2)]
        )
        self.head = nn.Linear(21, 1)

    def forward(self, dense, ids):
        x = first = torch.cat([self.embed(ids).flatten(1), dense], 1)
        for layer in self.cross:
            x = first * layer(x) + x
        return self.head(x)


class XDeepFM(nn.Module):
    """A compressed interaction network."""

    def __init__(self):
        super().__init__()
        self.embed, self.filter1, self.filter2 = (
            nn.Embedding(50, 6),
            nn.Conv1d(16, 5, 1),
            nn.Conv1d(20, 5, 1),
        )
        self.head = nn.Linear(10, 1)

    def forward(self, ids):
        x = self.embed(ids)
        a = torch.einsum("bhd,bmd->bhmd", x, x).flatten(1, 2)
        a = torch.relu(self.filter1(a))
        b = torch.einsum("bhd,bmd->bhmd", a, x).flatten(1, 2)
        b = torch.relu(self.filter2(b))
        return self.head(torch.cat([a.sum(-1), b.sum(-1)], 1))


class InterestNetwork(nn.Module):
    """DIN: attention over a history of items, with padding."""

    def __init__(self):
        super().__init__()
        self.items = nn.Embedding(40, 6, padding_idx=0)
        self.attention = nn.Sequential(nn.Linear(24, 8), nn.PReLU(), nn.Linear(8, 1))
        self.head = nn.Sequential(nn.Linear(12, 8), nn.PReLU(8), nn.Linear(8, 1))

    def forward(self, history, item):
        h, i = self.items(history), self.items(item)
        i = i.expand(-1, h.shape[1], -1)
        scores = self.attention(torch.cat([h, i, h - i, h * i], -1)).squeeze(-1)
        scores = scores.masked_fill(history == 0, -1e9)
        pooled = (torch.softmax(scores, -1).unsqueeze(-1) * h).sum(1)
        return self.head(torch.cat([pooled, i[:, 0]], 1))


class TwoTowers(nn.Module):
    def __init__(self):
        super().__init__()
        self.user = nn.Sequential(nn.Embedding(40, 8), nn.Flatten(), nn.Linear(8, 6))
        self.item = nn.Sequential(nn.Embedding(30, 8), nn.Flatten(), nn.Linear(8, 6))

    def forward(self, user, item):
        return F.cosine_similarity(self.user(user), self.item(item)).unsqueeze(1) * 5.0


class MatrixFactorization(nn.Module):
    """NCF."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.c, self.d = (nn.Embedding(40, 6) for _ in range(4))
        self.mlp, self.head = nn.Sequential(nn.Linear(12, 8), nn.ReLU()), nn.Linear(14, 1)

    def forward(self, user, item):
        product = self.a(user)[:, 0] * self.b(item)[:, 0]
        return self.head(
            torch.cat(
                [product, self.mlp(torch.cat([self.c(user)[:, 0], self.d(item)[:, 0]], 1))], 1
            )
        )


class SelfAttentionRecommender(nn.Module):
    """SASRec over nn.MultiheadAttention with a causal mask."""

    def __init__(self):
        super().__init__()
        self.items, self.places = nn.Embedding(40, 8, padding_idx=0), nn.Embedding(10, 8)
        self.norm, self.attention = nn.LayerNorm(8), nn.MultiheadAttention(8, 2, batch_first=True)
        self.register_buffer("mask", torch.triu(torch.ones(10, 10, dtype=torch.bool), 1))

    def forward(self, history):
        x = self.items(history) * 8**0.5 + self.places(torch.arange(10))
        q = self.norm(x)
        x = q + self.attention(q, x, x, attn_mask=self.mask, need_weights=False)[0]
        return x @ self.items.weight.T


class AutoInt(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.attention, self.rest, self.head = (
            nn.Embedding(50, 8),
            nn.MultiheadAttention(8, 2, batch_first=True),
            nn.Linear(8, 8),
            nn.Linear(32, 1),
        )

    def forward(self, ids):
        x = self.embed(ids)
        return self.head(torch.relu(self.attention(x, x, x)[0] + self.rest(x)).flatten(1))


class MixtureOfExperts(nn.Module):
    def __init__(self, sparse):
        super().__init__()
        self.gate = nn.Linear(8, 4)
        self.experts = nn.ModuleList(
            [nn.Sequential(nn.Linear(8, 16), nn.SiLU(), nn.Linear(16, 8)) for _ in range(4)]
        )
        self.head, self.sparse = nn.Linear(8, 3), sparse

    def forward(self, x):
        weights = torch.softmax(self.gate(x), -1)
        if self.sparse:
            best, which = weights.topk(2, -1)
            weights = torch.zeros_like(weights).scatter(1, which, best / best.sum(-1, keepdim=True))
        results = torch.stack([e(x) for e in self.experts], 1)
        return self.head((weights.unsqueeze(-1) * results).sum(1))


IDS = {"ids": tokens(4, 50)}
CLICKS = {"dense": floats(5), "ids": tokens(4, 50)}
PAIR = {"user": tokens(1, 40), "item": tokens(1, 30)}
NETWORKS = [
    own("dlrm", DLRM, {"dense": floats(5), "ids": tokens(3, 20)}, "binary_cross_entropy"),
    own("wide_and_deep", WideAndDeep, CLICKS, "binary_cross_entropy"),
    own("deepfm", DeepFM, IDS, "binary_cross_entropy"),
    own("dcn_v2", CrossNetwork, CLICKS, "binary_cross_entropy"),
    own("xdeepfm", XDeepFM, IDS, "binary_cross_entropy"),
    own("autoint", AutoInt, IDS, "binary_cross_entropy"),
    own(
        "din",
        InterestNetwork,
        {"history": tokens(6, 40), "item": tokens(1, 40, 1)},
        "binary_cross_entropy",
    ),
    own("two_towers", TwoTowers, PAIR, "binary_cross_entropy"),
    own("ncf", MatrixFactorization, PAIR, "binary_cross_entropy"),
    own("sasrec", SelfAttentionRecommender, {"history": tokens(10, 40, 1)}),
    own("mixture_of_experts", lambda: MixtureOfExperts(False), {"x": floats(8)}),
    own("sparse_mixture_of_experts", lambda: MixtureOfExperts(True), {"x": floats(8)}),
]

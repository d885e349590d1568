"""BERT-base (Devlin et al., 2018) with a masked-language head: 12 post-norm layers of width 768, 12 heads, exact GELU."""

import torch
import torch.nn as nn
import torch.nn.functional as F

INPUTS, OUTPUTS = ("tokens",), ("logits",)


class Layer(nn.Module):
    def __init__(self, width, heads, inner):
        super().__init__()
        self.heads = heads
        self.qkv, self.projection = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, inner), nn.Linear(inner, width)
        self.norm1, self.norm2 = nn.LayerNorm(width, eps=1e-12), nn.LayerNorm(width, eps=1e-12)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (
            t.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
            for t in self.qkv(x).chunk(3, -1)
        )
        attended = F.scaled_dot_product_attention(q, k, v)
        x = self.norm1(x + self.projection(attended.transpose(1, 2).reshape(batch, length, width)))
        return self.norm2(x + self.down(F.gelu(self.up(x))))


class Bert(nn.Module):
    def __init__(self, vocabulary, length, width, heads, layers):
        super().__init__()
        self.token, self.position = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.norm = nn.LayerNorm(width, eps=1e-12)
        self.layers = nn.Sequential(*[Layer(width, heads, 4 * width) for _ in range(layers)])
        self.transform, self.transform_norm = nn.Linear(width, width), nn.LayerNorm(width, eps=1e-12)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens):
        x = self.norm(self.token(tokens) + self.position.weight[: tokens.shape[1]])
        return self.head(self.transform_norm(F.gelu(self.transform(self.layers(x)))))


def build(vocabulary=30522, length=128, width=768, heads=12, layers=12):
    """tokens int64 [B, length] -> logits [B, length, vocabulary]."""
    return Bert(vocabulary, length, width, heads, layers)


def example(batch=2, vocabulary=30522, length=128):
    return (torch.randint(0, vocabulary, (batch, length)),)

"""Makes clicks of users on items, drawn from known probabilities, as text; and a network of embedding tables and an MLP.

    python models/recommender/make_data.py FOLDER [--users 400] [--items 600] [--shown 150]

Writes FOLDER/train.csv and test.csv with the columns click, user, item, category, hour, FOLDER/planted.json with the AUC and the GAUC of the
probabilities that the clicks were drawn from, and FOLDER/model.onnx: user, item, category int64 [B], hour float32 [B] -> logits float32 [B].
Each of its tables has one row; train.toml gives it as many rows as the data has values. Some users click more often than others, which
AUC rewards and GAUC does not; what they like is a product of vectors of users and items. Needs PyTorch, onnx and scikit-learn: bench/peers/requirements.txt.
"""

import argparse
import json
import pathlib
import sys

import numpy
import torch
import torch.nn as nn
from sklearn.metrics import roc_auc_score

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from export import export  # noqa: E402

CATEGORIES = 12


class Clicks(nn.Module):
    """Vectors of user, item and category: their products and an MLP over them and the hour."""

    def __init__(self, width=8):
        super().__init__()
        self.user, self.item, self.category = (nn.Embedding(1, width) for _ in range(3))
        self.user_bias, self.item_bias = nn.Embedding(1, 1), nn.Embedding(1, 1)
        self.mlp = nn.Sequential(nn.Linear(3 * width + 2, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, user, item, category, hour):
        u, i, c = self.user(user), self.item(item), self.category(category)
        turn = hour * (2 * torch.pi / 24)
        x = torch.cat([u, i, c, torch.sin(turn).unsqueeze(1), torch.cos(turn).unsqueeze(1)], 1)
        products = (u * (i + c)).sum(1, keepdim=True)
        return (self.mlp(x) + products + self.user_bias(user) + self.item_bias(item)).squeeze(1)


def gauc(users, clicks, scores):
    """Zhu et al. 2017: the mean of the users' AUC, weighted by their samples."""
    total = weight = 0.0
    for user in numpy.unique(users):
        rows = users == user
        if 0 < clicks[rows].sum() < rows.sum():
            total, weight = total + rows.sum() * roc_auc_score(clicks[rows], scores[rows]), weight + rows.sum()
    return total / weight


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    for name, value in (("users", 400), ("items", 600), ("shown", 150)):
        parser.add_argument(f"--{name}", type=int, default=value)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    random = numpy.random.default_rng(1)
    rows = options.users * options.shown
    likes, offers = random.normal(0, 1, (options.users, 4)), random.normal(0, 0.8, (options.items, 4))
    activity, appeal = random.normal(-1.5, 1.0, options.users), random.normal(0, 0.6, options.items)
    category = random.integers(0, CATEGORIES, options.items)
    user = numpy.repeat(numpy.arange(options.users), options.shown)
    item = (random.zipf(1.3, rows) - 1) % options.items
    hour = random.integers(0, 24, rows)
    logits = activity[user] + appeal[item] + (likes[user] * offers[item]).sum(1) + 0.4 * numpy.sin(hour * 2 * numpy.pi / 24)
    chance = 1 / (1 + numpy.exp(-logits))
    click = (random.random(rows) < chance).astype(int)
    order, cut = random.permutation(rows), rows * 4 // 5
    for name, part in (("train", order[:cut]), ("test", order[cut:])):
        lines = [f"{click[r]},u{user[r]},i{item[r]},c{category[item[r]]},{hour[r]}" for r in part]
        (options.folder / f"{name}.csv").write_text("click,user,item,category,hour\n" + "\n".join(lines) + "\n")
    held_out = order[cut:]
    planted = dict(auc=roc_auc_score(click[held_out], chance[held_out]), gauc=gauc(user[held_out], click[held_out], chance[held_out]))
    (options.folder / "planted.json").write_text(json.dumps(planted) + "\n")
    torch.manual_seed(0)
    example = (*(torch.zeros(2, dtype=torch.int64) for _ in range(3)), torch.ones(2))
    export(Clicks(), example, options.folder / "model.onnx", "torchscript", ("user", "item", "category", "hour"), ("logits",))


if __name__ == "__main__":
    main()

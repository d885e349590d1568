"""Writes tests/data/exports/: small networks exported by both of PyTorch's exporters, and what each file lacks.

Each network is exported by the default call and by the one that training needs. expected.json says what the file has lost.

python tests/scripts/export_notes.py

What is expected comes from the module, not from the file: a file is "for inference" if the name of a parameter or of a
running statistic is missing in it (except tied ones), or if a matrix has a name that the module does not know; rows of padding are those of
nn.Embedding's padding_idx; weights are untied where the module has one tensor for two places and the file two.
"""

import contextlib
import io
import json
import logging
import pathlib
import sys
import warnings

import numpy
import onnx
import torch
from torch import nn

FOLDER = pathlib.Path(__file__).parent.parent / "data" / "exports"
WAYS = ["dynamo_default", "dynamo", "torchscript_default", "torchscript"]


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width), nn.Dropout(0.1))

    def forward(self, x, mask):
        b, t, d = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, 2, d // 2).permute(2, 0, 3, 1, 4).unbind(0)
        scores = (q @ k.transpose(-1, -2)).masked_fill(mask[:t, :t] == 0, float("-inf")).softmax(-1)
        x = x + self.proj((scores @ v).transpose(1, 2).reshape(b, t, d))
        return x + self.mlp(self.norm2(x))


class Gpt(nn.Module):
    def __init__(self, tied=False):
        super().__init__()
        self.token, self.position = nn.Embedding(12, 8), nn.Embedding(6, 8)
        self.blocks = nn.ModuleList([Block(8), Block(8)])
        self.norm, self.head = nn.LayerNorm(8), nn.Linear(8, 12, bias=False)
        self.register_buffer("mask", torch.tril(torch.ones(6, 6)))
        if tied:
            self.head.weight = self.token.weight

    def forward(self, x):
        h = self.token(x) + self.position(torch.arange(x.shape[1]))
        for block in self.blocks:
            h = block(h, self.mask)
        return self.head(self.norm(h))


class Cnn(nn.Module):
    def __init__(self, norm=True):
        super().__init__()
        make = nn.BatchNorm2d if norm else lambda _: nn.Identity()
        self.features = nn.Sequential(
            nn.Conv2d(2, 4, 3, padding=1, bias=False), make(4), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 6, 3), make(6))
        self.head = nn.Linear(6, 3)

    def forward(self, x):
        return self.head(self.features(x).mean((2, 3)))


class Bag(nn.Module):
    def __init__(self, padding_idx=None, width=4):
        super().__init__()
        self.table, self.head = nn.Embedding(9, width, padding_idx=padding_idx), nn.Linear(width, 2)

    def forward(self, x):
        return self.head(self.table(x).mean(1))


class Tagger(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.table = nn.Embedding(9, 4, padding_idx=0)
        self.rnn, self.head = kind(4, 5, batch_first=True), nn.Linear(5, 2)

    def forward(self, x):
        return self.head(self.rnn(self.table(x))[0][:, -1])


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(9, 4)
        layer = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)
        self.encoder, self.head = nn.TransformerEncoder(layer, 2), nn.Linear(4, 2)  # its layers start equal

    def forward(self, x):
        return self.head(self.encoder(self.table(x)).mean(1))


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(3, 5))

    def forward(self, x):
        return torch.sigmoid(x @ self.weight.t()) @ self.weight


class Normed(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.utils.parametrizations.weight_norm(nn.Conv1d(2, 4, 3))
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        return self.head(self.conv(x).mean(-1))


class Groups(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.head = nn.Conv2d(2, 4, 3), nn.GroupNorm(2, 4), nn.Conv2d(4, 3, 1)

    def forward(self, x):
        return self.head(torch.relu(self.norm(self.conv(x)))).mean((2, 3))


class Recommender(nn.Module):
    def __init__(self):
        super().__init__()
        self.user, self.item = nn.Embedding(7, 4), nn.Embedding(8, 4, padding_idx=7)
        self.mlp = nn.Sequential(nn.Linear(8, 4), nn.ReLU(), nn.Dropout(0.2), nn.Linear(4, 1))

    def forward(self, user, item):
        return self.mlp(torch.cat([self.user(user), self.item(item)], -1))


def ids(*shape):
    return (torch.randint(1, 6, shape),)


def floats(*shape):
    return (torch.randn(shape),)


MODELS = {
    "mlp": (lambda: nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 3)), floats(2, 5)),
    "mlp_norm": (lambda: nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 3)), floats(2, 5)),
    "cnn": (lambda: Cnn(norm=False), floats(2, 2, 8, 8)),
    "cnn_norm": (Cnn, floats(2, 2, 8, 8)),
    "gpt": (Gpt, ids(2, 6)),
    "gpt_tied": (lambda: Gpt(tied=True), ids(2, 6)),
    "bag": (Bag, ids(2, 3)),
    "bag_padding": (lambda: Bag(padding_idx=0), ids(2, 3)),
    "lstm": (lambda: Tagger(nn.LSTM), ids(2, 4)),
    "gru": (lambda: Tagger(nn.GRU), ids(2, 4)),
    "encoder": (Encoder, ids(2, 4)),
    "autoencoder": (Autoencoder, floats(2, 5)),
    "weight_norm": (Normed, floats(2, 2, 8)),
    "groups": (Groups, floats(2, 2, 6, 6)),
    "recommender": (Recommender, (ids(3)[0], ids(3)[0])),
}


def export(model, args, path, way):
    options = {"opset_version": 20}
    if way == "dynamo":
        options |= {"dynamo": True, "optimize": False}
    elif way == "torchscript_default":
        options |= {"dynamo": False}
    elif way == "torchscript":
        options |= {"dynamo": False, "training": torch.onnx.TrainingMode.TRAINING, "do_constant_folding": False}
    # As they are called: for inference most users have called eval() before.
    model.train(not way.endswith("default"))
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        torch.onnx.export(model, args, path, **options)
    proto = onnx.load(path)
    for node in proto.graph.node:
        kept = [p for p in node.metadata_props if p.key in ("pkg.torch.onnx.fx_node", "pkg.torch.onnx.name_scopes")]
        del node.metadata_props[:]
        node.metadata_props.extend(kept)
    onnx.save(proto, path)
    return proto


def expected(model, proto):
    arrays = {t.name: onnx.numpy_helper.to_array(t) for t in proto.graph.initializer}
    names = {}  # the names of each tensor of the module
    for name, value in list(model.named_parameters(remove_duplicate=False)):
        names.setdefault(id(value), []).append(name)
    known = set(model.state_dict(keep_vars=True))
    lost = [group for group in names.values() if not any(name in arrays for name in group)]
    lost += [name for name in known if "running" in name and name not in arrays]
    strange = [n for n, a in arrays.items() if a.dtype == numpy.float32 and a.ndim >= 2 and a.size > 1 and n not in known]
    tables = [(n, m) for n, m in model.named_modules() if isinstance(m, nn.Embedding)]
    # Masks do not count: two values.
    strange = [n for n in strange if len(numpy.unique(arrays[n])) > 2]
    untied = False
    for group in names.values():
        if len(group) > 1:
            value = dict(model.named_parameters(remove_duplicate=False))[group[0]].detach().numpy()
            same = [n for n, a in arrays.items()
                    if a.shape == value.shape and (a == value).all() or a.shape == value.T.shape and (a == value.T).all()]
            untied = len(same) > 1
    return {
        "for_inference": bool(lost or strange),
        "padding_rows": sorted([n + ".weight", m.padding_idx] for n, m in tables if m.padding_idx is not None),
        "untied": untied,
    }


def main():
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    torch.set_num_threads(1)
    FOLDER.mkdir(exist_ok=True)
    answers = {}
    for name, (make, args) in MODELS.items():
        for way in WAYS:
            torch.manual_seed(3)
            model = make()
            path = FOLDER / f"{name}.{way}.onnx"
            answers[path.name] = expected(model, export(model, args, path, way))
    text = ",\n".join(f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in answers.items())
    (FOLDER / "expected.json").write_text("{\n" + text + "\n}\n")


if __name__ == "__main__":
    sys.exit(main())

"""DLRM (Naumov et al., 2019): a bottom MLP over numbers, 26 tables, dot products of all pairs, a top MLP; writes an ONNX file.

    python models/dlrm/make_model.py                            # model.onnx, the small one next to this script
    python models/dlrm/make_model.py --rows 40000 --dim 64 --bottom 512,256 --top 512,256 --to FILE

--rows is the number of rows of each of the 26 tables; `[parameters] shape` can change it when the model is read.
"""

import argparse
import pathlib
import sys

import torch
import torch.nn as nn

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
INPUTS, OUTPUTS = ("dense", "categories"), ("logits",)
NUMBERS, TABLES = 13, 26
SMALL = {"rows": 100, "dim": 4, "bottom": (16,), "top": (32,)}


def mlp(widths, last):
    """Linear layers with ReLU between them and, with `last`, after the last one."""
    layers = [m for a, b in zip(widths, widths[1:]) for m in (nn.Linear(a, b), nn.ReLU())]
    return nn.Sequential(*(layers if last else layers[:-1]))


class Dlrm(nn.Module):
    def __init__(self, rows, dim, bottom, top):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(rows, dim) for _ in range(TABLES))
        for table in self.tables:
            nn.init.uniform_(table.weight, -(rows**-0.5), rows**-0.5)
        self.bottom = mlp((NUMBERS, *bottom, dim), last=True)
        self.top = mlp((dim + TABLES * (TABLES + 1) // 2, *top, 1), last=False)
        lower = torch.tril_indices(TABLES + 1, TABLES + 1, offset=-1)
        self.register_buffer("pairs", lower[0] * (TABLES + 1) + lower[1], persistent=False)

    def forward(self, dense, categories):
        x = self.bottom(dense)
        rows = [table(categories[:, i]) for i, table in enumerate(self.tables)]
        features = torch.stack([x, *rows], 1)
        dots = torch.bmm(features, features.transpose(1, 2)).flatten(1)
        return self.top(torch.cat([x, torch.index_select(dots, 1, self.pairs)], 1))


def build(rows=SMALL["rows"], dim=SMALL["dim"], bottom=SMALL["bottom"], top=SMALL["top"]):
    """dense float32 [B, 13], categories int64 [B, 26] -> logits [B, 1]."""
    return Dlrm(rows, dim, bottom, top)


def example(batch=2, rows=8):
    return (torch.rand(batch, NUMBERS), torch.randint(0, rows, (batch, TABLES)))


def write(path, exporter="torchscript", **size):
    """One file; dynamo's above 1 MiB has its tensors in `path`.data."""
    from export import export

    torch.manual_seed(1)
    model = build(**size)
    parameters = sum(p.numel() for p in model.parameters())
    export(
        model,
        example(),
        path,
        exporter,
        input_names=INPUTS,
        output_names=OUTPUTS,
        inline=parameters < 1 << 18,
    )
    return parameters


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    widths = lambda text: tuple(int(n) for n in text.split(","))
    parser.add_argument("--rows", type=int, default=SMALL["rows"])
    parser.add_argument("--dim", type=int, default=SMALL["dim"])
    parser.add_argument("--bottom", type=widths, default=SMALL["bottom"])
    parser.add_argument("--top", type=widths, default=SMALL["top"])
    parser.add_argument("--exporter", choices=("torchscript", "dynamo"), default="torchscript")
    parser.add_argument("--to", type=pathlib.Path, default=HERE / "model.onnx")
    options = parser.parse_args()
    size = {name: getattr(options, name) for name in SMALL}
    print(f"{options.to}: {write(options.to, options.exporter, **size)} parameters")


if __name__ == "__main__":
    main()

"""Wide & Deep (Cheng et al., 2016): a linear model and an MLP over the same ids; writes an ONNX file of any size.

    python models/wide_deep/make_model.py                              # model.onnx, the small one next to this script
    python models/wide_deep/make_model.py --full [--to FILE]           # 184,968 rows, width 80, MLP 3120-1024-512-256-128-1
    python models/wide_deep/make_model.py --rows 1000 --dim 16 --hidden 64,16 --exporter dynamo --to FILE

--rows is the number of rows in the file; `[parameters] shape` can change it when the model is read.
"""

import argparse
import os
import pathlib
import sys

import torch
import torch.nn as nn

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
INPUTS, OUTPUTS = ("ids",), ("logits", "deep_rows")
FIELDS = 39
FULL = {"rows": 184968, "dim": 80, "hidden": (1024, 512, 256, 128)}
SMALL = {"rows": 5000, "dim": 4, "hidden": (64, 16)}
MODELS = pathlib.Path(os.environ.get("TANDEM_MODELS", HERE.parents[1] / "build" / "models"))


class WideDeep(nn.Module):
    """logits = sum of the wide rows + bias + MLP(the deep rows of all fields, side by side)."""

    def __init__(self, rows, dim, hidden, fields=FIELDS):
        super().__init__()
        self.wide, self.deep = nn.Embedding(rows, 1), nn.Embedding(rows, dim)
        for table in (self.wide, self.deep):
            nn.init.normal_(table.weight, std=0.01)
        self.bias = nn.Parameter(torch.zeros(1))
        widths = (fields * dim, *hidden)
        layers = [m for a, b in zip(widths, hidden) for m in (nn.Linear(a, b), nn.ReLU())]
        self.mlp = nn.Sequential(*layers, nn.Linear(widths[-1], 1))

    def forward(self, ids):
        deep_rows = self.deep(ids)
        return self.wide(ids).sum(1) + self.bias + self.mlp(deep_rows.flatten(1)), deep_rows


def build(rows=FULL["rows"], dim=FULL["dim"], hidden=FULL["hidden"]):
    """ids int64 [B, 39] -> logits [B, 1], deep_rows [B, 39, dim]."""
    return WideDeep(rows, dim, hidden)


def example(batch=2, rows=8):
    return (torch.randint(0, rows, (batch, FIELDS)),)


def hide_output(path, name):
    """Takes a value out of the graph's outputs; it keeps its name, so that a loss term can use it."""
    import onnx

    proto = onnx.load(str(path), load_external_data=False)
    value = next(o for o in proto.graph.output if o.name == name)
    proto.graph.value_info.append(value)
    proto.graph.output.remove(value)
    pathlib.Path(path).write_bytes(proto.SerializeToString())
    onnx.checker.check_model(str(path), full_check=True)


def write(path, exporter="torchscript", rows=SMALL["rows"], dim=SMALL["dim"], hidden=SMALL["hidden"]):
    """One file; dynamo's above 1 MiB has its tensors in `path`.data."""
    from export import export

    torch.manual_seed(1)
    model = build(rows, dim, hidden)
    parameters = sum(p.numel() for p in model.parameters())
    export(
        model,
        example(rows=rows),
        path,
        exporter,
        input_names=INPUTS,
        output_names=OUTPUTS,
        inline=parameters < 1 << 18,
    )
    hide_output(path, "deep_rows")
    return parameters


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--full", action="store_true", help="the published size, unless given otherwise")
    parser.add_argument("--rows", type=int)
    parser.add_argument("--dim", type=int)
    parser.add_argument("--hidden", type=lambda text: tuple(int(n) for n in text.split(",")))
    parser.add_argument("--exporter", choices=("torchscript", "dynamo"), default="torchscript")
    parser.add_argument(
        "--to", type=pathlib.Path, help="default: model.onnx; with --full in the folder of built models"
    )
    options = parser.parse_args()
    size = dict(FULL if options.full else SMALL)
    size.update({k: v for k in size if (v := getattr(options, k)) is not None})
    full = MODELS / "wide_deep" / f"{options.exporter}.onnx"
    path = options.to or (full if options.full else HERE / "model.onnx")
    print(f"{path}: {write(path, options.exporter, **size)} parameters")


if __name__ == "__main__":
    main()

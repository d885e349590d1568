"""Writes tests/data/notices/traced/: files of torch.onnx.export(dynamo=True), which never sets training_mode, and expected.json.

python tests/scripts/traced_batch_norm.py

mixed.onnx: a backbone in inference and a neck in training, with PyTorch's losses in float64 for that, for both in
training and for both in inference. names.onnx: the same without metadata, as version converters leave it. stripped.onnx:
without names, too. eval.onnx: the network in evaluation. computed.onnx: without running statistics in the backbone.
kinds.onnx: other modules that differ in training, with the attribute training of each.
"""

import contextlib
import io
import json
import logging
import pathlib
import warnings

import onnx
import torch
import torch.nn.functional as F
from torch import nn

FOLDER = pathlib.Path(__file__).parent.parent / "data" / "notices" / "traced"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        block = lambda a, b: nn.Sequential(nn.Conv2d(a, b, 1), nn.BatchNorm2d(b), nn.ReLU())
        self.backbone, self.neck, self.fc = block(2, 4), block(4, 4), nn.Linear(4, 3)

    def forward(self, x):
        return self.fc(self.neck(self.backbone(x)).mean((2, 3)))


class Kinds(nn.Module):
    """Each module once in training and once in evaluation; their names say which."""

    def __init__(self):
        super().__init__()
        for mode in ["train", "eval"]:
            self.add_module(f"bn_{mode}", nn.BatchNorm2d(2, momentum=0.3).train(mode == "train"))
            self.add_module(f"plain_{mode}", nn.BatchNorm2d(2, affine=False).train(mode == "train"))
            self.add_module(f"batch_{mode}", nn.BatchNorm2d(2, track_running_stats=False).train(mode == "train"))
            self.add_module(f"rows_{mode}", nn.BatchNorm1d(2).train(mode == "train"))
            self.add_module(f"dropout_{mode}", nn.Dropout(0.3).train(mode == "train"))
        self.instance_eval = nn.InstanceNorm2d(2, affine=True, track_running_stats=True).eval()
        for module in self.modules():
            if getattr(module, "running_mean", None) is not None:
                module.running_mean.uniform_(-0.5, 0.5)
                module.running_var.uniform_(0.5, 1.5)

    def forward(self, x):
        for name, module in self.named_children():
            x = module(x.flatten(2)).view_as(x) if name.startswith("rows") else torch.tanh(module(x))
        return x


def export(model, x, path):
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        torch.onnx.export(model, (x,), path, dynamo=True, optimize=False, external_data=False, input_names=["x"],
                          output_names=["y"], dynamic_shapes=({0: torch.export.Dim("batch")},))
    proto = onnx.load(path)
    for node in proto.graph.node:  # sources, with the paths of this machine
        kept = [p for p in node.metadata_props if p.key != "pkg.torch.onnx.stack_trace"]
        del node.metadata_props[:]
        node.metadata_props.extend(kept)
    assert not any(a.name == "training_mode" for n in proto.graph.node for a in n.attribute)
    onnx.save(proto, path)
    return proto


def losses_of(model, x, labels, frozen, rate=0.1):
    start = {k: v.clone() for k, v in model.state_dict().items()}
    losses = {}
    for mode in ["file", "train", "inference"]:
        model.load_state_dict(start)
        model.double().train(mode != "inference")
        if mode == "file":
            model.backbone.eval()
        frozen.requires_grad_(False)
        optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=rate)
        losses[mode] = []
        for part in [slice(0, 8), slice(8, 16)]:
            loss = F.cross_entropy(model(x[part].double()), labels[part])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses[mode].append(loss.item())
        model.float()
    return losses


def main():
    warnings.filterwarnings("ignore")
    logging.disable(logging.CRITICAL)
    FOLDER.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(5)
    model, x, labels = Net(), torch.randn(16, 2, 3, 3), torch.randint(0, 3, (16,))
    with torch.no_grad():
        for block in [model.backbone, model.neck]:
            block[1].running_mean.uniform_(-0.5, 0.5)
            block[1].running_var.uniform_(0.5, 1.5)
    export(model.eval(), x[:8], FOLDER / "eval.onnx")
    model.train().backbone.eval()
    proto = export(model, x[:8], FOLDER / "mixed.onnx")
    for node in proto.graph.node:
        del node.metadata_props[:]
    onnx.save(proto, FOLDER / "names.onnx")
    for node in proto.graph.node:
        node.name = ""
    onnx.save(proto, FOLDER / "stripped.onnx")
    computed = Net()
    computed.backbone[1] = nn.BatchNorm2d(4, track_running_stats=False)
    computed.train().backbone.eval()
    export(computed, x[:8], FOLDER / "computed.onnx")
    kinds = Kinds()
    export(kinds, x[:8], FOLDER / "kinds.onnx")
    answers = {
        "x": x.double().flatten().tolist(), "labels": labels.tolist(), "losses": losses_of(model, x, labels, model.backbone),
        "computed_losses": losses_of(computed, x, labels, computed.fc, rate=2),
        "training": {n: m.training for n, m in kinds.named_children()}}
    (FOLDER / "expected.json").write_text(json.dumps(answers) + "\n")


if __name__ == "__main__":
    main()

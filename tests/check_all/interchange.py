"""Checks that PyTorch and ONNX read weights that build/tandem has trained. interchange.sh calls it with the peer's Python.

For each network: model.safetensors loads with load_state_dict(strict=True); the exported file passes ONNX's checker, keeps names and
opset of the user's file, has a free batch dimension, and computes what PyTorch computes with the loaded weights (eval mode).
"""

import pathlib
import sys
import tempfile

import numpy as np
import onnx
import torch
from onnx.reference import ReferenceEvaluator
from safetensors.torch import load_file

from common import ROOT, models, shared_data, tandem, verdict

sys.path.insert(0, str(ROOT / "models"))
from export import load  # noqa: E402


def check(name, *overrides):
    module = load(name)
    with tempfile.TemporaryDirectory() as folder:
        run, exported = pathlib.Path(folder) / "run", pathlib.Path(folder) / "trained.onnx"
        tandem("train", ROOT / "models" / name / "train.toml", "--run-dir", run, *overrides)
        tandem("export", run, "--to", exported)
        weights = load_file(sorted((run / "checkpoints").glob("step-*"))[-1] / "model.safetensors")
        onnx.checker.check_model(str(exported), full_check=True)
        proto = onnx.load(str(exported))
        model = module.build()
        model.load_state_dict(weights, strict=True)
        model.eval()
        torch.manual_seed(1)
        (x,) = module.example(3)
        with torch.no_grad():
            wanted = model(x).numpy()
        got = ReferenceEvaluator(proto).run(None, {module.INPUTS[0]: x.numpy()})[0]
    batch = proto.graph.input[0].type.tensor_type.shape.dim[0]
    opset = next(o.version for o in proto.opset_import if not o.domain)
    named = {i.name for i in proto.graph.initializer} >= {n for n, _ in model.named_parameters()}
    difference = float(np.abs(got - wanted).max() / np.abs(wanted).max())
    training = [
        n.name for n in proto.graph.node for a in n.attribute if a.name == "training_mode" and a.i
    ]
    return verdict(
        difference < 1e-4
        and not batch.HasField("dim_value")
        and opset == 20
        and named
        and not training,
        f"{name}: strict load, checker clean, outputs differ by {difference:.1e}, opset {opset}, names kept: {named}",
    )


models("resnet18")
ok = check("digits", "epochs=2")
shared_data("data/cifar10")
ok &= check("resnet18", "epochs=1")
sys.exit(0 if ok else 1)

"""Compares ResNet-50 on CIFAR-10 on 8 ranks x 32 samples, with synchronised BatchNormalization, with one process x 256.

It compares the first loss, the states after the first step of plain SGD, every parameter's gradient in the second step, and the losses of
five steps.

    python3 tests/check_all/resnet50_ranks.py [--model resnet50] [--ranks 8] [--samples 32] [--steps 5] [--float64]

In float32, losses differ by more than rounding after some steps: a Relu whose input is near zero may pass it in one run and not in the other,
and everything after it differs. The first loss is not affected. --float64 trains a copy of the model in float64, where the same five steps
must agree to 1e-4. It runs on the reference kernels, which are slow: use fewer --samples."""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import numpy

from common import BINARY, ROOT, models, peer_python, shared_data, verdict

RATE = 0.02
TO_DOUBLE = """
import sys
import numpy, onnx
from onnx import TensorProto, helper, numpy_helper
model = onnx.load(sys.argv[1])
graph = model.graph
def double(tensor):
    if tensor.data_type == TensorProto.FLOAT:
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(numpy.float64), tensor.name))
for tensor in graph.initializer:
    double(tensor)
for node in graph.node:
    for attribute in node.attribute:
        if attribute.HasField("t"):
            double(attribute.t)
        if node.op_type == "Cast" and attribute.name == "to" and attribute.i == TensorProto.FLOAT:
            attribute.i = TensorProto.DOUBLE
named = {tensor.name for tensor in graph.initializer}
del graph.value_info[:]
for value in graph.output:
    if value.type.tensor_type.elem_type == TensorProto.FLOAT:
        value.type.tensor_type.elem_type = TensorProto.DOUBLE
casts = []
for value in graph.input:
    if value.name in named or value.type.tensor_type.elem_type != TensorProto.FLOAT:
        continue
    wide = value.name + "_double"
    for node in graph.node:
        for i, name in enumerate(node.input):
            if name == value.name:
                node.input[i] = wide
    casts.append(helper.make_node("Cast", [value.name], [wide], name=wide, to=TensorProto.DOUBLE))
for cast in reversed(casts):
    graph.node.insert(0, cast)
onnx.save(model, sys.argv[2])
"""


def tensors_of(checkpoint):
    """Arrays of the safetensors files of a checkpoint's model, by name."""
    found = {}
    for path in sorted(checkpoint.glob("model*.safetensors")):
        content = path.read_bytes()
        size = int.from_bytes(content[:8], "little")
        header = json.loads(content[8 : 8 + size])
        for name, entry in header.items():
            if name == "__metadata__" or entry["dtype"] not in ("F32", "F64"):
                continue
            begin, end = entry["data_offsets"]
            dtype = "<f4" if entry["dtype"] == "F32" else "<f8"
            found[name] = numpy.frombuffer(content[8 + size + begin : 8 + size + end], dtype).astype(numpy.float64)
    return found


def train(options, ranks, run_dir, steps, model):
    launch = ["launch", "-n", str(ranks), "--"] if ranks > 1 else []
    keys = [f"batch_size={options.ranks * options.samples}", f"steps={steps}", "log.every=1 steps", "checkpoint.every=1 steps",
            "checkpoint.keep=0", "model.sync_batch_norm=true", "data.drop_last=true", "threads=1",
            "optimizer.kind=sgd", f"optimizer.lr={RATE}", "optimizer.momentum=0", "optimizer.weight_decay=0",
            'optimizer.schedule={ kind = "constant" }']  # fmt: skip
    if model:
        keys.append(f"model.file={model}")
    config = ROOT / "models" / options.model / "train.toml"
    command = [str(BINARY), *launch, "train", str(config), "--run-dir", str(run_dir), *keys]
    result = subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL)
    if result.returncode:
        print(f"exit code {result.returncode}: {' '.join(command)}")
        sys.exit(1)
    lines = [json.loads(line) for line in (run_dir / "metrics.jsonl").read_text().splitlines()]
    losses = [line["loss"] for line in lines if line.get("phase") != "eval"]
    first, second = (tensors_of(run_dir / "checkpoints" / f"step-{step:08d}") for step in (1, 2))
    # The step between the first two checkpoints: both sides begin it with nearly the same weights.
    return losses, {name: (first[name] - second[name]) / RATE for name in first}, first


def compare(options, folder, model, most):
    alone, alone_step, alone_first = train(options, 1, folder / "alone", options.steps, model)
    together, step, first = train(options, options.ranks, folder / "together", options.steps, model)

    def apart(a, b):
        return float(numpy.linalg.norm(a - b) / max(numpy.linalg.norm(b), 1e-30))

    print(f"first loss: {together[0]:.9f} and {alone[0]:.9f}, apart by {abs(together[0] - alone[0]) / abs(alone[0]):.1e}")
    weights = sorted(((apart(first[name], alone_first[name]), name) for name in first), reverse=True)
    gradients = sorted(((apart(step[name], alone_step[name]), name) for name in step), reverse=True)
    for title, list_of in (("states after the first step", weights), ("gradients of the second step", gradients)):
        median = statistics.median(number for number, _ in list_of)
        print(f"{title}: median {median:.1e}, most {list_of[0][0]:.1e} ({list_of[0][1]}), then "
              + ", ".join(f"{number:.1e} ({name})" for number, name in list_of[1:4]))  # fmt: skip
    differences = [abs(a - b) / abs(b) for a, b in zip(together, alone)]
    print("losses apart, step by step: " + " ".join(f"{number:.1e}" for number in differences))
    ok = verdict(len(together) == len(alone) == options.steps, f"{len(together)} steps on both sides")
    ok &= verdict(differences[0] <= 2e-6, f"the first loss differs by {differences[0]:.1e}, at most 2e-6")
    if most is not None:
        ok &= verdict(max(differences) <= most, f"losses of {options.steps} steps differ by {max(differences):.1e}, at most {most:.0e}")
    return ok


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="resnet50", choices=("resnet50", "resnet18"))
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--samples", type=int, default=32, help="samples of a rank")
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--float64", action="store_true")
    options = parser.parse_args()
    shared_data("data/cifar10")
    models(options.model)
    with tempfile.TemporaryDirectory(dir=os.environ.get("TANDEM_SCRATCH")) as folder:
        folder = pathlib.Path(folder)
        model = ""
        if options.float64:
            model = folder / "double.onnx"
            single = pathlib.Path(os.environ["TANDEM_MODELS"]) / options.model / "torchscript.onnx"
            python = peer_python(os.environ.get("TANDEM_PEER_PYTHON"))
            subprocess.run([python, "-c", TO_DOUBLE, single, model], check=True)
        # In float32 only the first loss is bounded; the rest is printed.
        return compare(options, folder, model, 1e-4 if options.float64 else None)


sys.exit(0 if main() else 1)

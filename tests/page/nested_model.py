"""Writes a small network of nested modules with what a training needs: model.onnx, data.npz, train.toml."""

import pathlib
import sys

import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
from small_model import _bytes, _node, _number, _port, _tensor, _text  # noqa: E402

TRAIN = """model      = "model.onnx"
batch_size = 32
epochs     = 1
seed       = 1
policy     = "policy.toml"

[loss]
terms = [ { name = "loss", kind = "softmax_cross_entropy", logits = "y", labels = "labels" } ]

[optimizer]
kind = "adam"
lr   = 1e-3

[data]
kind = "npz"
[data.train]
files = [ "data.npz" ]
[data.fields]
x      = "x"
labels = "labels"

[log]
every = "1 step"
"""

POLICY = """# Places the small network.
policy  = 1
devices = { gpu = { use = "emulated:0", memory = "2MiB" } }
rules   = [
  { at = "**", on = "gpu" },  # all of it
]
"""


def _named(node, name):
    """The node with another name; `_node` names it after its output."""
    return node + _text(3, name)  # the last value of a field counts


def nested_network(folder, blocks=4, width=64, classes=10, module="blocks"):
    """x [batch, width] -> blocks of x + fc2(relu(fc1(x))) -> head -> y [batch, classes]."""
    draw = numpy.random.default_rng(1)
    nodes, weights, value = [], {}, "x"
    for block in range(blocks):
        here, name = f"/{module}/{module}.{block}", f"{module}.{block}"
        for layer, source, result in (("fc1", value, f"h{block}"), ("fc2", f"r{block}", f"f{block}")):
            weights[f"{name}.{layer}.weight"] = 0.1 * draw.standard_normal((width, width))
            weights[f"{name}.{layer}.bias"] = numpy.zeros(width)
            gemm = _node("Gemm", [source, f"{name}.{layer}.weight", f"{name}.{layer}.bias"], result, transB=1)
            nodes.append(_named(gemm, f"{here}/{layer}/Gemm"))
            if layer == "fc1":
                nodes.append(_named(_node("Relu", [result], f"r{block}"), f"{here}/act/Relu"))
        nodes.append(_named(_node("Add", [value, f"f{block}"], f"x{block}"), f"{here}/Add"))
        value = f"x{block}"
    weights["head.weight"], weights["head.bias"] = 0.1 * draw.standard_normal((classes, width)), numpy.zeros(classes)
    nodes.append(_named(_node("Gemm", [value, "head.weight", "head.bias"], "y", transB=1), "/head/Gemm"))
    graph = b"".join(_bytes(1, node) for node in nodes) + _text(2, "nested")
    graph += b"".join(_bytes(5, _tensor(name, weight)) for name, weight in weights.items())
    graph += _bytes(11, _port("x", width)) + _bytes(12, _port("y", classes))
    (folder / "model.onnx").write_bytes(_number(1, 8) + _bytes(7, graph) + _bytes(8, _number(2, 17)))
    x = draw.standard_normal((320, width)).astype(numpy.float32)
    numpy.savez(folder / "data.npz", x=x, labels=draw.integers(0, classes, 320))
    (folder / "train.toml").write_text(TRAIN)
    (folder / "policy.toml").write_text(POLICY)

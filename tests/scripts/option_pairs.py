"""Writes tests/data/option_pairs/model.onnx, the network of tests/check_all/option_pairs.py: a table of ids next to four numbers, two layers with a
batch normalisation between them, and three logits. Its parameters have the names that PyTorch gives.

python tests/scripts/option_pairs.py
"""

import pathlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ROWS, WIDTH, NUMBERS, HIDDEN, CLASSES = 32, 8, 4, 16, 3


def main():
    random = np.random.default_rng(7)

    def tensor(name, *shape, around=0.0, spread=0.4):
        return numpy_helper.from_array((around + spread * random.standard_normal(shape)).astype(np.float32), name)

    weights = [
        tensor("table.weight", ROWS, WIDTH),
        tensor("layers.0.weight", HIDDEN, WIDTH + NUMBERS),
        tensor("layers.0.bias", HIDDEN),
        tensor("norm.weight", HIDDEN, around=1.0, spread=0.1),
        tensor("norm.bias", HIDDEN, spread=0.1),
        tensor("norm.running_mean", HIDDEN, spread=0.1),
        numpy_helper.from_array(random.uniform(0.5, 1.5, HIDDEN).astype(np.float32), "norm.running_var"),
        tensor("layers.1.weight", HIDDEN, HIDDEN),
        tensor("layers.1.bias", HIDDEN),
        tensor("head.weight", CLASSES, HIDDEN),
        tensor("head.bias", CLASSES),
    ]

    def linear(name, x):
        return helper.make_node("Gemm", [x, f"{name}.weight", f"{name}.bias"], [f"/{name}/out"], f"/{name}/Gemm", transB=1)

    nodes = [
        helper.make_node("Gather", ["table.weight", "id"], ["/table/out"], "/table/Gather"),
        helper.make_node("Concat", ["/table/out", "x"], ["/Concat_out"], "/Concat", axis=1),
        linear("layers.0", "/Concat_out"),
        helper.make_node("BatchNormalization", ["/layers.0/out", "norm.weight", "norm.bias", "norm.running_mean", "norm.running_var"], ["/norm/out"],
                         "/norm/BatchNormalization"),
        helper.make_node("Relu", ["/norm/out"], ["/Relu_out"], "/Relu"),
        linear("layers.1", "/Relu_out"),
        helper.make_node("Relu", ["/layers.1/out"], ["/Relu_1_out"], "/Relu_1"),
        helper.make_node("Gemm", ["/Relu_1_out", "head.weight", "head.bias"], ["logits"], "/head/Gemm", transB=1),
    ]
    graph = helper.make_graph(
        nodes, "pairs",
        [helper.make_tensor_value_info("id", TensorProto.INT64, ["batch"]), helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", NUMBERS])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", CLASSES])], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    onnx.checker.check_model(model, full_check=True)
    path = pathlib.Path(__file__).parent.parent / "data" / "option_pairs" / "model.onnx"
    path.parent.mkdir(exist_ok=True)
    onnx.save(model, path)


if __name__ == "__main__":
    main()

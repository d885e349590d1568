#!/usr/bin/env python3
"""Adds models with an embedding table to tests/data/training_info: table_NAME.onnx, and tables.npz with the results of training.

    python3 tests/scripts/training_info_tables.py     (onnx, numpy, torch)

Each sample looks up two of 200 rows, one of them often. Their sum goes through a product to the loss. Gradients are PyTorch's
in float64 and dense, as ONNX means them; updates are the formulas of ai.onnx.preview.training.
"""

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper
from training_info import FOLDER, OPSETS, info_of, tensor

STEPS, BATCH, ROWS = 5, 6, 200
random = np.random.default_rng(3)
START = {
    "table.weight": random.normal(0, 0.5, (ROWS, 4)).astype(np.float32),
    "fc.weight": random.normal(0, 0.5, (4, 3)).astype(np.float32),
}
IDS = random.integers(0, ROWS, (STEPS, BATCH, 2))
IDS[:, :3, 0] = 7
LABELS = random.integers(0, 3, (STEPS, BATCH))
RATE, EPSILON, DECAY, ALPHA, BETA = 0.25, 1e-4, 0.1, 0.5, 0.75


def main_graph():
    nodes = [
        helper.make_node("Gather", ["table.weight", "ids"], ["rows"], name="table.look", axis=0),
        helper.make_node("ReduceSum", ["rows", "axis"], ["sum"], name="sum", keepdims=0),
        helper.make_node("MatMul", ["sum", "fc.weight"], ["logits"], name="fc.product"),
    ]
    ids = info_of("ids", ["batch", 2], TensorProto.INT64)
    tensors = [tensor(n, v) for n, v in START.items()] + [tensor("axis", np.array([1]))]
    return helper.make_graph(nodes, "network", [ids], [info_of("logits", ["batch", 3])], tensors)


def sgd(name, gradient):
    return [
        helper.make_node("Mul", ["R", gradient], [f"{name}.step"], name=f"{name}.scaled"),
        helper.make_node("Sub", [name, f"{name}.step"], [f"{name}.next"], name=f"{name}.moved"),
    ]


def by_operator(op, **attributes):
    def update(name, gradient):
        inputs, outputs = ["R", "T", name, gradient, f"{name}.S"], [f"{name}.next", f"{name}.S.next"]
        return [helper.make_node(op, inputs, outputs, name=f"{name}.update", domain="ai.onnx.preview.training", **attributes)]

    return update


def adagrad_step(x, g, s, count):
    s = s + g * g
    return x - RATE / (1 + count * DECAY) * g / (np.sqrt(s) + EPSILON), s


def momentum_step(x, g, s, count):
    s = ALPHA * s + (1 if count == 0 else BETA) * g
    return x - RATE * s, s


CASES = {
    # name: (the nodes of one parameter's update, whether it has a state, the same as arithmetic)
    "sgd": (sgd, False, lambda x, g, s, count: (x - RATE * g, s)),
    "adagrad": (by_operator("Adagrad", decay_factor=DECAY, epsilon=EPSILON), True, adagrad_step),
    "momentum": (by_operator("Momentum", alpha=ALPHA, beta=BETA, norm_coefficient=0.0, mode="standard"), True, momentum_step),
}


def model_of(update, has_state):
    names = list(START)
    gradients = [f"gradient.{n}" for n in names]
    nodes = [
        helper.make_node("SoftmaxCrossEntropyLoss", ["logits", "labels"], ["loss"], name="criterion"),
        helper.make_node("Gradient", [*names, "ids", "labels"], gradients, name="gradient", xs=names, zs=["ids", "labels"],
                         y="loss", domain="ai.onnx.preview.training"),
        *(node for n, g in zip(names, gradients) for node in update(n, g)),
        helper.make_node("Add", ["T", "one"], ["T.next"], name="count"),
    ]
    initializers = [tensor("R", np.float32(RATE)), tensor("T", np.int64(0)), tensor("one", np.int64(1))]
    bindings = {n: f"{n}.next" for n in names} | {"T": "T.next"}
    outputs = [info_of("loss", []), info_of("T.next", [], TensorProto.INT64)]
    outputs += [info_of(f"{n}.next", START[n].shape) for n in names]
    for n in names if has_state else []:
        initializers.append(tensor(f"{n}.S", np.zeros_like(START[n])))
        bindings[f"{n}.S"] = f"{n}.S.next"
        outputs.append(info_of(f"{n}.S.next", START[n].shape))
    labels = info_of("labels", ["batch"], TensorProto.INT64)
    model = helper.make_model(main_graph(), opset_imports=OPSETS, ir_version=10, producer_name="tests")
    info = model.training_info.add()
    info.algorithm.CopyFrom(helper.make_graph(nodes, "step", [labels], outputs, initializers))
    for key, value in bindings.items():
        info.update_binding.add(key=key, value=value)
    return model


def trained(step):
    values = {n: v.astype(np.float64) for n, v in START.items()}
    states = {n: np.zeros(v.shape) for n, v in START.items()}
    losses = []
    for k in range(STEPS):
        p = {n: torch.tensor(v, requires_grad=True) for n, v in values.items()}
        logits = p["table.weight"][torch.tensor(IDS[k])].sum(1) @ p["fc.weight"]
        loss = torch.nn.functional.cross_entropy(logits, torch.tensor(LABELS[k]))
        loss.backward()
        losses.append(loss.item())
        for n in values:
            values[n], states[n] = step(values[n], p[n].grad.numpy(), states[n], k)
    return losses, values


def main():
    expected = {"ids": IDS, "labels": LABELS}
    for name, (update, has_state, step) in CASES.items():
        onnx.save(model_of(update, has_state), FOLDER / f"table_{name}.onnx")
        losses, values = trained(step)
        expected[f"{name}/losses"] = np.array(losses)
        expected |= {f"{name}/{n}": v for n, v in values.items()}
    np.savez(FOLDER / "tables.npz", **expected)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Writes tests/data/training_info: small models with ONNX's training_info, and the results of their training.

    python3 tests/scripts/training_info.py     (onnx, numpy, torch)

The gradients of the expected values are PyTorch's in float64, the updates those of ONNX's reference evaluator, or plain
arithmetic for SGD. own_loss.onnx is the same network without training_info, which ends in its loss.
"""
import pathlib

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "data" / "training_info"
OPSETS = [helper.make_opsetid("", 20), helper.make_opsetid("ai.onnx.preview.training", 1)]
PARAMETERS = ["fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"]
STEPS, BATCH = 6, 8

random = np.random.default_rng(7)
START = {
    "fc1.weight": random.normal(0, 0.5, (4, 6)),
    "fc1.bias": random.normal(0, 0.1, 6),
    "fc2.weight": random.normal(0, 0.5, (6, 3)),
    "fc2.bias": random.normal(0, 0.1, 3),
}
START = {name: value.astype(np.float32) for name, value in START.items()}
X = random.normal(0, 1, (STEPS, BATCH, 4)).astype(np.float32)
LABELS = random.integers(0, 3, (STEPS, BATCH))


def tensor(name, value):
    return numpy_helper.from_array(np.asarray(value), name)


def main_graph():
    nodes = [
        helper.make_node("MatMul", ["x", "fc1.weight"], ["product1"], name="fc1.product"),
        helper.make_node("Add", ["product1", "fc1.bias"], ["sum1"], name="fc1.sum"),
        helper.make_node("Relu", ["sum1"], ["hidden"], name="relu"),
        helper.make_node("MatMul", ["hidden", "fc2.weight"], ["product2"], name="fc2.product"),
        helper.make_node("Add", ["product2", "fc2.bias"], ["logits"], name="fc2.sum"),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 4])
    logits = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", 3])
    return helper.make_graph(nodes, "network", [x], [logits], [tensor(n, v) for n, v in START.items()])


def graph_of_loss():
    return helper.make_node("SoftmaxCrossEntropyLoss", ["logits", "labels"], ["loss"], name="criterion")


def info_of(name, shape, dtype=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, dtype, shape)


def algorithm(update, states, rate=0.1, count=0):
    """`update` makes nodes from names of gradients; `states` are names of arrays for each parameter."""
    gradients = [f"gradient.{name}" for name in PARAMETERS]
    nodes = [
        graph_of_loss(),
        helper.make_node("Gradient", [*PARAMETERS, "x", "labels"], gradients, name="gradient", xs=PARAMETERS,
                         zs=["x", "labels"], y="loss", domain="ai.onnx.preview.training"),
        *update(gradients),
        helper.make_node("Add", ["T", "one"], ["T.next"], name="count"),
    ]
    initializers = [tensor("R", np.float32(rate)), tensor("T", np.int64(count)), tensor("one", np.int64(1))]
    bindings = {name: f"{name}.next" for name in PARAMETERS} | {"T": "T.next"}
    outputs = [info_of("loss", []), info_of("T.next", [], TensorProto.INT64)]
    outputs += [info_of(f"{name}.next", START[name].shape) for name in PARAMETERS]
    for state in states:
        for name in PARAMETERS:
            initializers.append(tensor(f"{name}.{state}", np.zeros_like(START[name])))
            bindings[f"{name}.{state}"] = f"{name}.{state}.next"
            outputs.append(info_of(f"{name}.{state}.next", START[name].shape))
    labels = info_of("labels", ["batch"], TensorProto.INT64)
    return helper.make_graph(nodes, "step", [labels], outputs, initializers), bindings


def with_training(graph, bindings, initialization=None, initial_bindings=None):
    model = helper.make_model(main_graph(), opset_imports=OPSETS, ir_version=10, producer_name="tests")
    info = model.training_info.add()
    info.algorithm.CopyFrom(graph)
    if initialization is not None:
        info.initialization.CopyFrom(initialization)
    for key, value in bindings.items():
        info.update_binding.add(key=key, value=value)
    for key, value in (initial_bindings or {}).items():
        info.initialization_binding.add(key=key, value=value)
    return model


def sgd(gradients):
    nodes = []
    for name, gradient in zip(PARAMETERS, gradients):
        nodes.append(helper.make_node("Mul", ["R", gradient], [f"{name}.step"], name=f"{name}.scaled"))
        nodes.append(helper.make_node("Sub", [name, f"{name}.step"], [f"{name}.next"], name=f"{name}.moved"))
    return nodes


def by_operator(op, states, **attributes):
    def update(gradients):
        inputs = ["R", "T", *PARAMETERS, *gradients]
        outputs = [f"{name}.next" for name in PARAMETERS]
        for state in states:
            inputs += [f"{name}.{state}" for name in PARAMETERS]
            outputs += [f"{name}.{state}.next" for name in PARAMETERS]
        return [helper.make_node(op, inputs, outputs, name="update", domain="ai.onnx.preview.training", **attributes)]

    return update


ADAM = dict(alpha=0.9, beta=0.99, epsilon=1e-5, norm_coefficient=0.01)
CASES = {
    # name: (update of the algorithm, states, learning rate, T of the first step)
    "sgd": (sgd, [], 0.5, 0),
    "adam": (by_operator("Adam", ["V", "H"], **ADAM), ["V", "H"], 0.1, 1),
    "adam_from_zero": (by_operator("Adam", ["V", "H"], **ADAM), ["V", "H"], 0.1, 0),
    "adam_with_decay": (by_operator("Adam", ["V", "H"], norm_coefficient_post=0.1, **ADAM), ["V", "H"], 0.1, 0),
    "adagrad": (by_operator("Adagrad", ["H"], decay_factor=0.1, epsilon=1e-4), ["H"], 0.1, 0),
    "momentum": (by_operator("Momentum", ["V"], alpha=0.9, beta=0.5, norm_coefficient=0.01, mode="standard"), ["V"],
                 0.1, 0),
    "nesterov": (by_operator("Momentum", ["V"], alpha=0.9, beta=1.0, norm_coefficient=0.0, mode="nesterov"), ["V"],
                 0.1, 0),
}


def gradients_of(values, step):
    parameters = {n: torch.tensor(v, dtype=torch.float64, requires_grad=True) for n, v in values.items()}
    x = torch.tensor(X[step], dtype=torch.float64)
    hidden = torch.relu(x @ parameters["fc1.weight"] + parameters["fc1.bias"])
    logits = hidden @ parameters["fc2.weight"] + parameters["fc2.bias"]
    loss = torch.nn.functional.cross_entropy(logits, torch.tensor(LABELS[step]))
    loss.backward()
    return loss.item(), {n: p.grad.numpy() for n, p in parameters.items()}


def stepped(name, update, states, rate, count):
    """Only the nodes of the update, in float64 if they take it."""
    nodes = update([f"gradient.{p}" for p in PARAMETERS])
    types = [("R", TensorProto.DOUBLE, []), ("T", TensorProto.INT64, [])]
    for p in PARAMETERS:
        types += [(p, TensorProto.DOUBLE, START[p].shape), (f"gradient.{p}", TensorProto.DOUBLE, START[p].shape)]
        types += [(f"{p}.{s}", TensorProto.DOUBLE, START[p].shape) for s in states]
    inputs = [info_of(n, shape, dtype) for n, dtype, shape in types]
    names = [f"{p}.next" for p in PARAMETERS] + [f"{p}.{s}.next" for s in states for p in PARAMETERS]
    outputs = [info_of(n, None, TensorProto.DOUBLE) for n in names]
    run = ReferenceEvaluator(helper.make_model(helper.make_graph(nodes, name, inputs, outputs), opset_imports=OPSETS))
    values = {p: START[p].astype(np.float64) for p in PARAMETERS}
    kept = {f"{p}.{s}": np.zeros(START[p].shape) for s in states for p in PARAMETERS}
    losses = []
    for step in range(STEPS):
        loss, gradients = gradients_of(values, step)
        losses.append(loss)
        feeds = {"R": np.float64(np.float32(rate)), "T": np.int64(count + step), **values, **kept}
        feeds |= {f"gradient.{p}": g for p, g in gradients.items()}
        feeds = {n: v for n, v in feeds.items() if n in {i for node in nodes for i in node.input}}
        made = dict(zip(names, run.run(None, feeds)))
        values = {p: np.asarray(made[f"{p}.next"], dtype=np.float64) for p in PARAMETERS}
        kept = {n: np.asarray(made[f"{n}.next"], dtype=np.float64) for n in kept}
    return losses, values


def main():
    FOLDER.mkdir(exist_ok=True)
    expected = {"x": X, "labels": LABELS}
    for name, (update, states, rate, count) in CASES.items():
        graph, bindings = algorithm(update, states, rate, count)
        onnx.save(with_training(graph, bindings), FOLDER / f"{name}.onnx")
        losses, values = stepped(name, update, states, rate, count)
        expected[f"{name}/losses"] = np.array(losses)
        expected |= {f"{name}/{p}": v for p, v in values.items()}
    # An initialization: weights at random, biases at a constant, the count at 10.
    graph, bindings = algorithm(*CASES["adam"])
    nodes = [
        helper.make_node("RandomNormal", [], ["drawn"], name="draw", shape=[4, 6], mean=1.0, scale=0.25),
        helper.make_node("RandomUniform", [], ["spread"], name="spread", shape=[6, 3], low=-0.5, high=0.5),
        helper.make_node("Add", ["nine", "first"], ["count"], name="count"),
    ]
    outputs = [info_of("drawn", [4, 6]), info_of("spread", [6, 3]), info_of("count", [], TensorProto.INT64),
               info_of("quarter", [6])]
    start = helper.make_graph(nodes, "start", [], outputs, [
        tensor("nine", np.int64(9)), tensor("first", np.int64(1)), tensor("quarter", np.full(6, 0.25, np.float32))])
    model = with_training(graph, bindings, start, {
        "fc1.weight": "drawn", "fc2.weight": "spread", "fc1.bias": "quarter", "T": "count"})
    onnx.save(model, FOLDER / "initialization.onnx")
    graph = main_graph()
    graph.node.append(graph_of_loss())
    graph.input.append(info_of("labels", ["batch"], TensorProto.INT64))
    graph.output[0].CopyFrom(info_of("loss", []))
    onnx.save(helper.make_model(graph, opset_imports=OPSETS[:1], ir_version=10, producer_name="tests"),
              FOLDER / "own_loss.onnx")
    np.savez(FOLDER / "data.npz", x=X.reshape(-1, 4), labels=LABELS.reshape(-1))
    np.savez(FOLDER / "expected.npz", **expected)


if __name__ == "__main__":
    main()

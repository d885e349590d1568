#!/usr/bin/env python3
"""Writes tests/data/chat/packed.onnx, a small attention network with a mask of pairs, and packed.json: the mean loss that PyTorch computes over the
answers of dialogs.jsonl with the tokenizer of chatml.json, one conversation at a time, with neither padding nor neighbours.

    tests/scripts/chat_packed.py

Needs onnx and torch, and the files of chat_expectations.py.
"""
import json
import os

import numpy
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper

FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "data", "chat")
WIDTH, POSITIONS = 4, 400


def weights(rows):
    random = numpy.random.default_rng(52)
    shapes = {"embedding.weight": (rows, WIDTH), "places.weight": (POSITIONS, WIDTH), "query.weight": (WIDTH, WIDTH), "key.weight": (WIDTH, WIDTH),
              "value.weight": (WIDTH, WIDTH), "head.weight": (WIDTH, rows)}
    return {name: random.normal(0, 0.4, shape).astype(numpy.float32) for name, shape in shapes.items()}


def write_model(values):
    nodes = [helper.make_node("Gather", ["embedding.weight", "input_ids"], ["words"], "embedding"),
             helper.make_node("Gather", ["places.weight", "position_ids"], ["at"], "places"),
             helper.make_node("Add", ["words", "at"], ["x"], "sum"),
             helper.make_node("MatMul", ["x", "query.weight"], ["q"], "query"),
             helper.make_node("MatMul", ["x", "key.weight"], ["k"], "key"),
             helper.make_node("MatMul", ["x", "value.weight"], ["v"], "value"),
             helper.make_node("Transpose", ["k"], ["kt"], "turned", perm=[0, 2, 1]),
             helper.make_node("MatMul", ["q", "kt"], ["scores"], "scores"),
             helper.make_node("Squeeze", ["attention_mask", "one"], ["mask"], "squeezed"),
             helper.make_node("Add", ["scores", "mask"], ["masked"], "masked"),
             helper.make_node("Softmax", ["masked"], ["shares"], "shares", axis=-1),
             helper.make_node("MatMul", ["shares", "v"], ["seen"], "seen"),
             helper.make_node("Add", ["x", "seen"], ["y"], "residual"),
             helper.make_node("MatMul", ["y", "head.weight"], ["logits"], "head")]
    integers = [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "sequence"]) for name in ("input_ids", "position_ids")]
    mask = helper.make_tensor_value_info("attention_mask", TensorProto.FLOAT, ["batch", 1, "sequence", "sequence"])
    logits = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", "sequence", len(values["embedding.weight"])])
    initializers = [numpy_helper.from_array(value, name) for name, value in values.items()] + [numpy_helper.from_array(numpy.array([1]), "one")]
    graph = helper.make_graph(nodes, "graph", [*integers, mask], [logits], initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, os.path.join(FOLDER, "packed.onnx"))


def mean_loss(values, chats):
    tensors = {name: torch.tensor(value, dtype=torch.float64) for name, value in values.items()}
    total, count = 0.0, 0
    for ids, runs in zip(chats["ids"], chats["answers"]):
        ids = torch.tensor(ids)
        labels = torch.full_like(ids, -100)
        for begin, end in runs:
            labels[begin:end] = ids[begin:end]
        x = tensors["embedding.weight"][ids] + tensors["places.weight"][: len(ids)]
        hidden = torch.ones(len(ids), len(ids)).triu(1).bool()
        scores = (x @ tensors["query.weight"] @ (x @ tensors["key.weight"]).T).masked_fill(hidden, float("-inf"))
        logits = (x + scores.softmax(-1) @ x @ tensors["value.weight"]) @ tensors["head.weight"]
        total += torch.nn.functional.cross_entropy(logits[:-1], labels[1:], ignore_index=-100, reduction="sum").item()
        count += (labels[1:] != -100).sum().item()
    return total / count, count


def main():
    with open(os.path.join(FOLDER, "chatml.json")) as file:
        chats = json.load(file)
    rows = 1 + max(token["id"] for token in chats["tokenizer"]["added_tokens"])
    values = weights(rows)
    write_model(values)
    loss, count = mean_loss(values, chats)
    with open(os.path.join(FOLDER, "packed.json"), "w") as file:
        json.dump({"loss": loss, "labels": count, "longest": max(map(len, chats["ids"]))}, file)
        file.write("\n")


if __name__ == "__main__":
    main()

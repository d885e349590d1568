"""Writes tests/data/adafactor_losses.json: the losses of 12 steps of torch.optim.Adafactor on the network `mlp` of tests/data/parity, in double.

    python tests/scripts/adafactor_losses.py           # PyTorch and onnx, as make_parity.py needs them

Gradients are clipped by torch.nn.utils.clip_grad_norm_(1.0) before each step.
"""

import json
import pathlib

import numpy as np
import onnx
import torch
from onnx import numpy_helper

DATA = pathlib.Path(__file__).parents[1] / "data"
STEPS = 12
# PyTorch's eps1 is that of the parameter's type: of float32, in which masters are kept.
OPTIONS = dict(lr=0.05, weight_decay=0.01, eps=(torch.finfo(torch.float32).eps, 1e-3))


def main():
    fixture = json.loads((DATA / "parity" / "mlp.json").read_text())
    graph = onnx.load(DATA / "parity" / fixture["files"]["logits"]["torchscript"]).graph
    values = {i.name: torch.tensor(numpy_helper.to_array(i).astype(np.float64)).requires_grad_() for i in graph.initializer}
    gemms = [node.input for node in graph.node if node.op_type == "Gemm"]
    layers = [(values[weight], values[bias]) for _, weight, bias in gemms]
    parameters = [p for layer in layers for p in layer]
    arrays, batch, feed = np.load(DATA / "parity" / fixture["batches"]), fixture["batch"], fixture["feeds"]["image"]
    optimizer, losses = torch.optim.Adafactor(parameters, **OPTIONS), []
    for t in range(STEPS):
        rows = slice(t * batch, (t + 1) * batch)
        h = torch.tensor(arrays["image"][rows].astype(np.float64)) * feed["scale"] + feed["offset"]
        for k, (weight, bias) in enumerate(layers):
            h = torch.nn.functional.linear(torch.relu(h) if k else h, weight, bias)
        loss = torch.nn.functional.cross_entropy(h, torch.tensor(arrays["labels"][rows].astype(np.int64)))
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
    (DATA / "adafactor_losses.json").write_text(json.dumps(dict(options=OPTIONS, losses=losses)) + "\n")
    print(losses)


if __name__ == "__main__":
    main()

"""Writes tests/data/lamb_losses.json: the losses of 12 steps of LAMB on the network `mlp` of tests/data/parity, in double.

    python tests/scripts/lamb_losses.py                # PyTorch and onnx, as make_parity.py needs them

Forward and gradients are PyTorch's; the step is written out after You et al., arXiv:1904.00962, algorithm 2 (tests/scripts/lamb.py has the
formula), after torch.nn.utils.clip_grad_norm_(1.0).
"""

import json
import pathlib

import numpy as np
import onnx
import torch
from onnx import numpy_helper

DATA = pathlib.Path(__file__).parents[1] / "data"
STEPS, OPTIONS = 12, dict(lr=0.02, beta1=0.9, beta2=0.999, eps=1e-6, weight_decay=0.01, clip_norm=1.0)


def main():
    fixture = json.loads((DATA / "parity" / "mlp.json").read_text())
    graph = onnx.load(DATA / "parity" / fixture["files"]["logits"]["torchscript"]).graph
    values = {i.name: torch.tensor(numpy_helper.to_array(i).astype(np.float64)).requires_grad_() for i in graph.initializer}
    gemms = [node.input for node in graph.node if node.op_type == "Gemm"]
    layers = [(values[weight], values[bias]) for _, weight, bias in gemms]
    parameters = [p for layer in layers for p in layer]
    arrays, batch, feed = np.load(DATA / "parity" / fixture["batches"]), fixture["batch"], fixture["feeds"]["image"]
    moments = [(torch.zeros_like(p), torch.zeros_like(p)) for p in parameters]
    losses, o = [], OPTIONS
    for t in range(1, STEPS + 1):
        rows = slice((t - 1) * batch, t * batch)
        h = torch.tensor(arrays["image"][rows].astype(np.float64)) * feed["scale"] + feed["offset"]
        for k, (weight, bias) in enumerate(layers):
            h = torch.nn.functional.linear(torch.relu(h) if k else h, weight, bias)
        loss = torch.nn.functional.cross_entropy(h, torch.tensor(arrays["labels"][rows].astype(np.int64)))
        losses.append(loss.item())
        for p in parameters:
            p.grad = None
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, o["clip_norm"])
        with torch.no_grad():
            for p, (m, v) in zip(parameters, moments):
                m.mul_(o["beta1"]).add_((1 - o["beta1"]) * p.grad)
                v.mul_(o["beta2"]).add_((1 - o["beta2"]) * p.grad**2)
                u = m / (1 - o["beta1"] ** t) / (torch.sqrt(v / (1 - o["beta2"] ** t)) + o["eps"]) + o["weight_decay"] * p
                ratio = p.norm() / u.norm() if p.norm() != 0 and u.norm() != 0 else 1.0
                p -= o["lr"] * ratio * u
    (DATA / "lamb_losses.json").write_text(json.dumps(dict(options=o, losses=losses)) + "\n")
    print(losses)


if __name__ == "__main__":
    main()

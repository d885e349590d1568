"""Writes tests/data/muon_losses.json and schedule_free_adamw_losses.json: the losses of 12 steps on the network `mlp` of tests/data/parity, in double.

    python tests/scripts/composed_losses.py            # as make_parity.py; schedulefree (pip install schedulefree)

torch.optim.Muon takes the weights, torch.optim.AdamW the biases; torch.bfloat16, in which Muon orthogonalises, stands for float64.
Gradients are clipped by torch.nn.utils.clip_grad_norm_(1.0) before each step.
"""

import json
import pathlib
from unittest import mock

import numpy as np
import onnx
import torch
from onnx import numpy_helper

DATA = pathlib.Path(__file__).parents[1] / "data"
STEPS = 12
MUON, BIASES = dict(lr=0.02, weight_decay=0.01), dict(lr=0.005, weight_decay=0.01)
SCHEDULE_FREE = dict(lr=0.02, weight_decay=0.01)


def muon(layers):
    return [torch.optim.Muon([w for w, _ in layers], **MUON), torch.optim.AdamW([b for _, b in layers], **BIASES)]


def schedule_free(layers):
    import schedulefree

    optimizer = schedulefree.AdamWScheduleFree([p for layer in layers for p in layer], **SCHEDULE_FREE)
    optimizer.train()
    return [optimizer]


def losses_of(make):
    fixture = json.loads((DATA / "parity" / "mlp.json").read_text())
    graph = onnx.load(DATA / "parity" / fixture["files"]["logits"]["torchscript"]).graph
    values = {i.name: torch.tensor(numpy_helper.to_array(i).astype(np.float64)).requires_grad_() for i in graph.initializer}
    gemms = [node.input for node in graph.node if node.op_type == "Gemm"]
    layers = [(values[weight], values[bias]) for _, weight, bias in gemms]
    parameters = [p for layer in layers for p in layer]
    arrays, batch, feed = np.load(DATA / "parity" / fixture["batches"]), fixture["batch"], fixture["feeds"]["image"]
    optimizers, losses = make(layers), []
    for t in range(STEPS):
        rows = slice(t * batch, (t + 1) * batch)
        h = torch.tensor(arrays["image"][rows].astype(np.float64)) * feed["scale"] + feed["offset"]
        for k, (weight, bias) in enumerate(layers):
            h = torch.nn.functional.linear(torch.relu(h) if k else h, weight, bias)
        loss = torch.nn.functional.cross_entropy(h, torch.tensor(arrays["labels"][rows].astype(np.int64)))
        losses.append(loss.item())
        for parameter in parameters:
            parameter.grad = None
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        with mock.patch.object(torch, "bfloat16", torch.float64):
            for optimizer in optimizers:
                optimizer.step()
    return losses


def main():
    for kind, make, options in (("muon", muon, dict(muon=MUON, biases=BIASES)), ("schedule_free_adamw", schedule_free, SCHEDULE_FREE)):
        losses = losses_of(make)
        (DATA / f"{kind}_losses.json").write_text(json.dumps(dict(options=options, losses=losses)) + "\n")
        print(kind, losses)


if __name__ == "__main__":
    main()

"""Writes tests/data/frozen_steps.json: a small network of which parameters thaw and freeze, trained by torch.optim in float64.

    python tests/scripts/frozen_steps.py

The network is y = relu(x W1 + b1 + E[id]) W2^T with W1 [4, 5], b1 [5], E [6, 5], W2 [3, 5]; the loss the mean of (y - t)^2 over batches of 8 of
24 samples in their order. Parameters, data and targets are sines and cosines, ids are 5 i mod 6. b.weight trains in all steps, a.bias in steps 1 to
9, table.weight from step 4 on, a.weight from step 6 on: gradients of the others are None, with which PyTorch's optimizers leave a parameter, its states
and its count of steps alone. In `skipped` cases the inputs of samples 8 to 15 are 1000 times as large and their steps are left out, as
torch.amp.GradScaler does where gradients are not finite.

`cases`: name, `keys` of train.toml, `skipped`, `states` after the last step, row-major, under Tandem's names.
"""

import json
import math
import pathlib

import torch

BATCH, SAMPLES, STEPS = 8, 24, 12
INPUTS, HIDDEN, OUTPUTS, ROWS = 4, 5, 3, 6
# First and last step in which a parameter trains.
TRAINED = {"a.weight": (6, STEPS), "a.bias": (1, 9), "table.weight": (4, STEPS), "b.weight": (1, STEPS)}
SKIPPED = range(8, 16)  # samples
STATES = {"momentum_buffer": "momentum_buffer", "exp_avg": "exp_avg", "exp_avg_sq": "exp_avg_sq", "exp_inf": "exp_inf", "sum": "sum"}


def as_float(values):
    return values.to(torch.float32).to(torch.float64)


def sines(*shape):
    places = torch.arange(1, math.prod(shape) + 1, dtype=torch.float64) * 1.3
    return as_float(0.3 * torch.sin(places)).reshape(shape).requires_grad_()


class Lamb(torch.optim.Optimizer):
    """You et al., arXiv:1904.00962, algorithm 2, with a count of steps for each parameter as in timm's and NVIDIA's."""

    def __init__(self, params, lr, weight_decay=0.0):
        super().__init__(params, {"lr": lr, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state.update(step=0, exp_avg=torch.zeros_like(p), exp_avg_sq=torch.zeros_like(p))
                state["step"] += 1
                t = state["step"]
                state["exp_avg"].lerp_(p.grad, 0.1)
                state["exp_avg_sq"].lerp_(p.grad**2, 0.001)
                u = state["exp_avg"] / (1 - 0.9**t) / ((state["exp_avg_sq"] / (1 - 0.999**t)).sqrt() + 1e-6) + group["weight_decay"] * p
                p.sub_(group["lr"] * p.norm() / u.norm() * u)


def train(make, sparse, skips):
    parameters = {"a.weight": sines(INPUTS, HIDDEN), "a.bias": sines(HIDDEN), "table.weight": sines(ROWS, HIDDEN), "b.weight": sines(OUTPUTS, HIDDEN)}
    optimizers = [make([p for name, p in parameters.items() if not (sparse and name == "table.weight")])]
    if sparse:
        optimizers.append(sparse([parameters["table.weight"]]))
    x = as_float(torch.cos(0.7 * torch.arange(SAMPLES * INPUTS, dtype=torch.float64))).reshape(SAMPLES, INPUTS)
    t = as_float(torch.sin(torch.arange(SAMPLES * OUTPUTS, dtype=torch.float64))).reshape(SAMPLES, OUTPUTS)
    ids = torch.arange(SAMPLES) * 5 % ROWS
    if skips:
        x[list(SKIPPED)] *= 1000
    for step in range(1, STEPS + 1):
        first = (step - 1) * BATCH % SAMPLES
        part = slice(first, first + BATCH)
        rows = torch.nn.functional.embedding(ids[part], parameters["table.weight"], sparse=bool(sparse))
        y = torch.relu(x[part] @ parameters["a.weight"] + parameters["a.bias"] + rows) @ parameters["b.weight"].T
        for parameter in parameters.values():
            parameter.grad = None
        ((y - t[part]) ** 2).mean().backward()
        for name, (begin, end) in TRAINED.items():
            if not begin <= step <= end:
                parameters[name].grad = None
        largest = max(p.grad.to_dense().abs().max().item() for p in parameters.values() if p.grad is not None)
        assert largest > 100 if skips and first in SKIPPED else largest < 3, largest
        if skips and first in SKIPPED:
            continue
        for optimizer in optimizers:
            optimizer.step()
    states = {name: parameter.detach().flatten().tolist() for name, parameter in parameters.items()}
    for optimizer in optimizers:
        for name, parameter in parameters.items():
            for state, value in optimizer.state.get(parameter, {}).items():
                if state in STATES and isinstance(value, torch.Tensor) and value.numel() == parameter.numel():
                    states[f"{name}/{STATES[state]}"] = value.flatten().tolist()
    return states


CASES = [  # name, keys, optimizer, that of the table where its gradients are sparse
    ("sgd", ["optimizer.kind=sgd", "optimizer.lr=0.05", "optimizer.momentum=0.8", "optimizer.dampening=0.3"], lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.8, dampening=0.3), None),
    ("adam", ["optimizer.kind=adam", "optimizer.lr=0.01"], lambda p: torch.optim.Adam(p, lr=0.01), None),
    ("adamw", ["optimizer.kind=adamw", "optimizer.lr=0.01", "optimizer.weight_decay=0.1"], lambda p: torch.optim.AdamW(p, lr=0.01, weight_decay=0.1), None),
    ("nadam", ["optimizer.kind=nadam", "optimizer.lr=0.01"], lambda p: torch.optim.NAdam(p, lr=0.01), None),
    ("radam", ["optimizer.kind=radam", "optimizer.lr=0.01"], lambda p: torch.optim.RAdam(p, lr=0.01), None),
    ("adamax", ["optimizer.kind=adamax", "optimizer.lr=0.01"], lambda p: torch.optim.Adamax(p, lr=0.01), None),
    ("adagrad", ["optimizer.kind=adagrad", "optimizer.lr=0.05", "optimizer.lr_decay=0.2"], lambda p: torch.optim.Adagrad(p, lr=0.05, lr_decay=0.2), None),
    ("adafactor", ["optimizer.kind=adafactor", "optimizer.lr=0.05"], lambda p: torch.optim.Adafactor(p, lr=0.05, eps=(torch.finfo(torch.float32).eps, 1e-3)), None),
    ("lamb", ["optimizer.kind=lamb", "optimizer.lr=0.01", "optimizer.weight_decay=0.1"], lambda p: Lamb(p, lr=0.01, weight_decay=0.1), None),
    (
        "lazy_adam",
        ["optimizer.kind=adam", "optimizer.lr=0.01", 'optimizer.groups=[{at="table", kind="lazy_adam", lr=0.02}]'],
        lambda p: torch.optim.Adam(p, lr=0.01),
        lambda p: torch.optim.SparseAdam(p, lr=0.02),
    ),
]


def main():
    cases = []
    for name, keys, make, sparse in CASES:
        for skipped in (False, True):
            cases.append({"name": name, "keys": keys, "skipped": skipped, "states": train(make, sparse, skipped)})
    path = pathlib.Path(__file__).parents[1] / "data" / "frozen_steps.json"
    path.write_text(json.dumps({"torch": torch.__version__, "cases": cases}) + "\n")
    print(f"{path}: {len(cases)} cases, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()

"""Writes tests/data/ort_losses.json: losses of PyTorch, trained as onnxruntime's on-device API trains.

    python3 tests/scripts/ort_expectations.py    needs bench/peers/requirements.txt

A dense network learns the digits of models/digits. Gradients are autograd's, in float64. The updates are written out,
as onnxruntime's AdamW (eps is added before bias correction; no weight decay) and SGD are no optimizers of PyTorch.
"""

import json
import math
import pathlib

import numpy
import torch

ROOT = pathlib.Path(__file__).resolve().parents[2]
BATCH, STEPS, LR = 64, 20, 0.01
CASES = {
    "walk_through": {"optimizer": "AdamW"},
    "warm_up": {"optimizer": "AdamW", "warm_up": 5, "total": 15},
    "frozen": {"optimizer": "AdamW", "frozen": ["w1", "b1"]},
    "sgd": {"optimizer": "SGD", "lr": 0.1},
    "added_gradients": {"optimizer": "SGD", "lr": 0.05, "calls": 2},
    "added_gradients_adamw": {"optimizer": "AdamW", "calls": 3},
    "mse": {"optimizer": "SGD", "lr": 0.1, "loss": "mse"},
    "l1": {"optimizer": "AdamW", "loss": "l1"},
    "binary": {"optimizer": "AdamW", "loss": "binary"},
}


def samples():
    with numpy.load(ROOT / "models" / "digits" / "digits_train.npz") as file:
        images = (file["images"].reshape(-1, 64) / 16).astype(numpy.float32)
        return images, file["labels"]


def weights():
    random = numpy.random.default_rng(11)
    shapes = {"w1": (32, 64), "b1": (32,), "w2": (10, 32), "b2": (10,)}
    return {name: random.normal(0, 0.1, shape).astype(numpy.float32) for name, shape in shapes.items()}


def batch(call, images, labels):
    """The samples of a call of the module; the last epoch's rest is left out."""
    count = len(images) // BATCH
    part = slice(call % count * BATCH, (call % count + 1) * BATCH)
    return images[part], labels[part]


def loss_of(name, w, x, y):
    outputs = torch.relu(x @ w["w1"].T + w["b1"]) @ w["w2"].T + w["b2"]
    one_hot = torch.nn.functional.one_hot(y, 10).double()
    if name == "mse":
        return torch.nn.functional.mse_loss(outputs, one_hot)
    if name == "l1":
        return torch.nn.functional.l1_loss(outputs, one_hot)
    if name == "binary":
        return torch.nn.functional.binary_cross_entropy_with_logits(outputs, one_hot)
    return torch.nn.functional.cross_entropy(outputs, y)


def rate(case, done):
    lr = case.get("lr", LR)
    if "warm_up" not in case:
        return lr
    if done < case["warm_up"]:
        return lr * done / case["warm_up"]
    return lr * max(0.0, (case["total"] - done) / (case["total"] - case["warm_up"]))


def adamw(w, gradient, moments, lr, step):
    first, second = moments
    first.mul_(0.9).add_(gradient, alpha=0.1)
    second.mul_(0.999).addcmul_(gradient, gradient, value=0.001)
    corrected = lr * math.sqrt(1 - 0.999**step) / (1 - 0.9**step)
    w -= corrected * first / (second.sqrt() + 1e-6)


def trained(case):
    images, labels = samples()
    w = {name: torch.from_numpy(value).double().requires_grad_() for name, value in weights().items()}
    moments = {name: (torch.zeros_like(value.data), torch.zeros_like(value.data)) for name, value in w.items()}
    losses, calls = [], case.get("calls", 1)
    for step in range(STEPS):
        for value in w.values():
            value.grad = None
        for call in range(calls):  # gradients add up
            x, y = batch(step * calls + call, images, labels)
            loss = loss_of(case.get("loss"), w, torch.from_numpy(x).double(), torch.from_numpy(y))
            loss.backward()
            losses.append(loss.item())
        with torch.no_grad():
            for name, value in w.items():
                if name in case.get("frozen", []):
                    continue
                if case["optimizer"] == "AdamW":
                    adamw(value, value.grad, moments[name], rate(case, step), step + 1)
                else:
                    value -= rate(case, step) * value.grad
    return {**case, "losses": losses, "sum_of_w2": w["w2"].sum().item(), "sum_of_w1": w["w1"].sum().item()}


def main():
    found = {name: trained(case) for name, case in CASES.items()}
    path = ROOT / "tests" / "data" / "ort_losses.json"
    path.write_text(json.dumps({"batch": BATCH, "steps": STEPS, "lr": LR, "cases": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()

"""Writes tests/data/limited_training.json: a small network trained by PyTorch with limits on its gradients, and with averages of its weights.

    python tests/scripts/limited_training.py

The network is y = relu(x W1 + b1) W2^T with W1 [4, 5], b1 [5], W2 [3, 5]; the loss the mean of (y - t)^2; SGD with momentum 0.9 and rate 0.05 over
steps of 12 samples. Parameters, data and targets are sines and cosines. clip_value and clip_norm are
torch.nn.utils.clip_grad_value_ and clip_grad_norm_; PyTorch has no adaptive clipping: its formula is that of Brock et al. 2021 (arXiv:2102.06171,
equation 3), for the inputs of an output unit. Averages are torch.optim.swa_utils.AveragedModel; look-ahead is the algorithm 1 of Zhang et al. 2019
(arXiv:1907.08610).

`cases`: name, `keys` of train.toml, `steps`, `states` after the last step, row-major.
"""

import json
import pathlib

import torch
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

BATCH, INPUTS, HIDDEN, OUTPUTS, RATE, MOMENTUM = 12, 4, 5, 3, 0.05, 0.9


class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w1 = torch.nn.Parameter(sines((INPUTS, HIDDEN)))
        self.b1 = torch.nn.Parameter(sines((HIDDEN,)))
        self.w2 = torch.nn.Parameter(sines((OUTPUTS, HIDDEN)))

    def forward(self, x):
        return torch.relu(x @ self.w1 + self.b1) @ self.w2.T

    def by_name(self):
        return {"a.weight": self.w1, "a.bias": self.b1, "b.weight": self.w2}


def sines(shape):
    count = torch.Size(shape).numel()
    places = torch.arange(1, count + 1, dtype=torch.float64) * 1.3
    return (0.3 * torch.sin(places)).to(torch.float32).to(torch.float64).reshape(shape)


def batch(step):
    first = 100 * step
    places = torch.arange(first * INPUTS, (first + BATCH) * INPUTS, dtype=torch.float64)
    targets = torch.arange(first * OUTPUTS, (first + BATCH) * OUTPUTS, dtype=torch.float64)
    as_float = lambda values: values.to(torch.float32).to(torch.float64)
    return as_float(torch.cos(0.7 * places)).reshape(BATCH, INPUTS), as_float(torch.sin(targets)).reshape(BATCH, OUTPUTS)


# Over the inputs of an output unit; a vector is one unit.
UNIT_AXES = {"a.weight": 0, "a.bias": 0, "b.weight": 1}


def clip_adaptive(network, ratio, eps, names):
    for name in names:
        parameter = network.by_name()[name]
        axis = UNIT_AXES[name]
        weight = torch.linalg.vector_norm(parameter.detach(), dim=axis, keepdim=True).clamp(min=eps)
        gradient = torch.linalg.vector_norm(parameter.grad, dim=axis, keepdim=True)
        parameter.grad = torch.where(gradient / weight > ratio, ratio * weight / gradient * parameter.grad, parameter.grad)


def train(steps, limit=lambda network: None, after=lambda network, step: None):
    network = Network()
    optimizer = torch.optim.SGD(network.parameters(), lr=RATE, momentum=MOMENTUM)
    for step in range(steps):
        x, t = batch(step)
        optimizer.zero_grad()
        ((network(x) - t) ** 2).mean().backward()
        limit(network)
        optimizer.step()
        after(network, step + 1)
    return network


def states_of(network, suffix=""):
    return {name + suffix: parameter.detach().flatten().tolist() for name, parameter in network.by_name().items()}


def clipped():
    value = lambda network: torch.nn.utils.clip_grad_value_(network.parameters(), 0.02)
    norm = lambda network: torch.nn.utils.clip_grad_norm_(network.parameters(), 0.05)
    every = ("a.weight", "a.bias", "b.weight")
    yield "none", [], train(4)
    yield "value", ["optimizer.clip_value=0.02"], train(4, value)
    yield "norm", ["optimizer.clip_norm=0.05"], train(4, norm)

    def both(network):
        value(network)
        norm(network)

    yield "value_and_norm", ["optimizer.clip_value=0.02", "optimizer.clip_norm=0.05"], train(4, both)
    yield "adaptive", ["optimizer.clip_adaptive=0.05"], train(4, lambda n: clip_adaptive(n, 0.05, 1e-3, every))
    yield "adaptive_eps", ["optimizer.clip_adaptive=0.03", "optimizer.clip_adaptive_eps=0.8"], train(4, lambda n: clip_adaptive(n, 0.03, 0.8, every))
    yield "adaptive_but_last", [
        "optimizer.clip_adaptive=0.05",
        'optimizer.groups=[{at="b", clip_adaptive=0.0}]',
    ], train(4, lambda n: clip_adaptive(n, 0.05, 1e-3, every[:2]))

    def by_group(network):
        torch.nn.utils.clip_grad_norm_([network.w2], 0.03)
        torch.nn.utils.clip_grad_norm_([network.w1, network.b1], 0.04)

    yield "norm_of_group", ["optimizer.clip_norm=0.04", 'optimizer.groups=[{at="b", clip_norm=0.03}]'], train(4, by_group)

    def all_of_them(network):
        torch.nn.utils.clip_grad_value_([network.w1, network.b1], 0.02)
        clip_adaptive(network, 0.05, 1e-3, every)
        by_group(network)

    yield "all", [
        "optimizer.clip_norm=0.04",
        "optimizer.clip_value=0.02",
        "optimizer.clip_adaptive=0.05",
        'optimizer.groups=[{at="b", clip_norm=0.03, clip_value=0.0}]',
    ], train(4, all_of_them)


def averaged(steps, make, suffix, is_due=lambda step: True):
    average = []

    def after(network, step):
        if not average:
            average.append(make(network))
        if is_due(step):
            average[0].update_parameters(network)

    network = train(steps, after=after)
    return {**states_of(network), **states_of(average[0].module, suffix)}


def warm_ema(decay):
    """TensorFlow's ExponentialMovingAverage with num_updates, from a copy of the first weights on."""

    def average(averages, parameters, count):
        used = min(decay, (1 + float(count)) / (10 + float(count)))
        torch._foreach_lerp_(averages, parameters, 1 - used)

    return average


def look_ahead(steps, k, alpha):
    slow = {}

    def after(network, step):
        if step % k:
            return
        for name, parameter in network.by_name().items():
            slow[name] += alpha * (parameter.detach() - slow[name])
            with torch.no_grad():
                parameter.copy_(slow[name])

    slow.update({name: parameter.detach().clone() for name, parameter in Network().by_name().items()})
    network = train(steps, after=after)
    return {**states_of(network), **{name + "/slow": value.flatten().tolist() for name, value in slow.items()}}


def averages():
    ema = lambda decay: lambda network: AveragedModel(network, multi_avg_fn=get_ema_multi_avg_fn(decay))
    yield "ema", ["optimizer.ema={decay=0.7}"], 6, averaged(6, ema(0.7), "/ema")
    yield "late_ema", ['optimizer.ema={decay=0.7, start="3 steps"}'], 7, averaged(7, ema(0.7), "/ema", lambda step: step >= 3)
    yield "warm_ema", ["optimizer.ema={decay=0.3, warmup=true}"], 9, averaged(
        9, lambda network: AveragedModel(network, multi_avg_fn=warm_ema(0.3)), "/ema"
    )
    yield "swa", ['optimizer.swa={start="2 steps", every="3 steps"}'], 9, averaged(9, AveragedModel, "/swa", lambda step: step in (2, 5, 8))
    yield "lookahead", ["optimizer.lookahead={k=3, alpha=0.4}"], 8, look_ahead(8, 3, 0.4)


def main():
    cases = [{"name": name, "keys": keys, "steps": 4, "states": states_of(network)} for name, keys, network in clipped()]
    cases += [{"name": name, "keys": keys, "steps": steps, "states": states} for name, keys, steps, states in averages()]
    path = pathlib.Path(__file__).resolve().parents[1] / "data" / "limited_training.json"
    path.write_text(json.dumps({"torch": torch.__version__, "cases": cases}, indent=1) + "\n")


if __name__ == "__main__":
    main()

"""Writes tests/data/lamb.json: 25 steps of LAMB on several parameters, in double.

    python tests/scripts/lamb.py

Source: You et al., Large Batch Optimization for Deep Learning: Training BERT in 76 minutes, arXiv:1904.00962, algorithm 2, with phi the
identity. For each parameter, with t from 1:

    m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g^2
    u = (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps) + weight_decay w     (without bias correction: m and v themselves)
    w -= lr r u with r = |w| / |u| over all of the parameter; 1 where either norm is 0, at most trust_clip where that is given

No array of inputs is stored: pattern(count, k)[i] = ((37 i + 11 k) mod 101 - 50) / 64, which float32 holds, is parameter number p for
k = p, and half of it the gradient of step t for k = p + 5 t. Of long parameters every STRIDE-th element is stored.
"""

import json
import math
import pathlib

import numpy as np

TARGET = pathlib.Path(__file__).parents[1] / "data" / "lamb.json"
STEPS, STRIDE = 25, 97
# name: shape, whether it starts at 0, whether its gradients are 0
PARAMETERS = {"matrix": ((3, 5), False, False), "one": ((1,), False, False), "scalar": ((), False, False),
              "odd": ((7,), False, False), "zero_weight": ((4,), True, False), "zero_gradient": ((2, 3), False, True),
              "nothing": ((5,), True, True), "chunks": ((3, 3001), False, False)}
CASES = {"plain": dict(), "decayed": dict(weight_decay=0.1), "uncorrected": dict(weight_decay=0.01, bias_correction=False),
         "clipped": dict(weight_decay=0.1, trust_clip=0.5), "other_betas": dict(beta1=0.7, beta2=0.9, eps=1e-3, weight_decay=0.02)}
DEFAULTS = dict(lr=0.05, beta1=0.9, beta2=0.999, eps=1e-6, weight_decay=0.0, bias_correction=True, trust_clip=0.0)


def pattern(count, k):
    return ((37 * np.arange(count, dtype=np.int64) + 11 * k) % 101 - 50) / 64.0


def norm(x):
    return math.sqrt(math.fsum((x * x).tolist()))


def train(number, shape, zero_weight, zero_gradient, o):
    count = math.prod(shape)
    w = np.zeros(count) if zero_weight else pattern(count, number)
    m, v = np.zeros(count), np.zeros(count)
    for t in range(1, STEPS + 1):
        g = np.zeros(count) if zero_gradient else 0.5 * pattern(count, number + 5 * t)
        m = o["beta1"] * m + (1 - o["beta1"]) * g
        v = o["beta2"] * v + (1 - o["beta2"]) * g * g
        corrected_m, corrected_v = m, v
        if o["bias_correction"]:
            corrected_m, corrected_v = m / (1 - o["beta1"] ** t), v / (1 - o["beta2"] ** t)
        u = corrected_m / (np.sqrt(corrected_v) + o["eps"]) + o["weight_decay"] * w
        ratio = 1.0
        if norm(w) != 0 and norm(u) != 0:
            ratio = norm(w) / norm(u)
        if o["trust_clip"] > 0:  # as in timm's Lamb: of a ratio of 1, too
            ratio = min(ratio, o["trust_clip"])
        w = w - o["lr"] * ratio * u
    return w, m, v


def main():
    parameters = [dict(name=name, shape=list(shape), zero_weight=zero_weight, zero_gradient=zero_gradient,
                       stride=STRIDE if math.prod(shape) > 1000 else 1)
                  for name, (shape, zero_weight, zero_gradient) in PARAMETERS.items()]
    cases = []
    for name, options in CASES.items():
        o = {**DEFAULTS, **options}
        results = []
        for number, p in enumerate(parameters):
            w, m, v = train(number, p["shape"], p["zero_weight"], p["zero_gradient"], o)
            results.append({key: x[::p["stride"]].tolist() for key, x in (("w", w), ("m", m), ("v", v))})
        cases.append(dict(name=name, options=o, results=results))
    TARGET.write_text(json.dumps(dict(steps=STEPS, parameters=parameters, cases=cases)) + "\n")
    print(f"{TARGET}: {TARGET.stat().st_size} bytes")


if __name__ == "__main__":
    main()

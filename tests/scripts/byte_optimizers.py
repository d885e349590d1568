"""Writes tests/data/byte_optimizers.json: 20 steps of Adam and AdamW with states of 8 bits, in NumPy's float64, and bitsandbytes' map.

    python tests/scripts/byte_optimizers.py            # PyTorch, bitsandbytes (pip install bitsandbytes)

Source: Dettmers et al., 8-bit Optimizers via Block-wise Quantization, arXiv:2110.02861, and bitsandbytes' code. A step decodes the moments
(map[byte] times the block's scale), takes Adam's step in PyTorch's form, and encodes them: the scale of 256 elements is their largest
absolute value, a byte that of the nearest number of the map. bitsandbytes itself runs the same steps on the host; it finds the nearest number
only nearly and computes in float32, so that some bytes are neighbours of these: how many is printed, and at most SPREAD of them.

noise(count, k)[i] is h / 2^24 - 0.5, which float32 holds, for h the upper 24 of 32 bits: x = (i + 1) 2654435761 + k 2246822519;
x ^= x >> 15; x *= 2246822519; x ^= x >> 13. The parameter is that for k = 0; the gradient of step t that for k = t times 2^-(block mod 7),
and 0 in block 3 and in the steps of `zero_steps`. Every STRIDE-th element of the parameter is stored, and every CODE_STRIDE-th byte in hexadecimal digits.
"""

import json
import math
import pathlib

import numpy as np

TARGET = pathlib.Path(__file__).parents[1] / "data" / "byte_optimizers.json"
STEPS, STRIDE, CODE_STRIDE, BLOCK, SPREAD = 20, 46, 5, 256, 0.06
CASES = [  # name, kind, elements, options
    ("adam", "adam8bit", 5003, dict(lr=0.01)),
    ("adam_options", "adam8bit", 4096, dict(lr=0.01, betas=[0.8, 0.95], eps=1e-3, weight_decay=0.1)),
    ("adamw", "adamw8bit", 5003, dict(lr=0.01)),
    ("adamw_options", "adamw8bit", 4352, dict(lr=0.02, betas=[0.8, 0.95], eps=1e-4, weight_decay=0.2)),
    ("zeros", "adamw8bit", 4500, dict(lr=0.01, zero_steps=[1, 2, 9])),
]
DEFAULTS = dict(adam8bit=dict(weight_decay=0.0), adamw8bit=dict(weight_decay=0.01))


def noise(count, k):
    x = ((np.arange(count, dtype=np.uint64) + 1) * 2654435761 + k * 2246822519) % 2**32
    x ^= x >> 15
    x = x * 2246822519 % 2**32
    x ^= x >> 13
    return (x >> 8) / 2.0**24 - 0.5


def gradient(count, step, options):
    block = np.arange(count) // BLOCK
    if step in options.get("zero_steps", []):
        return np.zeros(count)
    return np.where(block == 3, 0.0, noise(count, step) * 2.0 ** -(block % 7))


def dynamic_map(signed):
    """0, 1, and for each power of ten from 1e-6 to 1 the middles of 2^i parts of [0.1, 1] times it, with their negatives, or of 2^(i + 1)."""
    numbers = [0.0, 1.0]
    for i in range(7):
        parts = 2 ** (i if signed else i + 1)
        for part in range(parts):
            number = (0.1 + 0.9 * (part + 0.5) / parts) * 10.0 ** (i - 6)
            numbers += [number, -number] if signed else [number]
    return np.sort(np.array(numbers).astype(np.float32)).tolist()


class Bytes:
    def __init__(self, count, numbers):
        self.map = np.array(numbers, dtype=np.float64)
        self.codes = np.zeros(count, dtype=np.uint8)
        self.scales = np.zeros(-(-count // BLOCK))

    def decoded(self):
        return self.map[self.codes] * np.repeat(self.scales, BLOCK)[: len(self.codes)]

    def encode(self, x):
        for block in range(len(self.scales)):
            own = slice(block * BLOCK, (block + 1) * BLOCK)
            scale = self.scales[block] = np.abs(x[own]).max()
            self.codes[own] = np.abs((x[own] / (scale or 1))[:, None] - self.map).argmin(axis=1)


def train(kind, count, options, maps):
    o = dict(betas=[0.9, 0.999], eps=1e-8, **DEFAULTS[kind]) | options
    beta1, beta2 = o["betas"]
    w, mean, square = noise(count, 0), Bytes(count, maps[0]), Bytes(count, maps[1])
    for t in range(1, STEPS + 1):
        g = gradient(count, t, options)
        if kind == "adam8bit":
            g = g + o["weight_decay"] * w
        m = beta1 * mean.decoded() + (1 - beta1) * g
        v = beta2 * square.decoded() + (1 - beta2) * g * g
        if kind == "adamw8bit":
            w = w * (1 - o["lr"] * o["weight_decay"])
        w = w - o["lr"] / (1 - beta1**t) * m / (np.sqrt(v) / math.sqrt(1 - beta2**t) + o["eps"])
        mean.encode(m)
        square.encode(v)
    return w, mean, square


def compare(name, kind, count, options, states):
    import bitsandbytes
    import torch

    w = torch.tensor(noise(count, 0), dtype=torch.float32).requires_grad_()
    make = {"adam8bit": bitsandbytes.optim.Adam8bit, "adamw8bit": bitsandbytes.optim.AdamW8bit}[kind]
    optimizer = make([w], **{key: value for key, value in options.items() if key != "zero_steps"})
    for t in range(1, STEPS + 1):
        w.grad = torch.tensor(gradient(count, t, options), dtype=torch.float32)
        optimizer.step()
    for own, key in zip(states, ("state1", "state2")):
        used = np.repeat(own.scales, BLOCK)[:count] > 0
        apart = np.abs(own.map[own.codes] - own.map[optimizer.state[w][key].numpy()])[used]
        print(f"{name} {key}: {np.mean(apart > 0):.4f} of the bytes are others, by {apart.max():.4f} of the scale at most")
        assert np.mean(apart > 0) <= SPREAD and apart.max() <= 0.03, name


def main():
    import bitsandbytes

    published = [bitsandbytes.functional.create_dynamic_map(signed=signed).tolist() for signed in (True, False)]
    maps = [dynamic_map(True), dynamic_map(False)]
    assert np.allclose(maps, published, rtol=2e-7, atol=0)
    cases = []
    for name, kind, count, options in CASES:
        w, *states = train(kind, count, options, maps)
        if kind == "adamw8bit" or not options.get("weight_decay"):  # bitsandbytes decouples the decay of both kinds
            compare(name, kind, count, options, states)
        cases.append(dict(name=name, kind=kind, elements=count, options=options, w=w[::STRIDE].tolist(),
                          codes=[s.codes[::CODE_STRIDE].tobytes().hex() for s in states], scales=[s.scales.tolist() for s in states]))
    content = dict(bitsandbytes=bitsandbytes.__version__, steps=STEPS, stride=STRIDE, code_stride=CODE_STRIDE, maps=published, cases=cases)
    TARGET.write_text(json.dumps(content) + "\n")
    print(f"{TARGET}: {len(cases)} cases, {TARGET.stat().st_size} bytes")


if __name__ == "__main__":
    main()

"""Writes tests/data/composed_optimizers.json: 20 steps of optimizers whose steps consist of operators, by their published code in double.

    python tests/scripts/composed_optimizers.py        # PyTorch 2.9 or later, schedulefree (pip install schedulefree)

Muon is torch.optim.Muon. It orthogonalises in bfloat16; here torch.bfloat16 stands for float64 while it does. Schedule-free AdamW is
schedulefree.AdamWScheduleFree; `used` are its weights after eval(), `w` those after train().

pattern(count, k)[i] = ((37 i + 11 k) mod 101 - 50) / 64, which float32 holds, is the parameter for k = 0, and a quarter of it the gradient
of step t for k = 5 t, 0 in steps of `zero_steps`. The rate of step t is lr min(t, warmup) / warmup. `is_input_first`: a product reads the
parameter as [inputs, outputs]; PyTorch has its transpose then.
"""

import json
import math
import pathlib
from unittest import mock

import numpy as np
import torch

TARGET = pathlib.Path(__file__).parents[1] / "data" / "composed_optimizers.json"
STEPS = 20
MUON = [  # name, shape, is_input_first, options
    ("square", (6, 6), False, dict()),
    ("wide", (4, 9), False, dict()),
    ("tall", (9, 4), False, dict()),
    ("input_first", (4, 9), True, dict()),
    ("input_first_tall", (9, 4), True, dict(adjust_lr_fn="spectral_unclamped")),
    ("row", (1, 7), False, dict()),
    ("column", (7, 1), False, dict()),
    ("large", (16, 11), False, dict(lr=0.02)),
    ("options", (5, 8), False, dict(lr=0.01, weight_decay=0.3, momentum=0.8, nesterov=False, ns_steps=3, ns_coefficients=[3.0, -3.2, 1.2])),
    ("rms", (8, 5), False, dict(adjust_lr_fn="match_rms_adamw", eps=0.5)),
    ("unclamped", (5, 8), False, dict(adjust_lr_fn="spectral_unclamped")),
    ("zeros", (4, 6), False, dict(zero_steps=[1, 2, 7])),
    ("flattened", (4, 3, 2, 2), False, dict(flatten=True)),
]
SCHEDULE_FREE = [
    ("plain", (13,), dict()),
    ("warm", (13,), dict(warmup=6)),
    ("decayed", (3, 5), dict(lr=0.02, weight_decay=0.2, betas=[0.8, 0.95], eps=1e-3)),
    ("powers", (13,), dict(r=1.5, weight_lr_power=1.0, warmup=4)),
    ("other_powers", (13,), dict(r=1.0, weight_lr_power=0.5, warmup=9)),
    ("unweighted", (13,), dict(weight_lr_power=0.0, warmup=5)),
    ("no_mean", (13,), dict(betas=[1e-9, 0.9])),
    ("zeros", (13,), dict(zero_steps=[1, 2, 7])),
]
OURS = ("zero_steps", "warmup", "flatten")


def pattern(count, k):
    return ((37 * np.arange(count, dtype=np.int64) + 11 * k) % 101 - 50) / 64.0


def train(make, shape, is_input_first, options, lr):
    count = math.prod(shape)

    def placed(values):
        tensor = torch.tensor(values.reshape(shape))
        if len(shape) > 2:
            return tensor.reshape(shape[0], -1)
        return tensor.T.clone() if is_input_first else tensor

    w = placed(pattern(count, 0)).requires_grad_()
    optimizer = make([w])
    warmup = options.get("warmup", 1)
    for t in range(1, STEPS + 1):
        optimizer.param_groups[0]["lr"] = lr * min(t, warmup) / warmup
        w.grad = placed(np.zeros(count) if t in options.get("zero_steps", []) else 0.25 * pattern(count, 5 * t))
        with mock.patch.object(torch, "bfloat16", torch.float64):
            optimizer.step()
    return w, optimizer


def listed(tensor, is_input_first):
    tensor = tensor.detach()
    return (tensor.T if is_input_first else tensor).flatten().tolist()


def main():
    import schedulefree

    torch.set_default_dtype(torch.float64)
    cases = []
    for name, shape, is_input_first, options in MUON:
        own = {key: value for key, value in options.items() if key not in OURS}
        w, optimizer = train(lambda p: torch.optim.Muon(p, **own), shape, is_input_first, options, own.get("lr", 1e-3))
        cases.append(dict(name="muon_" + name, kind="muon", shape=shape, is_input_first=is_input_first, options=options,
                          w=listed(w, is_input_first),
                          states=dict(momentum_buffer=listed(optimizer.state[w]["momentum_buffer"], is_input_first))))
    for name, shape, options in SCHEDULE_FREE:
        own = {key: value for key, value in options.items() if key not in OURS}

        def make(p):
            optimizer = schedulefree.AdamWScheduleFree(p, **own, foreach=False)
            optimizer.train()
            return optimizer

        w, optimizer = train(make, shape, False, options, own.get("lr", 2.5e-3))
        trained, squares = listed(w, False), listed(optimizer.state[w]["exp_avg_sq"], False)
        optimizer.eval()
        cases.append(dict(name="schedule_free_" + name, kind="schedule_free_adamw", shape=shape, is_input_first=False, options=options,
                          w=trained, used=listed(w, False), states=dict(exp_avg_sq=squares)))
    TARGET.write_text(json.dumps(dict(torch=torch.__version__, steps=STEPS, cases=cases)) + "\n")
    print(f"{TARGET}: {len(cases)} cases, {TARGET.stat().st_size} bytes")


if __name__ == "__main__":
    main()

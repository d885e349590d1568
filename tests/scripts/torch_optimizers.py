"""Writes tests/data/torch_optimizers.json: 50 steps of torch.optim in float64, several sets of options for each kind that PyTorch has.

    python tests/scripts/torch_optimizers.py

`start` [elements]; `gradients` [steps][elements], multiples of 1/64, some of them zeros; `larger`: the same two for parameters of more axes;
`cases`: name, kind, options under their keys in train.toml, `shape` where it has more axes, `w` and `states` after the last step. The states
have PyTorch's names.
"""

import json
import pathlib

import numpy as np
import torch

DATA = pathlib.Path(__file__).parents[1] / "data"
STEPS, ELEMENTS = 50, 13
LARGER_STEPS, LARGER_ELEMENTS = 25, 60
OPTIM = {
    "sgd": torch.optim.SGD,
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
    "adagrad": torch.optim.Adagrad,
    "rmsprop": torch.optim.RMSprop,
    "adadelta": torch.optim.Adadelta,
    "adamax": torch.optim.Adamax,
    "nadam": torch.optim.NAdam,
    "radam": torch.optim.RAdam,
    "adafactor": torch.optim.Adafactor,
}
CASES = [  # name, kind, options; those left out have both libraries' defaults, which thereby are compared
    ("sgd", "sgd", dict(lr=0.05)),
    ("sgd_decay", "sgd", dict(lr=0.05, weight_decay=0.1)),
    ("sgd_momentum", "sgd", dict(lr=0.05, momentum=0.8, dampening=0.3, weight_decay=0.1)),
    ("sgd_nesterov", "sgd", dict(lr=0.05, momentum=0.8, nesterov=True)),
    ("adam", "adam", dict(lr=0.01)),
    ("adam_options", "adam", dict(lr=0.02, betas=(0.8, 0.95), eps=1e-3, weight_decay=0.1)),
    ("adamw", "adamw", dict(lr=0.01)),
    ("adamw_options", "adamw", dict(lr=0.02, betas=(0.8, 0.95), eps=1e-3, weight_decay=0.2)),
    ("adagrad", "adagrad", dict(lr=0.05)),
    ("adagrad_options", "adagrad", dict(lr=0.05, lr_decay=0.1, eps=1e-3, weight_decay=0.1)),
    ("rmsprop", "rmsprop", dict()),
    ("rmsprop_options", "rmsprop", dict(lr=0.02, alpha=0.9, eps=1e-3, weight_decay=0.1)),
    ("rmsprop_momentum", "rmsprop", dict(momentum=0.8)),
    ("rmsprop_centered", "rmsprop", dict(centered=True)),
    ("rmsprop_all", "rmsprop", dict(lr=0.02, alpha=0.9, eps=1e-3, weight_decay=0.1, momentum=0.6, centered=True)),
    ("adadelta", "adadelta", dict()),
    ("adadelta_options", "adadelta", dict(lr=0.5, rho=0.8, eps=1e-3, weight_decay=0.1)),
    ("adamax", "adamax", dict()),
    ("adamax_options", "adamax", dict(lr=0.02, betas=(0.8, 0.95), eps=1e-3, weight_decay=0.1)),
    ("nadam", "nadam", dict()),
    ("nadam_options", "nadam", dict(lr=0.02, betas=(0.8, 0.95), eps=1e-3, weight_decay=0.1, momentum_decay=0.05)),
    ("nadam_decoupled", "nadam", dict(weight_decay=0.2, decoupled_weight_decay=True)),
    ("nadam_constant", "nadam", dict(momentum_decay=0.0)),
    ("radam", "radam", dict()),
    ("radam_options", "radam", dict(lr=0.02, betas=(0.8, 0.95), eps=1e-3, weight_decay=0.1)),
    ("radam_decoupled", "radam", dict(lr=0.02, weight_decay=0.2, decoupled_weight_decay=True)),
    ("radam_never_rectified", "radam", dict(lr=0.02, betas=(0.9, 0.5))),
    ("adafactor", "adafactor", dict()),
    ("adafactor_options", "adafactor", dict(lr=0.05, beta2_decay=-0.6, eps1=0.125, eps2=0.25, d=1.5, weight_decay=0.1)),
    ("adafactor_scaled", "adafactor", dict(lr=2.0, eps2=0.0)),
    ("adafactor_constant", "adafactor", dict(beta2_decay=0.0)),
]
# Kinds whose steps depend on a parameter's shape; each of their cases takes all of these, too.
SHAPED = ("adafactor",)
SHAPES = [(6, 10), (3, 5, 4), (2, 5, 2, 3), (1, 60), (60, 1)]


def arguments(kind, options):
    """PyTorch's, of options under their keys in train.toml."""
    if kind != "adafactor":
        return options
    # PyTorch's eps1 is that of the parameter's type: of float32, in which masters are kept.
    eps1, eps2 = options.get("eps1", torch.finfo(torch.float32).eps), options.get("eps2", 1e-3)
    return {**{key: value for key, value in options.items() if key not in ("eps1", "eps2")}, "eps": (eps1, eps2)}


def run(kind, options, start, gradients, shape):
    w = torch.tensor(start, dtype=torch.float64).reshape(shape).requires_grad_()
    optimizer = OPTIM[kind]([w], **arguments(kind, options))
    for gradient in gradients:
        w.grad = torch.tensor(gradient, dtype=torch.float64).reshape(shape)
        optimizer.step()
    states = {
        name: value.flatten().tolist()
        for name, value in optimizer.state[w].items()
        if isinstance(value, torch.Tensor) and name != "step" and value.ndim > 0
    }
    return w.detach().flatten().tolist(), states


def main():
    random = np.random.default_rng(5)
    start = (random.integers(-64, 65, ELEMENTS) / 64).tolist()
    gradients = random.integers(-128, 129, (STEPS, ELEMENTS)) / 64
    gradients[:, 0] = 0.25  # the same in every step: a variance of 0
    gradients[:, 1] = 0
    gradients[10:20, 2] = 0
    gradients = gradients.tolist()
    larger_start = (random.integers(-64, 65, LARGER_ELEMENTS) / 64).tolist()
    larger = random.integers(-128, 129, (LARGER_STEPS, LARGER_ELEMENTS)) / 64
    larger[:, :20] /= 16
    larger[:, 40:52] = 0  # rows, and a matrix of the shape of four axes
    larger[3] = 0
    larger = larger.tolist()
    torch.set_default_dtype(torch.float64)  # the type of scalar states as well
    cases = []

    def add(name, kind, options, start, gradients, axes, **more):
        w, states = run(kind, options, start, gradients, axes)
        assert np.isfinite(w).all(), name
        cases.append({"name": name, "kind": kind, "options": options, **more, "w": w, "states": states})

    for name, kind, options in CASES:
        add(name, kind, options, start, gradients, (ELEMENTS,))
        for shape in SHAPES if kind in SHAPED else ():
            add(name + "_" + "x".join(map(str, shape)), kind, options, larger_start, larger, shape, shape=shape)
    content = {"torch": torch.__version__, "start": start, "gradients": gradients, "larger": {"start": larger_start, "gradients": larger}}
    path = DATA / "torch_optimizers.json"
    path.write_text(json.dumps({**content, "cases": cases}) + "\n")
    print(f"{path}: {len(cases)} cases, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()

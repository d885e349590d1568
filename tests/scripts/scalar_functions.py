"""Writes tests/data/scalar_functions.json: what PyTorch computes for the scalar functions and their gradients.

    python tests/scripts/scalar_functions.py

A case holds ONNX's operator and attributes, the operands, the results and the gradients for a dy of 0.75, all in
float32 on the CPU: inside of the domain, at its ends, at kinks, far out, at infinities and NaN. Numbers are written so
that they read back as they are; infinities and NaN are the texts inf, -inf and nan. PyTorch 2.15.0 made the
committed file. Where PyTorch loses a number that the definition has (HardSwish of 3e38 overflows, its gradient hides
NaN; Softsign's gradient is NaN at infinities and loses digits in 1 - |y| far out), the point is left out.
"""
import json
import math
import pathlib

import torch
import torch.nn.functional as F

TARGET = pathlib.Path(__file__).parents[1] / "data" / "scalar_functions.json"
INF, NAN = math.inf, math.nan
EVERYWHERE = [-INF, -3e38, -1e4, -90.0, -20.0, -3.0, -1.0, -0.5, -1e-3, -1e-30, -0.0, 0.0, 1e-30, 1e-3, 0.5, 1.0, 3.0, 20.0, 90.0, 1e4, 3e38, INF, NAN]
INSIDE = [-1.0, -0.999999, -0.75, -1e-3, -0.0, 0.0, 1e-30, 0.5, 0.999999, 1.0, NAN]
MODERATE = [x for x in EVERYWHERE if not abs(x) > 100] + [-INF, INF, NAN]
cases = []


def text(x):
    return str(x) if math.isinf(x) or math.isnan(x) else float(torch.tensor(x, dtype=torch.float32).item())


def case(op, f, *operands, **attributes):
    """f of the operands; y and dy are made of their elements one by one."""
    x = [torch.tensor(o, dtype=torch.float32, requires_grad=True) for o in operands]
    y = f(*x)
    y.backward(torch.full_like(y, 0.75))
    cases.append(
        {
            "op": op,
            "attributes": attributes,
            "x": [[text(v) for v in t.tolist()] for t in x],
            "y": [text(v) for v in y.tolist()],
            "dx": [[text(v) for v in t.grad.tolist()] for t in x],
        }
    )


for op in ("sin", "cos", "tan", "atan", "asinh"):
    case(op.capitalize(), getattr(torch, op), MODERATE)
for op in ("sinh", "cosh"):
    case(op.capitalize(), getattr(torch, op), EVERYWHERE)
for op in ("asin", "acos", "atanh"):
    case(op.capitalize(), getattr(torch, op), INSIDE)
case("Acosh", torch.acosh, [1.0, 1.000001, 1.5, 20.0, 1e4, INF, NAN])
case("Expm1", torch.expm1, EVERYWHERE)
case("Log1p", torch.log1p, [-1.0, -0.999, -1e-3, -1e-30, -0.0, 0.0, 1e-30, 0.5, 20.0, 3e38, INF, NAN])
HALVES = [-2.5, -1.5, -0.5, -0.25, -0.0, 0.0, 0.5, 1.5, 2.5, 1e7, INF, -INF, NAN]
for op in ("round", "floor", "ceil"):
    case(op.capitalize(), getattr(torch, op), HALVES)
case("Elu", F.elu, EVERYWHERE)
case("Elu", lambda x: F.elu(x, 0.25), EVERYWHERE, alpha=0.25)
case("Selu", F.selu, EVERYWHERE)
case("Celu", F.celu, EVERYWHERE)
case("Celu", lambda x: F.celu(x, 2.0), EVERYWHERE, alpha=2.0)
case("Swish", F.silu, EVERYWHERE)
case("Mish", F.mish, EVERYWHERE)
case("HardSigmoid", F.hardsigmoid, EVERYWHERE, alpha=1 / 6, beta=0.5)
case("HardSwish", F.hardswish, [x for x in EVERYWHERE if x != 3e38 and not math.isnan(x)])
case("Softsign", F.softsign, [x for x in EVERYWHERE if not math.isinf(x)])
case("ThresholdedRelu", lambda x: F.threshold(x, 1.0, 0.0), EVERYWHERE)
case("ThresholdedRelu", lambda x: F.threshold(x, -0.5, 0.0), EVERYWHERE, alpha=-0.5)
case("Shrink", F.hardshrink, EVERYWHERE)
case("Shrink", F.softshrink, EVERYWHERE, bias=0.5)
for slope in (0.25, -2.0, 0.0):
    case("PRelu", lambda x, w: torch.prelu(x.reshape(1, -1), w).reshape(-1), EVERYWHERE, [slope] * len(EVERYWHERE))
DIVIDENDS = [-7.5, -7.5, 7.5, 7.5, 6.0, -6.0, 0.25, 1e4]
DIVISORS = [2.0, -2.0, 2.0, -2.0, 3.0, 3.0, -0.75, 0.375]
case("Mod", torch.remainder, DIVIDENDS, DIVISORS)
case("Mod", torch.fmod, DIVIDENDS, DIVISORS, fmod=1)

TARGET.write_text("[\n" + ",\n".join(json.dumps(c) for c in cases) + "\n]\n")
print(len(cases), "cases")

"""Writes functions as exporters split them, at extreme values, with the results of PyTorch's own functions in float64.

    python tests/scripts/stable_functions.py      # torch

Writes tests/data/stable_functions.json: nodes of ONNX as PyTorch's exporters (opset 20) or users write them, x, and
y and dx from the function in torch that stays in range. Constants are scalars of float32, or lists of int64.
"""

import json
import pathlib

import torch
import torch.nn.functional as F

wide = [[-1e4, -104.0, -100.0, -20.0, -1.0], [-1e-3, 0.0, 1e-3, 1.0, 17.0], [88.0, 89.0, 100.0, 104.0, 1e4]]
rows = [[1e4, 9999.0, 0.0, -1e4, 5.0], [-1e4, -1e4, -1e4, -1e4, -9999.0], [100.0, -100.0, 0.5, 0.25, 99.0], [0.1, 0.2, 0.3, -0.4, 0.0]]
small = [[-0.5, -1e-4, -1e-9, 0.0, 1e-9], [1e-6, 1e-4, 0.3, 2.0, 50.0]]
zeros = [[0.0, 0.0, 0.0], [1.0, -2.0, 2.0], [0.0, 3.0, 0.0]]
equal = [[2.0, 2.0, 2.0], [1.0, -2.0, 2.0]]
late = [[-100.0, 0.0, 100.0, 99.0, -50.0], [3.0, 2.0, 1.0, 0.0, -1.0], [-1e4, -9999.0, 0.0, 1e4, 5.0]]
points = [[0.0, 0.0], [1.0, 0.0], [-2.0, 0.0], [0.0, 3.0], [1.0, -1.0], [-1.0, -2.0], [1e-30, 2.0], [3.0, 4.0]]
positive = [[0.0, 1e-30, 0.5, 1.0, 20.0]]


def n(op, inputs, output, **attributes):
    return {"op": op, "inputs": inputs.split(","), "output": output, "attributes": attributes}


one, axis = {"one": 1.0}, {"axis": [1]}
sigmoid = n("Sigmoid", "x", "s")
exp = n("Exp", "x", "e")
CASES = {
    "logsigmoid": (wide, one, [sigmoid, n("Log", "s", "y")], F.logsigmoid),
    "log(1 - sigmoid)": (wide, one, [sigmoid, n("Sub", "one,s", "c"), n("Log", "c", "y")], lambda x: F.logsigmoid(-x)),
    "log1p(-sigmoid)": (wide, one, [sigmoid, n("Neg", "s", "m"), n("Add", "m,one", "c"), n("Log", "c", "y")], lambda x: F.logsigmoid(-x)),
    "reshaped logsigmoid": (wide, {"flat": [-1]}, [sigmoid, n("Reshape", "s,flat", "r"), n("Log", "r", "y")], lambda x: F.logsigmoid(x).reshape(-1)),
    "softplus": (wide, one, [exp, n("Add", "e,one", "a"), n("Log", "a", "y")], F.softplus),
    "soft_margin": (wide, one | {"two": -2.0}, [n("Mul", "x,two", "m"), n("Exp", "m", "e"), n("Add", "one,e", "a"), n("Log", "a", "y")], lambda x: -F.logsigmoid(2 * x)),
    "mish": (wide, one, [exp, n("Add", "e,one", "a"), n("Log", "a", "p"), n("Tanh", "p", "t"), n("Mul", "x,t", "y")], F.mish),
    "log(exp(x) + 3)": (wide, {"three": 3.0}, [exp, n("Add", "e,three", "a"), n("Log", "a", "y")], lambda x: torch.logaddexp(x, torch.tensor(3.0, dtype=x.dtype).log())),
    "logaddexp": (rows, {"half": -0.5}, [n("Mul", "x,half", "h"), exp, n("Exp", "h", "f"), n("Add", "e,f", "a"), n("Log", "a", "y")], lambda x: torch.logaddexp(x, -0.5 * x)),
    "logaddexp of three": (rows, one | {"half": -0.5}, [n("Mul", "x,half", "h"), exp, n("Exp", "h", "f"), n("Add", "e,f", "a"), n("Add", "a,one", "b"), n("Log", "b", "y")], lambda x: torch.logsumexp(torch.stack([x, -0.5 * x, 0 * x]), 0)),
    "logsumexp": (rows, axis, [exp, n("ReduceSum", "e,axis", "r", keepdims=0), n("Log", "r", "y")], lambda x: torch.logsumexp(x, 1)),
    "logmeanexp": (rows, axis, [exp, n("ReduceMean", "e,axis", "r", keepdims=1), n("Log", "r", "y")], lambda x: torch.logsumexp(x, 1, keepdim=True) - torch.tensor(5.0).double().log()),
    "ReduceLogSumExp": (rows, axis, [n("ReduceLogSumExp", "x,axis", "y", keepdims=1)], lambda x: torch.logsumexp(x, 1, keepdim=True)),
    "x - logsumexp": (rows, axis, [exp, n("ReduceSum", "e,axis", "r", keepdims=1), n("Log", "r", "l"), n("Sub", "x,l", "y")], lambda x: F.log_softmax(x, 1)),
    "x - ReduceLogSumExp": (rows, axis, [n("ReduceLogSumExp", "x,axis", "l", keepdims=1), n("Sub", "x,l", "y")], lambda x: F.log_softmax(x, 1)),
    "x - unsqueezed": (rows, axis, [n("ReduceLogSumExp", "x,axis", "r", keepdims=0), n("Unsqueeze", "r,axis", "l"), n("Sub", "x,l", "y")], lambda x: F.log_softmax(x, 1)),
    "log(softmax)": (rows, {}, [n("Softmax", "x", "s", axis=1), n("Log", "s", "y")], lambda x: F.log_softmax(x, 1)),
    "log(softmax) of places": (rows, {"places": [3, 0]}, [n("Softmax", "x", "s", axis=1), n("Gather", "s,places", "g", axis=1), n("Log", "g", "y")], lambda x: F.log_softmax(x, 1)[:, [3, 0]]),
    "softmax": (rows, axis, [exp, n("ReduceSum", "e,axis", "r", keepdims=1), n("Div", "e,r", "y")], lambda x: F.softmax(x, 1)),
    "log of a quotient": (rows, axis, [exp, n("ReduceSum", "e,axis", "r", keepdims=1), n("Div", "e,r", "q"), n("Log", "q", "y")], lambda x: F.log_softmax(x, 1)),
    "sigmoid": (wide, one, [n("Neg", "x", "m"), n("Exp", "m", "e"), n("Add", "e,one", "a"), n("Div", "one,a", "y")], torch.sigmoid),
    "sigmoid by reciprocal": (wide, one, [n("Neg", "x", "m"), n("Exp", "m", "e"), n("Add", "e,one", "a"), n("Reciprocal", "a", "y")], torch.sigmoid),
    "sigmoid of exponentials": (wide, one, [exp, n("Add", "one,e", "a"), n("Div", "e,a", "y")], torch.sigmoid),
    "log(exp)": (wide, {}, [exp, n("Log", "e", "y")], lambda x: x * 1),
    "log1p": (small, one, [n("Add", "x,one", "a"), n("Log", "a", "y")], torch.log1p),
    "expm1": (small, one, [exp, n("Sub", "e,one", "y")], torch.expm1),
    "bce": (wide, one | {"t": 0.25, "u": 0.75}, [sigmoid, n("Log", "s", "a"), n("Sub", "one,s", "c"), n("Log", "c", "b"), n("Mul", "a,t", "p"), n("Mul", "b,u", "q"), n("Add", "p,q", "r"), n("Neg", "r", "y")], lambda x: F.binary_cross_entropy_with_logits(x, 0.25 + 0 * x, reduction="none")),
    "xlogy": (positive, {"zero": 0.0}, [n("IsNaN", "x", "i"), n("Equal", "x,zero", "z"), n("Log", "x", "l"), n("Mul", "x,l", "p"), n("Where", "i,x,p", "w"), n("Where", "z,x,w", "y")], None),
    "norm": (zeros, axis, [n("ReduceL2", "x,axis", "y", keepdims=0)], lambda x: x.norm(dim=1)),
    "norm of squares": (zeros, axis, [n("Mul", "x,x", "q"), n("ReduceSum", "q,axis", "r", keepdims=0), n("Sqrt", "r", "y")], lambda x: x.norm(dim=1)),
    "norm of powers": (zeros, axis | {"two": 2.0, "half": 0.5}, [n("Pow", "x,two", "q"), n("ReduceSum", "q,axis", "r", keepdims=1), n("Pow", "r,half", "y")], lambda x: x.norm(dim=1, keepdim=True)),
    "third norm": (zeros, axis | {"p": 3.0, "root": 1 / 3}, [n("Abs", "x", "b"), n("Pow", "b,p", "q"), n("ReduceSum", "q,axis", "r", keepdims=0), n("Pow", "r,root", "y")], lambda x: torch.linalg.vector_norm(x, 3, dim=1)),
    "std": (equal, axis | {"three": 3.0, "two": 2.0}, [n("ReduceMean", "x,axis", "m", keepdims=1), n("Sub", "x,m", "d"), n("Mul", "d,d", "q"), n("ReduceMean", "q,axis", "v", keepdims=0), n("Mul", "v,three", "w"), n("Div", "w,two", "u"), n("Sqrt", "u", "y")], lambda x: x.std(1)),
    "cdist": (zeros, axis | {"two": 2.0, "minus_two": -2.0, "one": 1.0, "column": [3, 1], "zero": 0.0}, [n("Pow", "x,two", "q"), n("ReduceSum", "q,axis", "r", keepdims=1), n("Expand", "one,column", "o"), n("Mul", "x,minus_two", "m"), n("Concat", "m,r,o", "a", axis=1), n("Concat", "x,o,r", "b", axis=1), n("Transpose", "b", "t", perm=[1, 0]), n("MatMul", "a,t", "p"), n("Max", "p,zero", "c"), n("Sqrt", "c", "y")], lambda x: torch.cdist(x, x)),
    "root of a maximum": (wide, {"zero": 0.0}, [n("Max", "x,zero", "m"), n("Sqrt", "m", "y")], lambda x: x.clamp(min=0).sqrt()),
    "absolute value of complex numbers": (points, {"first": [0], "second": [1]}, [n("Gather", "x,first", "a", axis=1), n("Gather", "x,second", "b", axis=1), n("Mul", "a,a", "p"), n("Mul", "b,b", "q"), n("Add", "p,q", "s"), n("Sqrt", "s", "y")], lambda x: torch.complex(x[:, :1], x[:, 1:]).abs()),
    "norm of order 1/2": (zeros, axis | {"two": 2.0, "half": 0.5}, [n("Abs", "x", "b"), n("Pow", "b,half", "q"), n("ReduceSum", "q,axis", "r", keepdims=0), n("Pow", "r,two", "y")], lambda x: torch.linalg.vector_norm(x, 0.5, dim=1)),
    "logcumsumexp": (late, axis, [n("ReduceMax", "x,axis", "m", keepdims=1), n("Sub", "x,m", "d"), n("Exp", "d", "e"), n("CumSum", "e,axis", "c"), n("Log", "c", "l"), n("Add", "l,m", "y")], lambda x: x.logcumsumexp(1)),
    "logcumsumexp in reverse": (late, axis, [exp, n("CumSum", "e,axis", "c", reverse=1), n("Log", "c", "y")], lambda x: x.flip(1).logcumsumexp(1).flip(1)),
    "log(cosh)": (rows, {}, [n("Cosh", "x", "c"), n("Log", "c", "y")], lambda x: torch.logaddexp(x, -x) - torch.tensor(2.0).double().log()),
    "bce of softmax": ([[1e4, 0.0, -1e4], [0.1, 0.2, 0.3]], one | {"least": -100.0, "t": 0.25, "u": -0.75}, [n("Softmax", "x", "h", axis=1), n("Neg", "h", "m"), n("Add", "m,one", "c"), n("Log", "c", "a"), n("Max", "a,least", "f"), n("Log", "h", "b"), n("Max", "b,least", "g"), n("Mul", "f,u", "p"), n("Mul", "g,t", "q"), n("Sub", "p,q", "y")], lambda x: F.binary_cross_entropy(x.softmax(1), torch.full_like(x, 0.25, requires_grad=False), reduction="none")),
    "sinc": ([[0.0, 0.5, -0.25], [1.5, 0.0, 2.5]], {"pi": torch.pi, "zero": 0.0} | one, [n("Mul", "x,pi", "a"), n("Equal", "x,zero", "z"), n("Sin", "a", "s"), n("Div", "s,a", "q"), n("Where", "z,one,q", "y")], torch.sinc),
    "atan2": (points, {"first": [0], "second": [1], "zero": 0.0, "pi": torch.pi}, [n("Gather", "x,first", "a", axis=1), n("Gather", "x,second", "b", axis=1), n("Div", "a,b", "q"), n("Atan", "q", "t"), n("Greater", "a,zero", "g"), n("Add", "t,pi", "p"), n("Sub", "t,pi", "m"), n("Where", "g,p,m", "w"), n("Less", "b,zero", "l"), n("Where", "l,w,t", "v"), n("IsNaN", "v", "i"), n("Where", "i,zero,v", "y")], lambda x: torch.atan2(x[:, :1], x[:, 1:])),
}


def xlogy(x):
    return torch.special.xlogy(x, x)


def main():
    cases = []
    for name, (values, constants, nodes, function) in CASES.items():
        x = torch.tensor(values).double().requires_grad_()  # as float32 holds it
        if function is None:  # PyTorch's slope at (0, 0) is nan; that of the limit towards log y is taken: 0
            y = xlogy(x)
            gradient = torch.where(x == 0, 0.0, x.log() + 1).detach()
            dy = torch.linspace(0.5, 1.5, y.numel(), dtype=y.dtype).reshape(y.shape)
            gradient = gradient * dy
        else:
            y = function(x)
            dy = torch.linspace(0.5, 1.5, y.numel(), dtype=y.dtype).reshape(y.shape)
            (gradient,) = torch.autograd.grad(y, x, dy)
        cases.append({"name": name, "x": {"shape": list(x.shape), "values": x.flatten().tolist()}, "constants": constants, "nodes": nodes,
                      "y": y.flatten().tolist(), "dy": {"shape": list(y.shape), "values": dy.flatten().tolist()}, "dx": gradient.flatten().tolist()})
    path = pathlib.Path(__file__).parents[1] / "data" / "stable_functions.json"
    path.write_text("[\n" + ",\n".join(json.dumps(c) for c in cases) + "\n]\n")


main()

"""Writes tests/data/recurrent.json: ONNX's RNN, GRU and LSTM with results and gradients in double.

    python tests/scripts/recurrent_expectations.py

Layers that PyTorch has (nn.RNN, nn.GRU, nn.LSTM, in one or two directions, with packed lengths) are computed by it. Those that it lacks
(peepholes, clip, input_forget, other activations, the reset gate before the product, two directions from the end) are ONNX's formulas, step by
step, differentiated by PyTorch. Each case: operator, operator set, attributes, inputs (float64 ones get a gradient), and for each output its
numbers and a fixed dy; null stands for what is absent. Numbers come from one seeded generator, rounded to three digits.
"""

import json
import pathlib

import torch
import torch.nn.functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

torch.manual_seed(25)
torch.set_default_dtype(torch.float64)
STEPS, BATCH, WIDTH, HIDDEN = 4, 3, 2, 2
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
# Where PyTorch's gates r, z, n and i, f, g, o stand among ONNX's z, r, h and i, o, f, c.
ORDERS = {"RNN": (0,), "GRU": (1, 0, 2), "LSTM": (0, 2, 3, 1)}
cases = []


def numbers(*shape, low=-1.0, high=1.0):
    return (torch.rand(shape) * (high - low) + low).mul(1000).round().div(1000)


def by_pytorch(op, x, w, r, b, lengths, h0, c0, attributes):
    """y [T, D, B, H], h [D, B, H], c."""
    both = attributes.get("direction") == "bidirectional"
    directions = 2 if both else 1
    relu = attributes.get("activations", ["Tanh"])[0] == "Relu"
    options = {"nonlinearity": "relu" if relu else "tanh"} if op == "RNN" else {}
    module = getattr(torch.nn, op)(WIDTH, HIDDEN, bidirectional=both, bias=b is not None, **options)

    def reordered(values):
        return torch.cat([values[q * HIDDEN:(q + 1) * HIDDEN] for q in ORDERS[op]])

    parameters = {}
    for d in range(directions):
        end = "_reverse" if d else ""
        parameters[f"weight_ih_l0{end}"], parameters[f"weight_hh_l0{end}"] = reordered(w[d]), reordered(r[d])
        if b is not None:
            half = GATES[op] * HIDDEN
            parameters[f"bias_ih_l0{end}"], parameters[f"bias_hh_l0{end}"] = reordered(b[d][:half]), reordered(b[d][half:])
    zeros = torch.zeros(directions, BATCH, HIDDEN)
    h0, c0 = (zeros if s is None else s for s in (h0, c0))
    if lengths is not None:
        x = pack_padded_sequence(x, lengths, enforce_sorted=False)
    y, state = torch.func.functional_call(module, parameters, (x, (h0, c0) if op == "LSTM" else h0))
    if lengths is not None:
        y = pad_packed_sequence(y, total_length=STEPS)[0]
    h, c = state if op == "LSTM" else (state, None)
    return y.reshape(STEPS, BATCH, directions, HIDDEN).transpose(1, 2), h, c


FUNCTIONS = {
    "Sigmoid": lambda x, a, b: torch.sigmoid(x),
    "Tanh": lambda x, a, b: torch.tanh(x),
    "Relu": lambda x, a, b: F.relu(x),
    "Affine": lambda x, a, b: a * x + b,
    "LeakyRelu": lambda x, a, b: F.leaky_relu(x, a),
    "ThresholdedRelu": lambda x, a, b: F.threshold(x, a, 0.0),
    "ScaledTanh": lambda x, a, b: a * torch.tanh(b * x),
    "HardSigmoid": lambda x, a, b: (a * x + b).clamp(0, 1),
    "Elu": lambda x, a, b: F.elu(x, a),
    "Softsign": lambda x, a, b: F.softsign(x),
    "Softplus": lambda x, a, b: F.softplus(x),
}
DEFAULTS = {"LeakyRelu": (0.01,), "ThresholdedRelu": (1.0,), "HardSigmoid": (0.2, 0.5), "Elu": (1.0,), "Affine": (None, None),
            "ScaledTanh": (None, None)}


def functions(op, attributes, directions):
    names = attributes.get("activations") or {"RNN": ["Tanh"], "GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"]}[op] * directions
    alphas, betas = list(attributes.get("activation_alpha", [])), list(attributes.get("activation_beta", []))
    clip = attributes.get("clip")
    made = []
    for name in names:
        own = list(DEFAULTS.get(name, ()))
        if own and alphas:
            own[0] = alphas.pop(0)
        if len(own) > 1 and betas:
            own[1] = betas.pop(0)
        a, b = (own + [None, None])[:2]
        bound = None if op == "LSTM" and len(made) % 3 == 2 else clip  # not that of the cell
        made.append(lambda x, name=name, a=a, b=b, bound=bound: FUNCTIONS[name](x if bound is None else x.clamp(-bound, bound), a, b))
    each = len(names) // directions
    return [made[d * each:(d + 1) * each] for d in range(directions)]


def by_formula(op, x, w, r, b, lengths, h0, c0, p, attributes):
    direction = attributes.get("direction", "forward")
    directions = 2 if direction == "bidirectional" else 1
    half = GATES[op] * HIDDEN
    lengths = [STEPS] * BATCH if lengths is None else lengths.tolist()
    y = [[[None] * BATCH for _ in range(directions)] for _ in range(STEPS)]
    last = [[[None] * BATCH for _ in range(directions)] for _ in range(2)]
    for d, own in enumerate(functions(op, attributes, directions)):
        wb, rb = (torch.zeros(half), torch.zeros(half)) if b is None else (b[d][:half], b[d][half:])
        for s in range(BATCH):
            h = torch.zeros(HIDDEN) if h0 is None else h0[d][s]
            c = torch.zeros(HIDDEN) if c0 is None else c0[d][s]
            order = range(lengths[s])
            for t in range(STEPS):
                y[t][d][s] = torch.zeros(HIDDEN)
            for t in reversed(order) if direction == "reverse" or d else order:
                u = [part for part in (w[d] @ x[t][s] + wb).split(HIDDEN)]
                v = [part for part in (r[d] @ h + rb).split(HIDDEN)]
                if op == "RNN":
                    h = own[0](u[0] + v[0])
                elif op == "GRU":
                    z, reset = own[0](u[0] + v[0]), own[0](u[1] + v[1])
                    if attributes.get("linear_before_reset"):
                        n = own[1](u[2] + reset * v[2])
                    else:
                        n = own[1](u[2] + r[d][2 * HIDDEN:] @ (reset * h) + rb[2 * HIDDEN:])
                    h = (1 - z) * n + z * h
                else:
                    pi, po, pf = torch.zeros(3, HIDDEN) if p is None else p[d].split(HIDDEN)
                    i = own[0](u[0] + v[0] + pi * c)
                    f = 1 - i if attributes.get("input_forget") else own[0](u[2] + v[2] + pf * c)
                    c = f * c + i * own[1](u[3] + v[3])
                    h = own[0](u[1] + v[1] + po * c) * own[2](c)
                y[t][d][s] = h
            last[0][d][s], last[1][d][s] = h, c
    y, h, c = (torch.stack([torch.stack([torch.stack(s) for s in step]) for step in steps]) for steps in (y, [last[0]], [last[1]]))
    return y, h[0], c[0] if op == "LSTM" else None


def case(name, op, opset, attributes=None, formula=False, with_b=True, lengths=None, with_h0=False, with_c0=False, with_p=False, outputs="yhc"):
    attributes = dict(attributes or {}, hidden_size=HIDDEN)
    directions = 2 if attributes.get("direction") == "bidirectional" else 1
    rows = GATES[op] * HIDDEN
    batch_first = attributes.get("layout", 0) == 1
    state = (BATCH, directions, HIDDEN) if batch_first else (directions, BATCH, HIDDEN)
    x = numbers(BATCH, STEPS, WIDTH) if batch_first else numbers(STEPS, BATCH, WIDTH)
    inputs = [x, numbers(directions, rows, WIDTH), numbers(directions, rows, HIDDEN), numbers(directions, 2 * rows) if with_b else None,
              None if lengths is None else torch.tensor(lengths, dtype=torch.int32), numbers(*state) if with_h0 else None]
    if op == "LSTM":
        inputs += [numbers(*state) if with_c0 else None, numbers(directions, 3 * HIDDEN) if with_p else None]
    own = [None if i is None else i.clone().requires_grad_(i.is_floating_point()) for i in inputs]
    x, w, r, b, n, h0, c0, p = own + [None] * (8 - len(own))
    if batch_first:
        x, h0, c0 = (None if v is None else v.transpose(0, 1) for v in (x, h0, c0))
    if formula:
        results = by_formula(op, x, w, r, b, n, h0, c0, p, attributes)
    else:
        results = by_pytorch(op, x, w, r, b, n, h0, c0, attributes)
    if batch_first:
        results = [results[0].permute(2, 0, 1, 3)] + [None if v is None else v.transpose(0, 1) for v in results[1:]]
    kept = [v if letter in outputs else None for v, letter in zip(results, "yhc")]
    while kept[-1] is None:
        kept.pop()
    dys = [None if v is None else numbers(*v.shape) for v in kept]
    total = sum((v * dy).sum() for v, dy in zip(kept, dys) if v is not None)
    wanted = [v for v in own if v is not None and v.requires_grad]
    gradients = iter(torch.autograd.grad(total, wanted, allow_unused=True))
    entries = []
    for v in own:
        if v is None:
            entries.append(None)
            continue
        entry = {"shape": list(v.shape), "type": str(v.dtype).removeprefix("torch."), "values": v.detach().flatten().tolist()}
        if v.requires_grad:
            dv = next(gradients)
            entry["gradient"] = (torch.zeros_like(v) if dv is None else dv).flatten().tolist()
        entries.append(entry)
    cases.append({
        "name": name, "op": op, "opset": opset, "attributes": attributes, "inputs": entries,
        "outputs": [None if v is None else {"shape": list(v.shape), "y": v.detach().flatten().tolist(), "dy": dy.flatten().tolist()}
                    for v, dy in zip(kept, dys)],
    })


def main():
    for op in GATES:
        linear = {"linear_before_reset": 1} if op == "GRU" else {}
        is_lstm = op == "LSTM"
        case("one direction", op, 7, linear, with_h0=True, with_c0=is_lstm)
        case("two directions", op, 14, dict(linear, direction="bidirectional"), with_h0=True, with_c0=is_lstm)
        case("packed lengths", op, 14, linear, lengths=[2, 4, 1], with_h0=True, with_c0=is_lstm)
        case("packed lengths in two directions", op, 22, dict(linear, direction="bidirectional"), lengths=[3, 1, 4])
        case("without biases and states", op, 22, dict(linear), with_b=False, outputs="y")
        case("the last state alone", op, 14, linear, outputs="h")
        case("reverse", op, 14, dict(linear, direction="reverse"), formula=True, lengths=[4, 2, 3], with_h0=True, with_c0=is_lstm)
        case("clip", op, 14, dict(linear, clip=0.5), formula=True, with_h0=True, with_c0=is_lstm)
        case("batch first", op, 14, dict(linear, layout=1, direction="bidirectional"), formula=True, lengths=[4, 2, 3], with_h0=True,
             with_c0=is_lstm)
    case("relu", "RNN", 14, {"activations": ["Relu"]}, with_h0=True)
    case("reset before the product", "GRU", 14, {"direction": "bidirectional"}, formula=True, lengths=[4, 0, 3], with_h0=True)
    case("the last cell alone", "LSTM", 14, outputs="c")
    case("peepholes", "LSTM", 14, {"direction": "bidirectional"}, formula=True, with_h0=True, with_c0=True, with_p=True)
    case("input and forget gate coupled", "LSTM", 14, {"input_forget": 1}, formula=True, with_c0=True, with_p=True)
    case("clip and peepholes", "LSTM", 14, {"clip": 0.375}, formula=True, with_c0=True, with_p=True)
    case("activations without numbers", "LSTM", 14, {"activations": ["Softsign", "Relu", "Softplus"]}, formula=True)
    case("activations with numbers", "LSTM", 14,
         {"activations": ["HardSigmoid", "ScaledTanh", "LeakyRelu"], "activation_alpha": [0.375, 0.75, 0.125], "activation_beta": [0.25, 1.25]},
         formula=True, with_c0=True)
    case("numbers of those that read them", "GRU", 14,
         {"activations": ["Sigmoid", "Affine", "HardSigmoid", "Elu"], "direction": "bidirectional", "activation_alpha": [0.75, 0.25, 1.5],
          "activation_beta": [0.125, 0.625]}, formula=True)
    case("default numbers", "GRU", 14, {"activations": ["HardSigmoid", "LeakyRelu"]}, formula=True, with_h0=True)
    case("threshold", "RNN", 14, {"activations": ["ThresholdedRelu"], "activation_alpha": [0.25]}, formula=True, with_h0=True)
    path = pathlib.Path(__file__).resolve().parents[1] / "data" / "recurrent.json"
    lines = ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases)
    path.write_text('{"cases":[\n' + lines + "\n]}\n")
    print(len(cases), "cases,", path.stat().st_size, "bytes")


if __name__ == "__main__":
    main()

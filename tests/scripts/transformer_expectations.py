"""Writes tests/data/transformers.json: ONNX's operators of transformers with PyTorch's results and gradients in double.

    python tests/scripts/transformer_expectations.py

Cases in the form of onnx_gradients.py. Attention is written out in PyTorch where scaled_dot_product_attention lacks a form; a query
that sees no key has weights 0.
"""

import json
import math
import pathlib

import torch
import torch.nn.functional as F

torch.manual_seed(23)
torch.set_default_dtype(torch.float64)
cases = []


def numbers(*shape, low=-1.0, high=1.0):
    return (torch.rand(shape) * (high - low) + low).mul(1000).round().div(1000)


def case(name, op, opset, attributes, inputs, function, outputs=1):
    """`function` gets the tensors of `inputs` (None: absent) and gives the results, of which None ones are not asked for."""
    own = [None if x is None else x.clone().requires_grad_(x.is_floating_point()) for x in inputs]
    results = function(*own)
    results = results if isinstance(results, tuple) else (results,)
    slopes = [None if y is None else numbers(*y.shape) for y in results]
    wanted = [x for x in own if x is not None and x.requires_grad]
    total = sum((y * dy).sum() for y, dy in zip(results, slopes) if y is not None)
    gradients = iter(torch.autograd.grad(total, wanted, allow_unused=True))
    entries = []
    for x in own:
        if x is None:
            entries.append(None)
            continue
        kind = str(x.dtype).removeprefix("torch.")
        entry = {"shape": list(x.shape), "type": kind, "values": x.detach().flatten().tolist()}
        if x.requires_grad:
            dx = next(gradients)
            entry["gradient"] = (torch.zeros_like(x) if dx is None else dx).flatten().tolist()
        entries.append(entry)
    written = [None if y is None else {"shape": list(y.shape), "y": y.detach().flatten().tolist(), "dy": dy.flatten().tolist()}
               for y, dy in zip(results, slopes)]
    cases.append({"name": name, "op": op, "opset": opset, "attributes": attributes, "inputs": entries, "outputs": written})


def normalizations():
    x = numbers(2, 3, 4)
    case("last axis", "RMSNormalization", 23, {"epsilon": 0.125}, [x, numbers(4)], lambda x, s: F.rms_norm(x, (4,), s, 0.125))
    case("two axes", "RMSNormalization", 23, {"axis": 1}, [x, numbers(3, 4)], lambda x, s: F.rms_norm(x, (3, 4), s, 1e-5))
    case("broadcast scale", "RMSNormalization", 23, {"axis": -2}, [x, numbers(4)],
         lambda x, s: F.rms_norm(x, (3, 4), s.expand(3, 4), 1e-5))


def gates():
    a, b = numbers(2, 5), numbers(2, 5)
    case("plain", "SwiGLU", 28, {}, [a, b], lambda a, b: F.silu(a) * b)
    case("alpha", "SwiGLU", 28, {"alpha": 1.5}, [a, b], lambda a, b: a * torch.sigmoid(1.5 * a) * b)


def rotated(x, cos, sin, interleaved):
    """x [B, H, S, D]; cos, sin [B, S, R]."""
    cos, sin, r = cos[:, None], sin[:, None], cos.shape[-1]
    part, rest = x[..., :2 * r], x[..., 2 * r:]
    a, b = (part[..., 0::2], part[..., 1::2]) if interleaved else part.split(r, -1)
    real, imaginary = a * cos - b * sin, a * sin + b * cos
    turned = torch.stack((real, imaginary), -1).flatten(-2) if interleaved else torch.cat((real, imaginary), -1)
    return torch.cat((turned, rest), -1)


def rotations():
    x, flat = numbers(2, 3, 4, 6), numbers(2, 4, 18)
    table = (numbers(7, 3), numbers(7, 3))
    places = torch.tensor([[0, 1, 2, 3], [6, 4, 2, 0]])
    for interleaved in (0, 1):
        case(f"positions {interleaved}", "RotaryEmbedding", 23, {"interleaved": interleaved}, [x, *table, places],
             lambda x, c, s, p: rotated(x, c[p], s[p], interleaved))
        part = (numbers(2, 4, 2), numbers(2, 4, 2))
        case(f"part of a head {interleaved}", "RotaryEmbedding", 23,
             {"interleaved": interleaved, "rotary_embedding_dim": 4, "num_heads": 3}, [flat, *part],
             lambda x, c, s: rotated(x.unflatten(2, (3, 6)).transpose(1, 2), c, s, interleaved).transpose(1, 2).flatten(2))


def attended(q, k, v, mask=None, visible=None, scale=None, cap=0.0, mode=None):
    group = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    raw = q @ k.transpose(2, 3) * (scale or 1 / math.sqrt(q.shape[-1]))
    capped = cap * torch.tanh(raw / cap) if cap else raw
    added = torch.zeros(()) if mask is None else mask
    if visible is not None:
        added = torch.where(visible, added, -math.inf)
    biased = capped + added
    sees = (biased.detach() > -math.inf).any(-1, keepdim=True)
    weights = torch.where(sees, torch.where(sees, biased, 0).softmax(-1), 0)
    y = weights @ v
    return y if mode is None else (y, None, None, (raw, capped, biased, weights)[mode])


def attentions():
    S, T, D = 3, 4, 2
    q, k, v = numbers(2, 4, S, D), numbers(2, 4, T, D), numbers(2, 4, T, 3)
    k2, v2 = numbers(2, 2, T, D), numbers(2, 2, T, 3)
    mask = numbers(S, T)
    seen = torch.rand(2, 1, S, T) > 0.4
    seen[1, 0, 2] = False  # a query that sees nothing
    seen[0, 0, 0, 1] = True
    i, j = torch.arange(S)[:, None], torch.arange(T)

    def add(name, opset, attributes, inputs, function):
        case(name, "Attention", opset, attributes, inputs, function)

    add("plain", 23, {}, [q, k, v], lambda q, k, v: F.scaled_dot_product_attention(q, k, v))
    add("shared heads", 23, {"scale": 0.25}, [q, k2, v2],
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, scale=0.25, enable_gqa=True))
    add("one head for all", 24, {}, [q, k2[:, :1], v2[:, :1]], attended)
    add("mask of bool", 23, {}, [q, k, v, seen], lambda q, k, v, m: attended(q, k, v, visible=m))
    add("causal, more keys", 24, {"is_causal": 1}, [q, k2, v2], lambda q, k, v: attended(q, k, v, visible=j <= i))
    square = (numbers(1, 2, T, D), numbers(1, 2, T, D), numbers(1, 2, T, D))
    add("causal square", 23, {"is_causal": 1}, list(square), lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True))
    add("softcap", 24, {"softcap": 0.75}, [q, k2, v2, seen], lambda q, k, v, m: attended(q, k, v, visible=m, cap=0.75))
    add("short mask", 24, {}, [q, k, v, seen[..., :3]],
        lambda q, k, v, m: attended(q, k, v, visible=F.pad(m, (0, 1), value=False)))
    add("window", 25, {"left_window_size": 1, "right_window_size": 1}, [q, k, v],
        lambda q, k, v: attended(q, k, v, visible=(j >= i - 1) & (j <= i + 1)))
    add("window with a mask", 25, {"left_window_size": 0, "is_causal": 1}, [q, k, v, seen],
        lambda q, k, v, m: attended(q, k, v, visible=(j == i) & m))
    lengths = torch.tensor([4, 2])
    add("lengths", 24, {"is_causal": 1}, [q, k2, v2, None, None, None, lengths],
        lambda q, k, v, m, a, b, n: attended(
            q, k, v, visible=(j < n[:, None, None, None]) & (j <= i + (n[:, None, None, None] - S))))
    past = (numbers(2, 2, 2, D), numbers(2, 2, 2, 3))

    def with_past(q, k, v, m, pk, pv):
        k, v = torch.cat((pk, k), 2), torch.cat((pv, v), 2)
        return attended(q, k, v, visible=torch.arange(T + 2) <= i + 2), k, v

    add("earlier keys", 24, {"is_causal": 1}, [q, k2, v2, None, *past], with_past)
    for mode in range(4):
        add(f"scores {mode}", 25, {"qk_matmul_output_mode": mode, "softcap": 0.5}, [q, k2, v2, mask if mode == 2 else seen],
            lambda q, k, v, m, mode=mode: attended(q, k, v, **{"mask" if mode == 2 else "visible": m}, cap=0.5, mode=mode))
    flat = [x.transpose(1, 2).flatten(2) for x in (q, k2, v2)]
    add("heads in the last axis", 23, {"q_num_heads": 4, "kv_num_heads": 2}, flat,
        lambda q, k, v: attended(*(x.unflatten(2, (h, -1)).transpose(1, 2) for x, h in ((q, 4), (k, 2), (v, 2)))).transpose(1, 2).flatten(2))


def convolutions():
    x, w, b, past = numbers(2, 3, 4), numbers(3, 1, 3), numbers(3), numbers(2, 3, 2)

    def run(x, w, b, past, act):
        everything = torch.cat((torch.zeros(2, 3, 2) if past is None else past, x), 2)
        return act(F.conv1d(everything, w, b, groups=3)), everything[..., 4:]

    case("no state", "CausalConvWithState", 27, {}, [x, w], lambda x, w: run(x, w, None, None, lambda y: y))
    case("state", "CausalConvWithState", 27, {"activation": "silu"}, [x, w, b, past], lambda x, w, b, p: run(x, w, b, p, F.silu))
    case("short", "CausalConvWithState", 27, {}, [x[..., :1], w, None, past],
         lambda x, w, b, p: (F.conv1d(torch.cat((p, x), 2), w, groups=3), torch.cat((p, x), 2)[..., 1:]))


def states():
    """ONNX's formula, step by step."""
    B, T, H, G, D, E = 2, 3, 4, 2, 2, 3
    q, k, v, past = numbers(B, T, H * D), numbers(B, T, G * D), numbers(B, T, G * E), numbers(B, G, D, E)

    def run(q, k, v, state, decay=None, rate=None, scale=1 / math.sqrt(D)):
        q, k, v = (x.unflatten(2, (n, -1)) for x, n in ((q, H), (k, G), (v, G)))
        state = torch.zeros(B, G, D, E) if state is None else state
        results = []
        for t in range(T):
            if decay is not None:
                state = state * decay[:, t].reshape(B, G, -1, 1).exp()
            new = v[:, t]
            if rate is not None:
                new = rate[:, t, :, None] * (new - torch.einsum("bgd,bgde->bge", k[:, t], state))
            state = state + torch.einsum("bgd,bge->bgde", k[:, t], new)
            results.append(scale * torch.einsum("bhd,bhde->bhe", q[:, t], state.repeat_interleave(H // G, 1)))
        return torch.stack(results, 1).flatten(2), state

    def add(name, rule, inputs, function, **more):
        case(name, "LinearAttention", 27, {"q_num_heads": H, "kv_num_heads": G, "update_rule": rule, **more}, inputs, function)

    decays, narrow, rates = numbers(B, T, G * D), numbers(B, T, G), numbers(B, T, G)
    add("linear", "linear", [q, k, v, past], lambda q, k, v, s: run(q, k, v, s))
    add("gated", "gated", [q, k, v, None, decays], lambda q, k, v, s, d: run(q, k, v, s, d))
    add("gated heads", "gated", [q, k, v, past, narrow], lambda q, k, v, s, d: run(q, k, v, s, d))
    add("delta", "delta", [q, k, v, past, None, rates], lambda q, k, v, s, d, b: run(q, k, v, s, None, b, 0.5), scale=0.5)
    add("both", "gated_delta", [q, k, v, past, decays, rates[..., :1]], run)


def scatters():
    cache, update, starts = numbers(2, 3, 5, 2), numbers(2, 3, 2, 2), torch.tensor([1, 3])
    rows = torch.arange(2)[:, None], (starts[:, None] + torch.arange(2))

    def put(c, u, s, at):
        return c.transpose(1, 2).index_put((torch.arange(2)[:, None], at), u.transpose(1, 2)).transpose(1, 2)

    case("linear", "TensorScatter", 24, {}, [cache, update, starts], lambda c, u, s: put(c, u, s, s[:, None] + torch.arange(2)))
    case("circular", "TensorScatter", 24, {"mode": "circular"}, [cache, update, starts + 1],
         lambda c, u, s: put(c, u, s, (s[:, None] + torch.arange(2)) % 5))
    case("from the start", "TensorScatter", 24, {"axis": 3}, [cache.transpose(2, 3), update.transpose(2, 3)],
         lambda c, u: torch.cat((u, c[..., 2:]), 3))


def main():
    for part in (normalizations, gates, rotations, attentions, convolutions, scatters, states):
        part()
    path = pathlib.Path(__file__).resolve().parents[1] / "data" / "transformers.json"
    lines = ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases)
    path.write_text('{"cases":[\n' + lines + "\n]}\n")
    print(len(cases), "cases,", path.stat().st_size, "bytes")


if __name__ == "__main__":
    main()

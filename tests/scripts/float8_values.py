"""Writes tests/data/float8.json: the numbers of 8-bit floats, what numbers are rounded to, and gradients through that rounding.

    python tests/scripts/float8_values.py

`values` are the 256 numbers of a type as the bits of float32, by ml_dtypes, which ONNX's reference computes with. `rounded` are rows
[bits of a float32, code where it saturates, code where it does not] by ONNX's reference: all numbers of the type, the middles between two
of them and the floats next to these, zeros, infinities, NaN, and numbers beyond the range.
Of float8_e8m0fnu `powers` are [bits, up, down, nearest] of normal positive numbers: where ONNX's text and its reference differ (0, smaller
numbers, infinities), the text counts, and the test says so by itself. `gradients` are PyTorch's through x + (round(clip x) - clip x).
"""

import json
import pathlib

import ml_dtypes
import numpy as np
import torch
from onnx.numpy_helper import saturate_cast, to_float8e8m0

TYPES = {
    "float8_e4m3fn": torch.float8_e4m3fn,
    "float8_e4m3fnuz": torch.float8_e4m3fnuz,
    "float8_e5m2": torch.float8_e5m2,
    "float8_e5m2fnuz": torch.float8_e5m2fnuz,
}
CODES = np.arange(256).astype(np.uint8)


def bits(x):
    return np.asarray(x, np.float32).view(np.uint32).tolist()


def codes(x, dtype):
    """(saturating, not saturating)"""
    return saturate_cast(x, dtype).view(np.uint8).tolist(), x.astype(dtype).view(np.uint8).tolist()


def rounded(dtype):
    values = CODES.view(dtype).astype(np.float32)
    finite = np.unique(values[np.isfinite(values) & (values >= 0)])
    largest = finite[-1]
    step = largest - finite[-2]
    ends = [largest + step / 2, largest + step, 2 * largest, 1e30, 2.0**-30, 1e-40, np.inf]
    middles = np.concatenate([(finite[1:] + finite[:-1]) / 2, ends[:1]]).astype(np.float32)
    beside = [np.nextafter(middles, np.float32(side)) for side in (0, np.inf)]
    x = np.concatenate([finite, middles, *beside, np.array(ends, np.float32)])
    x = np.concatenate([x, -x, np.array([np.nan], np.float32)]).astype(np.float32)
    with np.errstate(all="ignore"):
        return [list(row) for row in zip(bits(x), *codes(x, dtype))]


def powers():
    mantissas = (1, 1.25, 1.5, 1.5 - 2.0**-23, 1.75)
    x = np.array([2.0**e * m for e in (-126, -60, -2, 0, 1, 60, 126, 127) for m in mantissas], np.float32)
    return [list(row) for row in zip(bits(x), *(to_float8e8m0(x, True, mode).view(np.uint8).tolist() for mode in ("up", "down", "nearest")))]


def gradients(name, dtype):
    generator = torch.Generator().manual_seed(7)
    largest = torch.finfo(dtype).max
    x = torch.randn(24, generator=generator) * 2
    x[:6] = torch.tensor([0.98 * largest, -0.98 * largest, 3 * largest, -1e30, 0.0, 2.0**-20])
    x.requires_grad_()
    dy = torch.randn(24, generator=generator)
    inside = x.clamp(-largest, largest)
    y = inside + (inside.detach().to(dtype).float() - inside.detach())
    (dx,) = torch.autograd.grad((y * dy).sum(), x)
    return {"type": name, "x": x.tolist(), "dy": dy.tolist(), "y": y.tolist(), "dx": dx.tolist()}


def main():
    types = []
    for name in TYPES:
        dtype = np.dtype(getattr(ml_dtypes, name))
        types.append({"name": name, "values": bits(CODES.view(dtype).astype(np.float32)), "rounded": rounded(dtype)})
    scales = np.dtype(ml_dtypes.float8_e8m0fnu)
    types.append({"name": "float8_e8m0fnu", "values": bits(CODES.view(scales).astype(np.float32)), "powers": powers()})
    cases = [gradients(name, dtype) for name, dtype in TYPES.items()]
    path = pathlib.Path(__file__).resolve().parents[1] / "data" / "float8.json"
    dump = lambda rows: ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows)
    path.write_text('{"types":[\n' + dump(types) + '\n],"gradients":[\n' + dump(cases) + "\n]}\n")
    print(len(types), "types,", path.stat().st_size, "bytes")


if __name__ == "__main__":
    main()

"""Tensors in the file of `Session.save_state`, which is a .safetensors file."""

from __future__ import annotations

import dataclasses
import json
import math
import pathlib

import numpy

from tandem_train._arrays import Array, view_as

_NUMPY = {
    "F64": "float64", "F32": "float32", "F16": "float16", "I64": "int64", "I32": "int32", "I16": "int16", "I8": "int8",
    "U64": "uint64", "U32": "uint32", "U16": "uint16", "U8": "uint8", "BOOL": "bool",
}  # fmt: skip
_STORED = {"BF16": ("uint16", "bfloat16"), "F8_E4M3": ("uint8", "float8_e4m3fn"), "F8_E5M2": ("uint8", "float8_e5m2")}


@dataclasses.dataclass(frozen=True)
class Entry:
    """Where a tensor lies in the file."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    offset: int

    @property
    def dtype_name(self) -> str:
        return _STORED[self.dtype][1] if self.dtype in _STORED else _NUMPY[self.dtype]


def entries_of(path: pathlib.Path) -> dict[str, Entry]:
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(length))
    header.pop("__metadata__", None)
    return {
        name: Entry(name, entry["dtype"], tuple(entry["shape"]), 8 + length + entry["data_offsets"][0])
        for name, entry in header.items()
    }


def read(path: pathlib.Path, entry: Entry) -> Array:
    stored = _STORED[entry.dtype][0] if entry.dtype in _STORED else _NUMPY[entry.dtype]
    values = numpy.fromfile(path, stored, math.prod(entry.shape), offset=entry.offset).reshape(entry.shape)
    return view_as(values, entry.dtype_name, entry.name) if entry.dtype in _STORED else values


def write(path: pathlib.Path, entry: Entry, values: Array) -> None:
    """Replaces a tensor by one of the same type and shape."""
    with path.open("r+b") as file:
        file.seek(entry.offset)
        file.write(numpy.ascontiguousarray(values).tobytes())

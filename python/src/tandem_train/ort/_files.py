"""The files of a training: ONNX models with settings among their metadata, and checkpoints, which are .npz files."""

from __future__ import annotations

import dataclasses
import json
import pathlib
import zipfile
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

import numpy

from tandem_train._arrays import Array
from tandem_train._errors import refuse

METADATA = 14  # number of ModelProto.metadata_props, whose entries have a key (1) and a value (2)
KEY = b"tandem_train.ort"
Property = int | float | str


def with_settings(model: bytes, settings: Mapping[str, Any]) -> bytes:
    """A model with the settings in addition: what is appended to a message belongs to it."""
    entry = _field(1, KEY) + _field(2, json.dumps(dict(settings)).encode())
    return model + _field(METADATA, entry)


def settings_in(path: pathlib.Path, what: str) -> dict[str, Any]:
    """The settings that `generate_artifacts` has written. `what`: the file's name in an error about it."""
    try:
        with path.open("rb") as file:
            found = [value for entry in _entries(file) for value in [_setting(entry)] if value is not None]
    except (OSError, EOFError, ValueError) as error:
        refuse(f"the {what} cannot be read", file=str(path), got=str(error))
    if not found:
        refuse(f"this is no {what} of tandem_train.ort", file=str(path), fix="make it with generate_artifacts")
    result: dict[str, Any] = json.loads(found[-1])
    return result


def _field(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    result = b""
    while value >= 128:
        result += bytes([value % 128 + 128])
        value //= 128
    return result + bytes([value])


def _read_varint(file: BinaryIO) -> int | None:
    """None at the end of the file."""
    value = shift = 0
    while byte := file.read(1):
        value |= (byte[0] & 127) << shift
        if byte[0] < 128:
            return value
        shift += 7
    if shift:
        raise EOFError("it ends within a number")
    return None


def _entries(file: BinaryIO) -> Iterator[bytes]:
    """Metadata of a model; all else is passed over."""
    while (tag := _read_varint(file)) is not None:
        kind = tag & 7
        if kind == 2:
            length = _read_varint(file) or 0
            if tag >> 3 == METADATA:
                yield file.read(length)
            else:
                file.seek(length, 1)
        elif kind == 0:
            _read_varint(file)
        elif kind in (1, 5):
            file.seek(8 if kind == 1 else 4, 1)
        else:
            raise ValueError("it is no ONNX file")


def _setting(entry: bytes) -> str | None:
    start = _field(1, KEY)
    if not entry.startswith(start):
        return None
    rest = entry[len(start) + 1 :]
    while rest and rest[0] >= 128:  # the rest of the length
        rest = rest[1:]
    return rest[1:].decode()


@dataclasses.dataclass
class Checkpoint:
    """What a file of a checkpoint has. `state`: the file of Session.save_state, empty without optimizer states."""

    parameters: dict[str, Array]
    trainable: list[str]
    properties: dict[str, Property]
    state: bytes = b""
    steps: int = 0
    learning_rate: float = 1e-3

    def write(self, path: pathlib.Path) -> None:
        record: dict[str, Any] = {
            "trainable": self.trainable,
            "properties": self.properties,
            "names": list(self.parameters),
        }
        record |= {"steps": self.steps, "learning_rate": self.learning_rate, "format": 1}
        arrays: dict[str, Any] = {f"p{i}": value for i, value in enumerate(self.parameters.values())}
        arrays["record"] = numpy.frombuffer(json.dumps(record).encode(), numpy.uint8)
        arrays["state"] = numpy.frombuffer(self.state, numpy.uint8)
        made = path.with_name(path.name + ".new")
        with made.open("wb") as file:
            numpy.savez(file, **arrays)
        made.replace(path)

    @staticmethod
    def read(path: pathlib.Path) -> Checkpoint:
        try:
            with numpy.load(path, allow_pickle=False) as file:
                arrays = dict(file)
            record = json.loads(arrays["record"].tobytes())
            values = {name: arrays[f"p{i}"] for i, name in enumerate(record["names"])}
        except (OSError, ValueError, KeyError, TypeError, AttributeError, zipfile.BadZipFile) as error:
            refuse("this is no checkpoint of tandem_train.ort", file=str(path), got=str(error))
        return Checkpoint(
            values,
            record["trainable"],
            record["properties"],
            arrays["state"].tobytes(),
            record["steps"],
            record["learning_rate"],
        )

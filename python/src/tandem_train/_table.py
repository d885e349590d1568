"""Tables of train.toml and policy.toml as values that never change."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

Duration = str | int  # "500 steps", "1 epoch"; a number: of steps


class Table(Mapping[str, Any]):
    """Keys with their values, in the order of the function that made it. It equals a dict of the same content."""

    def __init__(self, kind: str | None, arguments: Mapping[str, Any]) -> None:
        """`arguments`: of that function, as locals() has them. None stands for a key that was left out."""
        named = {name: value for name, value in arguments.items() if name not in ("self", "others", "__class__")}
        given = {"kind": kind, **named, **arguments.get("others", {})}
        if kind is None:
            given["kind"] = named.get("kind")
        self._values = {name: value for name, value in given.items() if value is not None}

    def __getitem__(self, key: str) -> Any:
        return self._values[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.items())})"


class Optimizer(Table):
    """A value of the key `optimizer`."""


class Group(Table):
    """An item of an optimizer's key `groups`."""


class Term(Table):
    """A term of the loss: a value of the key `loss`, or an item of a list of terms."""


class Schedule(Table):
    """A value of an optimizer's key `schedule`, or an item of a list of schedules that follow each other."""

    def __init__(self, kind: str, arguments: Mapping[str, Any], durations: Iterable[str]) -> None:
        super().__init__(kind, arguments)
        for name in durations:
            if name in self._values:
                self._values[name] = _in_steps(self._values[name])


class Metric(Table):
    """An item of the key `eval.metrics`."""


class Rule(Table):
    """A rule of a policy."""


def _in_steps(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_in_steps(item) for item in value]
    if isinstance(value, numbers.Integral) and not isinstance(value, bool):
        return f"{int(value)} steps"
    return value

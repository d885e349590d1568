"""The one exception of the package, with everything that is wrong."""

from __future__ import annotations

import dataclasses
import enum
from typing import Any, NoReturn


@dataclasses.dataclass(frozen=True)
class Diagnostic:
    """One thing that is wrong: where it is, what was expected, what was found, how to fix it."""

    message: str
    file: str = ""
    line: int = 0  # from 1; 0: not known. Of data files it is a row.
    column: int = 0  # from 1; 0: not known
    path: str = ""  # the name of an operator, parameter, key or array
    expected: str = ""
    got: str = ""
    fix: str = ""

    def __str__(self) -> str:
        place = self.file
        if self.line:
            place += f":{self.line}" + (f":{self.column}" if self.column else "")
        text = ": ".join(part for part in (place, self.path, self.message) if part)
        if self.expected or self.got:
            parts = [f"expected {self.expected}"] if self.expected else []
            text += ": " + ", ".join(parts + ([f"got {self.got}"] if self.got else []))
        return text + (f" ({self.fix})" if self.fix else "")


class ErrorKind(enum.StrEnum):
    """What sort of mistake it is; equal to its text, as in `error.kind == "usage"`."""

    RUNTIME = "runtime"  # a failure while running: a full disk, an interruption
    USAGE = "usage"  # a mistake in the call, the model, the configuration or the policy
    DOES_NOT_FIT = "does_not_fit"  # the plan exceeds a memory limit
    DATA = "data"  # bad data
    DIVERGED = "diverged"  # a loss, a parameter or a statistic is not finite


class Error(RuntimeError):
    """Raised for everything that the library refuses. `diagnostics` lists all mistakes, not only the first one."""

    kind: ErrorKind
    diagnostics: list[Diagnostic]

    def __init__(self, kind: str, diagnostics: list[Diagnostic], text: str = "") -> None:
        super().__init__(text or "\n".join(str(diagnostic) for diagnostic in diagnostics))
        self.kind = ErrorKind(kind)
        self.diagnostics = list(diagnostics)

    def __reduce__(self) -> tuple[Any, ...]:  # processes of a pool send errors to each other
        return type(self), (str(self.kind), self.diagnostics, str(self))


class Diverged(Error):
    """The loss, a parameter or a statistic is not finite. `kind` is "diverged"."""


_ARGUMENTS = {"--place": "place", "--device": "devices", "--budget": "budgets", "--to": "to"}


def error_of(kind: str, diagnostics: list[Diagnostic], text: str) -> Error:
    """The exception for an error of the library, which knows arguments by their names in commands. The extension module
    calls it.
    """
    if any(d.file in _ARGUMENTS for d in diagnostics):
        diagnostics = [dataclasses.replace(d, file=_ARGUMENTS.get(d.file, d.file)) for d in diagnostics]
        text = ""
    return (Diverged if kind == "diverged" else Error)(kind, diagnostics, text)


def refuse(message: str, **where: str) -> NoReturn:
    """Raises an Error about one mistake in a call."""
    raise Error("usage", [Diagnostic(message, **where)])  # type: ignore[arg-type]


def no_pickle(kind: str, instead: str) -> NoReturn:
    refuse(f"a {kind} cannot be pickled", fix=instead)

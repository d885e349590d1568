"""The parameters of a Session as a mapping."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import Any, NoReturn

from tandem_train import _tandem
from tandem_train._arrays import Array
from tandem_train._errors import no_pickle, refuse


class Parameters(MutableMapping[str, Array]):
    """From names in the model's file to copies of the present values. Setting an item sets the parameter.

    Each access reads all parameters of the session: `dict(session.parameters)` reads them once.
    """

    def __init__(self, session: _tandem.Session) -> None:
        self._session = session
        self._names: tuple[str, ...] | None = None

    def __getitem__(self, name: str) -> Array:
        value: Array | None = self._session.parameter(name) if isinstance(name, str) else None
        if value is None:
            raise KeyError(name)
        return value

    def __setitem__(self, name: str, value: Any) -> None:
        if not isinstance(name, str):
            refuse("the name of a parameter is no str", got=repr(name))
        self._session.set_parameter(name, value)

    def __delitem__(self, name: str) -> None:
        refuse("a parameter cannot be removed", path=name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._all_names())

    def __len__(self) -> int:
        return len(self._all_names())

    def __contains__(self, name: object) -> bool:
        return name in self._all_names()

    def copy(self) -> dict[str, Array]:
        """All values, read at once."""
        return self._session.parameters()

    def __reduce__(self) -> NoReturn:
        no_pickle("Parameters object", "copy() returns a dict of arrays")

    def __repr__(self) -> str:
        return f"Parameters({', '.join(self._all_names())})"

    def _all_names(self) -> tuple[str, ...]:
        if self._names is None:  # they never change
            self._names = tuple(self._session.parameter_names())
        return self._names

"""Arrays that are computed when they are looked at."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy
import numpy.lib.mixins

from tandem_train._arrays import Array


class LazyArray(numpy.lib.mixins.NDArrayOperatorsMixin):
    """Acts as the array of numpy that it stands for: `float(x)`, `x.item()`, `x + 1`, `numpy.mean(x)`, `f"{x}"`."""

    def __init__(self, compute: Callable[[], Any]) -> None:
        self._compute: Callable[[], Any] | None = compute
        self._value: Array | None = None

    @property
    def is_known(self) -> bool:
        return self._value is not None

    def become(self, value: Any) -> None:
        """Sets what it stands for, unless that is known."""
        if self._value is None:
            self._value = numpy.asarray(value)
            self._compute = None  # it holds the arrays of a call

    def compute_by(self, compute: Callable[[], Any]) -> None:
        if self._value is None:
            self._compute = compute

    def numpy(self) -> Array:
        """The array itself."""
        if self._compute is not None:
            self.become(self._compute())
        assert self._value is not None
        return self._value

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        value = self.numpy()
        if dtype is not None and dtype != value.dtype:
            return value.astype(dtype)
        return value.copy() if copy else value

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        return getattr(ufunc, method)(*(x.numpy() if isinstance(x, LazyArray) else x for x in inputs), **options)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.numpy(), name)

    def __float__(self) -> float:
        return float(self.numpy())

    def __int__(self) -> int:
        return int(self.numpy())

    def __bool__(self) -> bool:
        return bool(self.numpy())

    def __len__(self) -> int:
        return len(self.numpy())

    def __iter__(self) -> Iterator[Any]:
        return iter(self.numpy())

    def __getitem__(self, index: Any) -> Any:
        return self.numpy()[index]

    def __format__(self, form: str) -> str:
        value = self.numpy()
        return format(value.item() if value.ndim == 0 else value, form)

    def __repr__(self) -> str:
        return repr(self.numpy())

    def __str__(self) -> str:
        return str(self.numpy())

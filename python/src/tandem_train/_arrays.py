"""Element types that numpy has only with the package ml_dtypes."""

from __future__ import annotations

from typing import Any

import numpy
import numpy.typing

from tandem_train._errors import refuse

Array = numpy.typing.NDArray[Any]


def view_as(array: Array, dtype: str, name: str) -> Array:
    """The bytes of an array in a type of ml_dtypes. The extension module calls it."""
    try:
        import ml_dtypes
    except ImportError:
        refuse("numpy lacks this element type", path=name, got=dtype, fix="pip install ml_dtypes")
    return array.view(getattr(ml_dtypes, dtype))

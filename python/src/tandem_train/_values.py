"""Single values of a call, which are checked before the extension module takes them."""

from __future__ import annotations

import math
import operator

from tandem_train._errors import refuse


def text_of(text: str, name: str) -> str:
    """A str, which nothing else becomes. `name`: of what, in an error about it."""
    if not isinstance(text, str):
        refuse("this is no str", path=name, got=repr(text))
    return text


def count_of(count: int, name: str, least: int = 0, most: int = 2**31 - 1) -> int:
    """A whole number of these limits, which a bool is not."""
    try:
        number = least - 1 if isinstance(count, bool) else operator.index(count)
    except TypeError:
        number = least - 1
    if not least <= number <= most:
        refuse("this is no such number", path=name, expected=f"a whole number from {least} to {most}", got=repr(count))
    return number


def learning_rate_of(lr: float) -> float:
    """A float; the library refuses what is below 0 or no number."""
    is_number = not isinstance(lr, bool) and hasattr(lr, "__float__")
    try:
        number = float(lr) if is_number else math.nan
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not 0 <= number < math.inf:
        refuse("not a learning rate", path="learning_rate", expected="a number of 0 or more", got=repr(lr))
    return number

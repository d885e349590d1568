"""Paths as the library takes them."""

from __future__ import annotations

import os

from tandem_train._errors import refuse

Path = str | os.PathLike[str]


def path_text(path: Path, name: str) -> str:
    """A path as a str. `name`: what it is of, in an error about it."""
    try:
        text = os.fspath(path)
    except TypeError:
        refuse("this is no path", path=name, expected="a str or a pathlib.Path", got=type(path).__name__)
    if not isinstance(text, str):
        text = os.fsdecode(text)
    try:
        text.encode()
    except UnicodeEncodeError:
        refuse("this path is no UTF-8", path=name, got=ascii(text))
    if "\0" in text:
        refuse("a path ends before a character 0", path=name, got=repr(text))
    return text

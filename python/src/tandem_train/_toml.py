"""Python values as settings of train.toml."""

from __future__ import annotations

import math
import numbers
import os
import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy

from tandem_train._errors import refuse
from tandem_train._table import Term

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def toml_value(value: Any, key: str) -> str:
    """One value as TOML. `key`: its name in an error about it."""
    if isinstance(value, (bool, numpy.bool_)):
        return "true" if value else "false"
    if isinstance(value, (str, os.PathLike)):
        return _quoted(os.fspath(value), key)
    if isinstance(value, numbers.Integral):
        if not -(2**63) <= int(value) < 2**63:
            refuse("this number does not fit into 64 bits", path=key, got=str(value))
        return str(int(value))
    if isinstance(value, numbers.Real):
        number = float(value)
        return str(number) if math.isfinite(number) else ("nan" if number != number else "inf" if number > 0 else "-inf")
    if isinstance(value, Mapping):
        items = (f"{_toml_key(name, key)} = {toml_value(item, f'{key}.{name}')}" for name, item in value.items())
        return "{ " + ", ".join(items) + " }"
    if isinstance(value, (list, tuple)):
        return "[ " + ", ".join(toml_value(item, f"{key}.{i}") for i, item in enumerate(value)) + " ]"
    refuse(
        "this value cannot be a setting",
        path=key,
        expected="a number, a str, a bool, a list or a dict",
        got=f"{value!r} of type {type(value).__name__}",
        fix="leave the key out, and the default holds" if value is None else "",
    )


def settings_of(*groups: Mapping[str, Any] | None) -> list[str]:
    """Settings as the library reads them: KEY=VALUE. A key may have dots; a dict replaces a whole table."""
    settings: dict[str, str] = {}
    for group in groups:
        for key, value in _mapping_of(group).items():
            if not isinstance(key, str) or not key or "=" in key or "\n" in key:
                refuse("this is no key of train.toml", got=repr(key))
            if key in settings:
                refuse("this key is given twice", path=key)
            settings[key] = toml_value(_with_terms(value) if key == "loss" else value, key)
    for key in settings:
        table = key.rpartition(".")[0]
        while table:
            if table in settings:
                refuse(
                    "this key is given next to its whole table, which would replace it or be changed by it",
                    path=key,
                    fix=f"write it into {table}, or give every key of {table} with its dots",
                )
            table = table.rpartition(".")[0]
    return [f"{key}={value}" for key, value in settings.items()]


def merged_settings(first: Mapping[str, Any] | None, second: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of both. Raises an Error about a key that both have."""
    given = _mapping_of(first)
    for key in given:
        if key in second:
            refuse("this key is given twice", path=str(key))
    return {**given, **second}


def rules_of(rules: Iterable[str | Mapping[str, Any]]) -> list[str]:
    """Rules of a policy, each a dict or its TOML text."""
    if isinstance(rules, (str, Mapping)) or not isinstance(rules, Iterable):
        refuse("rules are a list", path="place", got=repr(rules))
    return [_rule_text(rule) for rule in rules]


def texts_of(texts: Iterable[str], name: str) -> list[str]:
    """A list of str, which a single str is not."""
    is_one = isinstance(texts, str)
    found = [] if is_one or not isinstance(texts, Iterable) else list(texts)
    if is_one or not isinstance(texts, Iterable) or not all(isinstance(text, str) for text in found):
        refuse("this is a list of str", path=name, got=repr(texts), fix=f"[{texts!r}]" if is_one else "")
    return found


def _mapping_of(settings: Mapping[str, Any] | None) -> Mapping[str, Any]:
    if settings is None:
        return {}
    if not isinstance(settings, Mapping):
        refuse("settings are a dict of keys of train.toml", got=repr(settings))
    return settings


def _rule_text(rule: str | Mapping[str, Any]) -> str:
    if isinstance(rule, str):
        return rule
    if not isinstance(rule, Mapping):
        refuse("a rule is a dict, or its text in TOML", path="place", got=repr(rule))
    return toml_value(rule, "place")


def _with_terms(loss: Any) -> Any:
    """One term, or a list of terms, stands for a table of them."""
    if isinstance(loss, Term):
        return {"terms": [loss]}
    return {"terms": loss} if isinstance(loss, (list, tuple)) else loss


def _quoted(text: str | bytes, key: str) -> str:
    if isinstance(text, bytes):
        text = os.fsdecode(text)
    try:
        text.encode()
    except UnicodeEncodeError:
        refuse("this text is no UTF-8", path=key, got=ascii(text))
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("${", "$${")
    return '"' + re.sub(r"[\x00-\x1f\x7f]", lambda match: f"\\u{ord(match[0]):04X}", escaped) + '"'


def _toml_key(name: Any, key: str) -> str:
    if not isinstance(name, str):
        refuse("the key of a table is no str", path=key, got=repr(name))
    if _BARE_KEY.fullmatch(name):
        return name
    return _quoted(name, key).replace("$${", "${")

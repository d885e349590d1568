"""Policies that are no files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tandem_train import _tandem
from tandem_train._toml import rules_of
from tandem_train.report import FoundPolicy

NAME = "<policy>"  # in errors, with the number of the rule, or of the text's line


def made_policy(policy: Any) -> _tandem.Policy | None:
    """The policy that rules, a text or a search give; None where it is the path of a file."""
    if isinstance(policy, FoundPolicy):
        return _tandem.Policy.parse(policy.policy, NAME)
    if isinstance(policy, str) and "\n" in policy:
        return _tandem.Policy.parse(policy, NAME)
    rules = rules_in(policy)
    return None if rules is None else _tandem.Policy.parse(policy_text(rules), NAME)


def rules_in(policy: Any) -> list[str | Mapping[str, Any]] | None:
    """The rules where a policy is given as such, or as one rule; else None."""
    if isinstance(policy, Mapping):
        return [policy]
    return list(policy) if isinstance(policy, (list, tuple)) else None


def policy_text(rules: Iterable[str | Mapping[str, Any]]) -> str:
    """A policy.toml of these rules, each in the line of its number."""
    lines = ",\n  ".join(rules_of(rules))
    return f"rules = [ {lines} ]\npolicy = 1\n"

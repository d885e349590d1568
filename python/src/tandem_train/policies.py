"""Questions about policy files, as functions."""

from __future__ import annotations

import pathlib
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

from tandem_train import _tandem
from tandem_train._errors import refuse
from tandem_train._paths import Path, path_text
from tandem_train._policy import NAME, made_policy
from tandem_train._toml import rules_of, settings_of, texts_of
from tandem_train._values import count_of, text_of
from tandem_train.report import FoundPolicy, Plan, Report
from tandem_train.tools import extents_of

AnyPolicy = Path | Mapping[str, Any] | Sequence[str | Mapping[str, Any]] | FoundPolicy


def plan(model_or_config: Path, policy: AnyPolicy = "", **options: Any) -> Plan:
    """Compiles a step under a policy without taking memory: bytes by device, copies, time, remedies.

    Options: `bind` (extents of free dimensions of a model: {"batch": 32}), `overrides` (keys of train.toml), `place`,
    `devices`, `profile` (such as "h100"), `ranks`, `network`.

    `policy`: a file, rules, the text of a file or what `auto` has found; "": the one of the configuration.
    """
    fields = _tandem.policy_plan(_options(model_or_config, policy, options))
    return Plan(fields["text"], fields["json"], fields["warnings"], fields["fits"], fields["html"])


def names(
    model_or_config: Path,
    at: str = "",
    *,
    bind: Mapping[str, int] | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> Report:
    """Operators and parameters as selectors of rules name them, with shapes and bytes; `at`: only what it selects.

    `bind`, `overrides`: as for `plan`.
    """
    filled = _options(model_or_config, "", {"bind": bind, "overrides": overrides})
    fields = _tandem.policy_names(filled, text_of(at, "at"))
    return Report(fields["text"], fields["json"], fields["warnings"])


def explain(model_or_config: Path, name: str, policy: AnyPolicy = "", *, phase: str = "", **options: Any) -> Report:
    """Where an operator or a parameter is, and which line of the policy decided it. Options as for `plan`."""
    fields = _tandem.policy_explain(
        _options(model_or_config, policy, options), text_of(name, "name"), text_of(phase, "phase")
    )
    return Report(fields["text"], fields["json"], fields["warnings"], fields["html"])


def auto(
    model_or_config: Path,
    policy: AnyPolicy = "",
    *,
    to: Path = "",
    budgets: Mapping[str, str] | None = None,
    measure: bool = False,
    most_plans: int = 0,
    **options: Any,
) -> FoundPolicy:
    """Searches a placement under budgets such as {"gpu": "20GiB"}. It is written to `to`, if that is given.

    Rules of `policy` hold. Options as for `plan`.
    """
    automatic = _tandem.PolicyAutoOptions()
    if not isinstance(budgets, Mapping | None):
        refuse("budgets are a dict of sizes by device", path="budgets", got=repr(budgets))
    automatic.budgets = [f"{device}={size}" for device, size in (budgets or {}).items()]
    automatic.measure = bool(measure)
    automatic.most_plans = count_of(most_plans, "most_plans")
    filled = _options(model_or_config, policy, options)
    with tempfile.TemporaryDirectory(prefix="tandem-") as folder:
        automatic.to = path_text(to, "to") or str(pathlib.Path(folder) / "policy.toml")
        fields = _tandem.policy_auto(filled, automatic)
        found = pathlib.Path(automatic.to).read_text(encoding="utf-8")
        if not path_text(to, "to"):  # no file is left
            for name in (automatic.to, f"{pathlib.Path(folder).name}/policy.toml"):
                fields["text"] = fields["text"].replace(name, NAME)
                fields["json"] = fields["json"].replace(name, NAME)
    return FoundPolicy(fields["text"], fields["json"], fields["warnings"], found, fields["html"])


def _options(model_or_config: Path, policy: AnyPolicy, options: dict[str, Any]) -> _tandem.PolicyOptions:
    filled = _tandem.PolicyOptions()
    path = path_text(model_or_config, "model_or_config")
    if path.endswith(".onnx"):
        filled.model = path
    else:
        filled.config = path
    if (made := made_policy(policy)) is not None:
        filled.made = made
    else:
        filled.policy = path_text(policy, "policy")  # type: ignore[arg-type]  # which refuses all else
    filled.bind = extents_of(options.pop("bind", None))
    filled.overrides = settings_of(options.pop("overrides", None))
    filled.place = rules_of(options.pop("place", ()))
    filled.devices = texts_of(options.pop("devices", ()), "devices")
    filled.profile = path_text(options.pop("profile", ""), "profile")
    filled.ranks = count_of(options.pop("ranks", 1), "ranks", 1)
    filled.network = text_of(options.pop("network", ""), "network")
    for name in options:
        refuse("there is no such option", path=name)
    return filled

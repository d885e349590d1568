"""Commands of the program as functions."""

from __future__ import annotations

import os
import pathlib
import tempfile
from collections.abc import Iterable, Mapping
from typing import Any, Never

import numpy

from tandem_train import _tandem
from tandem_train._errors import refuse
from tandem_train._paths import Path, path_text
from tandem_train._toml import rules_of, settings_of, texts_of
from tandem_train._values import count_of, text_of
from tandem_train.report import Exported, Predictions, Report

Rules = Iterable[str | Mapping[str, Any]]


def inspect(
    model: Path,
    *,
    bind: Mapping[str, int] | None = None,
    stage: str = "",
    parameters: bool = False,
    **unknown: Never,
) -> Report:
    """What is in a model, what trains, and what blocks training.

    `stage`: "graph", "training", "placement", "lowered" or "plan" shows that stage. `bind`: extents of free dimensions.
    """
    _refuse_unknown("inspect", unknown)
    options = _tandem.InspectOptions()
    options.bind = extents_of(bind)
    options.stage = text_of(stage, "stage")
    options.parameters = bool(parameters)
    return _report(_tandem.inspect(path_text(model, "model"), options))


def evaluate(run: Path, *, data: Iterable[Path] = (), **options: Any) -> Report:
    """Loss and metrics of a run, a checkpoint or an exported model, over its held-out data or over `data`.

    Options: `checkpoint`, `weights`, `config`, `accept_changes`, `overrides`, `place`, `devices`.
    """
    filled = _trained(_tandem.TrainedOptions(), data, options)
    _refuse_unknown("evaluate", options)
    fields = _tandem.evaluate(path_text(run, "run"), filled)
    return Report(fields["text"], fields["json"], fields["warnings"], fields["html"])


def predict(
    run: Path,
    data: Iterable[Path],
    to: Path | None = None,
    *,
    outputs: Iterable[str] = (),
    as_: str = "",
    batch: int = 0,
    header: bool = False,
    ids: Iterable[str] = (),
    **options: Any,
) -> Predictions:
    """Predictions for rows of files, into the file `to` (.tsv, .csv, .jsonl, .npy, .npz), or else as arrays.

    `as_`: "values", "class" or "probability"; without it, what the loss suggests. Other options as for `evaluate`.
    """
    filled = _tandem.PredictOptions()
    _trained(filled, data, options)
    _refuse_unknown("predict", options)
    filled.outputs = texts_of(outputs, "outputs")
    filled.shown_as = text_of(as_, "as_")
    filled.batch = count_of(batch, "batch")
    filled.header = bool(header)
    filled.ids = texts_of(ids, "ids")
    path = path_text(run, "run")
    if to is not None:
        filled.to = path_text(to, "to")
        if filled.to == "-":
            refuse("a file has to be named here", path="to", fix="leave it out, and the arrays are returned")
        return _predictions(_tandem.predict(path, filled), {})
    with tempfile.TemporaryDirectory(prefix="tandem-") as folder:
        filled.to = str(pathlib.Path(folder) / "predictions.npz")
        fields = _tandem.predict(path, filled)
        fields["text"] = fields["text"].replace(f" into {filled.to}", "")
        with numpy.load(filled.to) as file:
            return _predictions(fields, dict(file))


def export(
    run: Path,
    to: Path,
    *,
    checkpoint: str = "",
    weights: str = "",
    accept_changes: bool = False,
    overrides: Mapping[str, Any] | None = None,
    **unknown: Never,
) -> Exported:
    """Writes the trained model as .onnx, or its weights as .safetensors or .npz."""
    _refuse_unknown("export", unknown)
    settings = _tandem.ExportSettings()
    settings.checkpoint = str(checkpoint)
    settings.weights = text_of(weights, "weights")
    settings.accept_changes = bool(accept_changes)
    settings.overrides = settings_of(overrides)
    file = path_text(to, "to")
    return Exported(_tandem.export_run(path_text(run, "run"), file, settings), file)


def extents_of(bind: Mapping[str, int] | None) -> list[tuple[str, int]]:
    """Extents of free dimensions as the library takes them."""
    if not isinstance(bind, Mapping | None):
        refuse("extents are a dict by name of a dimension", path="bind", got=repr(bind))
    for name, extent in (bind or {}).items():
        if isinstance(extent, bool) or not isinstance(extent, int) or not 0 <= extent < 2**63:
            refuse("an extent is a number", path=f"bind.{name}", expected="0 or more", got=repr(extent))
    return [(str(name), extent) for name, extent in (bind or {}).items()]


def _trained(filled: Any, data: Iterable[Path], options: dict[str, Any]) -> Any:
    """Fills what `evaluate` and `predict` share, and takes it out of the options."""
    if isinstance(data, (str, bytes, os.PathLike)) or not isinstance(data, Iterable):
        refuse("data is a list of files", path="data", got=repr(data), fix=f"[{data!r}]")
    filled.data = [path_text(file, "data") for file in data]
    filled.checkpoint = str(options.pop("checkpoint", ""))
    filled.weights = text_of(options.pop("weights", ""), "weights")
    filled.config = path_text(options.pop("config", ""), "config")
    filled.accept_changes = bool(options.pop("accept_changes", False))
    filled.overrides = settings_of(options.pop("overrides", None))
    filled.place = rules_of(options.pop("place", ()))
    filled.devices = texts_of(options.pop("devices", ()), "devices")
    return filled


def _refuse_unknown(function: str, options: Mapping[str, Any]) -> None:
    for name in options:
        refuse(f"{function} has no such option", path=name)


def _report(fields: dict[str, Any]) -> Report:
    return Report(fields["text"], fields["json"], fields["warnings"])


def _predictions(fields: dict[str, Any], arrays: dict[str, Any]) -> Predictions:
    return Predictions(fields["text"], fields["json"], fields["warnings"], arrays)

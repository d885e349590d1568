"""A run that a train.toml, or a model with its data, describes."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NoReturn, Unpack

from tandem_train import _tandem
from tandem_train._errors import Diagnostic, Error, error_of, no_pickle, refuse
from tandem_train._keywords import RunKeys
from tandem_train._paths import Path, path_text
from tandem_train._policy import NAME, made_policy, rules_in
from tandem_train._progress import progress_bar
from tandem_train._toml import merged_settings, rules_of, settings_of, texts_of
from tandem_train.callbacks import Callback, Progress


@dataclasses.dataclass(frozen=True)
class Best:
    """The best checkpoint of a run."""

    metric: str
    value: float
    step: int


@dataclasses.dataclass(frozen=True)
class MetricTable:
    """A metric of several numbers: one for each class, or one for each pair of label and prediction."""

    metric: str
    names: list[str]
    numbers: list[float]  # NaN: there is none
    is_matrix: bool  # row by row; rows are labels
    text: str
    html: str = dataclasses.field(repr=False, compare=False, default="")

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str | None:
        return self.html or None


@dataclasses.dataclass(frozen=True)
class TrainResult:
    """What a run came to."""

    run_dir: str
    steps: int
    loss: float  # in the last step; NaN: no step was left
    evaluation: dict[str, float]  # the last values of the metrics
    best: Best | None
    tables: list[MetricTable]
    interrupted: bool  # saved and ended before its length
    warnings: list[str]  # about the data
    html: str = dataclasses.field(repr=False, compare=False, default="")

    def _repr_html_(self) -> str | None:
        return self.html or None


class Trainer:
    """Reads and checks the configuration, the model and the data. `run` trains, once."""

    def __init__(
        self,
        config: Path,
        overrides: Mapping[str, Any] | None = None,
        *,
        callbacks: Iterable[Callback] = (),
        place: Iterable[str | Mapping[str, Any]] = (),
        devices: Iterable[str] = (),
        run_dir: Path = "",
        resume: bool = False,
        accept_changes: bool = False,
        dry_run: bool = False,
        progress: bool | None = None,
        **keys: Unpack[RunKeys],
    ) -> None:
        """`config`: a train.toml, or an ONNX file with the override `data`. `overrides`, `keys`: keys of train.toml.

        `loss` may be one term or a list of them; `policy` a file, rules, the text of a file or what tt.auto has found.
        `place`: rules over the policy's. `devices`: such as "gpu=emulated:0,memory=2GiB". `resume` continues the run in
        `run_dir`, or the newest one that is not finished. `dry_run` does everything up to the first step. `progress`:
        whether `run` shows a bar; by default in notebooks and terminals.
        """
        options = _tandem.TrainOptions()
        given = merged_settings(overrides, keys)
        rules = rules_in(given.get("policy"))
        if rules is not None:  # the record of the run has them: it is resumed without giving them again
            given["policy"] = ""
        elif (policy := made_policy(given.get("policy"))) is not None:
            given.pop("policy")
            options.policy = policy
        options.overrides = _overrides(given)
        options.place = rules_of(rules or []) + rules_of(place)
        options.devices = texts_of(devices, "devices")
        options.run_dir = path_text(run_dir, "run_dir")
        options.resume, options.accept_changes, options.dry_run = bool(resume), bool(accept_changes), bool(dry_run)
        self._listener = _Listener(callbacks)
        self._progress = progress
        try:
            self._trainer = _tandem.Trainer(path_text(config, "config"), options, self._listener)
        except Error as error:
            raise _with_names(error, len(rules or [])) from None

    @property
    def summary(self) -> str:
        """One paragraph: the model, its parameters, the placement, the memory."""
        return self._trainer.summary()

    def run(self) -> TrainResult:
        """Trains. Ctrl-C saves the run and raises KeyboardInterrupt; `resume` continues it."""
        bar = progress_bar(self._progress)
        try:
            with self._listener.also(bar):
                fields = self._trainer.run(self._listener)
        finally:
            if bar is not None:
                bar.close()
        fields.pop("rank")
        metric, value, step = (fields.pop(f"best_{name}") for name in ("metric", "value", "step"))
        fields["best"] = Best(metric, value, step) if metric else None
        fields["tables"] = [MetricTable(**table) for table in fields["tables"]]
        return TrainResult(**fields)

    def stop(self) -> None:
        """Asks the run to save and end, from a callback or another thread."""
        self._trainer.stop()

    def __reduce__(self) -> NoReturn:
        no_pickle("Trainer", "make it where it runs")


def train(
    model_or_config: Path,
    data: Path | None = None,
    *,
    callbacks: Iterable[Callback] = (),
    place: Iterable[str | Mapping[str, Any]] = (),
    devices: Iterable[str] = (),
    run_dir: Path = "",
    resume: bool = False,
    settings: Mapping[str, Any] | None = None,
    progress: bool | None = None,
    **keys: Unpack[RunKeys],
) -> TrainResult:
    """Trains by a train.toml, or an ONNX file on `data`. Other keywords are keys of train.toml: `epochs=3`.

    `progress`: whether a bar is shown; by default in notebooks and terminals.
    """
    given = merged_settings(settings, keys)
    if data is not None:
        if "data" in given:
            refuse("the data is given twice", path="data")
        given["data"] = path_text(data, "data")
    return Trainer(
        model_or_config,
        given,
        callbacks=callbacks,
        place=place,
        devices=devices,
        run_dir=run_dir,
        resume=resume,
        progress=progress,
    ).run()


def _overrides(settings: Mapping[str, Any] | None) -> list[str]:
    """Settings, of which the data of a bare model is a path and no TOML."""
    rest = dict(settings or {})
    data = rest.pop("data", None)
    if isinstance(data, (str, os.PathLike)):
        return [f"data={path_text(data, 'data')}", *settings_of(rest)]
    return settings_of(settings)


def _with_names(error: Error, rules: int) -> Error:
    """The error with its place among the rules of `policy`, which come before those of `place`."""

    def named(d: Diagnostic) -> Diagnostic:
        if d.file != "place":
            return d
        is_of_policy = d.line <= rules
        return dataclasses.replace(d, file=NAME if is_of_policy else d.file, line=d.line - (0 if is_of_policy else rules))

    found = [named(d) for d in error.diagnostics]
    return error if found == error.diagnostics else error_of(error.kind, found, "")


class _Listener:
    """Gets reports of the extension module, which calls it in the thread of the run."""

    def __init__(self, callbacks: Iterable[Callback]) -> None:
        if not isinstance(callbacks, Iterable):
            refuse("callbacks are a list", path="callbacks", got=repr(callbacks))
        self.callbacks = list(callbacks)
        for callback in self.callbacks:
            if not isinstance(callback, Callback):
                refuse("this is no callback", expected="an object of a class over tt.Callback", got=repr(callback))

    @contextlib.contextmanager
    def also(self, callback: Callback | None) -> Iterator[None]:
        """Within the block, this callback is called before the others; None: only the others are."""
        before = self.callbacks
        self.callbacks = [callback, *before] if callback is not None else before
        try:
            yield
        finally:
            self.callbacks = before

    def on_progress(self, fields: dict[str, Any]) -> None:
        progress = Progress(**fields)
        for callback in self.callbacks:
            (callback.on_evaluation if progress.evaluation else callback.on_step)(progress)

    def on_message(self, text: str) -> None:
        for callback in self.callbacks:
            callback.on_message(text)

    def on_run_dir(self, path: str) -> None:
        pass

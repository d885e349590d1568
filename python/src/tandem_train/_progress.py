"""The bar that shows how far a run is."""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import sys
import time
import warnings
from typing import Any, Protocol

from tandem_train.callbacks import Callback, Progress

_BETWEEN = 0.1  # seconds, at least, between two pictures


class _Bar(Protocol):
    def show(self, step: int, steps: int, text: str) -> None: ...

    def close(self) -> None: ...


class ProgressBar(Callback):
    """On standard error, or as a widget: by tqdm where it is installed, else one line of text."""

    def __init__(self) -> None:
        self._bar: _Bar = _TqdmBar() if importlib.util.find_spec("tqdm") else _LineBar()
        self._shown_at = -_BETWEEN
        self._last: Progress | None = None
        self._evaluation: dict[str, float] = {}

    def on_step(self, progress: Progress) -> None:
        self._last = progress
        now = time.monotonic()
        if now - self._shown_at >= _BETWEEN:
            self._shown_at = now
            self._show(progress)

    def on_evaluation(self, progress: Progress) -> None:
        self._evaluation = {name: value for name, value in progress.values.items() if name not in ("loss", "lr")}
        if self._last is not None:  # steps between two logged ones
            self._last = dataclasses.replace(self._last, step=progress.step, epoch=progress.epoch)

    def close(self) -> None:
        if self._last is not None:
            self._show(self._last)
        self._bar.close()

    def _show(self, progress: Progress) -> None:
        parts = [f"epoch {progress.epoch:.3g}" + (f"/{progress.epochs:g}" if progress.epochs else "")]
        parts.append(f"loss {progress.loss:.4g}")
        parts += [f"{name} {value:.4g}" for name, value in list(self._evaluation.items())[:3]]
        self._bar.show(progress.step, progress.steps, ", ".join(parts))


def progress_bar(wanted: bool | None) -> ProgressBar | None:
    """None: no bar. `wanted` None: where a person looks on, in a notebook, IPython or a terminal."""
    return ProgressBar() if (is_interactive() if wanted is None else wanted) else None


def is_interactive() -> bool:
    shell: Any = sys.modules.get("IPython")
    if shell is not None and shell.get_ipython() is not None:
        return True
    stream = sys.stderr
    return stream is not None and stream.isatty()


class _TqdmBar:
    def __init__(self) -> None:
        self._bar: Any = None

    def show(self, step: int, steps: int, text: str) -> None:
        if self._bar is None:
            with warnings.catch_warnings():  # a notebook without widgets gets a line of text
                warnings.simplefilter("ignore")
                tqdm = importlib.import_module("tqdm.auto").tqdm
                self._bar = tqdm(total=steps or None, initial=step, unit="step")
        self._bar.set_postfix_str(text, refresh=False)
        self._bar.n = step
        self._bar.refresh()

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()


class _LineBar:
    def __init__(self) -> None:
        self._width = 0

    def show(self, step: int, steps: int, text: str) -> None:
        line = f"step {step}" + (f"/{steps}" if steps else "") + f", {text}"
        sys.stderr.write("\r" + line.ljust(self._width))
        sys.stderr.flush()
        self._width = len(line)

    def close(self) -> None:
        if self._width:
            sys.stderr.write("\n")
            sys.stderr.flush()

"""What a Trainer reports while it runs."""

from __future__ import annotations

import dataclasses
import math


@dataclasses.dataclass(frozen=True)
class Progress:
    """A step that is logged (log.every), or an evaluation."""

    step: int
    steps: int  # 0: not known
    epoch: float
    epochs: float
    evaluation: bool
    values: dict[str, float]  # the loss, its terms, metrics, lr
    norms: dict[str, float]  # by log.norms
    samples_per_second: float
    seconds: float
    seconds_left: float  # negative: not known
    data_wait: float  # part of the time in which steps waited for data

    @property
    def loss(self) -> float:
        return self.values.get("loss", math.nan)


class Callback:
    """Override what you need. What a method raises ends the run as Ctrl-C does: it is saved, then `run` raises it."""

    def on_step(self, progress: Progress) -> None:
        """After a step that is logged."""

    def on_evaluation(self, progress: Progress) -> None:
        """After an evaluation."""

    def on_message(self, text: str) -> None:
        """For each note for people."""

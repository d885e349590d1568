"""Schedules of the learning rate: values of an optimizer's key `schedule`."""

# Written by `make docs` from the table of keys; do not edit.

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypedDict, Unpack

from tandem_train._table import Duration as Duration
from tandem_train._table import Schedule as Schedule

_DURATIONS = ("warmup", "step_size", "milestones", "period", "timescale", "length")


class ScheduleKeys(TypedDict, total=False):
    """The keys of every schedule. `length` is for one of several in a list."""

    # linear rise from 0.
    warmup: Duration
    # how long it holds, its warm-up included; the last one needs none. Default: the rest of the run.
    length: Duration


def constant(**others: Unpack[ScheduleKeys]) -> Schedule:
    """The shape constant of docs/guide/optimizers.md. A number stands for steps where a duration is due."""
    return Schedule("constant", locals(), _DURATIONS)


def cosine(*, final: float | None = None, **others: Unpack[ScheduleKeys]) -> Schedule:
    """The shape cosine of docs/guide/optimizers.md. A number stands for steps where a duration is due.

    final: learning rate at the end of the run. Default: 0.0.
    """
    return Schedule("cosine", locals(), _DURATIONS)


def step(step_size: Duration, *, gamma: float | None = None, **others: Unpack[ScheduleKeys]) -> Schedule:
    """The shape step of docs/guide/optimizers.md. A number stands for steps where a duration is due.

    step_size: how long one stair lasts.
    gamma: factor from stair to stair. Default: 0.1.
    """
    return Schedule("step", locals(), _DURATIONS)


def linear(*, final: float | None = None, **others: Unpack[ScheduleKeys]) -> Schedule:
    """The shape linear of docs/guide/optimizers.md. A number stands for steps where a duration is due.

    final: learning rate at the end of the run. Default: 0.0.
    """
    return Schedule("linear", locals(), _DURATIONS)


def multistep(
    milestones: Sequence[Duration], *, gamma: float | None = None, **others: Unpack[ScheduleKeys]
) -> Schedule:
    """The shape multistep of docs/guide/optimizers.md. A number stands for steps where a duration is due.

    gamma: factor from stair to stair. Default: 0.1.
    milestones: after which the rate falls, once after each.
    """
    return Schedule("multistep", locals(), _DURATIONS)


def exponential(period: Duration, *, gamma: float | None = None, **others: Unpack[ScheduleKeys]) -> Schedule:
    """The shape exponential of docs/guide/optimizers.md. A number stands for steps where a duration is due.

    gamma: factor from period to period, in equal steps. Default: 0.1.
    period: after this time the rate is gamma times what it was.
    """
    return Schedule("exponential", locals(), _DURATIONS)


def polynomial(*, final: float | None = None, power: float | None = None, **others: Unpack[ScheduleKeys]) -> Schedule:
    """The shape polynomial of docs/guide/optimizers.md. A number stands for steps where a duration is due.

    final: learning rate at the end of the run. Default: 0.0.
    power: exponent of the part of the run that is left. Default: 1.0.
    """
    return Schedule("polynomial", locals(), _DURATIONS)


def inverse_square_root(*, timescale: Duration | None = None, **others: Unpack[ScheduleKeys]) -> Schedule:
    """The shape inverse square root of docs/guide/optimizers.md. A number stands for steps where a duration is due.

    timescale: after three times this length the rate is half as high. Default: warmup, or "10000 steps".
    """
    return Schedule("inverse_square_root", locals(), _DURATIONS)


def cosine_restarts(
    period: Duration, *, final: float | None = None, multiplier: int | None = None, **others: Unpack[ScheduleKeys]
) -> Schedule:
    """The shape cosine restarts of docs/guide/optimizers.md. A number stands for steps where a duration is due.

    final: learning rate at the end of each cosine. Default: 0.0.
    period: how long the first cosine lasts (T_0).
    multiplier: how many times as long as the one before each other cosine lasts (T_mult). Default: 1.
    """
    return Schedule("cosine_restarts", locals(), _DURATIONS)


def one_cycle(
    *,
    pct_start: float | None = None,
    div_factor: float | None = None,
    final_div_factor: float | None = None,
    anneal: Literal["cos", "linear"] | None = None,
    three_phase: bool | None = None,
    **others: Unpack[ScheduleKeys],
) -> Schedule:
    """The shape one cycle of docs/guide/optimizers.md. A number stands for steps where a duration is due.

    pct_start: part of the run in which the rate rises. Default: 0.3.
    div_factor: highest rate over the first one. Default: 25.0.
    final_div_factor: first rate over the last one. Default: 10000.0.
    anneal: the curve between rates. Default: "cos".
    three_phase: falls to the first rate as fast as it rose, then to the last one. Default: False.
    """
    return Schedule("one_cycle", locals(), _DURATIONS)


def plateau(
    *,
    metric: str | None = None,
    factor: float | None = None,
    patience: int | None = None,
    threshold: float | None = None,
    threshold_mode: Literal["rel", "abs"] | None = None,
    cooldown: int | None = None,
    min_lr: float | None = None,
    eps: float | None = None,
    **others: Unpack[ScheduleKeys],
) -> Schedule:
    """The shape plateau of docs/guide/optimizers.md. A number stands for steps where a duration is due.

    metric: name of the loss or of one of eval.metrics that is one number; what is better follows from it. Default:
        "loss".
    factor: factor of the rate each time it falls. Default: 0.1.
    patience: this number of evaluations without a better one is accepted. Default: 10.
    threshold: only a value that is better by more than this counts. Default: 1e-04.
    threshold_mode: the threshold is a part of the best value, or a number. Default: "rel".
    cooldown: this number of evaluations after the rate fell is ignored. Default: 0.
    min_lr: learning rate below which it does not fall. Default: 0.0.
    eps: the rate stays if it would fall by less than this. Default: 1e-08.
    """
    return Schedule("plateau", locals(), _DURATIONS)

"""The losses that artifacts may have: as terms of train.toml, and of arrays."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy

from tandem_train import loss
from tandem_train._arrays import Array
from tandem_train._errors import refuse
from tandem_train._table import Term


@dataclasses.dataclass(frozen=True)
class Loss:
    """A loss by its name in onnxruntime."""

    labels: str  # the name of the input with labels
    term: Callable[..., Term]
    mean: Callable[[Array, Array], Any]  # takes predictions and labels


def _cross_entropy(logits: Array, labels: Array) -> Any:
    scores = logits.astype(numpy.float64)
    if labels.shape != scores.shape[:-1]:
        scores = numpy.moveaxis(scores, 1, -1)
    if labels.shape != scores.shape[:-1] or not numpy.issubdtype(labels.dtype, numpy.integer):
        refuse(
            "labels are one integer for each row of logits", path="labels", got=f"{labels.dtype}{list(labels.shape)}"
        )
    if labels.size and not 0 <= labels.min() <= labels.max() < scores.shape[-1]:
        refuse("a label is no class", path="labels", expected=f"0 to {scores.shape[-1] - 1}")
    scores = scores - scores.max(-1, keepdims=True)
    right = numpy.take_along_axis(scores, labels[..., None].astype(numpy.int64), -1)[..., 0]
    return (numpy.log(numpy.exp(scores).sum(-1)) - right).mean()


def _binary_cross_entropy(logits: Array, target: Array) -> Any:
    x = logits.astype(numpy.float64)
    return (numpy.maximum(x, 0) - x * target + numpy.log1p(numpy.exp(-numpy.abs(x)))).mean()


LOSSES = {
    "CrossEntropyLoss": Loss("labels", loss.softmax_cross_entropy, _cross_entropy),
    "MSELoss": Loss("target", loss.mse, lambda x, y: ((x.astype(numpy.float64) - y) ** 2).mean()),
    "BCEWithLogitsLoss": Loss("target", loss.binary_cross_entropy, _binary_cross_entropy),
    "L1Loss": Loss("target", loss.mae, lambda x, y: numpy.abs(x.astype(numpy.float64) - y).mean()),
}

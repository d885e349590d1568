"""Keyword arguments that are keys of train.toml."""

# Written by `make docs` from the table of keys; do not edit.

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict

from tandem_train._paths import Path
from tandem_train.report import FoundPolicy


class RunKeys(TypedDict, total=False):
    """Keys for a Trainer and for train."""

    # the ONNX file, or a table with the keys below.
    model: Path | Mapping[str, Any]
    # the policy file: where things run and live; "" on the command line: none.
    policy: Path | Mapping[str, Any] | Sequence[str | Mapping[str, Any]] | FoundPolicy
    # where everything runs that no policy places; auto: the cpu. Default: "auto".
    device: Literal["auto", "cpu", "gpu"]
    # samples per optimizer step, over all processes; auto: the largest power of two whose memory plan fits the devices,
    # a list: the largest of these that does. Default: 32.
    batch_size: int | Literal["auto"] | Sequence[int]
    # samples of one micro-batch, one run of the graph; divides batch_size, the quotient is accumulation. Default:
    # batch_size.
    micro_batch: int
    # passes through the training data, above 0; the first of epochs, steps and max_time ends the run.
    epochs: float
    # optimizer steps.
    steps: int
    # wall-clock time of the run, like "2h".
    max_time: str
    # seed of the random numbers for shuffling, augmentation, dropout and initial values. Default: 1.
    seed: int
    # compute threads; 0: all usable cores, at most OMP_NUM_THREADS where that is set. Default: 0.
    threads: int
    # name of the run: its directory is runs/NAME-0001, the next one runs/NAME-0002. Default: the file's name, or its
    # folder's for train.toml.
    name: str
    # which parameters train, and what they start from; of rules in one list the last one that covers a parameter
    # counts, and load comes after init.
    parameters: Mapping[str, Any]
    # the loss; left out where the graph ends in a scalar loss.
    loss: Mapping[str, Any] | Sequence[Mapping[str, Any]]
    # a trained model that this one learns from, in addition to its labels.
    distillation: Mapping[str, Any]
    # how parameters are updated; formulas as in PyTorch. Left out where the model has training_info.
    optimizer: Mapping[str, Any]
    # element types of the computation.
    precision: Mapping[str, Any]
    # evaluation on the held-out data; always after the last step too.
    eval: Mapping[str, Any]
    # checkpoints; always after the last step and on an interrupt too.
    checkpoint: Mapping[str, Any]
    # metrics.jsonl and the lines on the terminal.
    log: Mapping[str, Any]


class SessionKeys(TypedDict, total=False):
    """Keys for a Session."""

    # the policy file: where things run and live; "" on the command line: none.
    policy: Path | Mapping[str, Any] | Sequence[str | Mapping[str, Any]] | FoundPolicy
    # where everything runs that no policy places; auto: the cpu. Default: "auto".
    device: Literal["auto", "cpu", "gpu"]
    # optimizer steps.
    steps: int
    # seed of the random numbers for shuffling, augmentation, dropout and initial values. Default: 1.
    seed: int
    # compute threads; 0: all usable cores, at most OMP_NUM_THREADS where that is set. Default: 0.
    threads: int
    # which parameters train, and what they start from; of rules in one list the last one that covers a parameter
    # counts, and load comes after init.
    parameters: Mapping[str, Any]
    # the loss; left out where the graph ends in a scalar loss.
    loss: Mapping[str, Any] | Sequence[Mapping[str, Any]]
    # how parameters are updated; formulas as in PyTorch. Left out where the model has training_info.
    optimizer: Mapping[str, Any]
    # element types of the computation.
    precision: Mapping[str, Any]

"""Files that a training starts from, as onnxruntime.training.artifacts makes them."""

from __future__ import annotations

import enum
import os
import pathlib
import tempfile
from collections.abc import Sequence
from typing import Any

from tandem_train._errors import Diagnostic, Error, refuse
from tandem_train._paths import Path, path_text
from tandem_train.optim import SGD
from tandem_train.ort._files import Checkpoint, with_settings
from tandem_train.ort._losses import LOSSES
from tandem_train.session import Session
from tandem_train.tools import inspect

NOT_PLAIN = {
    "Dropout",
    "RandomNormal",
    "RandomNormalLike",
    "RandomUniform",
    "RandomUniformLike",
    "Multinomial",
    "Bernoulli",
}


class LossType(enum.Enum):
    """A loss for `generate_artifacts`."""

    MSELoss = 1
    CrossEntropyLoss = 2
    BCEWithLogitsLoss = 3
    L1Loss = 4


class OptimType(enum.Enum):
    """An optimizer for `generate_artifacts`."""

    AdamW = 1
    SGD = 2


def generate_artifacts(
    model: Any,
    requires_grad: Sequence[str] | None = None,
    frozen_params: Sequence[str] | None = None,
    loss: LossType | None = None,
    optimizer: OptimType | None = None,
    artifact_directory: Path | None = None,
    prefix: str = "",
    ort_format: bool = False,
    custom_op_library: Path | None = None,
    additional_output_names: Sequence[str] | None = None,
    nominal_checkpoint: bool = False,
    loss_input_names: Sequence[str] | None = None,
) -> None:
    """Writes training_model.onnx, eval_model.onnx, checkpoint and, with an optimizer, optimizer_model.onnx.

    `model`: a path, or an onnx.ModelProto. The two models are the model itself, with settings among its metadata; the
    optimizer's file has settings alone. Without a loss, the model's first output is the loss.
    """
    _refuse_what_is_not_there(loss, optimizer, ort_format, custom_op_library, nominal_checkpoint)
    data = model.SerializeToString() if hasattr(model, "SerializeToString") else _read(path_text(model, "model"))
    folder = pathlib.Path(
        os.getcwd() if artifact_directory is None else path_text(artifact_directory, "artifact_directory")
    )
    with tempfile.TemporaryDirectory(prefix="tandem-") as temporary:
        path = pathlib.Path(temporary) / "model.onnx"
        path.write_bytes(data)
        facts = inspect(path, bind={}, parameters=True).data
        trained, frozen = _checked_parameters(facts, requires_grad, frozen_params)
        outputs = [output["name"] for output in facts["outputs"]]
        settings = {
            "format": 1,
            "loss": loss.name if loss is not None else None,
            "output": _loss_output(outputs, loss, loss_input_names),
            "inputs": [entry["name"] for entry in facts["inputs"]],
            "outputs": _checked_outputs(outputs, additional_output_names),
            "model_outputs": outputs,
            "trained": trained,
            "frozen": frozen,
            "has_batch_norm": "BatchNormalization" in facts["operators"],
            "is_random": bool(NOT_PLAIN & set(facts["operators"])),
        }
        session = Session(path, 2, settings=session_settings(settings, SGD(lr=0), 1))
        values = session.state_dict()
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("training_model", "eval_model"):
        (folder / f"{prefix}{name}.onnx").write_bytes(with_settings(data, settings))
    if optimizer is not None:
        own = {"format": 1, "optimizer": optimizer.name}
        (folder / f"{prefix}optimizer_model.onnx").write_bytes(with_settings(b"", own))
    Checkpoint(values, [name for name in values if name in trained], {}).write(folder / f"{prefix}checkpoint")


def session_settings(settings: dict[str, Any], optimizer: Any, calls: int) -> dict[str, Any]:
    """What a Session gets. `calls`: how many calls of the module a step covers; their gradients add up."""
    result: dict[str, Any] = {"optimizer": optimizer}
    if settings["loss"] is not None:
        loss = LOSSES[settings["loss"]]
        result["loss"] = loss.term(settings["output"], loss.labels, weight=float(calls))
    else:
        result["loss.output"] = settings["output"]
    if settings["frozen"]:
        result["parameters.freeze"] = [{"at": name} for name in settings["frozen"]]
    return result


def _read(path: str) -> bytes:
    try:
        return pathlib.Path(path).read_bytes()
    except OSError as error:
        refuse("the model cannot be read", file=path, got=str(error.strerror))


def _refuse_what_is_not_there(
    loss: Any, optimizer: Any, ort_format: bool, custom_op_library: Any, nominal_checkpoint: bool
) -> None:
    problems = []
    if loss is not None and not isinstance(loss, LossType):
        problems.append(Diagnostic("a loss is one of LossType", path="loss", got=type(loss).__name__))
    if optimizer is not None and not isinstance(optimizer, OptimType):
        problems.append(Diagnostic("an optimizer is one of OptimType", path="optimizer", got=type(optimizer).__name__))
    for name, value in (
        ("ort_format", ort_format),
        ("custom_op_library", custom_op_library),
        ("nominal_checkpoint", nominal_checkpoint),
    ):
        if value:
            problems.append(Diagnostic("there is nothing like this here", path=name, got=repr(value)))
    if problems:
        raise Error("usage", problems)


def _checked_parameters(
    facts: dict[str, Any], requires_grad: Sequence[str] | None, frozen_params: Sequence[str] | None
) -> tuple[list[str], list[str]]:
    """The names that train, and those that would and do not."""
    may_train = [p["name"] for p in facts["parameters"] if p["trainable"]]
    known = {p["name"] for p in facts["parameters"]}
    wanted, fixed = list(requires_grad or ()), list(frozen_params or ())
    if not wanted:
        refuse("no parameter requires a gradient", path="requires_grad", expected=f"some of {', '.join(may_train)}")
    problems = [Diagnostic("it cannot be frozen and train", path=name) for name in wanted if name in fixed]
    for name in [*wanted, *fixed]:
        if name not in known:
            problems.append(Diagnostic("the model has no such parameter", path=name))
        elif name in wanted and name not in may_train:
            problems.append(Diagnostic("this does not train", path=name, fix="leave it out of requires_grad"))
    if problems:
        raise Error("usage", problems)
    return wanted, [name for name in may_train if name not in wanted]


def _loss_output(outputs: list[str], loss: LossType | None, names: Sequence[str] | None) -> str:
    chosen = list(names or ([outputs[0]] if loss is None else outputs))
    if len(chosen) != 1 or chosen[0] not in outputs:
        expected = f"one output of the model ({', '.join(outputs)})"
        refuse("the loss takes one value", path="loss_input_names", expected=expected, got=", ".join(chosen))
    return chosen[0]


def _checked_outputs(outputs: list[str], names: Sequence[str] | None) -> list[str]:
    for name in names or ():
        if name not in outputs:
            refuse("this is no output of the model", path=name, expected=", ".join(outputs))
    return list(names or ())

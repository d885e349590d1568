"""Sessions on modules of PyTorch."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import logging
import pathlib
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Unpack

from tandem_train._errors import Diagnostic, Error, error_of, refuse
from tandem_train._keywords import SessionKeys
from tandem_train._module_state import imported_torch
from tandem_train._paths import Path, path_text
from tandem_train._toml import merged_settings, texts_of
from tandem_train.session import Session
from tandem_train.tools import inspect

OPSET = 20


def from_torch(
    module: Any,
    example_inputs: Any,
    *,
    inputs: Sequence[str],
    outputs: Sequence[str],
    batch_size: int,
    file: Path | None = None,
    settings: Mapping[str, Any] | None = None,
    metrics: Sequence[str | Mapping[str, Any]] = (),
    **keys: Unpack[SessionKeys],
) -> Session:
    """Exports a torch.nn.Module in its training form and opens a Session.

    Parts in eval() stay so, for example a BatchNorm with its running statistics, unless the whole module is in eval().

    `example_inputs`: a tensor or a tuple, with samples on axis 0, which stays free. `inputs`, `outputs`: names for the
    arrays of `step` and `predict`. `file`: the ONNX file to write, for tt.plan or a Trainer; without it none is left.
    `metrics`: as for a Session. Other keywords are keys of train.toml. Parameters with requires_grad = False, buffers
    other than running statistics, and rows of tables at padding_idx do not train. The module stays as it is;
    `Session.copy_to` writes into it.
    """
    torch = imported_torch()
    if not isinstance(module, torch.nn.Module):
        refuse("this is no module of PyTorch", expected="a torch.nn.Module", got=type(module).__name__)
    examples = tuple(example_inputs) if isinstance(example_inputs, (tuple, list)) else (example_inputs,)
    inputs, outputs = texts_of(inputs, "inputs"), texts_of(outputs, "outputs")
    if len(examples) != len(inputs):
        expected = f"{len(examples)}, one for each example"
        refuse("each example input needs a name", path="inputs", expected=expected, got=str(len(inputs)))
    names = [*inputs, *outputs]
    if wrong := [name for name in names if not name or names.count(name) > 1]:
        refuse("each input and output needs a name of its own", path="inputs, outputs", got=repr(wrong[0]))
    folder = tempfile.TemporaryDirectory(prefix="tandem-") if file is None else None
    path = pathlib.Path(folder.name) / "model.onnx" if folder else pathlib.Path(path_text(file or "", "file"))
    _export(torch, module, examples, path, inputs, outputs)
    name = str(path) if file else f"<{type(module).__name__}>"
    try:
        all_keys = _in_modes_of_the_file(_with_rules(_rules(torch, module, path), merged_settings(settings, keys)))
        session = Session(path, batch_size, settings=all_keys, metrics=metrics)
    except Error as error:
        found = [dataclasses.replace(d, file=name) if d.file == str(path) else d for d in error.diagnostics]
        raise error_of(error.kind, found, "" if found != error.diagnostics else str(error)) from None
    session._folder = folder  # type: ignore[attr-defined]  # as long as the session lives
    session._unused = frozenset(name for name, _ in module.named_parameters()) - frozenset(session.parameters)
    return session


def _export(torch: Any, module: Any, examples: tuple[Any, ...], path: Any, inputs: list[str], outputs: list[str]) -> None:
    """The classic exporter keeps names, Dropout and BatchNormalization; the newer one decomposes the latter."""
    buffers = {name: b.detach().cpu().clone().numpy() for name, b in module.named_buffers() if b.is_floating_point()}
    try:
        with _unchanged(torch, module), _quiet():
            if not module.training:
                module.train()
            torch.onnx.export(
                module,
                examples,
                str(path),
                dynamo=False,
                opset_version=OPSET,
                training=torch.onnx.TrainingMode.PRESERVE,  # each part in its own mode
                do_constant_folding=False,
                input_names=inputs,
                output_names=outputs,
                dynamic_axes={name: {0: "batch"} for name in [*inputs, *outputs]},
            )
    except Error:
        raise
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        raise Error("usage", [Diagnostic("PyTorch cannot export this module to ONNX", got=text)]) from error
    _complete(path, buffers, outputs)


def _complete(path: pathlib.Path, buffers: dict[str, Any], outputs: list[str]) -> None:
    """Refuses outputs without a name, and writes the module's running statistics into the file: the exporter traces a
    training step, which moves them.
    """
    import onnx

    model = onnx.load(path, load_external_data=False)
    if len(model.graph.output) != len(outputs):
        refuse("each output of the module needs a name", path="outputs", expected=f"{len(model.graph.output)}", got=f"{len(outputs)}")
    for tensor in model.graph.initializer:
        if tensor.name in buffers and not tensor.external_data:
            tensor.CopyFrom(onnx.numpy_helper.from_array(buffers[tensor.name], tensor.name))
    onnx.save(model, path)


def _rules(torch: Any, module: Any, path: pathlib.Path) -> dict[str, list[dict[str, Any]]]:
    """Which parameters, and which rows, do not train, which the file does not say."""
    report = inspect(path, bind={"batch": 2}, parameters=True)
    trainable = [p["name"] for p in report.data["parameters"] if p["trainable"]]
    parameters = dict(module.named_parameters(remove_duplicate=False))
    own = set(module.state_dict())
    frozen = [name for name in trainable if name in own and not (name in parameters and parameters[name].requires_grad)]
    tensors = [id(parameter) for parameter in parameters.values()]
    padded = []
    for prefix, part in module.named_modules():
        if not isinstance(part, (torch.nn.Embedding, torch.nn.EmbeddingBag)) or part.padding_idx is None:
            continue
        name = f"{prefix}.weight".removeprefix(".")
        is_tied = tensors.count(id(part.weight)) > 1  # its other reader gives the row a gradient
        if name in trainable and name not in frozen and not is_tied:
            padded.append({"at": name, "rows": [part.padding_idx]})
    return {"freeze": [{"at": name} for name in frozen], "fixed_rows": padded}


def _with_rules(rules: dict[str, list[dict[str, Any]]], keys: dict[str, Any]) -> dict[str, Any]:
    """The settings with these rules in front of the caller's: the last rule that covers a parameter decides."""
    result = dict(keys)
    for key, own in rules.items():
        if not own:
            continue
        if "parameters" in result:
            table = result["parameters"]
            result["parameters"] = {**table, key: [*own, *table.get(key, [])]}
        else:
            result[f"parameters.{key}"] = [*own, *result.get(f"parameters.{key}", [])]
    return result


def _in_modes_of_the_file(keys: dict[str, Any]) -> dict[str, Any]:
    """The settings in which a BatchNormalization trains if its module did, where the caller does not say otherwise."""
    if "model" not in keys:
        return {"model.batch_norm": "file", **keys}
    table = keys["model"]
    return {**keys, "model": {"batch_norm": "file", **table}} if isinstance(table, Mapping) else keys


@contextlib.contextmanager
def _unchanged(torch: Any, module: Any) -> Iterator[None]:
    """Afterwards the module, its modes and the random numbers are as before: the export runs a training step of it."""
    values = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    modes = [(part, part.training) for part in module.modules()]
    try:
        with torch.random.fork_rng(devices=[]):
            yield
    finally:
        with torch.no_grad():
            for name, tensor in module.state_dict().items():
                tensor.copy_(values[name])
        for part, mode in modes:
            part.training = mode


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without the exporter's notes about files for inference. A branch of the user's code that depends on values stays a
    warning.
    """
    level = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings(record=True) as notes, contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("always")
            yield
    finally:
        logging.disable(level)
    for note in notes:
        is_of_torch = "torch" in pathlib.Path(note.filename).parts
        if note.category.__name__ == "TracerWarning" and "Python boolean" in str(note.message) and not is_of_torch:
            warnings.warn_explicit(note.message, note.category, note.filename, note.lineno)

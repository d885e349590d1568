"""Training as onnxruntime.training.api has it: a module, an optimizer, a checkpoint's state, a schedule."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy

from tandem_train import _tandem
from tandem_train._arrays import Array
from tandem_train._errors import refuse
from tandem_train._paths import Path, path_text
from tandem_train._values import count_of, learning_rate_of
from tandem_train.ort._files import Checkpoint, Property, settings_in
from tandem_train.ort._held_steps import OPTIMIZERS, HeldSteps
from tandem_train.ort._losses import LOSSES

__all__ = ["CheckpointState", "LinearLRScheduler", "Module", "Optimizer"]


class Parameter:
    """A parameter of a CheckpointState."""

    def __init__(self, name: str, state: CheckpointState) -> None:
        self._name, self._state = name, state

    @property
    def name(self) -> str:
        return self._name

    @property
    def data(self) -> Array:
        """A copy; setting it sets the parameter."""
        return self._state._value(self._name)

    @data.setter
    def data(self, value: Any) -> None:
        self._state._set_value(self._name, value)

    @property
    def grad(self) -> Array:
        refuse("gradients are not kept", path=self._name, fix="log.norms of a Trainer has their norms")

    @property
    def requires_grad(self) -> bool:
        return self._name in self._state._checkpoint.trainable

    def __repr__(self) -> str:
        return f"Parameter(name={self.name}, requires_grad={self.requires_grad})"


class Parameters(Mapping[str, Parameter]):
    """Parameters and running statistics of a state by name. Setting an item sets the values of the parameter."""

    def __init__(self, state: CheckpointState) -> None:
        self._state = state

    def __getitem__(self, name: str) -> Parameter:
        if name not in self._state._checkpoint.parameters:
            raise KeyError(name)
        return Parameter(name, self._state)

    def __setitem__(self, name: str, value: Any) -> None:
        self[name].data = value

    def __contains__(self, name: object) -> bool:
        return name in self._state._checkpoint.parameters

    def __iter__(self) -> Iterator[Any]:
        """Pairs of a name and its parameter, as in onnxruntime; `keys()` has the names."""
        return iter([(name, self[name]) for name in self._state._checkpoint.parameters])

    def __len__(self) -> int:
        return len(self._state._checkpoint.parameters)

    def keys(self) -> Any:
        return self._state._checkpoint.parameters.keys()

    def values(self) -> Any:
        return [self[name] for name in self.keys()]

    def items(self) -> Any:
        return list(self)

    def __repr__(self) -> str:
        return f"Parameters({', '.join(self._state._checkpoint.parameters)})"


class Properties(dict[str, Property]):
    """Numbers and texts that a state keeps by name."""

    def __setitem__(self, name: str, value: Property) -> None:
        if isinstance(value, bool) or not isinstance(value, (int, float, str)):
            refuse("a property is an int, a float or a str", path=name, got=type(value).__name__)
        super().__setitem__(name, value)

    def __iter__(self) -> Iterator[Any]:
        """Pairs of a name and its value, as in onnxruntime; `keys()` has the names."""
        return iter(list(self.items()))


class CheckpointState:
    """Parameters and properties of a training. A Module that is made with it trains them."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self._checkpoint = checkpoint
        self._properties = Properties()
        for name, value in checkpoint.properties.items():
            self._properties[name] = value
        self._module: Module | None = None

    @classmethod
    def load_checkpoint(cls, checkpoint_uri: Path) -> CheckpointState:
        return cls(Checkpoint.read(pathlib.Path(path_text(checkpoint_uri, "checkpoint_uri"))))

    @classmethod
    def save_checkpoint(
        cls, state: CheckpointState, checkpoint_uri: Path, include_optimizer_state: bool = False
    ) -> None:
        """Saves parameters and properties; with the states of the optimizer, training continues bit for bit."""
        if not isinstance(state, CheckpointState):
            refuse("this is no CheckpointState", path="state", got=type(state).__name__)
        values = state._module._steps.values() if state._module is not None else state._checkpoint.parameters
        made = Checkpoint(values, state._checkpoint.trainable, dict(state._properties.items()))
        if include_optimizer_state and state._module is not None:
            made.state = state._module._steps.saved_state()
            optimizer = state._module._optimizer
            if optimizer is not None:
                made.steps, made.learning_rate = optimizer._steps, optimizer.get_learning_rate()
        made.write(pathlib.Path(path_text(checkpoint_uri, "checkpoint_uri")))

    @property
    def parameters(self) -> Parameters:
        return Parameters(self)

    @property
    def properties(self) -> Properties:
        return self._properties

    def _value(self, name: str) -> Array:
        if self._module is not None:
            return self._module._steps.value(name)
        return self._checkpoint.parameters[name].copy()

    def _set_value(self, name: str, value: Any) -> None:
        array, old = _tandem.to_numpy(name, value), self._checkpoint.parameters[name]
        if array.dtype != old.dtype or array.shape != old.shape:
            expected, got = f"{old.dtype}{list(old.shape)}", f"{array.dtype}{list(array.shape)}"
            refuse("this has another type", path=name, expected=expected, got=got)
        if self._module is not None:
            self._module._steps.set_values({name: array})
        else:
            self._checkpoint.parameters[name] = array
            self._checkpoint.state = b""  # was of other values


class Module:
    """Calls compute losses; in training mode also gradients, for `Optimizer.step`.

    A call in training mode is held back. What it returns is known when it is looked at: a loss after `Optimizer.step`
    comes from the step itself, a look before costs one more forward pass.
    """

    training: bool

    def __init__(
        self,
        train_model_uri: Path,
        state: CheckpointState,
        eval_model_uri: Path | None = None,
        device: str = "cpu",
        session_options: Any = None,
    ) -> None:
        if session_options is not None:
            refuse("there are no options of onnxruntime's sessions here", path="session_options")
        if not isinstance(state, CheckpointState):
            refuse("this is no CheckpointState", path="state", got=type(state).__name__)
        if state._module is not None:
            refuse("another module trains this state", path="state", fix="load the checkpoint again")
        if str(device).split(":")[0] not in ("cpu", "cuda"):
            refuse("there is no such device", path="device", expected="cpu or cuda", got=str(device))
        path = pathlib.Path(path_text(train_model_uri, "train_model_uri"))
        self._settings = settings_in(path, "training model")
        self._has_eval = eval_model_uri is not None
        if eval_model_uri is not None:
            other = settings_in(pathlib.Path(path_text(eval_model_uri, "eval_model_uri")), "model for evaluation")
            if other != self._settings:
                refuse("it was made with other settings than the training model", path="eval_model_uri")
        self.training = True
        self._steps = HeldSteps(path, self._settings, state._checkpoint, "gpu" if str(device) != "cpu" else "cpu")
        self._state = state
        self._optimizer: Optimizer | None = None
        state._module = self

    def __call__(self, *user_inputs: Any) -> Any:
        """The loss; with additional_output_names a tuple that begins with it."""
        names = self.input_names()
        if len(user_inputs) != len(names):
            expected = f"{len(names)}: {', '.join(names)}"
            refuse("a call takes one array for each input", expected=expected, got=str(len(user_inputs)))
        arrays = dict(zip(names, user_inputs, strict=True))
        results: tuple[Any, ...] = self._steps.call(arrays) if self.training else self._evaluated(arrays)
        return results if len(results) > 1 else results[0]

    def _evaluated(self, arrays: dict[str, Any]) -> tuple[Array, ...]:
        if not self._has_eval:
            refuse("there is no model for evaluation", path="eval_model_uri", fix="give it to the module")
        outputs = self._steps.predict(arrays)
        return (self._steps.evaluated_loss(outputs, arrays), *(outputs[name] for name in self._settings["outputs"]))

    def train(self, mode: bool = True) -> Module:
        self.training = mode
        return self

    def eval(self) -> Module:
        return self.train(False)

    def lazy_reset_grad(self) -> None:
        """The next call in training mode replaces the gradients, instead of adding to them."""
        self._steps.reset()

    def input_names(self) -> list[str]:
        labels = [LOSSES[self._settings["loss"]].labels] if self._settings["loss"] is not None else []
        return [*self._settings["inputs"], *labels]

    def output_names(self) -> list[str]:
        return ["loss" if self._settings["loss"] is not None else self._settings["output"], *self._settings["outputs"]]

    def get_parameters_size(self, trainable_only: bool = False) -> int:
        """The number of elements."""
        return sum(value.size for value in self._values(trainable_only).values())

    def get_contiguous_parameters(self, trainable_only: bool = False) -> Array:
        """All values one after the other."""
        values = [value.reshape(-1) for value in self._values(trainable_only).values()]
        return numpy.concatenate(values) if values else numpy.zeros(0, numpy.float32)

    def copy_buffer_to_parameters(self, buffer: Any, trainable_only: bool | None = None) -> None:
        """Sets all values from what `get_contiguous_parameters` returned; by its length, if nothing else is said."""
        array = _tandem.to_numpy("buffer", buffer)
        if trainable_only is None:
            trainable_only = array.size != self.get_parameters_size()
        values = self._values(trainable_only)
        size = sum(value.size for value in values.values())
        if array.shape != (size,):
            refuse("the buffer has another size", path="buffer", expected=str(size), got=str(list(array.shape)))
        start = 0
        for name, value in values.items():
            values[name] = array[start : start + value.size].reshape(value.shape).astype(value.dtype)
            start += value.size
        self._steps.set_values(values)

    def export_model_for_inferencing(self, inference_model_uri: Path, graph_output_names: list[str]) -> None:
        """Writes the trained model with its outputs, which have to be named."""
        path, session = path_text(inference_model_uri, "inference_model_uri"), self._steps.session()
        if not path.endswith(".onnx"):
            refuse("the name of a model ends in .onnx", path="inference_model_uri", got=path)
        own = self._settings["model_outputs"]
        if sorted(graph_output_names) != sorted(own):
            expected, got = ", ".join(own), ", ".join(graph_output_names)
            refuse("the model keeps all its outputs", path="graph_output_names", expected=expected, got=got)
        session.save(path)

    def _values(self, trainable_only: bool) -> dict[str, Array]:
        all_values, names = self._steps.values(), self._state._checkpoint
        return {name: all_values[name] for name in names.parameters if not trainable_only or name in names.trainable}


class Optimizer:
    """`step` updates the parameters of a module."""

    def __init__(self, optimizer_uri: Path, module: Module) -> None:
        if not isinstance(module, Module):
            refuse("this is no Module", path="module", got=type(module).__name__)
        path = pathlib.Path(path_text(optimizer_uri, "optimizer_uri"))
        kind = settings_in(path, "optimizer's file").get("optimizer")
        if kind not in OPTIMIZERS:
            refuse("this is no optimizer's file", file=str(path))
        module._steps.use_optimizer(kind, self.get_learning_rate)
        module._optimizer = self
        self._module = module
        checkpoint = module._state._checkpoint
        self._learning_rate, self._steps = checkpoint.learning_rate, checkpoint.steps

    def step(self) -> None:
        self._module._steps.step()
        self._steps += 1

    def set_learning_rate(self, learning_rate: float) -> None:
        self._module._steps.check_learning_rate()
        self._learning_rate = learning_rate_of(learning_rate)

    def get_learning_rate(self) -> float:
        return self._learning_rate


class LinearLRScheduler:
    """A learning rate that rises linearly from 0 during the warm-up, and falls linearly to 0 at the last step."""

    def __init__(self, optimizer: Optimizer, warmup_step_count: int, total_step_count: int, initial_lr: float) -> None:
        if not isinstance(optimizer, Optimizer):
            refuse("this is no Optimizer", path="optimizer", got=type(optimizer).__name__)
        total = count_of(total_step_count, "total_step_count")
        if count_of(warmup_step_count, "warmup_step_count") > total:
            refuse("the warm-up is a part of all steps", path="warmup_step_count", got=str(warmup_step_count))
        self._optimizer, self._warmup, self._total = optimizer, warmup_step_count, total_step_count
        self._initial_lr = learning_rate_of(initial_lr)
        self.step()

    def step(self) -> None:
        """Sets the learning rate of the optimizer by the number of its steps."""
        done = self._optimizer._steps
        if done < self._warmup:
            factor = done / self._warmup
        else:
            factor = max(0.0, (self._total - done) / max(1, self._total - self._warmup))
        self._optimizer.set_learning_rate(self._initial_lr * factor)

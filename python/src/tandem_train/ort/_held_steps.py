"""Steps of a Session in two parts: calls of the module are held back until the optimizer steps."""

from __future__ import annotations

import dataclasses
import functools
import pathlib
import tempfile
from collections.abc import Callable
from typing import Any, NoReturn

import numpy

from tandem_train import _tandem
from tandem_train._arrays import Array
from tandem_train._errors import refuse
from tandem_train.optim import SGD, AdamW, Optimizer
from tandem_train.ort._files import Checkpoint
from tandem_train.ort._lazy import LazyArray
from tandem_train.ort._losses import LOSSES
from tandem_train.ort.artifacts import session_settings
from tandem_train.session import Session

# The formulas of onnxruntime's optimizers with the defaults of its artifacts.
OPTIMIZERS: dict[str, Callable[[], Optimizer]] = {
    "AdamW": lambda: AdamW(lr=1e-3, weight_decay=0, eps=1e-6, epsilon_form="onnx"),
    "SGD": lambda: SGD(lr=1e-3),
}


@dataclasses.dataclass
class Call:
    """A call of the module in training mode."""

    feeds: dict[str, Array]
    size: int
    loss: LazyArray
    outputs: list[LazyArray]


class HeldSteps:
    """Knows which calls the next step of the optimizer covers, and has the Session that takes it.

    Calls between two steps of the optimizer are one step over all their samples, whose loss is the sum of theirs. The
    Session is made for their number and size, and made again, with the state of the one before, where these change.
    """

    def __init__(self, path: pathlib.Path, settings: dict[str, Any], start: Checkpoint, device: str) -> None:
        self._path, self._settings, self._start, self._device = path, settings, start, device
        self._session: Session | None = None
        self._optimizer: str | None = None
        self._learning_rate: Callable[[], float] = lambda: 1e-3
        self._made_for = (0, 0, "")  # samples, calls, optimizer
        self._calls: list[Call] = []
        self._is_stepped = False  # the optimizer has used the calls
        self._is_ahead = False  # the Session has taken the step before the optimizer's
        self._resets = True  # the next call begins anew

    def use_optimizer(self, name: str, learning_rate: Callable[[], float]) -> None:
        if self._optimizer is not None:
            refuse("this module has an optimizer already", path="optimizer")
        self._optimizer, self._learning_rate = name, learning_rate

    def call(self, arrays: dict[str, Any]) -> tuple[LazyArray, ...]:
        """Holds a call back. Returns its loss and further outputs, which are known once they are looked at."""
        self._refuse_ahead("the module was called again before optimizer.step()")
        if self._is_stepped and not self._resets:
            reason = "the gradients before optimizer.step() would be added to those of this call"
            refuse(reason, fix="call lazy_reset_grad() after each optimizer.step()")
        feeds = {name: _tandem.to_numpy(name, array) for name, array in arrays.items()}  # copies
        if self._resets:
            self._drop("the gradients of this call were reset before its loss was looked at")
            self._calls, self._is_stepped, self._resets = [], False, False
        sizes = {value.shape[0] if value.ndim else 0 for value in feeds.values()}
        if len(sizes) != 1 or sizes == {0}:
            refuse("all arrays of a call have samples on axis 0, one at least, and as many", got=str(sorted(sizes)))
        self._check_accumulation(size := sizes.pop())
        call = Call(feeds, size, LazyArray(lambda: None), [])
        call.loss.compute_by(functools.partial(self._loss_before_the_step, call))
        names = self._settings["outputs"]
        call.outputs = [LazyArray(functools.partial(self._output_before_the_step, call, name)) for name in names]
        self._calls.append(call)
        return (call.loss, *call.outputs)

    def step(self) -> None:
        """Takes the step of the calls that are held back."""
        if not self._calls or self._is_stepped:
            refuse(
                "there are no gradients for this step",
                path="optimizer.step",
                fix="call the module in training mode first",
            )
        if not self._is_ahead:
            self._take()
        self._is_stepped, self._is_ahead = True, False

    def reset(self) -> None:
        """The next call begins anew; until then a step of the optimizer still has the gradients."""
        self._resets = True

    def set_values(self, values: dict[str, Array]) -> None:
        if self._calls and not self._is_stepped and not self._resets:
            name = next(iter(values), "")
            refuse("the gradients are those of the present values", path=name, fix="set it after optimizer.step()")
        self.session().load_state_dict(values, strict=False)

    def value(self, name: str) -> Array:
        parameters = self.session().parameters
        return parameters[name] if name in parameters else self.values()[name]

    def values(self) -> dict[str, Array]:
        """Parameters and running statistics."""
        return self.session().state_dict()

    def predict(self, arrays: dict[str, Any]) -> dict[str, Array]:
        return self.session().predict(arrays)

    def session(self) -> Session:
        """With the values before the step that is held back."""
        self._refuse_ahead("this needs the values before optimizer.step()")
        return self._open()

    def evaluated_loss(self, outputs: dict[str, Array], arrays: dict[str, Any]) -> Array:
        value = outputs[self._settings["output"]]
        if self._settings["loss"] is not None:
            loss = LOSSES[self._settings["loss"]]
            value = loss.mean(value, _tandem.to_numpy(loss.labels, arrays[loss.labels]))
        return numpy.asarray(value, numpy.float32).reshape(())

    def check_learning_rate(self) -> None:
        self._refuse_ahead("the learning rate was set between the look at a loss and optimizer.step()")

    def saved_state(self) -> bytes:
        with tempfile.TemporaryDirectory(prefix="tandem-") as folder:
            path = pathlib.Path(folder) / "state.safetensors"
            self.session().save_state(path)
            return path.read_bytes()

    def _take(self) -> None:
        calls = self._calls
        if len(calls) > 1:
            for call in calls:  # the step tells only their sum
                if not self._settings["is_random"]:
                    call.loss.numpy()
                else:
                    _refuse_later(
                        call.loss, "with random numbers, losses of calls whose gradients add up are not known"
                    )
        for call in calls:
            for output in call.outputs:
                _refuse_later(output, "outputs of a call are those before optimizer.step(): look at them before")
        feeds = {name: numpy.concatenate([call.feeds[name] for call in calls]) for name in calls[0].feeds}
        session = self._open(sum(call.size for call in calls), len(calls))
        session.set_learning_rate(self._learning_rate())
        value = session.step(feeds)
        if len(calls) == 1:
            calls[0].loss.become(numpy.float32(value))

    def _loss_before_the_step(self, call: Call) -> Any:
        if not self._settings["has_batch_norm"] and not self._settings["is_random"]:
            return self.evaluated_loss(self.predict(call.feeds), call.feeds)
        if self._optimizer is None or len(self._calls) > 1:
            refuse("the loss in training form is known after optimizer.step()", path="loss")
        self._take()
        self._is_ahead = True
        return call.loss.numpy()

    def _output_before_the_step(self, call: Call, name: str) -> Array:
        if self._settings["has_batch_norm"] or self._settings["is_random"]:
            reason = "a step does not return outputs in training form"
            refuse(reason, path=name, fix="module.eval() and a call give those of evaluation")
        return self.predict(call.feeds)[name]

    def _check_accumulation(self, size: int) -> None:
        if not self._calls:
            return
        reason = ""
        if self._settings["has_batch_norm"]:
            reason = "BatchNormalization would take its statistics from all calls together"
        elif self._settings["loss"] is None:
            reason = "the model's own loss cannot be summed over calls"
        elif size != self._calls[0].size:
            reason = "calls of different numbers of samples would not count alike"
        if reason:
            refuse(f"gradients of several calls cannot be added up: {reason}", fix="optimizer.step() after each call")

    def _refuse_ahead(self, reason: str) -> None:
        if self._is_ahead:
            fix = "look at the loss after optimizer.step()"
            refuse(f"{reason}, but the loss that was looked at is of a step that was taken", fix=fix)

    def _drop(self, reason: str) -> None:
        for call in self._calls:
            for lazy in (call.loss, *call.outputs):
                _refuse_later(lazy, reason)

    def _open(self, samples: int = 0, calls: int = 0) -> Session:
        """A Session for a step of that many samples in that many calls; without them, the one that is there."""
        made_samples, made_calls, made_optimizer = self._made_for
        optimizer = self._optimizer or "SGD"
        samples, calls = max(samples, made_samples, 1), calls or made_calls or 1
        if self._session is not None and self._made_for == (samples, calls, optimizer):
            return self._session
        settings = session_settings(self._settings, OPTIMIZERS[optimizer](), calls)
        session = Session(self._path, samples, settings=settings | {"device": self._device})
        if self._session is None:
            self._begin(session, optimizer)
        elif made_optimizer == optimizer:
            with tempfile.TemporaryDirectory(prefix="tandem-") as folder:
                path = pathlib.Path(folder) / "state.safetensors"
                self._session.save_state(path)
                session.restore_state(path)
        else:
            session.load_state_dict(self._session.state_dict())
        self._session, self._made_for = session, (samples, calls, optimizer)
        return session

    def _begin(self, session: Session, optimizer: str) -> None:
        if self._start.state and self._optimizer is not None:
            with tempfile.TemporaryDirectory(prefix="tandem-") as folder:
                path = pathlib.Path(folder) / "state.safetensors"
                path.write_bytes(self._start.state)
                session.restore_state(path)
        else:
            session.load_state_dict(self._start.parameters)


def _refuse_later(lazy: LazyArray, reason: str) -> None:
    """An array that is not known by now cannot be computed any more."""

    def compute() -> NoReturn:
        refuse(reason)

    if not lazy.is_known:
        lazy.compute_by(compute)

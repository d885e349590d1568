"""A model in training, fed by the caller."""

from __future__ import annotations

import pathlib
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn, Unpack

from tandem_train import _state_file, _tandem
from tandem_train._arrays import Array
from tandem_train._errors import Diagnostic, Error, no_pickle, refuse
from tandem_train._keywords import SessionKeys
from tandem_train._module_state import copy_state
from tandem_train._paths import Path, path_text
from tandem_train._policy import made_policy
from tandem_train._toml import merged_settings, settings_of
from tandem_train._values import count_of, learning_rate_of
from tandem_train.parameters import Parameters

_STATE = "state.safetensors"
_Type = tuple[str, tuple[int, ...]]  # name of the element type, shape


class Session:
    """`step` runs forward, backward and update on arrays of up to `batch_size` samples.

    Settings are keys of train.toml: those of the model, its parameters, loss, optimizer, precision, policy and device.
    `loss` may be one term or a list of them; `policy` a file, rules, the text of a file or what tt.auto has found. A
    session refuses every other key by name. It serves one thread at a time.
    """

    def __init__(
        self,
        model: Path,
        batch_size: int,
        *,
        settings: Mapping[str, Any] | None = None,
        metrics: Sequence[str | Mapping[str, Any]] = (),
        **keys: Unpack[SessionKeys],
    ) -> None:
        """`metrics`: what `evaluate` measures besides the loss: names, or values of tt.metric."""
        samples = count_of(batch_size, "batch_size", 1, 2**63 - 1)
        given = merged_settings(settings, keys)
        if not isinstance(metrics, (list, tuple)):
            refuse("metrics are a list", path="metrics", got=repr(metrics))
        if metrics:
            given = merged_settings(given, {"eval.metrics": metrics})
        if (policy := made_policy(given.get("policy"))) is not None:
            given.pop("policy")
        self._session = _tandem.Session(path_text(model, "model"), samples, settings_of(given), policy)
        self._parameters = Parameters(self._session)
        self._statistics_names: tuple[str, ...] | None = None  # None: not known yet
        self._unused: frozenset[str] = frozenset()  # parameters of the module that the export left out

    def step(self, feeds: Mapping[str, Any] | None = None, /, **arrays: Any) -> float:
        """Takes one array per input of the model and the loss, with samples on axis 0. Returns the loss.

        Arrays are numpy's, or have `__dlpack__` (torch, jax). No type is converted: `x.astype(numpy.float32)` does it.
        """
        return self._session.step(_merged(feeds, arrays))

    def predict(self, feeds: Mapping[str, Any] | None = None, /, **arrays: Any) -> dict[str, Array]:
        """The model's outputs in inference form, for any number of samples."""
        return self._session.predict(_merged(feeds, arrays))

    def evaluate(self, feeds: Mapping[str, Any] | None = None, /, **arrays: Any) -> dict[str, float]:
        """The loss, its named terms and `metrics` in inference form, exact over all samples of the arrays.

        Takes what `step` takes, for any number of samples. Nothing is trained.
        """
        return self._session.evaluate(_merged(feeds, arrays))

    @property
    def parameters(self) -> Parameters:
        return self._parameters

    @property
    def learning_rate(self) -> float:
        """What was set, else optimizer.lr; schedules multiply it. From the next step on, a new value replaces it."""
        return self._session.learning_rate()

    @learning_rate.setter
    def learning_rate(self, lr: float) -> None:
        self.set_learning_rate(lr)

    @property
    def steps(self) -> int:
        """The steps that were taken, those before a restored state included."""
        return self._session.steps()

    def set_learning_rate(self, lr: float) -> None:
        """From the next step on `lr` replaces optimizer.lr: groups keep their ratio to it, and schedules multiply it."""
        self._session.set_learning_rate(learning_rate_of(lr))

    def save_state(self, path: Path) -> None:
        """Saves all that the next steps depend on. The file appears once it is whole."""
        self._session.save_state(path_text(path, "path"))

    def restore_state(self, path: Path) -> None:
        """Continues from a saved state, bit by bit like the session that saved it."""
        self._session.restore_state(path_text(path, "path"))

    def save(self, path: Path) -> None:
        """Saves the model as .onnx, .safetensors or .npz."""
        self._session.save(path_text(path, "path"))

    def state_dict(self) -> dict[str, Array]:
        """Copies of parameters and running statistics, by their names in the model's file."""
        with tempfile.TemporaryDirectory(prefix="tandem-") as folder:
            statistics = self._statistics(pathlib.Path(folder))
            values = self._session.parameters()
            return values | {entry.name: _state_file.read(pathlib.Path(folder) / _STATE, entry) for entry in statistics}

    def load_state_dict(self, state: Mapping[str, Any], strict: bool = True) -> None:
        """Sets parameters and running statistics; states of the optimizer stay. Nothing changes where it raises.

        `strict`: every name has to be in both. Without it, names that only one of both has are left out; other shapes
        and types are refused all the same.
        """
        with tempfile.TemporaryDirectory(prefix="tandem-") as folder:
            path = pathlib.Path(folder) / _STATE
            statistics = {entry.name: entry for entry in self._statistics(path.parent)}
            types = {name: (value.dtype.name, value.shape) for name, value in self._session.parameters().items()}
            types |= {name: (entry.dtype_name, entry.shape) for name, entry in statistics.items()}
            values = _checked(state, types, strict)
            for name in statistics.keys() & values.keys():
                _state_file.write(path, statistics[name], values[name])
            if statistics.keys() & values.keys():
                self.restore_state(path)
            for name in values.keys() - statistics.keys():
                self._session.set_parameter(name, values[name])

    def copy_to(self, module: Any) -> None:
        """Writes parameters and running statistics into a torch.nn.Module of the same names and shapes, strictly."""
        copy_state(self.state_dict(), module, self._unused)

    def _statistics(self, folder: pathlib.Path) -> list[_state_file.Entry]:
        """Where the file of the state, which is written into the folder, has the running statistics of the model."""
        if self._statistics_names == ():
            return []
        self.save_state(folder / _STATE)
        entries = _state_file.entries_of(folder / _STATE)
        if self._statistics_names is None:  # what a file of weights has in addition to parameters
            weights = folder / "weights.safetensors"
            self.save(weights)
            names = _state_file.entries_of(weights).keys() & entries.keys() - set(self._parameters)
            self._statistics_names = tuple(sorted(names))
        return [entries[name] for name in self._statistics_names]

    def __reduce__(self) -> NoReturn:
        no_pickle("Session", "save_state writes a file, from which another Session continues")


def _merged(feeds: Mapping[str, Any] | None, arrays: dict[str, Any]) -> dict[str, Any]:
    if feeds is None:
        return arrays
    if not isinstance(feeds, Mapping):
        refuse("arrays come by name", expected="step(name=array) or step({name: array})", got=type(feeds).__name__)
    if twice := sorted(set(feeds) & set(arrays)):
        refuse("this array is given twice", path=str(twice[0]))
    return {**feeds, **arrays}


def _checked(state: Mapping[str, Any], types: dict[str, _Type], strict: bool) -> dict[str, Array]:
    """The arrays of a state that are to be written. Raises one Error with all that does not fit."""
    if not isinstance(state, Mapping):
        refuse("a state is a mapping from names to arrays", got=type(state).__name__)
    values, problems = {}, []
    for name, expected in types.items():
        if name not in state:
            if strict:
                problems.append(Diagnostic("the state lacks this", path=name, expected=_type_text(expected)))
            continue
        try:
            value = _tandem.to_numpy(name, state[name])
        except Error as error:
            problems += error.diagnostics
            continue
        got = (value.dtype.name, value.shape)
        if got == expected:
            values[name] = value
        else:
            problems.append(
                Diagnostic("this has another type", path=name, expected=_type_text(expected), got=_type_text(got))
            )
    if strict:
        problems += [Diagnostic("the session has nothing of this name", path=str(n)) for n in state if n not in types]
    if problems:
        raise Error("usage", problems)
    return values


def _type_text(of: _Type) -> str:
    return f"{of[0]}{list(of[1])}"

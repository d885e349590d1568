"""The extension module: the public C++ library, one to one."""

from typing import Any

import numpy
import numpy.typing

_Array = numpy.typing.NDArray[Any]

class Session:
    def __init__(self, model: str, batch_size: int, settings: list[str]) -> None: ...
    def step(self, feeds: dict[str, Any]) -> float: ...
    def predict(self, feeds: dict[str, Any]) -> dict[str, _Array]: ...
    def parameter_names(self) -> list[str]: ...
    def parameters(self) -> dict[str, _Array]: ...
    def parameter(self, name: str) -> _Array | None: ...
    def set_parameter(self, name: str, value: Any) -> None: ...
    def set_learning_rate(self, lr: float) -> None: ...
    def save_state(self, path: str) -> None: ...
    def restore_state(self, path: str) -> None: ...
    def save(self, path: str) -> None: ...

class Trainer:
    def __init__(self, config: str, options: TrainOptions, listener: Any) -> None: ...
    def run(self, listener: Any) -> dict[str, Any]: ...
    def summary(self) -> str: ...
    def stop(self) -> None: ...

class TrainOptions:
    overrides: list[str]
    place: list[str]
    devices: list[str]
    run_dir: str
    resume: bool
    accept_changes: bool
    dry_run: bool
    log_operators: bool
    verbose: bool
    trace_path: str
    trace_first: int
    trace_last: int
    def __init__(self) -> None: ...

class InspectOptions:
    bind: list[tuple[str, int]]
    stage: str
    batch_norm: str
    without: list[str]
    rows: list[tuple[str, int]]
    parameters: bool
    def __init__(self) -> None: ...

class TrainedOptions:
    checkpoint: str
    weights: str
    accept_changes: bool
    config: str
    strict_words: bool
    data: list[str]
    overrides: list[str]
    place: list[str]
    devices: list[str]
    def __init__(self) -> None: ...

class PredictOptions(TrainedOptions):
    to: str
    outputs: list[str]
    as_: str
    class_axis: int
    batch: int
    header: bool
    class_names: bool | None
    ids: list[str]
    def __init__(self) -> None: ...

class ExportSettings:
    checkpoint: str
    weights: str
    accept_changes: bool
    overrides: list[str]
    def __init__(self) -> None: ...

class PolicyOptions:
    config: str
    model: str
    bind: list[tuple[str, int]]
    overrides: list[str]
    policy: str
    place: list[str]
    devices: list[str]
    profile: str
    ranks: int
    network: str
    def __init__(self) -> None: ...

class PolicyAutoOptions:
    budgets: list[str]
    to: str
    measure: bool
    save_profile: str
    most_plans: int
    def __init__(self) -> None: ...

def to_numpy(name: str, array: Any) -> _Array: ...
def version() -> str: ...
def end() -> None: ...
def inspect(model: str, options: InspectOptions) -> dict[str, Any]: ...
def evaluate(run: str, options: TrainedOptions) -> dict[str, Any]: ...
def predict(run: str, options: PredictOptions) -> dict[str, Any]: ...
def export_run(run: str, to: str, settings: ExportSettings) -> str: ...
def policy_plan(options: PolicyOptions) -> dict[str, Any]: ...
def policy_explain(options: PolicyOptions, name: str, phase: str) -> dict[str, Any]: ...
def policy_auto(options: PolicyOptions, automatic: PolicyAutoOptions) -> dict[str, Any]: ...

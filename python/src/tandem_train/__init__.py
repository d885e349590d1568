"""Trains networks that come as ONNX files: the Python interface of Tandem."""

import atexit as _atexit

from tandem_train import _tandem, loss, metric, optim, schedule
from tandem_train._errors import Diagnostic, Diverged, Error, ErrorKind
from tandem_train._rule import rule
from tandem_train.callbacks import Callback, Progress
from tandem_train.optim import group
from tandem_train.parameters import Parameters
from tandem_train.policies import auto, explain, names, plan
from tandem_train.pytorch import from_torch
from tandem_train.report import Exported, FoundPolicy, Plan, Predictions, Report
from tandem_train.session import Session
from tandem_train.tools import evaluate, export, inspect, predict
from tandem_train.trainer import Best, MetricTable, Trainer, TrainResult, train

__version__ = _tandem.version()
__all__ = [
    "Best", "Callback", "Diagnostic", "Diverged", "Error", "ErrorKind", "Exported", "FoundPolicy", "MetricTable",
    "Parameters", "Plan", "Predictions", "Progress", "Report", "Session", "TrainResult", "Trainer", "auto",
    "evaluate", "explain", "export", "from_torch", "group", "inspect", "loss", "metric", "names", "optim", "plan",
    "predict", "rule", "schedule", "train",
]  # fmt: skip

# Threads that still compute when the interpreter ends save, and stay where they are.
_atexit.register(_tandem.end)

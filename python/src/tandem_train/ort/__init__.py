"""The names of onnxruntime.training for on-device training: `artifacts` and `api`."""

from tandem_train.ort import api, artifacts

__all__ = ["api", "artifacts"]

#!/usr/bin/env python3
"""Writes tests/data/sklearn: models of scikit-learn by skl2onnx, and their results in training and in onnxruntime.

    python3 tests/scripts/sklearn_models.py     (scikit-learn, skl2onnx, onnxruntime, torch)

The estimators, their data and PyTorch's five steps of SGD are those of models/zoo/sklearn_models.py. NAME.onnx is the file, NAME.npz holds
the batches, the losses, the parameters after the last step, and onnxruntime's last output (probabilities or numbers) of the first batch
before the training and, with PyTorch's weights put into the file, after it. values.json: what the loss of each reads.
"""

import json
import pathlib
import sys

import numpy as np
import onnx
import onnxruntime

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "models" / "zoo"))
import sklearn_models as zoo  # noqa: E402

FOLDER = ROOT / "tests" / "data" / "sklearn"


def last_output(model, x):
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    result = session.run(None, {"x": x})[-1]
    if isinstance(result, list):  # ZipMap's tables
        result = [list(row.values()) for row in result]
    return np.asarray(result, np.float32)


def main():
    FOLDER.mkdir(exist_ok=True)
    values = {}
    for estimator in zoo.ESTIMATORS:
        model = zoo.fitted(estimator)
        file = zoo.to_onnx(model)
        losses, after = zoo.trained(estimator, model, file)
        arrays = zoo.fed(estimator)
        first = arrays["x"][: zoo.BATCH]
        expected = {
            "losses": np.array(losses),
            "before": last_output(file, first),
            "after": last_output(zoo.with_weights(file, after), first),
        }
        onnx.save(file, str(FOLDER / f"{estimator.name}.onnx"))
        np.savez(FOLDER / f"{estimator.name}.npz", **arrays, **expected, **{f"parameter {n}": v for n, v in after.items()})
        kind, key, labels = zoo.LOSSES[estimator.loss]
        values[estimator.name] = dict(kind=kind, key=key, labels=labels, value=zoo.loss_value(model, file), parameters=sorted(after))
        print(estimator.name, [n.op_type for n in file.graph.node], losses)
    (FOLDER / "values.json").write_text(json.dumps(values, indent=1) + "\n")


if __name__ == "__main__":
    main()

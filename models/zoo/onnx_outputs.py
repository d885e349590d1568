"""Runs a file in onnxruntime without optimisations, operator by operator."""

import numpy as np


def session_of(path):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def as_array(value):
    """A tensor; of a table of probabilities by class (ZipMap) its columns in the table's order."""
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return np.array([list(row.values()) for row in value], np.float32)
    return np.asarray(value)


def run(path, arrays):
    """The outputs of numbers by name; `arrays` may hold more than the file's inputs."""
    session = session_of(path)
    names = [o.name for o in session.get_outputs()]
    given = {i.name: arrays[i.name] for i in session.get_inputs()}
    made = {n: as_array(v) for n, v in zip(names, session.run(None, given))}
    return {n: v for n, v in made.items() if v.dtype.kind == "f"}


def difference(a, b):
    """The largest difference relative to b's largest element."""
    if a.size == 0 or np.array_equal(a, b, equal_nan=True):
        return 0.0
    return float(np.abs(a - b).max() / max(np.abs(b).max(), 1e-6))

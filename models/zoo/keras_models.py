"""Networks of Keras 3 as its backends export them: on PyTorch by Model.export and by torch.onnx, on TensorFlow by tf2onnx.

    PYTHON models/zoo/keras_models.py --to FOLDER [--only GLOB]… [--again]

exports those on TensorFlow; PYTHON needs tensorflow, keras, tf2onnx and onnx, and models/zoo/export.py calls it. `write` writes the same files as
export.py. The expected values are five steps of SGD by the backend itself. On PyTorch the file is the network with `training=False`, because Keras's
batch normalization cannot be exported otherwise; on TensorFlow it has `training=True`. Files have other names for parameters and may have them
transposed, so parameters are found by their values.
"""

import argparse
import contextlib
import fnmatch
import io
import itertools
import json
import os
import pathlib
import subprocess
import sys
import traceback
import warnings

import keras_networks
import numpy as np

STEPS, BATCH, RATE = 5, 4, 0.05
TORCH_EXPORTERS, TENSORFLOW_EXPORTER = ("keras", "torchscript"), "tf2onnx"
NAMES = [n.name for n in keras_networks.NETWORKS]
TERMS = {
    "cross_entropy": ("softmax_cross_entropy", "logits", "labels"),
    "mse": ("mse", "predictions", "targets"),
}
NOTES = {
    "keras": "Keras exports for inference: what it folds of a normalization does not train; torch.onnx.export(..., training=TRAINING, "
    "do_constant_folding=False) keeps it"
}


class OnTorch:
    """Keras on PyTorch."""

    def forward(self, model, inputs):
        import torch

        values = [torch.from_numpy(v) for v in inputs]
        return model(values if len(values) > 1 else values[0], training=False)

    def loss(self, model, kind, inputs, targets):
        import torch

        out = self.forward(model, inputs)
        functions = torch.nn.functional
        return (functions.mse_loss if kind == "mse" else functions.cross_entropy)(out, torch.from_numpy(targets))

    def step(self, model, kind, inputs, targets):
        import torch

        variables = [v.value for v in model.trainable_variables]
        loss = self.loss(model, kind, inputs, targets)
        slopes = torch.autograd.grad(loss, variables, allow_unused=True)
        with torch.no_grad():
            for variable, slope in zip(variables, slopes):
                if slope is not None:
                    variable.sub_(RATE * slope)
        return float(loss)

    def export(self, model, exporter, inputs, path):
        """Whether the file's batch is free."""
        self.forward(model, inputs)  # Model.export wants one that was called
        if exporter == "keras":
            model.export(str(path), format="onnx", verbose=False, opset_version=20)
            return True
        try:
            self.trace(model, inputs, path, free=True)
            return True
        except Exception:  # LayerNormalization takes the shape that it normalizes from what it is given
            self.trace(model, inputs, path, free=False)
            return False

    def trace(self, model, inputs, path, free):
        import torch

        names = [i.name for i in model.inputs]

        class Inference(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.model = model

            def forward(self, *values):
                return self.model(list(values) if len(values) > 1 else values[0], training=False)

        torch.onnx.export(
            Inference().train(),
            tuple(torch.from_numpy(v) for v in inputs),
            str(path),
            dynamo=False,
            opset_version=20,
            training=torch.onnx.TrainingMode.TRAINING,
            do_constant_folding=False,
            input_names=names,
            output_names=["out_0"],
            dynamic_axes={n: {0: "batch"} for n in [*names, "out_0"]} if free else None,
        )


class OnTensorflow:
    """Keras on TensorFlow."""

    def forward(self, model, inputs):
        return model(inputs if len(inputs) > 1 else inputs[0], training=True)

    def loss(self, model, kind, inputs, targets):
        import tensorflow as tf

        out = self.forward(model, inputs)
        if kind == "mse":
            return tf.reduce_mean(tf.square(out - targets))
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(targets, out))

    def step(self, model, kind, inputs, targets):
        import tensorflow as tf

        with tf.GradientTape() as tape:
            loss = self.loss(model, kind, inputs, targets)
        variables = model.trainable_variables
        slopes = tape.gradient(loss, [v.value for v in variables])
        for variable, slope in zip(variables, slopes):
            if slope is not None:
                variable.assign(variable.value - RATE * tf.convert_to_tensor(slope))
        return float(loss)

    def export(self, model, exporter, inputs, path):
        import onnx
        import tensorflow as tf
        import tf2onnx

        spec = [tf.TensorSpec((None, *i.shape[1:]), i.dtype, name=i.name) for i in model.inputs]
        function = tf.function(lambda *values: self.forward(model, list(values)), input_signature=spec)
        onnx.save(tf2onnx.convert.from_function(function, spec, opset=18)[0], str(path))
        return True


def write_safetensors(arrays, path):
    """Float32 arrays by name; written by hand, since an interpreter with TensorFlow may lack the package."""
    header, data = {}, b""
    for name, value in arrays.items():
        part = np.ascontiguousarray(value, np.float32).tobytes()
        header[name] = {"dtype": "F32", "shape": list(value.shape), "data_offsets": [len(data), len(data) + len(part)]}
        data += part
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def as_numpy(variables):
    import keras

    return {v.path: np.array(keras.ops.convert_to_numpy(v)) for v in variables if "float" in str(v.dtype)}


def places_of(path, values):
    """Where a file keeps these arrays, in any order of axes: {initializer's name: (array's name, order of axes, shape)}."""
    import onnx
    import onnx.numpy_helper

    places = {}
    for tensor in onnx.load(str(path)).graph.initializer:
        have = onnx.numpy_helper.to_array(tensor)
        if have.dtype != np.float32:
            continue
        for name, value in values.items():
            if value.size != have.size or have.size == 0:
                continue
            orders = itertools.permutations(range(value.ndim))
            order = next((o for o in orders if np.array_equal(value.transpose(o).ravel(), have.ravel())), None)
            if order is not None:
                places[tensor.name] = name, order, have.shape
                break
    return places


def moved(value, order, shape):
    return value.transpose(order).reshape(shape)


def doubled_biases(graph):
    """ONNX's LSTM adds two biases where Keras has one: at half the rate their sum takes Keras's steps of SGD."""
    return [n.input[3] for n in graph.node if n.op_type == "LSTM" and len(n.input) > 3 and n.input[3]]


def train_toml(network, output, frozen, doubled):
    kind, key, labels = TERMS[network.loss]
    rules = ", ".join(f'{{ at = "{name}" }}' for name in frozen)
    halves = ", ".join(f'{{ at = "{name}", lr = {RATE / 2:g} }}' for name in doubled)
    lines = [
        'model      = "model.onnx"',
        f"batch_size = {BATCH}",
        f"steps      = {STEPS}",
        "[loss]",
        f'terms = [ {{ name = "loss", kind = "{kind}", {key} = "{output}", {labels} = "target" }} ]',
        "[optimizer]",
        'kind = "sgd"',
        f"lr   = {RATE:g}",
        *([f"groups = [ {halves} ]"] if halves else []),
        *(["[parameters]", f"freeze = [ {rules} ]"] if frozen else []),
        "[data]",
        'kind = "npz"',
        "[data.train]",
        'files   = [ "data.npz" ]',
        'shuffle = "none"',
        "[log]",
        'every = "1 steps"',
    ]
    return "\n".join(lines) + "\n"


def write(name, exporter, folder):
    """model.onnx, train.toml, data.npz, expected.json and expected.safetensors, as export.py writes them."""
    if exporter in TORCH_EXPORTERS:
        os.environ["KERAS_BACKEND"] = "torch"
    backend = OnTorch() if exporter in TORCH_EXPORTERS else OnTensorflow()
    import onnx

    network = keras_networks.network_of(name)
    model = keras_networks.make(network)
    inputs, targets = keras_networks.make_data(network, STEPS * BATCH)
    arrays = list(inputs.values())
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "model.onnx"
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        free = backend.export(model, exporter, [v[:BATCH] for v in arrays], path)
    graph = onnx.load(str(path)).graph
    output = graph.output[0].name
    np.savez(folder / "data.npz", **dict(zip([i.name for i in ordered(graph, inputs)], arrays)), target=targets)
    # Statistics have no names in Keras's own files, and are constants already.
    fixed = {} if exporter == "keras" else places_of(path, as_numpy(model.non_trainable_variables))
    (folder / "train.toml").write_text(train_toml(network, output, list(fixed), doubled_biases(graph)))
    places = places_of(path, as_numpy(model.trainable_variables))
    both = slice(0, 2 * BATCH)
    other = float(backend.loss(model, network.loss, [v[both] for v in arrays], targets[both]))
    losses = []
    for step in range(STEPS):
        part = slice(step * BATCH, (step + 1) * BATCH)
        losses.append(backend.step(model, network.loss, [v[part] for v in arrays], targets[part]))
    after = as_numpy(model.trainable_variables)
    found = {n: moved(after[of], order, shape) for n, (of, order, shape) in places.items()}
    unknown = after.keys() - {of for of, _, _ in places.values()}
    write_safetensors({**found, **{n: after[n] for n in unknown}}, folder / "expected.safetensors")
    expected = dict(losses=losses, spread=0.0, weights_spread=0.0, free=free, lr=RATE, note=NOTES.get(exporter, ""), file=None)
    expected["other_batch"] = {"size": 2 * BATCH, "loss": other}
    (folder / "expected.json").write_text(json.dumps(expected) + "\n")


def ordered(graph, inputs):
    """The file's inputs in the network's order: by name, or else in the file's order."""
    by_name = {i.name.split(":")[0]: i for i in graph.input}
    return [by_name.get(name, graph.input[k]) for k, name in enumerate(inputs)]


def add_file_difference(name, folder):
    """How far the loss of the first batch is from the framework's in onnxruntime, into expected.json."""
    import onnx_outputs

    expected = json.loads((folder / "expected.json").read_text())
    arrays = np.load(folder / "data.npz")
    try:
        out = next(iter(onnx_outputs.run(folder / "model.onnx", {n: arrays[n][:BATCH] for n in arrays.files}).values()))
    except Exception:
        return
    target = arrays["target"][:BATCH]
    out = out.astype(np.float64)
    if keras_networks.network_of(name).loss == "mse":
        loss = np.mean((out - target) ** 2)
    else:
        loss = np.mean(np.log(np.exp(out).sum(1)) - out[np.arange(BATCH), target])
    wanted = expected["losses"][0]
    expected["file"] = float(abs(loss - wanted) / max(abs(wanted), 1e-6))
    (folder / "expected.json").write_text(json.dumps(expected) + "\n")


def write_by_torch(name, exporter, folder):
    write(name, exporter, folder)
    add_file_difference(name, folder)


def is_wanted(options, name, exporter):
    if options.only and not any(fnmatch.fnmatch(f"keras/{name}", glob) for glob in options.only):
        return False
    folder = options.to / "keras" / name / exporter
    return options.again or not ((folder / "expected.json").exists() or (folder / "failed.txt").exists())


def export_by_tensorflow(options):
    """The part on TensorFlow, by the interpreter that has it."""
    wanted = [name for name in NAMES if is_wanted(options, name, TENSORFLOW_EXPORTER)]
    if not wanted:
        return
    if not options.tensorflow_python:
        print(f"keras {TENSORFLOW_EXPORTER}: left out ({len(wanted)} networks): --tensorflow-python names no interpreter", flush=True)
        return
    flags = [part for name in wanted for part in ("--only", f"keras/{name}")]
    command = [options.tensorflow_python, __file__, "--to", str(options.to), "--again", *flags]
    subprocess.run(command, env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "", "KERAS_BACKEND": "tensorflow"}, check=True)
    for name in wanted:
        folder = options.to / "keras" / name / TENSORFLOW_EXPORTER
        if (folder / "expected.json").exists():
            add_file_difference(name, folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--to", type=pathlib.Path, required=True)
    parser.add_argument("--only", action="append", help="a glob over keras/NAME; may be repeated")
    parser.add_argument("--again", action="store_true", help="also what is there already")
    options = parser.parse_args()
    for name in NAMES:
        if not is_wanted(options, name, TENSORFLOW_EXPORTER):
            continue
        folder = options.to / "keras" / name / TENSORFLOW_EXPORTER
        folder.mkdir(parents=True, exist_ok=True)
        for file in folder.glob("*"):
            if file.is_file():
                file.unlink()
        try:
            write(name, TENSORFLOW_EXPORTER, folder)
        except Exception as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            text = f"{type(error).__name__}: {error}\n\nat {pathlib.Path(last.filename).name}:{last.lineno}"
            (folder / "failed.txt").write_text(text + "\n")
        print(f"        keras/{name} {TENSORFLOW_EXPORTER}: {'failed' if (folder / 'failed.txt').exists() else 'exported'}", flush=True)


if __name__ == "__main__":
    sys.exit(main())

"""Exports networks of the zoo by both of PyTorch's exporters, and scikit-learn's models by skl2onnx, with data and the results of five steps in PyTorch.

    python models/zoo/export.py --to FOLDER [--only GLOB]… [--again] [--expected] [--limit SECONDS]

FOLDER/SOURCE/NAME/EXPORTER receives model.onnx, train.toml, data.npz, expected.json (losses, and `spread`: how far they are from PyTorch's
own without oneDNN, and from weights that differ in the last bit; `other_batch` and `other_length`, see other_data.py), expected.safetensors (the
parameters after five steps); or failed.txt, the exporter's own message. Each network has its own process with a time limit. Keras's networks
on TensorFlow are exported by another interpreter: --tensorflow-python.
"""

import argparse
import contextlib
import fnmatch
import functools
import io
import json
import logging
import os
import pathlib
import shutil
import signal
import sys
import time
import traceback
import warnings

from compare import weight_difference
from onnx_outputs import session_of
from other_data import is_complete, write_other_data

EXPORTERS = ("torchscript", "dynamo")
STEPS, OPSET = 5, 20
SPREAD = 1e-4  # a network that spreads more in PyTorch itself takes smaller steps
TERMS = {
    "cross_entropy": ("softmax_cross_entropy", "logits", "labels"),
    "mse": ("mse", "predictions", "targets"),
    "binary_cross_entropy": ("binary_cross_entropy", "logits", "labels"),
}


@contextlib.contextmanager
def quiet():
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(logging.NOTSET)


def call_exporter(network, path, exporter, free):
    """One call of torch.onnx.export in training form; with `free` axis 0 of all inputs is free, and the axes that `lengths` names."""
    import torch
    from network import FIXED_BATCH, free_axes, make, make_inputs, outputs_of

    model = make(network)
    inputs = tuple(make_inputs(network, FIXED_BATCH).values())
    with torch.no_grad():
        count = len(outputs_of(make(network), inputs))
    names = list(network.inputs)
    outputs = [f"out_{i}" for i in range(count)]
    input_axes, output_axes = free_axes(network)
    common = dict(input_names=names, output_names=outputs, opset_version=OPSET)
    with quiet():
        if exporter == "torchscript":
            torch.onnx.export(
                model,
                inputs,
                str(path),
                dynamo=False,
                training=torch.onnx.TrainingMode.TRAINING,
                do_constant_folding=False,
                dynamic_axes={**input_axes, **{n: output_axes for n in outputs}} if free else None,
                **common,
            )
        else:
            shapes = None
            if free:
                dims = functools.cache(torch.export.Dim)
                shapes = tuple({a: dims(d) for a, d in axes.items()} for axes in input_axes.values())
                if network.pick is not None:
                    shapes = (shapes,)
            torch.onnx.export(
                model,
                inputs,
                str(path),
                dynamo=True,
                optimize=False,
                dynamic_shapes=shapes,
                external_data=False,
                verbose=False,
                **common,
            )


def labels_and_outputs(network, batch):
    import torch
    from network import make, make_inputs, make_labels, outputs_of

    inputs = make_inputs(network, STEPS * batch)
    with torch.no_grad():
        outputs = outputs_of(make(network), tuple(v[: max(batch, 2)] for v in inputs.values()))
    outputs = [o.new_zeros(STEPS * batch, *o.shape[1:]) for o in outputs]
    return inputs, make_labels(network, outputs)


def reference(network, inputs, labels, batch, lr, variant="", seed=0):
    """Losses of five steps of SGD in PyTorch, and the parameters after them.

    variant: "plain" without oneDNN; "moved" from weights that differ in their last bit.
    """
    import torch
    from network import loss_of, make, outputs_of

    model = make(network)
    if variant == "moved":
        random = torch.Generator().manual_seed(4 + seed)
        with torch.no_grad():
            for p in model.parameters():
                p.mul_(1 + 1e-7 * (2 * (torch.rand(p.shape, generator=random) > 0.5) - 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    losses = []
    with torch.backends.mkldnn.flags(enabled=variant != "plain"):
        for step in range(STEPS):
            part = slice(step * batch, (step + 1) * batch)
            optimizer.zero_grad()
            outputs = outputs_of(model, tuple(v[part] for v in inputs.values()))
            loss = loss_of(network, outputs, [v[part] for v in labels.values()])
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses, {n: p.detach() for n, p in model.named_parameters() if p.grad is not None}


def as_arrays(parameters):
    return {n: p.detach().numpy() for n, p in parameters.items()}


def spread_of(network, wanted, moved, *arguments):
    """The largest relative difference of PyTorch's losses, and of its parameters, from those of the variants; `moved` of them start elsewhere."""
    from network import make

    losses, after = wanted
    before = as_arrays(dict(make(network).named_parameters()))
    spread, weights = 0.0, 0.0
    for variant, seed in [("plain", 0), *(("moved", seed) for seed in range(moved))]:
        others, parameters = reference(network, *arguments, variant, seed)
        spread = max(spread, *(abs(a - b) / max(abs(a), 1e-6) for a, b in zip(losses, others)))
        weights = max(weights, weight_difference(before, as_arrays(after), as_arrays(parameters))[0])
    return spread, weights


def file_difference(network, folder, inputs, labels, batch, loss):
    """How far the loss of the first batch is from PyTorch's in onnxruntime; nothing if onnxruntime does not run the file."""
    import torch
    from network import loss_of

    try:
        session = session_of(folder / "model.onnx")
        given = {i.name: inputs[i.name][:batch].numpy() for i in session.get_inputs()}
        outputs = [torch.from_numpy(v) for v in session.run(None, given)]
        got = loss_of(network, outputs, [v[:batch] for v in labels.values()]).item()
    except Exception:
        return None
    return abs(got - loss) / max(abs(loss), 1e-6)


def frozen_in(network, folder):
    """Parameters that the module does not train and the file has: a file cannot say so."""
    import onnx
    from network import make

    names = {i.name for i in onnx.load(str(folder / "model.onnx")).graph.initializer}
    return [n for n, p in make(network).named_parameters() if not p.requires_grad and n in names]


def train_toml(network, inputs, labels, batch, lr, frozen):
    from network import extents

    terms = []
    bind = ", ".join(f"{axis} = {n}" for axis, n in extents(network, inputs).items())
    rules = ", ".join(f'{{ at = "{name}" }}' for name in frozen)
    for i, label in enumerate(labels):
        kind, value, target = TERMS[network.loss]
        terms.append(
            f'{{ name = "loss_{i}", kind = "{kind}", {value} = "out_{i}", {target} = "{label}" }}'
        )
    lines = [
        f'model      = {{ file = "model.onnx", bind = {{ {bind} }} }}' if bind else 'model      = "model.onnx"',
        f"batch_size = {batch}",
        f"steps      = {STEPS}",
        "[loss]",
        "terms = [ " + ",\n          ".join(terms) + " ]",
        "[optimizer]",
        'kind = "sgd"',
        f"lr   = {lr:g}",
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


def has_same(folder, free):
    """Whether the other exporter's folder has PyTorch's results for the same batch."""
    path = folder / "expected.json"
    return path.exists() and json.loads(path.read_text())["free"] == free


def write_expected(network, exporter, folder, free, anew, moved):
    """data.npz, train.toml, expected.json and expected.safetensors next to a model.onnx."""
    import numpy as np
    import safetensors.torch
    from network import FIXED_BATCH, FREE_BATCH

    batch = FREE_BATCH if free else FIXED_BATCH
    inputs, labels = labels_and_outputs(network, batch)
    others = [folder.parent / e for e in EXPORTERS if e != exporter]
    other = next((o for o in others if has_same(o, free)), None)
    if other and not (anew and exporter == EXPORTERS[0]):
        shutil.copy(other / "expected.safetensors", folder / "expected.safetensors")
        expected = json.loads((other / "expected.json").read_text())
    else:
        for lr in (network.lr, network.lr / 10, network.lr / 100):
            losses, after = reference(network, inputs, labels, batch, lr)
            spread, weights = spread_of(network, (losses, after), moved, inputs, labels, batch, lr)
            if spread < SPREAD:
                break
        unique = {n: v.clone().contiguous() for n, v in after.items()}
        safetensors.torch.save_file(unique, str(folder / "expected.safetensors"))
        expected = dict(losses=losses, spread=spread, weights_spread=weights, free=free, lr=lr, moved=moved)
    loss = expected["losses"][0]
    expected["note"] = network.note
    expected["file"] = file_difference(network, folder, inputs, labels, batch, loss)
    np.savez(folder / "data.npz", **{n: v.numpy() for n, v in {**inputs, **labels}.items()})
    frozen = frozen_in(network, folder)
    (folder / "train.toml").write_text(train_toml(network, inputs, labels, batch, expected["lr"], frozen))
    (folder / "expected.json").write_text(json.dumps(expected) + "\n")
    write_other_data(network, folder, expected)


def write_one(network, exporter, folder, anew, moved):
    """Exports with a free batch, or else a fixed one, and writes the files next to it.

    anew: keeps the file, and writes what belongs to it again. moved: how many moved weights the spread is the largest of.
    """
    if anew:
        free = json.loads((folder / "expected.json").read_text())["free"]
        write_expected(network, exporter, folder, free, anew, moved)
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    free = network.free
    try:
        call_exporter(network, folder / "model.onnx", exporter, free)
    except Exception:
        if not free or network.lengths:
            raise
        free = False
        call_exporter(network, folder / "model.onnx", exporter, free)
    write_expected(network, exporter, folder, free, anew, moved)


def in_process(write, folder, limit):
    """write() in a process of its own; if it fails, the reason goes to failed.txt."""
    child = os.fork()
    if child == 0:
        code = 0
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        try:
            write()
        except BaseException as error:
            code = 1
            last = traceback.extract_tb(error.__traceback__)[-1]
            text = f"{type(error).__name__}: {error}\n\nat {pathlib.Path(last.filename).name}:{last.lineno}"
            (folder / "failed.txt").write_text(text + "\n")
        finally:
            os._exit(code)
    begin = time.monotonic()
    while time.monotonic() - begin < limit:
        done, _ = os.waitpid(child, os.WNOHANG)
        if done:
            break
        time.sleep(0.05)
    else:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        (folder / "failed.txt").write_text(f"the export took more than {limit} seconds\n")
    if not (folder / "expected.json").exists() and not (folder / "failed.txt").exists():
        (folder / "failed.txt").write_text("the export was killed\n")
    return time.monotonic() - begin


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--to", type=pathlib.Path, required=True)
    parser.add_argument("--only", action="append", help="a glob over SOURCE/NAME; may be repeated")
    parser.add_argument("--again", action="store_true", help="also what is there already")
    parser.add_argument(
        "--expected", action="store_true", help="export nothing, but compute PyTorch's results again"
    )
    parser.add_argument("--moved", type=int, default=1, help="moved weights that the spread is the largest of")
    parser.add_argument("--limit", type=int, default=120, help="seconds for one export")
    parser.add_argument("--tensorflow-python", help="an interpreter with tensorflow, keras, tf2onnx")
    options = parser.parse_args()
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
    warnings.simplefilter("ignore")
    os.environ["KERAS_BACKEND"] = "torch"  # read where Keras is loaded first
    import keras_models
    import onnxscript  # noqa: F401
    import sklearn_models
    import torch

    import zoo

    torch.set_num_threads(1)

    def export(name, exporter, write, complete=None):
        if options.only and not any(fnmatch.fnmatch(name, glob) for glob in options.only):
            return
        folder = options.to / name / exporter
        expected = folder / "expected.json"
        if options.expected and not expected.exists():
            return
        if not options.again and not options.expected:
            if (folder / "failed.txt").exists() or (expected.exists() and complete is None):
                return
            if expected.exists():
                if is_complete(folder):
                    return
                write = complete
        folder.mkdir(parents=True, exist_ok=True)  # for failed.txt
        seconds = in_process(lambda: write(folder), folder, options.limit)
        failed = folder / "failed.txt"
        text = failed.read_text().split("\n")[0][:150] if failed.exists() else "exported"
        print(f"{seconds:6.1f} s  {name} {exporter}: {text}", flush=True)

    for name, network in zoo.NETWORKS.items():
        for exporter in EXPORTERS:
            write = functools.partial(write_one, network, exporter, anew=options.expected, moved=options.moved)
            export(name, exporter, write, functools.partial(write_other_data, network))
    for name in zoo.SKLEARN:
        write = functools.partial(sklearn_models.write, name)
        export(f"sklearn/{name}", "skl2onnx", write, write)
    if not options.expected:
        for name in keras_models.NAMES:
            for exporter in keras_models.TORCH_EXPORTERS:
                export(f"keras/{name}", exporter, functools.partial(keras_models.write_by_torch, name, exporter))
        keras_models.export_by_tensorflow(options)


if __name__ == "__main__":
    main()

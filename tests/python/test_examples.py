"""The programs of python/examples run; packages that are not here are replaced by ones that keep what they get."""

import gzip
import os
import pathlib
import runpy
import struct
import sys
import types

import numpy
import pytest
from conftest import ROOT

EXAMPLES = ROOT / "python" / "examples"
MNIST = pathlib.Path(os.environ.get("TANDEM_SHARED", ROOT.parent / "shared")) / "data" / "mnist"


class Kept:
    """A module, a run or a context of a logger: keeps all calls."""

    def __init__(self, calls):
        self.calls, self.summary = calls, {}

    def __getattr__(self, name):
        def call(*arguments, **named):
            self.calls.append((name, arguments, named))
            return self

        return call

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.calls.append(("end", (), {}))


def run(name, monkeypatch, replaced, *arguments):
    """The calls that the program made to a package."""
    kept = Kept([])
    module = types.ModuleType(replaced)
    module.__getattr__ = lambda attribute: getattr(kept, attribute)
    monkeypatch.setitem(sys.modules, replaced, module)
    monkeypatch.setattr(sys, "argv", [name, *map(str, arguments)])
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    return kept


@pytest.fixture
def short(digits):
    text = (digits / "train.toml").read_text().replace("epochs     = 20", "epochs = 1")
    text = text.replace('every = "45 steps"', 'every = "20 steps"')
    (digits / "train.toml").write_text(text)
    return digits / "train.toml"


def test_wandb(short, monkeypatch):
    kept = run("wandb_callback.py", monkeypatch, "wandb", short)
    assert kept.calls[0] == ("init", (), {"project": "tandem"}) and kept.calls[-1][0] == "finish"
    sent = [(named["step"], values[0]) for name, values, named in kept.calls if name == "log"]
    losses = {step: values["loss"] for step, values in sent if "loss" in values}
    assert {20, 40} <= set(losses) and losses[20] > losses[40] > 0
    assert any("eval/accuracy" in values for _, values in sent)
    assert kept.summary["run_dir"]


def test_mlflow(short, monkeypatch):
    kept = run("mlflow_callback.py", monkeypatch, "mlflow", short)
    names = [name for name, _, _ in kept.calls]
    assert names[0] == "start_run" and names[-1] == "end" and names.count("log_artifact") == 2
    values = [arguments[0] for name, arguments, _ in kept.calls if name == "log_metrics"]
    assert any("loss" in v for v in values) and any("eval_accuracy" in v for v in values)
    assert all(numpy.isfinite(list(v.values())).all() for v in values)


def test_data_loader(digits, monkeypatch, capsys):
    pytest.importorskip("torch", reason="a DataLoader needs PyTorch")
    with numpy.load(digits / "digits_train.npz") as file:
        images = (file["images"] / 16).astype(numpy.float32)
        numpy.savez(digits / "data.npz", image=images, label=file["labels"])
    names = [digits / name for name in ("model.onnx", "data.npz", "trained.onnx")]
    monkeypatch.setattr(sys, "argv", ["data_loader.py", *map(str, names)])
    runpy.run_path(str(EXAMPLES / "data_loader.py"), run_name="__main__")
    losses = [float(line.split()[-1]) for line in capsys.readouterr().out.splitlines()]
    assert len(losses) == 3 and losses[2] < losses[0] / 2 and names[2].is_file()


def digits_as_mnist(folder, digits):
    """The files of MNIST with the digits of 8 x 8 pixels in them."""
    folder.mkdir()
    for part, name in (("train", "train"), ("t10k", "test")):
        with numpy.load(digits / f"digits_{name}.npz") as file:
            pixels, labels = file["images"].reshape(-1, 8, 8) * 15, file["labels"]
        images = struct.pack(">iiii", 2051, len(pixels), 8, 8) + pixels.astype(numpy.uint8).tobytes()
        (folder / f"{part}-images-idx3-ubyte.gz").write_bytes(gzip.compress(images))
        words = struct.pack(">ii", 2049, len(labels)) + labels.astype(numpy.uint8).tobytes()
        (folder / f"{part}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(words))
    return folder


@pytest.mark.parametrize("data, epochs, accuracy", [("digits", 10, 0.93), ("mnist", 2, 0.97)])
def test_the_walk_through_of_onnxruntime(digits, tmp_path, data, epochs, accuracy, capsys):
    for package in ("torch", "onnx", "onnxruntime"):
        pytest.importorskip(package, reason=f"the walk-through needs {package}")
    if data == "mnist" and not MNIST.is_dir():
        pytest.skip(f"MNIST is not in {MNIST}")
    folder = MNIST if data == "mnist" else digits_as_mnist(tmp_path / "data", digits)
    program = runpy.run_path(str(EXAMPLES / "on_device_mnist.py"))
    assert program["main"](str(folder), str(tmp_path / "made"), epochs) > accuracy
    shown = capsys.readouterr().out.splitlines()
    losses = [float(line.split("loss ")[1].split(",")[0]) for line in shown if line.startswith("epoch")]
    assert len(losses) == epochs and losses == sorted(losses, reverse=True)
    images, labels = program["read"](folder, "t10k")
    found = program["infer"](tmp_path / "made", images)
    assert (found == labels).mean() > accuracy
    text = (EXAMPLES / "on_device_mnist.py").read_text()
    assert [line for line in text.splitlines() if line.startswith(("from tandem", "import tandem"))] == [
        "from tandem_train.ort import api, artifacts"
    ]

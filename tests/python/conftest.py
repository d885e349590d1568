"""What the tests of the Python package share: the models, with folders for their files."""

import pathlib
import shutil

import dense
import pytest
from small_model import dense_network

import tandem_train as tt

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def dense_model(tmp_path_factory):
    return dense_network(tmp_path_factory.mktemp("dense") / "dense.onnx", dense.weights())


@pytest.fixture
def session(dense_model):
    return tt.Session(dense_model, dense.BATCH, settings=dense.SETTINGS)


@pytest.fixture
def digits(tmp_path):
    """A copy of the recipe of handwritten digits, in which runs may be made."""
    return shutil.copytree(ROOT / "models" / "digits", tmp_path / "digits")


@pytest.fixture(scope="session")
def digits_run(tmp_path_factory):
    """A run of 60 steps of the recipe."""
    folder = shutil.copytree(ROOT / "models" / "digits", tmp_path_factory.mktemp("run") / "digits")
    short = {"epochs": 1, "steps": 60, "eval.every": "30 steps", "optimizer.schedule": {"kind": "constant"}}
    return tt.Trainer(folder / "train.toml", short).run()

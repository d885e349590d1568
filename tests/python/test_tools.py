"""The functions of the program: reports for people with the same facts as data."""

import pathlib
import subprocess
import sys

import numpy
import pytest
from conftest import ROOT

import tandem_train as tt

DIGITS = ROOT / "models" / "digits"


def test_inspect(digits):
    report = tt.inspect(digits / "model.onnx")
    assert repr(report) == report.text and "parameters" in report.text
    assert {p["name"] for p in report.data["parameters"]} >= {"conv1.weight"}
    assert report.data["problems"] == []
    assert tt.inspect(digits / "model.onnx", stage="graph", bind={"batch": 4}).data["stage"] == "graph"
    with pytest.raises(tt.Error, match="stage"):
        tt.inspect(digits / "model.onnx", stage="nope")
    with pytest.raises(tt.Error, match="bind.batch"):
        tt.inspect(digits / "model.onnx", bind={"batch": "4"})


def test_plan_explain_auto(digits, tmp_path):
    config, policy = digits / "train.toml", digits / "policy.toml"
    plan = tt.plan(config, policy)
    assert plan.fits and repr(plan) == plan.text and "gpu" in plan.text
    assert plan.data["fits"] is True
    tight = tt.plan(config, policy, devices=["gpu=emulated:0,memory=100KiB"])
    assert not tight.fits
    of_model = tt.plan(digits / "model.onnx", bind={"batch": 8}, place=[{"at": "**", "on": "cpu"}])
    assert of_model.fits
    explained = tt.explain(config, "fc1:weight", policy)
    assert "policy.toml" in explained.text and explained.data
    search = {"devices": ["gpu=emulated:0,memory=64MiB"], "budgets": {"gpu": "1MiB"}, "most_plans": 5}
    found = tt.auto(config, **search)
    found.save(tmp_path / "found.toml")
    assert tt.plan(config, tmp_path / "found.toml").fits
    assert "auto" in found.policy and repr(found) == found.text
    tt.auto(config, to=tmp_path / "written.toml", **search)
    assert (tmp_path / "written.toml").read_text() == found.policy
    with pytest.raises(tt.Error, match="no such option"):
        tt.plan(config, policy, nope=1)
    with pytest.raises(tt.Error) as error:
        tt.plan(digits / "absent.toml")
    assert error.value.diagnostics


def test_evaluate(digits_run):
    report = tt.evaluate(digits_run.run_dir)
    assert repr(report) == report.text
    assert report.data["metrics"]["accuracy"] == pytest.approx(digits_run.best.value)
    with pytest.raises(tt.Error, match="nope"):
        tt.evaluate(digits_run.run_dir, nope=1)
    with pytest.raises(tt.Error, match="list"):
        tt.evaluate(digits_run.run_dir, data="rows.npz")


def test_predict_returns_arrays_or_writes_a_file(digits_run, tmp_path):
    data = [DIGITS / "digits_test.npz"]
    found = tt.predict(digits_run.run_dir, data, as_="values")
    logits = found.arrays["logits"]
    assert logits.shape == (360, 10)
    tt.predict(digits_run.run_dir, data, to=tmp_path / "logits.npy", as_="values")
    numpy.testing.assert_array_equal(numpy.load(tmp_path / "logits.npy"), logits)
    with numpy.load(data[0]) as file:
        right = (logits.argmax(1) == file["labels"]).mean()
    assert tt.evaluate(digits_run.run_dir, data=data).data["metrics"]["accuracy"] == pytest.approx(right)
    assert "360 rows" in found.text and "tmp" not in found.text
    with pytest.raises(tt.Error, match="to"):
        tt.predict(digits_run.run_dir, data, to="-")


def test_export(digits_run, tmp_path):
    exported = tt.export(digits_run.run_dir, tmp_path / "trained.onnx")
    assert pathlib.Path(exported.data["file"]).is_file() and repr(exported) == exported.text
    data = [DIGITS / "digits_test.npz"]
    of_run = tt.predict(digits_run.run_dir, data, as_="values").arrays["logits"]
    with numpy.load(data[0]) as file:
        images = (file["images"].reshape(360, 1, 8, 8) / 16).astype(numpy.float32)
    loss = [{"kind": "softmax_cross_entropy", "logits": "logits", "labels": "labels"}]
    session = tt.Session(tmp_path / "trained.onnx", 4, optimizer={"kind": "sgd", "lr": 0.1}, loss={"terms": loss})
    numpy.testing.assert_allclose(session.predict(image=images)["logits"], of_run, rtol=1e-4, atol=1e-4)
    with pytest.raises(tt.Error, match="absent"):
        tt.export(tmp_path / "absent", tmp_path / "x.onnx")


def test_the_program_comes_with_the_package():
    program = [sys.executable, "-c", "import sys; from tandem_train._program import main; main()"]
    output = subprocess.run([*program, "--version"], capture_output=True, text=True, check=True).stdout
    assert output.strip() == tt.__version__

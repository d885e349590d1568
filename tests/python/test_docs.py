"""Everything that docs/python.md tells to run is run, in order, in one folder; what needs PyTorch where it is."""

import importlib.util
import pathlib
import re
import shlex
import shutil
import subprocess

import pytest
from conftest import ROOT

import tandem_train as tt

PAGE = (ROOT / "docs" / "python.md").read_text()
STEPS = re.findall(r"^```python\n(.*?)^```|^    (tandem [^\n]*)$", PAGE, re.M | re.S)
HAS_TORCH = all(importlib.util.find_spec(name) for name in ("torch", "onnx"))
PROGRAM = pathlib.Path(tt.__file__).parent / "bin" / "tandem"


def test_the_page_runs(tmp_path, monkeypatch, capsys):
    assert sum(bool(snippet) for snippet, _ in STEPS) >= 12 and sum(bool(command) for _, command in STEPS) == 1
    monkeypatch.chdir(tmp_path)
    if not HAS_TORCH:  # a model with the same names
        shutil.copy(ROOT / "models" / "digits" / "model.onnx", tmp_path)
    scope = {}
    for snippet, command in STEPS:
        if command:
            subprocess.run([PROGRAM, *shlex.split(command)[1:]], check=True, stdout=subprocess.DEVNULL)
        elif HAS_TORCH or "torch" not in snippet:
            exec(compile(snippet, "docs/python.md", "exec"), scope)
    output = capsys.readouterr().out
    assert "fc1:weight" in output and "did you mean" in output
    accuracies = [float(value) for value in re.findall(r"'accuracy': ([\d.]+)", output)]
    assert not HAS_TORCH or accuracies[2] > 0.9  # the module has learned
    assert {"trained.onnx", "trained.safetensors", "policy.toml"} <= {path.name for path in tmp_path.iterdir()}
    if not HAS_TORCH:
        pytest.skip("all but the snippets with PyTorch, which need torch and onnx")


def test_what_the_page_names_exists():
    for name in re.findall(r"`tt\.([A-Za-z_]+)", PAGE):
        assert hasattr(tt, name), name
    for name in tt.__all__:
        assert name in PAGE or name in ("Best", "MetricTable", "Parameters", "Exported", "Predictions"), name

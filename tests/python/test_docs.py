"""Every snippet of docs/python.md runs, in order, in one folder; those with PyTorch where it is."""

import importlib.util
import re
import shutil

import numpy
import pytest
from conftest import ROOT

PAGE = (ROOT / "docs" / "python.md").read_text()
SNIPPETS = re.findall(r"^```python\n(.*?)^```", PAGE, re.M | re.S)
HAS_TORCH = all(importlib.util.find_spec(name) for name in ("torch", "onnx"))


def test_the_snippets_run(tmp_path, monkeypatch, capsys):
    assert len(SNIPPETS) >= 6
    monkeypatch.chdir(tmp_path)
    for name in ("model.onnx", "train.toml", "policy.toml", "digits_train.npz", "digits_test.npz"):
        shutil.copy(ROOT / "models" / "digits" / name, tmp_path)
    with numpy.load("digits_train.npz") as file:
        images = (file["images"].reshape(-1, 1, 8, 8) / 16).astype(numpy.float32)
        labels = file["labels"]
    numpy.savez("digits.npz", image=images, labels=labels)
    scope = {}
    for snippet in SNIPPETS:
        if "torch" in snippet and not HAS_TORCH:
            continue
        exec(compile(snippet, "docs/python.md", "exec"), scope)
    output = capsys.readouterr().out
    assert output.startswith("loss 0.") and "did you mean" in output
    if not HAS_TORCH:
        pytest.skip("all but the snippet with PyTorch, which needs torch and onnx")


def test_what_the_page_names_exists():
    import tandem_train as tt

    for name in re.findall(r"`tt\.([A-Za-z_]+)", PAGE):
        assert hasattr(tt, name), name
    for name in tt.__all__:
        assert name in PAGE or name in ("Best", "MetricTable", "Parameters", "Exported", "Predictions"), name

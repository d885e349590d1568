"""The package and its stub are well typed."""

import inspect
import pathlib
import subprocess
import sys

import pytest
from conftest import ROOT

import tandem_train as tt

PACKAGE = ROOT / "python" / "src" / "tandem_train"
EXAMPLES = sorted((ROOT / "python" / "examples").glob("*.py"))


def test_mypy_is_content():
    pytest.importorskip("mypy", reason="needs mypy")
    arguments = ["--config-file", str(ROOT / "python" / "pyproject.toml"), "--cache-dir=/dev/null"]
    found = subprocess.run(
        [sys.executable, "-m", "mypy", *arguments, PACKAGE, *EXAMPLES], capture_output=True, text=True, cwd=ROOT
    )
    assert found.returncode == 0, found.stdout + found.stderr


def test_the_stub_is_that_of_the_module(tmp_path):
    nanobind = pytest.importorskip("nanobind", reason="needs nanobind")
    listed = (ROOT / "tests" / "python" / "requirements.txt").read_text()
    if f"nanobind=={nanobind.__version__}\n" not in listed:
        pytest.skip("another version of nanobind writes another stub")
    made = tmp_path / "made.pyi"
    arguments = ["-q", "-m", "tandem_train._tandem", "-o", str(made)]
    subprocess.run([sys.executable, "-m", "nanobind.stubgen", *arguments], check=True)
    assert made.read_text() == (PACKAGE / "_tandem.pyi").read_text(), "run `make docs`"


def test_the_files_of_options_are_current():
    """They are what the tables of keys of this build say."""
    program = pathlib.Path(tt.__file__).parent / "bin" / "tandem"
    script = ROOT / "tools" / "generate_python_options.py"
    found = subprocess.run([sys.executable, str(script), str(program), "--check"], capture_output=True, text=True)
    assert found.returncode == 0, found.stdout + found.stderr


def test_the_package_exports_what_it_names():
    for name in tt.__all__:
        value = getattr(tt, name)
        assert (value.__name__ if inspect.ismodule(value) else value.__module__).startswith("tandem_train.")
        assert value.__doc__, name

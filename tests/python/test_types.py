"""The package and its stub are well typed."""

import inspect
import pathlib
import re
import subprocess
import sys

import pytest
from conftest import ROOT

import tandem_train as tt
from tandem_train import _tandem

PACKAGE = ROOT / "python" / "src" / "tandem_train"


def test_mypy_is_content():
    pytest.importorskip("mypy", reason="needs mypy")
    arguments = ["--config-file", str(ROOT / "python" / "pyproject.toml"), "--cache-dir=/dev/null", str(PACKAGE)]
    found = subprocess.run([sys.executable, "-m", "mypy", *arguments], capture_output=True, text=True, cwd=ROOT)
    assert found.returncode == 0, found.stdout + found.stderr


def test_the_stub_has_what_the_module_has():
    stub = (PACKAGE / "_tandem.pyi").read_text()
    for name, value in vars(_tandem).items():
        if name.startswith("__"):
            continue
        assert re.search(rf"^(class|def) {name}\b", stub, re.M), name
        for member in vars(value) if inspect.isclass(value) else ():
            if not member.startswith("__"):
                body = re.search(rf"^class {name}\b.*?(?=^\S|\Z)", stub, re.M | re.S)[0]
                assert re.search(rf"\b{member}\b", body), f"{name}.{member}"
    for name in re.findall(r"^(?:class|def) (\w+)", stub, re.M):
        assert hasattr(_tandem, name), name


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

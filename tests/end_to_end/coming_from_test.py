"""The pages of docs/coming_from train the same network in another program and in Tandem: coming_from_test.py TANDEM.

Runs the commands of each page and compares their output, where a Python has the other program: TANDEM_PEER_PYTHON, this
one or python3. The pages show equal results of both; here they are compared with each other, too. Exit code 77: no
Python has any of the programs.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from documented_pages import ROOT, Page  # noqa: E402

PROGRAM = None  # the command line's
SKIPPED = 77
NEEDS = {
    "pytorch": ["torch", "onnx", "safetensors", "numpy"],
    "keras": ["keras", "torch", "onnx", "numpy"],
    "mindspore": ["mindspore", "numpy"],
    "onnxruntime_training": ["tandem_train.ort", "onnx", "numpy"],
}
PEER = ["onnxruntime.training", "torch", "onnx", "numpy"]  # for the original of the last page's program
RESULT = re.compile(r"held-out loss ([\d.]+)")
FIND = """
import importlib.util, sys
def there(name):
    try:
        return importlib.util.find_spec(name) is not None
    except ImportError:
        return False
sys.exit(not all(map(there, sys.argv[1:])))
"""


def environment():
    """With the package of this build, where it has one."""
    paths = [str(PROGRAM.parent / "python"), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), "PYTHONDONTWRITEBYTECODE": "1"}


def python_with(modules):
    for python in filter(None, (os.environ.get("TANDEM_PEER_PYTHON"), sys.executable, shutil.which("python3"))):
        if subprocess.run([python, "-c", FIND, *modules], env=environment(), capture_output=True).returncode == 0:
            return python
    return None


def missing(modules):
    return [module for module in modules if python_with([module]) is None] or modules


class ComingFrom(unittest.TestCase):
    def run_page(self, name):
        python = python_with(NEEDS[name])
        if python is None:
            self.skipTest(f"{name}: no Python has {', '.join(missing(NEEDS[name]))}")
        paths = f'export PYTHONPATH="{environment()["PYTHONPATH"]}" PYTHONDONTWRITEBYTECODE=1'
        with tempfile.TemporaryDirectory() as folder:
            page = Page(f"docs/coming_from/{name}.md", pathlib.Path(folder), PROGRAM, before=(paths, f'python3() {{ "{python}" "$@"; }}'))
            page.run()
        if page.problems:
            self.fail("\n" + "\n".join(page.problems))
        self.assertGreaterEqual(page.commands, 5)
        results = [float(match[1]) for printed in page.printed for match in RESULT.finditer(printed)]
        self.assertEqual(len(results), 2, page.printed)
        self.assertAlmostEqual(results[0], results[1], delta=0.02 * results[0])

    def test_pytorch(self):
        self.run_page("pytorch")

    def test_keras(self):
        self.run_page("keras")

    def test_mindspore(self):
        self.run_page("mindspore")

    def test_onnxruntime_training(self):
        self.run_page("onnxruntime_training")

    def test_the_program_for_onnxruntime_training_gives_the_same_there(self):
        python = python_with(PEER)
        if python is None:
            self.skipTest(f"onnxruntime-training: no Python has {', '.join(missing(PEER))}")
        text = (ROOT / "docs/coming_from/onnxruntime_training.md").read_text()
        program = re.search(r"```python\n(.*?)```", text, re.S)[1].replace("tandem_train.ort", "onnxruntime.training")
        with tempfile.TemporaryDirectory() as folder:
            for name in ("model.onnx", "digits_train.npz", "digits_test.npz"):
                shutil.copy(ROOT / "models/digits" / name, folder)
            ended = subprocess.run([python, "-c", program], cwd=folder, capture_output=True, text=True)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        shown = float(RESULT.search(text)[1])
        self.assertAlmostEqual(float(RESULT.search(ended.stdout)[1]), shown, delta=0.02 * shown)


if __name__ == "__main__":
    PROGRAM = pathlib.Path(sys.argv.pop(1)).resolve()
    if all(python_with(modules) is None for modules in [*NEEDS.values(), PEER]):
        print("skipped: no Python has torch, keras, mindspore, tandem_train or onnxruntime.training")
        sys.exit(SKIPPED)
    unittest.main(verbosity=2)

"""Adapters that `export --format peft` writes, loaded by PEFT into the PyTorch model that the file came from, whatever the exporter called the weights.

    python3 tests/end_to_end/peft_test.py build/tandem

With the adapters the base computes what the merged ONNX file computes in onnxruntime. 77 (skipped) without the packages torch, onnx, onnxruntime and peft:
TANDEM_PEER_PYTHON names a Python that has them.
"""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile

PACKAGES = ("torch", "onnx", "onnxruntime", "onnxscript", "peft", "numpy", "safetensors")
ROOT = pathlib.Path(__file__).resolve().parents[2]

TOML = """
model      = "{model}"
batch_size = 8
steps      = 12
seed       = 3
[loss]
terms = [ {{ name = "loss", kind = "softmax_cross_entropy", logits = "logits", labels = "labels" }} ]
[optimizer]
kind = "adam"
lr   = 3e-2
[parameters]
lora  = [ {{ at = "**.{{q_proj,v_proj}}:weight", rank = 2, alpha = 6 }} ]
train = [ "{head}" ]
[data]
kind = "npz"
[data.train]
files = [ "data.npz" ]
[data.fields]
x      = "x"
labels = "labels"
"""


def other_python():
    """Goes on in the Python that has the packages; says which ones are missing where none has."""
    missing = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    other = os.environ.get("TANDEM_PEER_PYTHON")
    if not missing:
        return
    if other and "TANDEM_PEFT_TEST" not in os.environ:
        os.execve(other, [other, *sys.argv], {**os.environ, "TANDEM_PEFT_TEST": "1"})
    print(f"skipped: this Python has no package {', '.join(missing)} (TANDEM_PEER_PYTHON names another)")
    sys.exit(77)


other_python()

import numpy  # noqa: E402
import onnx  # noqa: E402
import onnxruntime  # noqa: E402
import peft  # noqa: E402
import torch  # noqa: E402
from safetensors.torch import load_file  # noqa: E402


class Attention(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.q_proj = torch.nn.Linear(8, 8, bias=False)
        self.k_proj = torch.nn.Linear(8, 8, bias=False)
        self.v_proj = torch.nn.Linear(8, 8)

    def forward(self, x):
        scores = self.q_proj(x) @ self.k_proj(x).transpose(1, 2) / 8**0.5
        return x + torch.softmax(scores, -1) @ self.v_proj(x)


class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(Attention() for _ in range(2))
        self.norm = torch.nn.LayerNorm(8)
        self.head = torch.nn.Linear(8, 5)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x)).mean(1)


class Wrapper(torch.nn.Module):
    """As exports of Hugging Face's models wrap them: all names get a prefix."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x):
        return self.model(x)


def classic(model, path, folding):
    torch.onnx.export(model, (torch.zeros(2, 4, 8),), path, dynamo=False, opset_version=17, do_constant_folding=folding,
                      training=torch.onnx.TrainingMode.PRESERVE if folding else torch.onnx.TrainingMode.TRAINING,
                      input_names=["x"], output_names=["logits"], dynamic_axes={"x": {0: "batch"}, "logits": {0: "batch"}})


def dynamo(model, path, optimize):
    torch.onnx.export(model, (torch.zeros(2, 4, 8),), path, dynamo=True, opset_version=20, optimize=optimize, input_names=["x"],
                      output_names=["logits"], dynamic_shapes=({0: torch.export.Dim("batch")},), external_data=False)


def anonymous(model, path):
    """Weights of a folding exporter, and nodes that no module shows of."""
    classic(model, path, True)
    made = onnx.load(path)
    for number, node in enumerate(made.graph.node):
        node.name = f"{node.op_type}_{number}"
    onnx.save(made, path)


class Failure(Exception):
    pass


class Test:
    def __init__(self, program, folder):
        self.program, self.folder = program, folder
        random = numpy.random.default_rng(5)
        numpy.savez(folder / "data.npz", x=random.normal(size=(32, 4, 8)).astype(numpy.float32), labels=random.integers(0, 5, 32))
        self.x = random.normal(size=(6, 4, 8)).astype(numpy.float32)

    def tandem(self, *arguments, good=True):
        result = subprocess.run([self.program, *map(str, arguments)], capture_output=True, text=True, cwd=self.folder)
        if (result.returncode == 0) != good:
            raise Failure(f"{' '.join(map(str, arguments))}: exit {result.returncode}\n{result.stdout}{result.stderr}")
        return result.stdout + result.stderr

    def trained(self, name, write, wrap=False, head="**.head"):
        torch.manual_seed(11)
        base = Network().eval()
        write(Wrapper(base) if wrap else base, self.folder / f"{name}.onnx")
        toml = self.folder / f"{name}.toml"
        toml.write_text(TOML.format(model=f"{name}.onnx", head=head))
        self.tandem("train", toml, "--run-dir", self.folder / name)
        return base

    def expect_equal(self, name, base, adapter):
        self.tandem("export", self.folder / name, "--to", self.folder / f"{name}-merged.onnx")
        (expected,) = onnxruntime.InferenceSession(self.folder / f"{name}-merged.onnx").run(["logits"], {"x": self.x})
        with torch.no_grad():
            plain = base(torch.tensor(self.x))
            model = peft.PeftModel.from_pretrained(base, adapter).eval()
            found = model(torch.tensor(self.x))
        # Every tensor of the file has found its place.
        state = {key.replace(".default", "").replace("modules_to_save.", "") for key in model.state_dict()}
        lost = [key for key in load_file(adapter / "adapter_model.safetensors") if key not in state]
        if lost:
            raise Failure(f"PEFT has no place for {lost}")
        if (plain - torch.tensor(expected)).abs().max() < 1e-2:
            raise Failure("the training has changed nothing")
        torch.testing.assert_close(found, torch.tensor(expected), rtol=1e-4, atol=1e-5)

    def case(self, name, write, wrap=False):
        base = self.trained(name, write, wrap)
        adapter = self.folder / f"{name}-adapter"
        strip = ["--strip", "model."] if wrap else []
        self.tandem("export", self.folder / name, "--to", adapter, "--format", "peft", *strip)
        config = json.loads((adapter / "adapter_config.json").read_text())
        expected = [f"layers.{layer}.{part}" for layer in range(2) for part in ("q_proj", "v_proj")]
        if config["target_modules"] != expected or config["modules_to_save"] != ["head"]:
            raise Failure(f"{config['target_modules']} {config['modules_to_save']}")
        self.expect_equal(name, base, adapter)

    def no_module(self):
        name = "anonymous"
        torch.manual_seed(11)
        anonymous(Network().eval(), self.folder / f"{name}.onnx")
        toml = self.folder / f"{name}.toml"
        toml.write_text(TOML.format(model=f"{name}.onnx", head="head.bias").replace('"**.{q_proj,v_proj}:weight"', '"onnx::MatMul_*"'))
        self.tandem("train", toml, "--run-dir", self.folder / name)
        said = self.tandem("export", self.folder / name, "--to", self.folder / "no", "--format", "peft", good=False)
        if "module" not in said or "--lora merged" not in said or (self.folder / "no").exists():
            raise Failure(f"wrote {self.folder / 'no'}: {said}")

    def wrong_strip(self):
        said = self.tandem("export", self.folder / "classic", "--to", self.folder / "no", "--format", "peft", "--strip", "bert.", good=False)
        if "--strip" not in said or (self.folder / "no").exists():
            raise Failure(said)

    def run(self):
        self.case("classic", lambda model, path: classic(model, path, False))
        self.case("folded", lambda model, path: classic(model, path, True))
        self.case("dynamo", lambda model, path: dynamo(model, path, False))
        self.case("optimized", lambda model, path: dynamo(model, path, True))
        self.case("wrapped", lambda model, path: classic(model, path, True), wrap=True)
        self.no_module()
        self.wrong_strip()


def main():
    program = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        try:
            Test(program, pathlib.Path(folder)).run()
        except Failure as failure:
            print(failure)
            return 1
    print("adapters of 5 exports are those of PEFT; 2 refusals write nothing")
    return 0


if __name__ == "__main__":
    sys.exit(main())

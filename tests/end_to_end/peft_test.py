"""Adapters that `export --format peft` writes, loaded by PEFT into the PyTorch model that the file came from, whatever the exporter called the weights.

    python3 tests/end_to_end/peft_test.py build/tandem

With the adapters the base computes what the merged ONNX file computes in onnxruntime, and what `tandem predict` says. peft_networks.py has the networks
whose names PEFT reads in its own way. 77 (skipped) without the packages torch, onnx, onnxruntime and peft: TANDEM_PEER_PYTHON names a Python that has them.
"""

import copy
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import warnings

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
{parameters}
[data]
kind = "npz"
[data.train]
files = [ "data.npz" ]
[data.fields]
x      = "x"
labels = "labels"
"""
PARAMETERS = """lora  = [ {{ at = "{weights}", rank = 2, alpha = 6 }} ]
train = [ "{head}" ]"""


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
from peft_networks import CASES  # noqa: E402
from safetensors.torch import load_file  # noqa: E402

# Cases that are exported with made-up names as well.
OPTIMIZED = ("dora", "ranks", "one_of_two", "saved_ends", "saved_end_of_adapted", "nested", "called_twice", "words", "parallel_strip", "numbers")


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


def example(model):
    return getattr(model, "example", torch.zeros(2, 4, 8))


def classic(model, path, folding):
    torch.onnx.export(model, (example(model),), path, dynamo=False, opset_version=17, do_constant_folding=folding,
                      training=torch.onnx.TrainingMode.PRESERVE if folding else torch.onnx.TrainingMode.TRAINING,
                      input_names=["x"], output_names=["logits"], dynamic_axes={"x": {0: "batch"}, "logits": {0: "batch"}})


def dynamo(model, path, optimize):
    torch.onnx.export(model, (example(model),), path, dynamo=True, opset_version=20, optimize=optimize, input_names=["x"],
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


def loaded(base, adapter):
    """By PEFT, which warns of tensors that it misses or has no place for."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model = peft.PeftModel.from_pretrained(copy.deepcopy(base), adapter).eval()
    words = [str(each.message) for each in said if "key" in str(each.message)]
    state = {key.replace(".default", "").replace("modules_to_save.", "") for key in model.state_dict()}
    state |= {key.removesuffix(".weight") for key in state if key.endswith("lora_magnitude_vector.weight")}
    lost = [key for key in load_file(adapter / "adapter_model.safetensors") if key not in state]
    if words or lost:
        raise Failure(f"PEFT has no place for {lost} {words}")
    return model


class Test:
    def __init__(self, program, folder):
        self.program, self.folder = program, folder
        self.refusals = self.equal = 0

    def tandem(self, *arguments, good=True):
        result = subprocess.run([self.program, *map(str, arguments)], capture_output=True, text=True, cwd=self.folder)
        if (result.returncode == 0) != good:
            raise Failure(f"{' '.join(map(str, arguments))}: exit {result.returncode}\n{result.stdout}{result.stderr}")
        return result.stdout + result.stderr

    def write(self, name, model, write, parameters):
        """The file, data of 32 samples and train.toml."""
        random = numpy.random.default_rng(5)
        shape = (32, *example(model).shape[1:])
        is_float = example(model).is_floating_point()
        x = random.normal(size=shape).astype(numpy.float32) if is_float else random.integers(0, 20, shape)
        folder = self.folder / name
        folder.mkdir()
        numpy.savez(folder / "data.npz", x=x, labels=random.integers(0, 5, 32))
        write(model, folder / "model.onnx")
        model.eval()
        (folder / "train.toml").write_text(TOML.format(model="model.onnx", parameters=parameters))
        return folder, x

    def expect_equal(self, folder, x, base, adapter, inner=""):
        self.tandem("export", folder / "run", "--to", folder / "merged.onnx")
        (merged,) = onnxruntime.InferenceSession(folder / "merged.onnx").run(["logits"], {"x": x})
        self.tandem("predict", folder / "run", "--data", folder / "data.npz", "--output", "logits", "--as", "values", "--to", folder / "out.npz")
        predicted = numpy.load(folder / "out.npz")["logits"]
        model = copy.deepcopy(base)
        with torch.no_grad():
            plain = base(torch.tensor(x))
            if inner:
                setattr(model, inner, loaded(getattr(model, inner), adapter))
            else:
                model = loaded(model, adapter)
            found = model.eval()(torch.tensor(x))
        if (plain - torch.tensor(merged)).abs().max() < 1e-2:
            raise Failure("the training has changed nothing")
        torch.testing.assert_close(found, torch.tensor(merged), rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(found, torch.tensor(predicted), rtol=1e-4, atol=1e-5)
        self.equal += 1

    def case(self, name, write, wrap=False):
        torch.manual_seed(11)
        base = Network().eval()
        parameters = PARAMETERS.format(weights="**.{q_proj,v_proj}:weight", head="**.head")
        folder, x = self.write(name, Wrapper(base) if wrap else base, write, parameters)
        self.tandem("train", folder / "train.toml", "--run-dir", folder / "run")
        adapter = folder / "adapter"
        self.tandem("export", folder / "run", "--to", adapter, "--format", "peft", *(["--strip", "model."] if wrap else []))
        expected = [f"layers.{layer}.{part}" for layer in range(2) for part in ("q_proj", "v_proj")]
        self.expect_entries(adapter, {"target_modules": expected, "modules_to_save": ["head"]})
        self.expect_equal(folder, x, base, adapter)

    def expect_entries(self, adapter, expected):
        config = json.loads((adapter / "adapter_config.json").read_text())
        for key, value in expected.items():
            if config[key] != value:
                raise Failure(f"{key}: {config[key]}")

    def expect_refusal(self, folder, words, *more, run="run"):
        said = self.tandem("export", folder / run, "--to", folder / "no", "--format", "peft", *more, good=False)
        if any(word not in said for word in words) or (folder / "no").exists():
            raise Failure(f"wrote {folder / 'no'}: {said}")
        self.refusals += 1

    def no_module(self):
        torch.manual_seed(11)
        parameters = PARAMETERS.format(weights="onnx::MatMul_*", head="head.bias")
        folder, _ = self.write("anonymous", Network().eval(), anonymous, parameters)
        self.tandem("train", folder / "train.toml", "--run-dir", folder / "run")
        self.expect_refusal(folder, ("module", "--lora merged"))

    def network(self, key, exporter, write):
        """One of peft_networks.py."""
        case = CASES[key]
        torch.manual_seed(11)
        base = case.network().train()
        base.example = torch.randn(2, *case.inputs) if case.inputs else torch.randint(0, 20, (2, 6))
        folder, x = self.write(f"{key}-{exporter}", base, write, case.parameters)
        said = self.tandem("train", folder / "train.toml", "--run-dir", folder / "run", good=not case.at_train)
        if case.at_train:
            if any(word not in said for word in case.refusal):
                raise Failure(said)
            self.refusals += 1
        elif case.refusal:
            self.expect_refusal(folder, (*case.refusal, "--lora merged"))
        else:
            adapter = folder / "adapter"
            self.tandem("export", folder / "run", "--to", adapter, "--format", "peft", *(["--strip", case.strip] if case.strip else []))
            self.expect_entries(adapter, case.expected)
            self.expect_equal(folder, x, base, adapter, case.inner)

    def run(self):
        exporters = {
            "classic": lambda model, path: classic(model, path, False),
            "folded": lambda model, path: classic(model, path, True),
            "dynamo": lambda model, path: dynamo(model, path, False),
            "optimized": lambda model, path: dynamo(model, path, True),
        }
        failed = []

        def attempt(name, call):
            try:
                call()
            except (Failure, AssertionError, KeyError, RuntimeError, TypeError) as failure:
                failed.append(f"{name}: {failure}")

        for name, write in exporters.items():
            attempt(name, lambda: self.case(name, write))
        attempt("wrapped", lambda: self.case("wrapped", exporters["folded"], wrap=True))
        attempt("anonymous", self.no_module)
        attempt("strip", lambda: self.expect_refusal(self.folder / "classic", ("--strip",), "--strip", "bert."))
        for key in CASES:
            attempt(f"{key} classic", lambda: self.network(key, "classic", exporters["classic"]))
        for key in OPTIMIZED:
            attempt(f"{key} optimized", lambda: self.network(key, "optimized", exporters["optimized"]))
        return failed


def main():
    program = os.path.abspath(sys.argv[1])
    torch.set_num_threads(1)  # small networks; and other tests run at the same time
    os.environ["OMP_NUM_THREADS"] = "1"
    with tempfile.TemporaryDirectory() as folder:
        test = Test(program, pathlib.Path(folder))
        failed = test.run()
    print("\n".join([*failed, f"adapters of {test.equal} exports are those of PEFT; {test.refusals} refusals write nothing; {len(failed)} differ"]))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

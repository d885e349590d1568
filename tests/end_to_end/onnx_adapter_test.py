"""Adapters that `export --format onnx-adapter` writes, loaded by onnxruntime next to the model that `export --lora inputs` writes.

    python3 tests/end_to_end/onnx_adapter_test.py build/tandem

Without an adapter the model computes what it did before the training, with the adapter of a run what the merged export of that run computes: one session,
adapters of two runs with different ranks. 77 (skipped) without the packages onnx, onnxruntime and numpy: TANDEM_PEER_PYTHON names a Python that has them.
"""

import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile

PACKAGES = ("onnx", "onnxruntime", "numpy")

TOML = """
model      = "model.onnx"
batch_size = 8
steps      = 12
seed       = 3
[loss]
terms = [ { name = "loss", kind = "softmax_cross_entropy", logits = "logits", labels = "labels" } ]
[optimizer]
kind = "adam"
lr   = 3e-2
[data]
kind = "npz"
[data.train]
files = [ "data.npz" ]
[data.fields]
x      = "x"
labels = "labels"
"""
# Two runs of one model: other weights have adapters, of other ranks.
RUNS = {
    "small": '[{ at = "conv.weight", rank = 1 }, { at = "fc1.weight", rank = 2, alpha = 6 }, { at = "fc2.weight", rank = 2, alpha = 5 }]',
    "large": '[{ at = "conv.weight", rank = 3, alpha = 4 }, { at = "fc1.weight", rank = 4 }, { at = "fc2.weight", rank = 3 }]',
}
# Versions of the file format and the operators. Up to 3 the former lists initializers among the inputs, and none of them can be fed.
VERSIONS = ((3, 8), (8, 17))
BOUND = 1e-5


def other_python():
    """Goes on in the Python that has the packages; says which ones are missing where none has."""
    missing = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    other = os.environ.get("TANDEM_PEER_PYTHON")
    if not missing:
        return
    if other and "TANDEM_ONNX_ADAPTER_TEST" not in os.environ:
        os.execve(other, [other, *sys.argv], {**os.environ, "TANDEM_ONNX_ADAPTER_TEST": "1"})
    print(f"skipped: this Python has no package {', '.join(missing)} (TANDEM_PEER_PYTHON names another)")
    sys.exit(77)


other_python()

import numpy  # noqa: E402
import onnx  # noqa: E402
import onnxruntime  # noqa: E402


def network(ir_version, opset):
    """A convolution; a Gemm that reads its weight as [out, in] and multiplies by alpha; a MatMul."""
    random = numpy.random.default_rng(7)
    shapes = {"conv.weight": (4, 2, 3, 3), "conv.bias": (4,), "fc1.weight": (10, 64), "fc1.bias": (10,), "fc2.weight": (10, 5), "fc2.bias": (5,)}
    weights = {name: (random.normal(size=shape) * 0.3).astype(numpy.float32) for name, shape in shapes.items()}
    make = onnx.helper.make_node
    nodes = [
        make("Conv", ["x", "conv.weight", "conv.bias"], ["c"], name="conv", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        make("Relu", ["c"], ["r"], name="relu"),
        make("Flatten", ["r"], ["f"], name="flatten", axis=1),
        make("Gemm", ["f", "fc1.weight", "fc1.bias"], ["g"], name="fc1", transB=1, alpha=0.5),
        make("Tanh", ["g"], ["t"], name="tanh"),
        make("MatMul", ["t", "fc2.weight"], ["m"], name="fc2"),
        make("Add", ["m", "fc2.bias"], ["logits"], name="add"),
    ]
    info = onnx.helper.make_tensor_value_info
    inputs = [info("x", onnx.TensorProto.FLOAT, ["batch", 2, 4, 4])]
    if ir_version < 4:
        inputs += [info(name, onnx.TensorProto.FLOAT, shape) for name, shape in shapes.items()]
    initializers = [onnx.numpy_helper.from_array(value, name) for name, value in weights.items()]
    graph = onnx.helper.make_graph(nodes, "network", inputs, [info("logits", onnx.TensorProto.FLOAT, ["batch", 5])], initializers)
    return onnx.helper.make_model(graph, ir_version=ir_version, opset_imports=[onnx.helper.make_opsetid("", opset)])


class Project:
    def __init__(self, program, folder, ir_version, opset):
        self.program, self.folder = program, folder
        random = numpy.random.default_rng(5)
        self.x = random.normal(size=(32, 2, 4, 4)).astype(numpy.float32)
        numpy.savez(folder / "data.npz", x=self.x, labels=random.integers(0, 5, 32))
        onnx.save(network(ir_version, opset), folder / "model.onnx")
        (folder / "train.toml").write_text(TOML)

    def tandem(self, *arguments, good=True):
        result = subprocess.run([self.program, *map(str, arguments)], capture_output=True, text=True, cwd=self.folder)
        said = result.stdout + result.stderr
        assert (result.returncode == 0) == good, f"{' '.join(map(str, arguments))}: exit {result.returncode}\n{said}"
        return said

    def session(self, name):
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3  # it warns that inputs with defaults are no constants
        return onnxruntime.InferenceSession(self.folder / name, options)

    def logits(self, session, *adapters):
        options = onnxruntime.RunOptions()
        for adapter in adapters:
            options.add_active_adapter(adapter)
        return session.run(["logits"], {"x": self.x}, options)[0]


def largest(a, b):
    return float(numpy.abs(a - b).max())


def check_adapters(project):
    for run, rules in RUNS.items():
        project.tandem("train", "train.toml", "--run-dir", run, f"parameters.lora={rules}")
        project.tandem("export", run, "--to", f"{run}.onnx_adapter", "--format", "onnx-adapter")
        project.tandem("export", run, "--to", f"{run}.merged.onnx")
    project.tandem("export", "small", "--to", "base.onnx", "--lora", "inputs")
    base, plain = project.session("base.onnx"), project.logits(project.session("model.onnx"))
    assert [each.name for each in base.get_inputs()] == ["x"], "the model needs inputs for adapters"
    assert largest(project.logits(base), plain) < BOUND, "without an adapter the model computes something else"
    fed = {each.name for each in base.get_overridable_initializers()}
    for run in RUNS:
        path = str(project.folder / f"{run}.onnx_adapter")
        read = onnxruntime.AdapterFormat.read_adapter(path)
        assert read.get_format_version() == 1
        names = set(read.get_parameters())
        assert names == {f"{layer}.weight/lora_{letter}" for layer in ("conv", "fc1", "fc2") for letter in "ab"} <= fed, names
        adapter = onnxruntime.LoraAdapter()
        adapter.Load(path)
        merged = project.logits(project.session(f"{run}.merged.onnx"))
        assert largest(merged, plain) > 1e-2, "the training has changed nothing"
        difference = largest(project.logits(base, adapter), merged)
        assert difference < BOUND, f"{run}: the adapter and the merged model differ by {difference}"
    assert largest(project.logits(base), plain) < BOUND, "the session keeps an adapter"


def check_other_weights(project):
    """What else trained is in the model and not in the adapter, and export says so."""
    project.tandem("train", "train.toml", "--run-dir", "both", f"parameters.lora={RUNS['small']}", "parameters.train=['fc2.bias']")
    said = project.tandem("export", "both", "--to", "both.onnx_adapter")  # the ending says the format
    assert "fc2.bias" in said and "--lora inputs" in said, said
    project.tandem("export", "both", "--to", "both.base.onnx", "--lora", "inputs")
    project.tandem("export", "both", "--to", "both.merged.onnx")
    adapter = onnxruntime.LoraAdapter()
    adapter.Load(str(project.folder / "both.onnx_adapter"))
    merged = project.logits(project.session("both.merged.onnx"))
    assert largest(project.logits(project.session("both.base.onnx"), adapter), merged) < BOUND


def check_refusals(project):
    for options, words in (
        (("--to", "no.safetensors", "--lora", "inputs"), ("--to", ".onnx")),
        (("--to", "no.onnx", "--format", "onnx-adapter"), ("--to", ".onnx_adapter")),
        (("--to", "no.onnx", "--lora", "inputs", "--fp16"), ("--fp16",)),
        (("--to", "no.onnx", "--lora", "inputs", "--verify"), ("--verify",)),
    ):
        said = project.tandem("export", "small", *options, good=False)
        assert all(word in said for word in words), said
    assert not list(project.folder.glob("no.*"))


def main():
    program = os.path.abspath(sys.argv[1])
    os.environ["OMP_NUM_THREADS"] = "1"
    failed = 0
    for ir_version, opset in VERSIONS:
        with tempfile.TemporaryDirectory() as folder:
            project = Project(program, pathlib.Path(folder), ir_version, opset)
            for check in (check_adapters, check_other_weights, check_refusals):
                try:
                    check(project)
                    print(f"passed: {check.__name__}, opset {opset}", flush=True)
                except AssertionError as failure:
                    failed += 1
                    print(f"FAILED: {check.__name__}, opset {opset}: {failure}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

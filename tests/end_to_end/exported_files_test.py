"""Every file that `export` writes is read by Tandem again, with the same values: all formats together with the options that change what a parameter is.

    python3 tests/end_to_end/exported_files_test.py build/tandem

A run is exported in a format, a second run starts from the file and takes one step at a learning rate of 0, and its weights are compared with those of the
first run. Model files are also read by `inspect` and compared by `export --verify`; models of 8-bit weights and with weights next to them too. Weights of float16 do not train, but are loaded.
"""

import ast
import itertools
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "check_all"))
import option_table  # noqa: E402

LORA = 'parameters.lora=[{ at = "layers.*:weight", rank = 2, alpha = 4.0 }]'
# What a run may have that changes what is saved of its parameters, and the keys that a run which starts from its weights needs.
RUNS = {
    "plain": ([], []),
    "momentum on the device": (["optimizer.kind=momentum", "--place", '{ at = "**", on = "gpu" }', "--device", "gpu=emulated:0"], []),
    "split storage": (['parameters.storage=[{ at = "table", kind = "split_bfloat16" }]'], []),
    "averages": (["optimizer.ema={ decay = 0.5 }", "eval.weights=ema"], []),
    "another head": (["parameters.head=[{ classes = 5 }]"], ["parameters.head=[{ classes = 5 }]"]),
    "more rows": (['parameters.shape=[{ at = "table", rows = 40 }]'], ['parameters.shape=[{ at = "table", rows = 40 }]']),
    "fixed rows": (['parameters.fixed_rows=[{ at = "table", rows = [0] }]'], []),
    "16 bits": (["precision.compute=float16", "--place", '{ at = "**", on = "gpu" }', "--device", "gpu=emulated:0"], []),
    "frozen until": (['parameters.freeze=[{ at = "layers.*", until = "2 steps" }]'], []),
    "adapters": ([LORA, 'parameters.train=["head"]'], []),
}
# Formats of a model, and how far weights may be from those of the run.
MODELS = {
    "model": ([], 0.0),
    "float16": (["--fp16"], 1e-3),
    "opset 16": (["--opset", "16"], 0.0),
    "opset 23": (["--opset", "23"], 0.0),
    "float16 of opset 21": (["--fp16", "--opset", "21"], 1e-3),
}
STILL = ["steps=1", "model.batch_norm=inference", "optimizer.lr=0", "optimizer.kind=sgd", "checkpoint.every='1 steps'"]


def read_npz(path):
    """Arrays of float32: name to (shape, values)."""
    arrays = {}
    with zipfile.ZipFile(path) as file:
        for name in file.namelist():
            data = file.read(name)
            size = struct.unpack("<H", data[8:10])[0]
            header = ast.literal_eval(data[10:10 + size].decode())
            if header["descr"] == "<f4":
                body = data[10 + size:]
                arrays[name.removesuffix(".npy")] = (header["shape"], struct.unpack(f"<{len(body) // 4}f", body))
    return arrays


class Project:
    def __init__(self, program, folder):
        self.program, self.folder, self.numbers = program, folder, itertools.count()
        option_table.write_project(folder)

    def call(self, *words):
        environment = {**os.environ, "TANDEM_PYTHON": "/bin/false", "OMP_NUM_THREADS": "1"}
        done = subprocess.run([self.program, *map(str, words)], cwd=self.folder, capture_output=True, text=True, stdin=subprocess.DEVNULL, env=environment)
        assert done.returncode == 0, f"{' '.join(map(str, words))} ends with {done.returncode}: {(done.stdout + done.stderr)[-1500:]}"
        return done.stdout + done.stderr

    def train(self, *words, config="train.toml"):
        run = self.folder / f"run{next(self.numbers)}"
        self.call("train", config, "--run-dir", run, *words)
        return run

    def weights(self, run, *words):
        path = self.folder / f"{run.name}.npz"
        self.call("export", run, "--to", path, *words)
        return read_npz(path)


def compare(got, wanted, bound, what):
    names = sorted(set(got) ^ set(wanted))
    assert not names, f"{what}: one of the two lacks {names}"
    for name, (shape, values) in wanted.items():
        other_shape, others = got[name]
        assert other_shape == shape, f"{what}: {name} is {other_shape}, not {shape}"
        far = max((abs(a - b) for a, b in zip(values, others)), default=0)
        assert far <= bound * max(1.0, max(map(abs, values), default=0)), f"{what}: {name} differs by {far}"


def check_run(project, name):
    words, needed = RUNS[name]
    run = project.train(*words)
    weights = project.weights(run)
    every = name == "plain"  # the others in the forms that read parameters in another way
    for what, (flags, bound) in list(MODELS.items())[:None if every else 2]:
        file = project.folder / f"{run.name}.{what.replace(' ', '_')}.onnx"
        project.call("export", run, "--to", file, "--verify", *flags)
        if bound == 0:  # weights of float16 are no masters
            assert "\nready to train" in project.call("inspect", file)
            compare(project.weights(project.train(f"model={file}", *STILL)), weights, 0.0, f"{name} as {what}")
        again = project.weights(project.train(f'parameters.load=[{{ from = "{file}" }}]', *STILL, *needed))
        compare(again, weights, bound, f"{name} as {what}, loaded")
    prefixes = ((), ("--add", "net.module.")) if every else ((),)
    for ending, prefix in itertools.product((".safetensors", ".npz") if every else (".safetensors",), prefixes):
        file = project.folder / f"{run.name}.weights{ending}"
        project.call("export", run, "--to", file, *prefix)
        strip = ', strip = "net.module."' if prefix else ""
        again = project.weights(project.train(f'parameters.load=[{{ from = "{file}"{strip} }}]', *STILL, *needed))
        compare(again, weights, 0.0, f"{name} as {ending} {' '.join(prefix)}")
        file.unlink()
    again = project.weights(project.train(f'parameters.load=[{{ from = "{run}" }}]', *STILL, *needed))
    compare(again, weights, 0.0, f"{name} as a run directory")


def check_folded(project):
    """BatchNormalization is gone, and the outputs stay."""
    run = project.train("model.batch_norm=inference")
    file = project.folder / "folded.onnx"
    project.call("export", run, "--to", file, "--verify", "--fold-batch-norm", "--outputs", "logits")
    assert "BatchNormalization" not in project.call("inspect", file)
    project.train(f"model={file}", *STILL)


def check_adapters(project):
    """Adapters of their own, as nodes, as tensors and as PEFT's files."""
    run = project.train(LORA, 'parameters.train=["head"]')
    separate = project.weights(run, "--lora", "separate")
    adapters = {name: value for name, value in separate.items() if name.endswith(("/lora_a", "/lora_b"))}
    assert len(adapters) == 4, sorted(separate)
    file = project.folder / "separate.onnx"
    project.call("export", run, "--to", file, "--lora", "separate", "--verify")
    assert "ready to train" in project.call("inspect", file)
    project.train(f"model={file}", *STILL)
    file = project.folder / "separate.safetensors"
    project.call("export", run, "--to", file, "--lora", "separate")
    load = f'parameters.load=[{{ from = "{file}" }}]'
    compare(project.weights(project.train(LORA, load, *STILL), "--lora", "separate"), separate, 0.0, "adapters as tensors")
    folder = project.folder / "peft"
    project.call("export", run, "--to", folder, "--format", "peft")
    renamed = ", ".join(f'["base_model.model.**.lora_{letter.upper()}.weight", "**.weight/lora_{letter}"]' for letter in "ab")
    load = (f'parameters.load=[{{ from = "{folder / "adapter_model.safetensors"}", at = "layers.*:weight/lora_?", rename = [{renamed}], unexpected = "ignore" }}]')
    again = project.weights(project.train(LORA, load, *STILL), "--lora", "separate")
    compare({name: again[name] for name in adapters}, adapters, 0.0, "adapters as PEFT has them")


def write_rows(project, name, inputs, outputs, names=("x", "y")):
    """A project of one input of `inputs` numbers, and `outputs` targets."""
    columns = [f"x{k}" for k in range(inputs)] + [f"t{k}" for k in range(outputs)]
    rows = [[((i * 7 + k * 5) % 11) / 5 - 1 for k in range(inputs)] + [((i + k) % 3) / 2 for k in range(outputs)] for i in range(8)]
    (project.folder / f"{name}.csv").write_text("\n".join(",".join(map(str, row)) for row in [columns, *rows]) + "\n")
    (project.folder / f"{name}.toml").write_text(f"""model = "{name}.onnx"
batch_size = 4
steps = 3
threads = 1
loss.terms = [{{ name = "loss", kind = "mse", predictions = "{names[1]}", targets = "t" }}]
optimizer = {{ kind = "sgd", lr = 0.05 }}
checkpoint.every = "3 steps"
[data]
kind = "csv"
train.files = ["{name}.csv"]
fields = {{ {names[0]} = {{ from = ["x{{0..{inputs - 1}}}"] }}, t = {{ from = ["t{{0..{outputs - 1}}}"] }} }}
""")
    return f"{name}.toml"


def check_quantized(project):
    """Weights of 8 bits stay as they are, the others are new."""
    for kind in ("dynamic", "unsigned", "last"):
        shutil.copy(ROOT / "tests" / "data" / "notices" / "quantized" / f"{kind}.onnx", project.folder)
        config = write_rows(project, kind, 32, 4)
        run = project.train(config=config)
        file = project.folder / f"{kind}.trained.onnx"
        project.call("export", run, "--to", file, "--verify")
        assert "ready to train" in project.call("inspect", file)
        compare(project.weights(project.train(f"model={file}", *STILL, config=config)), project.weights(run), 0.0, kind)


def check_weights_beside(project):
    """Weights next to the model go next to the exported one, under its name."""
    for suffix in ("", ".data"):
        shutil.copy(ROOT / "tests" / "data" / "exports" / f"autoencoder.dynamo.onnx{suffix}", project.folder)
    shutil.copy(project.folder / "autoencoder.dynamo.onnx", project.folder / "autoencoder.onnx")
    config = write_rows(project, "autoencoder", 5, 5, ("x", "matmul_1"))
    run = project.train(config=config)
    file = project.folder / "trained.onnx"
    project.call("export", run, "--to", file, "--verify")
    compare(project.weights(project.train(f"model={file}", *STILL, config=config)), project.weights(run), 0.0, "weights beside the model")


def main(program):
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        project = Project(program, pathlib.Path(folder))
        tests = [(name, lambda name=name: check_run(project, name)) for name in RUNS]
        tests += [(f.__name__, lambda f=f: f(project)) for f in (check_folded, check_adapters, check_quantized, check_weights_beside)]
        for name, test in tests:
            try:
                test()
                print(f"passed: {name}", flush=True)
            except AssertionError as failure:
                failures += 1
                print(f"FAILED: {name}: {failure}", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(str(pathlib.Path(sys.argv[1]).resolve())))

"""Loads adapters of `export --format peft` with PEFT: the base model with them must compute what the merged ONNX file computes.

    python tests/check_all/peft_adapters.py [--keep FOLDER]

Trains adapters of models/digits (convolutions and linear layers) and runs the recipe models/lora (a BERT in Hugging Face's layout, with a new last
layer). Without the packages peft, onnxruntime, transformers and tokenizers it is skipped with a message.
"""

import argparse
import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = pathlib.Path(os.environ.get("TANDEM_BINARY", ROOT / "build" / "tandem")).absolute()
COMPARE = ROOT / "tests" / "scripts" / "peft_adapter.py"
TARGETS = "parameters.lora=[{at='{conv2,fc1,fc2}:weight', rank=4, alpha=8}]"


def run(*command, **environment):
    subprocess.run([str(part) for part in command], cwd=ROOT, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, **environment})


def compare(name, *arguments):
    print(f"{name}: ", end="", flush=True)
    return subprocess.run([sys.executable, COMPARE, *map(str, arguments)], cwd=ROOT, env={**os.environ, "TRANSFORMERS_VERBOSITY": "error"}).returncode == 0


def convolutions(folder):
    run(BINARY, "train", "models/digits/train.toml", TARGETS, "epochs=3", "--run-dir", folder / "digits")
    run(BINARY, "export", folder / "digits", "--to", folder / "adapter", "--format", "peft")
    run(BINARY, "export", folder / "digits", "--to", folder / "merged.onnx")
    return compare("digits", folder / "adapter", folder / "merged.onnx")


def bert(folder):
    run("models/lora/run.sh", TANDEM_BINARY=str(BINARY), TANDEM_MODELS=str(folder / "models"), TANDEM_RUNS=str(folder / "runs"), TANDEM_PEER_PYTHON=sys.executable)
    trained = folder / "runs" / "lora-0001"
    run(BINARY, "export", trained, "--to", trained / "inner", "--format", "peft", "--strip", "model.")
    results = [compare("lora", trained / "adapter", trained / "lora.onnx", "--bert", folder / "models" / "lora")]
    results.append(compare("lora --strip", trained / "inner", trained / "lora.onnx", "--bert", folder / "models" / "lora", "--inner"))
    return all(results)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keep", type=pathlib.Path)
    keep = parser.parse_args().keep
    missing = [name for name in ("peft", "onnxruntime", "transformers", "tokenizers") if importlib.util.find_spec(name) is None]
    if missing:
        print(f"skipped: this Python has no package {', '.join(missing)}")
        return 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = (keep or pathlib.Path(temporary)).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        results = [convolutions(folder), bert(folder)]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())

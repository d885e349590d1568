"""Exports the model of one workload of the GPU check, by PyTorch's TorchScript exporter only, because the other one needs more packages.

    python bench/peers/gpu_export.py WORKLOAD [--to DIR] [--again]

Writes DIR/FOLDER/torchscript.onnx (default DIR: build-gpu-pack/models), where `gpu_check times` looks for it. A file that exists is kept, unless
--again is given. Prints JSON lines as gpu_check does. Needs torch, numpy and onnx; no GPU.
"""

import argparse
import importlib.util
import json
import pathlib
import sys
import time

import gpu_torch

ROOT = pathlib.Path(__file__).resolve().parents[2]
NEEDED = ("torch", "numpy", "onnx")


def say(**line):
    print(json.dumps(line), flush=True)


def export(folder, path):
    """Writes the file under another name first, so that a call that is ended leaves no incomplete file."""
    module = gpu_torch.load(folder)  # makes models/export.py importable
    import export as exporter
    import torch

    new = path.with_suffix(".new.onnx")
    if folder == "wide_deep":
        module.write(new, rows=module.FULL["rows"], dim=module.FULL["dim"], hidden=module.FULL["hidden"])
    else:
        torch.manual_seed(0)
        exporter.export(
            module.build(), module.example(), new, "torchscript", input_names=module.INPUTS, output_names=module.OUTPUTS
        )
    new.rename(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workload", choices=gpu_torch.WORKLOADS)
    parser.add_argument("--to", type=pathlib.Path, default=ROOT / "build-gpu-pack" / "models")
    parser.add_argument("--again", action="store_true")
    options = parser.parse_args()
    folder = gpu_torch.WORKLOADS[options.workload][0]
    path = options.to.absolute() / folder / "torchscript.onnx"
    if options.again or not path.exists():
        missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
        if missing:
            return gpu_torch.skipped(f"export of {folder}", f"{sys.executable} has no {', '.join(missing)}")
        start = time.monotonic()
        path.parent.mkdir(parents=True, exist_ok=True)
        export(folder, path)
        say(value=f"export of {folder}", number=round(time.monotonic() - start, 1), unit="s")
    say(note=f"export of {folder}", content={"path": str(path), "bytes": path.stat().st_size})
    say(check=f"export of {folder}", ok=True)
    say(verdict="passed", checks=1, failed=0)
    return 0


if __name__ == "__main__":
    sys.exit(main())

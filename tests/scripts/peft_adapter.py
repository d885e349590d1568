"""Compares an exported adapter of the digits network, as PEFT reads it, with the merged model.

    tandem train models/digits/train.toml "parameters.lora=[{at='{conv2,fc1,fc2}:weight', rank=4, alpha=8}]" run_dir=RUN
    tandem export RUN --to ADAPTER --format peft
    tandem export RUN --to MERGED.onnx
    python tests/scripts/peft_adapter.py ADAPTER MERGED.onnx

Needs PyTorch, onnx, onnxruntime and peft.
"""
import pathlib
import sys

import numpy
import onnx
import onnxruntime
import peft
import torch

DIGITS = pathlib.Path(__file__).resolve().parents[2] / "models" / "digits"


class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = torch.nn.Conv2d(1, 16, 3, padding=1), torch.nn.Conv2d(16, 32, 3, padding=1)
        self.fc1, self.fc2 = torch.nn.Linear(512, 64), torch.nn.Linear(64, 10)

    def forward(self, x):
        x = torch.relu(self.conv2(torch.relu(self.conv1(x))))
        x = torch.nn.functional.max_pool2d(x, 2).flatten(1)
        return self.fc2(torch.relu(self.fc1(x)))


def main(adapter, merged):
    base = Network()
    weights = onnx.load(DIGITS / "model.onnx").graph.initializer
    base.load_state_dict({t.name: torch.tensor(onnx.numpy_helper.to_array(t)) for t in weights})
    images = numpy.load(DIGITS / "digits_test.npz")["images"].astype(numpy.float32).reshape(-1, 1, 8, 8) / 16
    with torch.no_grad():
        plain = base(torch.tensor(images))
        adapted = peft.PeftModel.from_pretrained(base, adapter).eval()(torch.tensor(images))
    (expected,) = onnxruntime.InferenceSession(merged).run(["logits"], {"image": images})
    assert (plain - adapted).abs().max() > 1e-3, "the adapter changes nothing"
    torch.testing.assert_close(adapted, torch.tensor(expected), rtol=1e-4, atol=1e-4)
    print("equal over", len(images), "images")


if __name__ == "__main__":
    main(*sys.argv[1:])

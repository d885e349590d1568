"""Writes tests/data/dora.json: layers with weight-decomposed adapters (DoRA) of PEFT in float64, with their gradients and merged weights.

    python tests/scripts/dora_expectations.py

"linear" has PyTorch's Linear, "conv" a Conv2d; y is what the adapted layer makes of x, the gradients are those of sum(y * dy). Numbers that go in are
multiples of 1/8, so that they need few digits. PyTorch 2.15.0 and PEFT 0.21.2 made the committed file.
"""

import json
import pathlib

import peft
import torch

TARGET = pathlib.Path(__file__).parents[1] / "data" / "dora.json"
RANK, ALPHA = 2, 3.0


def grid(*shape):
    return (torch.randn(*shape, dtype=torch.float64) * 8).round() / 8


def numbers(tensor):
    return [float(f"{x:.9g}") for x in tensor.detach().flatten()]


def case(layer, x):
    """The values of one layer, in the order of their names in the file."""
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.copy_(grid(*parameter.shape))
    base = torch.nn.ModuleDict({"layer": layer})
    config = peft.LoraConfig(r=RANK, lora_alpha=ALPHA, target_modules=["layer"], use_dora=True)
    adapted = peft.inject_adapter_in_model(config, base)["layer"].double()
    a, b = adapted.lora_A["default"].weight, adapted.lora_B["default"].weight
    magnitude = adapted.lora_magnitude_vector["default"].weight
    answer = {"w": layer.weight, "bias": layer.bias, "x": x, "start": magnitude.clone()}
    with torch.no_grad():
        for tensor in (a, b):
            tensor.copy_(grid(*tensor.shape))
        magnitude.copy_(1 + grid(*magnitude.shape).abs())
    answer.update(a=a.clone(), b=b.clone(), magnitude=magnitude.clone())
    y = adapted(x)
    dy = grid(*y.shape)
    (y * dy).sum().backward()
    answer.update(y=y, dy=dy, da=a.grad, db=b.grad, dmagnitude=magnitude.grad)
    answer = {name: {"shape": list(tensor.shape), "numbers": numbers(tensor)} for name, tensor in answer.items()}
    adapted.merge()
    answer["merged"] = {"shape": list(layer.weight.shape), "numbers": numbers(adapted.get_base_layer().weight)}
    return answer


def main():
    torch.manual_seed(3)
    answer = {"rank": RANK, "alpha": ALPHA}
    answer["linear"] = case(torch.nn.Linear(4, 3, dtype=torch.float64), grid(2, 4))
    answer["conv"] = case(torch.nn.Conv2d(2, 3, 2, padding=1, dtype=torch.float64), grid(1, 2, 2, 2))
    text = json.dumps(answer, separators=(",", ":")) + "\n"
    TARGET.write_text(text)
    print(len(text), "bytes")


if __name__ == "__main__":
    main()

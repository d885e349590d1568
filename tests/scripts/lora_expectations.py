"""Writes tests/data/lora.json: ten steps of PyTorch with adapters of low rank on a convolution and two products.

    python tests/scripts/lora_expectations.py

The layers are those of PEFT (LoraLayer's Linear and Conv2d), written out: y = base(x) + alpha / r * B(A(x)). With PEFT
installed they are compared with it. "in_out" is a weight as MatMul reads it, [in, out], so that its adapters are the
transposes of PEFT's. PyTorch 2.15.0 made the committed file.
"""
import json
import pathlib

import torch
import torch.nn.functional as F

TARGET = pathlib.Path(__file__).parents[1] / "data" / "lora.json"
BATCH, STEPS, RANK, ALPHA, LR, MOMENTUM = 8, 10, 2, 3.0, 0.05, 0.9
SCALE = ALPHA / RANK


def grid(*shape, scale=1.0):
    """Normal numbers on a grid of 1/64: few digits in the file, exact in float32."""
    return (torch.randn(*shape) * scale * 64).round() / 64


class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(2, 4, 3, padding=1)
        self.middle = torch.nn.Linear(16, 10)
        self.last = torch.nn.Linear(10, 3)
        with torch.no_grad():
            for parameter in self.parameters():
                parameter.copy_(grid(*parameter.shape, scale=0.4))
                parameter.requires_grad_(False)
        self.adapters = torch.nn.ParameterDict({
            "conv_a": grid(RANK, 2, 3, 3, scale=0.3), "conv_b": torch.zeros(4, RANK, 1, 1),
            "middle_a": grid(RANK, 16, scale=0.3), "middle_b": torch.zeros(10, RANK),
            "last_a": grid(RANK, 10, scale=0.3), "last_b": torch.zeros(3, RANK)})

    def linear(self, layer, name, x):
        a, b = self.adapters[name + "_a"], self.adapters[name + "_b"]
        return layer(x) + SCALE * F.linear(F.linear(x, a), b)

    def forward(self, x):
        a, b = self.adapters["conv_a"], self.adapters["conv_b"]
        x = self.conv(x) + SCALE * F.conv2d(F.conv2d(x, a, padding=1), b)
        x = F.max_pool2d(F.relu(x), 2).flatten(1)
        x = F.relu(self.linear(self.middle, "middle", x))
        return self.linear(self.last, "last", x)


def tensor(t):
    return {"shape": list(t.shape), "numbers": [float(x) for x in t.detach().float().flatten()]}


def as_stored(name, t):
    """`middle` is stored as MatMul reads it."""
    return t.t().contiguous() if name.startswith("middle") and t.dim() == 2 else t


def compare_with_peft(network, x):
    try:
        import peft
    except ImportError:
        print("PEFT is not installed: not compared")
        return
    base = torch.nn.ModuleDict({"middle": torch.nn.Linear(16, 10)})
    base["middle"].load_state_dict(network.middle.state_dict())
    config = peft.LoraConfig(r=RANK, lora_alpha=ALPHA, target_modules=["middle"], lora_dropout=0.0)
    layer = peft.inject_adapter_in_model(config, base)["middle"]
    with torch.no_grad():
        layer.lora_A["default"].weight.copy_(network.adapters["middle_a"])
        layer.lora_B["default"].weight.copy_(network.adapters["middle_b"])
        torch.testing.assert_close(layer(x), network.linear(network.middle, "middle", x))
    print("as PEFT")


def main():
    torch.manual_seed(11)
    network = Network()
    x, labels = grid(BATCH, 2, 4, 4), torch.arange(BATCH) % 3
    answer = {"rank": RANK, "alpha": ALPHA, "lr": LR, "momentum": MOMENTUM, "x": tensor(x), "labels": labels.tolist()}
    answer["weights"] = {f"{name}.{role}": tensor(as_stored(name, p)) for name, layer in network.named_children()
                         if name != "adapters" for role, p in layer.named_parameters()}
    answer["start"] = {k: tensor(as_stored(k, p)) for k, p in network.adapters.items()}
    optimizer = torch.optim.SGD(network.adapters.parameters(), lr=LR, momentum=MOMENTUM)
    answer["losses"] = []
    for step in range(STEPS):
        optimizer.zero_grad()
        loss = F.cross_entropy(network(x), labels)
        loss.backward()
        if step == 1:  # B is no longer zero: both adapters have gradients
            answer["gradients"] = {k: tensor(as_stored(k, p.grad)) for k, p in network.adapters.items()}
            answer["at_gradients"] = {k: tensor(as_stored(k, p)) for k, p in network.adapters.items()}
        optimizer.step()
        answer["losses"].append(loss.item())
    answer["end"] = {k: tensor(as_stored(k, p)) for k, p in network.adapters.items()}
    answer["logits"] = tensor(network(x))
    compare_with_peft(network, torch.randn(5, 16))
    TARGET.write_text(json.dumps(answer) + "\n")
    print(answer["losses"])


if __name__ == "__main__":
    main()

"""Writes tests/data/distillation.json: ten steps of PyTorch in which a small network learns from its labels and from a
larger one.

    python tests/scripts/distillation_expectations.py

The loss is cross_entropy + 0.5 T^2 kl_div(log softmax(student / T), softmax(teacher / T), reduction="batchmean").
PyTorch 2.15.0 made the committed file.
"""
import json
import pathlib

import torch
import torch.nn.functional as F
from lora_expectations import grid, tensor

TARGET = pathlib.Path(__file__).parents[1] / "data" / "distillation.json"
BATCH, STEPS, LR, TEMPERATURE, WEIGHT = 8, 10, 0.1, 3.0, 0.5


def network(width):
    layers = torch.nn.Sequential(torch.nn.Linear(6, width), torch.nn.ReLU(), torch.nn.Linear(width, 3))
    with torch.no_grad():
        for parameter in layers.parameters():
            parameter.copy_(grid(*parameter.shape, scale=0.5))
    return layers


def weights_of(layers):
    return {name: tensor(p) for name, p in
            zip(("fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"), layers.parameters())}


def main():
    torch.manual_seed(23)
    student, teacher = network(4), network(12)
    x, labels = grid(BATCH, 6), torch.arange(BATCH) % 3
    answer = {"lr": LR, "temperature": TEMPERATURE, "weight": WEIGHT, "x": tensor(x), "labels": labels.tolist(),
              "student": weights_of(student), "teacher": weights_of(teacher), "losses": [], "distillation": []}
    optimizer = torch.optim.SGD(student.parameters(), lr=LR)
    for _ in range(STEPS):
        optimizer.zero_grad()
        logits = student(x)
        with torch.no_grad():
            wanted = F.softmax(teacher(x) / TEMPERATURE, -1)
        learned = WEIGHT * TEMPERATURE**2 * F.kl_div(F.log_softmax(logits / TEMPERATURE, -1), wanted,
                                                     reduction="batchmean")
        loss = F.cross_entropy(logits, labels) + learned
        loss.backward()
        optimizer.step()
        answer["losses"].append(loss.item())
        answer["distillation"].append(learned.item())
    answer["end"] = weights_of(student)
    TARGET.write_text(json.dumps(answer) + "\n")
    print(answer["losses"])


if __name__ == "__main__":
    main()

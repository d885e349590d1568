"""Writes tests/data/fixed_rows.json: five steps of PyTorch over a network whose padding row must not change.

The network is tests/data/exports/bag_padding.dynamo.onnx. Its row 0 is nn.Embedding's padding_idx, and every batch has ids of padding.

python tests/scripts/fixed_rows.py
"""

import json
import pathlib

import onnx
import torch
from export_notes import FOLDER, Bag

STEPS, BATCH = 5, 2


def main():
    arrays = {t.name: torch.tensor(onnx.numpy_helper.to_array(t))
              for t in onnx.load(FOLDER / "bag_padding.dynamo.onnx").graph.initializer}
    torch.manual_seed(5)
    ids = torch.randint(0, 9, (STEPS * BATCH, 3))
    ids[::2, 0] = 0
    labels = torch.randint(0, 2, (STEPS * BATCH,))
    answer = {"ids": ids.flatten().tolist(), "labels": labels.tolist(), "table": {}}
    kinds = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam, "adagrad": torch.optim.Adagrad}
    for kind, make in kinds.items():
        model = Bag(padding_idx=0)
        model.load_state_dict({name: arrays[name].clone() for name in model.state_dict()})
        optimizer = make(model.parameters(), lr=0.1)
        for step in range(STEPS):
            batch = slice(step * BATCH, (step + 1) * BATCH)
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(ids[batch]), labels[batch]).backward()
            optimizer.step()
        answer["table"][kind] = model.table.weight.detach().flatten().tolist()
    path = pathlib.Path(__file__).parent.parent / "data" / "fixed_rows.json"
    path.write_text(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main()

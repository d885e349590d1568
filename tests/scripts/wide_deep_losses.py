"""Computes what the first step of models/wide_deep/full.toml must report, in double precision from the same file and ids.

    python tests/scripts/wide_deep_losses.py MODEL.onnx train.npz [--batch 16000]

Prints one JSON object: wide_loss (mean binary cross entropy of the first batch, unshuffled), l2 = 4e-5 × the sum of squares of all looked-up
deep rows, ids that repeat counted each time, and base_rate_entropy of the batch's labels.
"""

import argparse
import json

import numpy as np
import onnx
from onnx import numpy_helper


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("data")
    parser.add_argument("--batch", type=int, default=16000)
    options = parser.parse_args()
    weights = {t.name: numpy_helper.to_array(t).astype(np.float64) for t in onnx.load(options.model).graph.initializer}
    with np.load(options.data) as data:
        ids, label = data["ids"][: options.batch], data["label"][: options.batch].astype(np.float64)
    rows = weights["deep.weight"][ids]
    x = rows.reshape(len(ids), -1)
    layers = sorted({int(n.split(".")[1]) for n in weights if n.startswith("mlp.")})
    for k in layers:
        x = x @ weights[f"mlp.{k}.weight"].T + weights[f"mlp.{k}.bias"]
        if k != layers[-1]:
            x = np.maximum(x, 0)
    logits = weights["wide.weight"][ids, 0].sum(1) + weights["bias"] + x[:, 0]
    rate = label.mean()
    found = {
        "wide_loss": float(np.mean(np.logaddexp(0, logits) - label * logits)),
        "l2": float(4e-5 * np.sum(rows**2)),
        "base_rate_entropy": float(-(rate * np.log(rate) + (1 - rate) * np.log(1 - rate))),
        "unique": int(np.unique(ids).size),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()

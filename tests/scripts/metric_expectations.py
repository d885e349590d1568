"""Writes tests/data/metrics.json: what scikit-learn computes for auc, log_loss and calibration.

    python tests/scripts/metric_expectations.py

A case is a formula for logits and labels (engine tests compute the same integers) and the float64 values of the
metrics. scikit-learn 1.9.1 made the committed file; auc is checked against counting all pairs where there are few.
"""
import json
import pathlib

import numpy as np
from sklearn.metrics import log_loss, roc_auc_score

TARGET = pathlib.Path(__file__).parents[1] / "data" / "metrics.json"


def samples(count, distinct, positive):
    """logits: `distinct` values with steps of 1/256, exact in float32; labels: 1 more often where the logit is large."""
    i = np.arange(count, dtype=np.int64)
    value = (i * 7919 + (i % 13) * 104729) % distinct
    logits = (2 * value - distinct) / 256
    labels = ((i * 48271 + 11) % 65537) * distinct < 65537 * (positive * distinct + value) // 4
    return logits, labels.astype(np.int64)


def pairs(logits, labels):
    above, below = logits[labels == 1][:, None], logits[labels == 0][None]
    return float(np.mean((above > below) + 0.5 * (above == below)))


def case(name, count, distinct, positive):
    logits, labels = samples(count, distinct, positive)
    chance = 1 / (1 + np.exp(-logits))
    auc = float(roc_auc_score(labels, logits))
    if count <= 2000:
        assert abs(auc - pairs(logits, labels)) < 1e-14
    loss = float(np.mean(np.logaddexp(0, logits) - labels * logits))
    if distinct < 5000:  # scikit-learn sees chances alone: 1 - p loses digits, and stops at 2e-16
        assert abs(loss - log_loss(labels, chance)) < 1e-9
    return {
        "name": name,
        "count": count,
        "distinct": distinct,
        "positive": positive,
        "positives": int(labels.sum()),
        "auc": auc,
        "log_loss": loss,
        "calibration": float(chance.mean() / labels.mean()),
    }


def main():
    cases = [
        case("few", 10, 997, 1),
        case("many_ties", 1000, 7, 0),
        case("all_equal", 100, 1, 1),
        case("hardly_any_ties", 1999, 4001, 1),
        case("large_logits", 1500, 20011, 2),
        case("million", 1000000, 2003, 0),
    ]
    TARGET.write_text(json.dumps(cases, indent=1) + "\n")
    print(f"{TARGET}: {len(cases)} cases")


if __name__ == "__main__":
    main()

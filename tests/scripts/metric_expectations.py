"""Writes tests/data/metrics.json and tests/data/metric_values.json: what scikit-learn and PyTorch compute for metrics.

    python tests/scripts/metric_expectations.py

metrics.json: a case is a formula for logits and labels (engine tests compute the same integers) and the float64 values
of auc, log_loss, calibration and auc_pr. metric_values.json: samples as numbers, and for each metric with its keys the
number, the numbers of classes or slices (null: none), or the rows of a matrix. scikit-learn 1.9.1 and PyTorch 2.15 made
the committed files; auc is checked against counting all pairs where there are few.
"""
import json
import pathlib

import numpy as np
import sklearn.metrics as sk
import torch

DATA = pathlib.Path(__file__).parents[1] / "data"


# ---- a formula of many logits

def formula(count, distinct, positive):
    """logits: `distinct` values with steps of 1/256, exact in float32; labels: 1 more often where the logit is large."""
    i = np.arange(count, dtype=np.int64)
    value = (i * 7919 + (i % 13) * 104729) % distinct
    logits = (2 * value - distinct) / 256
    labels = ((i * 48271 + 11) % 65537) * distinct < 65537 * (positive * distinct + value) // 4
    return logits, labels.astype(np.int64)


def pairs(logits, labels):
    above, below = logits[labels == 1][:, None], logits[labels == 0][None]
    return float(np.mean((above > below) + 0.5 * (above == below)))


def binary_case(name, count, distinct, positive):
    logits, labels = formula(count, distinct, positive)
    chance = 1 / (1 + np.exp(-logits))
    auc = float(sk.roc_auc_score(labels, logits))
    if count <= 2000:
        assert abs(auc - pairs(logits, labels)) < 1e-14
    loss = float(np.mean(np.logaddexp(0, logits) - labels * logits))
    if distinct < 5000:  # scikit-learn sees chances alone: 1 - p loses digits, and stops at 2e-16
        assert abs(loss - sk.log_loss(labels, chance)) < 1e-9
    return {
        "name": name,
        "count": count,
        "distinct": distinct,
        "positive": positive,
        "positives": int(labels.sum()),
        "auc": auc,
        "auc_pr": float(sk.average_precision_score(labels, logits)),
        "log_loss": loss,
        "calibration": float(chance.mean() / labels.mean()),
    }


# ---- samples as numbers

class Cases:
    def __init__(self):
        self.samples, self.cases = {}, []

    def add_samples(self, name, loss, values, labels, groups=None):
        assert np.array_equal(values, values.astype(np.float32)) and np.array_equal(labels, labels.astype(np.float32))
        self.samples[name] = {
            "loss": loss,
            "shape": list(values.shape),
            "values": values.ravel().tolist(),
            "label_shape": list(labels.shape),
            "integer_labels": labels.dtype.kind == "i",
            "labels": labels.ravel().tolist(),
        }
        if groups is not None:
            self.samples[name]["groups"] = groups.tolist()

    def add(self, samples, keys, expected, **more):
        if isinstance(expected, (np.floating, float)):
            expected = float(expected)
        elif isinstance(expected, np.ndarray):
            expected = expected.tolist()
        self.cases.append({"samples": samples, "metric": keys, "expected": expected, **more})


def steps(random, shape, scale=64, spread=200):
    return random.integers(-spread, spread, shape) / scale


RATIOS = {
    "precision": (sk.precision_score, "binary"),
    "recall": (sk.recall_score, "binary"),
    "f1": (sk.f1_score, "binary"),
    "iou": (sk.jaccard_score, "macro"),
    "dice": (sk.f1_score, "macro"),
}


def add_ratios(cases, samples, labels, predicted, classes, averages, more_keys="", **more):
    """scikit-learn leaves classes out of a macro average that occur nowhere, as long as `labels` is not given."""
    for kind, (score, default) in RATIOS.items():
        for average in averages:
            keys = f"kind = '{kind}'" + ("" if average == default else f", average = '{average}'") + more_keys
            if average == "none":
                value = score(labels, predicted, average=None, labels=range(classes), zero_division=0).tolist()
                present = set(labels.tolist()) | set(predicted.tolist())
                value = [v if c in present else None for c, v in enumerate(value)]
            else:
                value = score(labels, predicted, average=average, zero_division=0)
            cases.add(samples, keys, value, **more)


def add_classes(cases, random):
    count, classes = 61, 6
    logits = steps(random, (count, classes), 64, 40)
    labels = random.integers(0, classes - 1, count)
    logits[np.arange(count), labels] += (random.random(count) < 0.5) * 1.0
    logits[:, classes - 1] = -100  # a class that occurs neither among labels nor predictions
    logits[0, :2] = 5  # equal ones
    predicted = logits.argmax(1)  # the first of equal ones
    assert len(set(predicted.tolist())) == classes - 1
    assert any((row == row.max()).sum() > 1 for row in logits)
    cases.add_samples("classes", "softmax_cross_entropy", logits, labels, random.integers(0, 4, count) * 10 - 10)
    cases.add("classes", "kind = 'accuracy'", sk.accuracy_score(labels, predicted))
    add_ratios(cases, "classes", labels, predicted, classes, ["macro", "micro", "none"])
    cases.add("classes", "kind = 'confusion'", sk.confusion_matrix(labels, predicted, labels=range(classes)))
    loss = torch.nn.functional.cross_entropy(torch.tensor(logits), torch.tensor(labels)).item()
    cases.add("classes", "kind = 'perplexity'", np.exp(loss))
    cases.add("classes", "kind = 'bits_per_token'", loss / np.log(2))
    cases.add("classes", "kind = 'bits_per_byte'", loss / np.log(2))
    cases.add("classes", "kind = 'bits_per_byte', bytes_per_token = 4.25", loss / np.log(2) / 4.25)
    groups = np.array(cases.samples["classes"]["groups"])
    slices = sorted(set(groups.tolist()))
    by = ", by = 'group'"
    cases.add("classes", "kind = 'accuracy'" + by,
              [sk.accuracy_score(labels[groups == g], predicted[groups == g]) for g in slices])
    cases.add("classes", "kind = 'f1', average = 'macro'" + by,
              [sk.f1_score(labels[groups == g], predicted[groups == g], average="macro", zero_division=0) for g in slices])

    distinct = np.stack([random.permutation(classes * 5)[:classes] for _ in range(count)]) / 8.0
    cases.add_samples("distinct_scores", "multi_margin", distinct, labels)
    for k in (1, 2, 4):
        cases.add("distinct_scores", f"kind = 'top_k', k = {k}",
                  sk.top_k_accuracy_score(labels, distinct, k=k, labels=range(classes)))
    cases.add("distinct_scores", "kind = 'top_k'", sk.top_k_accuracy_score(labels, distinct, k=5, labels=range(classes)))
    cases.add("distinct_scores", "kind = 'top_5'", sk.top_k_accuracy_score(labels, distinct, k=5, labels=range(classes)))


def add_tokens(cases, random):
    """[samples, tokens, classes] with labels that do not count, and soft labels."""
    count, tokens, classes = 9, 5, 7
    logits = steps(random, (count, tokens, classes))
    labels = random.integers(0, classes, (count, tokens))
    labels[random.random(labels.shape) < 0.3] = -100
    labels[0] = -100  # a sample without any
    cases.add_samples("tokens", "softmax_cross_entropy", logits, labels)
    loss = torch.nn.functional.cross_entropy(torch.tensor(logits).flatten(0, 1), torch.tensor(labels).flatten()).item()
    cases.add("tokens", "kind = 'perplexity'", np.exp(loss), ignore_index=-100)
    cases.add("tokens", "kind = 'bits_per_token'", loss / np.log(2), ignore_index=-100)
    cases.add("tokens", "kind = 'bits_per_byte', bytes_per_token = 3", loss / np.log(2) / 3, ignore_index=-100)
    chosen = labels.ravel() != -100
    predicted = logits.reshape(-1, classes).argmax(1)[chosen]
    add_ratios(cases, "tokens", labels.ravel()[chosen], predicted, classes, ["macro", "micro"], ignore_index=-100)
    cases.add("tokens", "kind = 'confusion'",
              sk.confusion_matrix(labels.ravel()[chosen], predicted, labels=range(classes)), ignore_index=-100)

    soft = random.integers(0, 9, (count, classes)).astype(float)
    soft[:, 0] += 8 - soft.sum(1) % 8
    soft = np.round(soft / soft.sum(1, keepdims=True) * 256) / 256  # exact; sums are near 1
    flat = steps(random, (count, classes))
    cases.add_samples("soft_labels", "softmax_cross_entropy", flat, soft)
    loss = torch.nn.functional.cross_entropy(torch.tensor(flat), torch.tensor(soft)).item()
    cases.add("soft_labels", "kind = 'perplexity'", np.exp(loss))


def add_pixels(cases, random):
    """[samples, classes, height, width], as segmentation has it; 255 does not count."""
    count, classes, height, width = 5, 4, 6, 7
    logits = steps(random, (count, classes, height, width))
    labels = random.integers(0, classes, (count, height, width))
    labels[random.random(labels.shape) < 0.2] = 255
    cases.add_samples("pixels", "softmax_cross_entropy", logits, labels)
    predicted = logits.argmax(1).ravel()
    counted = labels.ravel() != 255
    add_ratios(cases, "pixels", labels.ravel()[counted], predicted[counted], classes, ["macro", "none"], ignore_index=255)
    counted &= labels.ravel() != 0
    for kind, score in (("iou", sk.jaccard_score), ("dice", sk.f1_score)):
        foreground = labels.ravel()
        cases.add("pixels_without_255", f"kind = '{kind}', ignore_index = 0",
                  score(foreground[counted], predicted[counted], average="macro", labels=range(1, classes)))
    kept = labels.copy()
    kept[kept == 255] = 0
    cases.add_samples("pixels_without_255", "softmax_cross_entropy", logits, kept)


def add_binary(cases, random):
    count = 120
    logits = steps(random, (count, 1), 16, 20)  # many ties
    labels = (random.random((count, 1)) < 1 / (1 + np.exp(-logits))).astype(np.int64)
    groups = random.integers(0, 9, count) * 1000 - 4000
    groups[labels[:, 0] == 1] = np.where(groups[labels[:, 0] == 1] == 0, 1000, groups[labels[:, 0] == 1])  # 0: no positive
    cases.add_samples("binary", "binary_cross_entropy", logits, labels, groups)
    y, x = labels.ravel(), logits.ravel()
    predicted = (x > 0).astype(np.int64)
    cases.add("binary", "kind = 'accuracy'", sk.accuracy_score(y, predicted))
    cases.add("binary", "kind = 'auc'", sk.roc_auc_score(y, x))
    cases.add("binary", "kind = 'auc_pr'", sk.average_precision_score(y, x))
    cases.add("binary", "kind = 'confusion'", sk.confusion_matrix(y, predicted, labels=[0, 1]))
    add_ratios(cases, "binary", y, predicted, 2, ["binary", "macro", "micro", "none"])
    areas, slices = [], sorted(set(groups.tolist()))
    for g in slices:
        here = groups == g
        areas.append(float(sk.roc_auc_score(y[here], x[here])) if len(set(y[here].tolist())) == 2 else None)
    assert None in areas and sum(a is not None for a in areas) > 4
    sizes = [int((groups == g).sum()) for g in slices]
    both = [i for i, area in enumerate(areas) if area is not None]
    cases.add("binary", "kind = 'gauc', group = 'group'",
              sum(sizes[i] * areas[i] for i in both) / sum(sizes[i] for i in both))
    cases.add("binary", "kind = 'auc', by = 'group'", areas)
    cases.add("binary", "kind = 'precision', by = 'group'",
              [sk.precision_score(y[groups == g], predicted[groups == g], zero_division=0) for g in slices])


def add_numbers(cases, random):
    count = 50
    targets = steps(random, (count, 1), 256, 1000)
    predictions = targets + steps(random, (count, 1), 256, 100)
    shifted = 2.0**15
    outputs = steps(random, (count, 3), 64, 300)
    for name, y, p in (("numbers", targets, predictions), ("far_from_0", targets + shifted, predictions + shifted),
                       ("three_outputs", outputs, outputs * 0.5)):
        cases.add_samples(name, "mse", p, y)
        flat, of = y.ravel(), p.ravel()
        cases.add(name, "kind = 'mse'", sk.mean_squared_error(flat, of))
        cases.add(name, "kind = 'rmse'", sk.root_mean_squared_error(flat, of))
        cases.add(name, "kind = 'mae'", sk.mean_absolute_error(flat, of))
        cases.add(name, "kind = 'r2'", sk.r2_score(flat, of))


def main():
    binary = [
        binary_case("few", 10, 997, 1),
        binary_case("many_ties", 1000, 7, 0),
        binary_case("all_equal", 100, 1, 1),
        binary_case("hardly_any_ties", 1999, 4001, 1),
        binary_case("large_logits", 1500, 20011, 2),
        binary_case("million", 1000000, 2003, 0),
    ]
    (DATA / "metrics.json").write_text(json.dumps(binary, indent=1) + "\n")
    random, cases = np.random.default_rng(11), Cases()
    for add in (add_classes, add_tokens, add_pixels, add_binary, add_numbers):
        add(cases, random)
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(samples)}" for name, samples in cases.samples.items())
    listed = ",\n".join("  " + json.dumps(case) for case in cases.cases)
    (DATA / "metric_values.json").write_text(f'{{\n "samples": {{\n{lines}\n }},\n "cases": [\n{listed}\n ]\n}}\n')
    print(f"{DATA}: {len(binary)} and {len(cases.cases)} cases")


if __name__ == "__main__":
    main()

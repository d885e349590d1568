"""Makes click data of any size with a known answer: 39 fields of Zipf-like values, labels drawn from a planted logistic model.

    python models/wide_deep/make_data.py npz --samples 1000000 --rows 5000 --to DIR            # ready ids
    python models/wide_deep/make_data.py npz --ids uniform --rows 184968 --samples 160000 --to DIR
    python models/wide_deep/make_data.py criteo --samples 1000000 --rows 5000 --to DIR         # text in Criteo's format

npz writes train.npz and eval.npz: `ids` int32 [N, 39] below --rows, `label` float32 [N]; with --ids fields also `dense` float32 [N, 13] and
`categories` int32 [N, 26] below --table-rows, for models with a table for each field. criteo writes train.tsv and eval.tsv (--shards K: train_0.tsv
and so on): label, 13 integers, 26 categories of 8 hex digits, tab separated, empty where a value is missing, some integers negative.

--ids fields: every field has values of its own, few or many, with Zipf-like frequencies; value r of field f has id first[f] + r. zipf and
uniform: all fields draw from all rows, zipf with exponent 1.05 and ids in random order, as bench/peers/wide_deep_torch.py does.

The chance of label 1 is sigmoid(bias + the sum of one weight per field's value), so that no model can do better than these weights. data.json
next to the files says what they reach on each split: auc, log_loss and the log_loss of always predicting the base rate.

The same arguments and the same NumPy give the same bytes. Each block of 65,536 samples has its own seed, so a longer file begins with
the rows of a shorter one.
"""

import argparse
import json
import pathlib
import time

import numpy as np

INTEGERS, CATEGORIES = 13, 26
FIELDS = INTEGERS + CATEGORIES
BLOCK = 1 << 16
EXPONENT = 1.05
# Fields whose value may be missing, and how often; roughly those of Criteo's data.
MISSING = {0: 0.45, 2: 0.2, 3: 0.2, 5: 0.2, 9: 0.45, 11: 0.75, 15: 0.03, 18: 0.12, 31: 0.05, 34: 0.44, 37: 0.3}
NEGATIVE = (1, 4)  # integer fields with values below zero


def field_sizes(rows):
    """Numbers of values per field, in all `rows`: a few fields of 3 values, most of the values in a few fields."""
    if rows < 4 * FIELDS:
        raise SystemExit(f"--rows {rows}: at least {4 * FIELDS} with --ids fields")
    share = 1.35 ** np.arange(FIELDS)
    share = np.random.default_rng(39).permutation(share / share.sum())
    sizes = 3 + np.floor(share * (rows - 3 * FIELDS)).astype(np.int64)
    sizes[np.argmax(sizes)] += rows - sizes.sum()
    return sizes


def zipf(count):
    p = 1 / np.arange(1, count + 1) ** EXPONENT
    return p / p.sum()


class Values:
    """The distribution of every field's value (its rank: 0 is the most frequent) and the planted weights, by id."""

    def __init__(self, ids, rows, seed, spread):
        random = np.random.default_rng([seed, 0])
        self.ids, self.rows = ids, rows
        if ids == "fields":
            sizes = field_sizes(rows)
            self.first = np.concatenate([[0], np.cumsum(sizes)[:-1]])
            self.chances = []
            for f, size in enumerate(sizes):
                p = zipf(size)
                if f in MISSING:  # the last value stands for "missing"
                    p[-1] = 0
                    p = p / p.sum() * (1 - MISSING[f])
                    p[-1] = MISSING[f]
                self.chances.append(p)
            self.order = None
        else:
            self.first = np.zeros(FIELDS, np.int64)
            p = zipf(rows) if ids == "zipf" else np.full(rows, 1 / rows)
            self.chances = [p] * FIELDS
            self.order = np.random.default_rng(seed).permutation(rows) if ids == "zipf" else None
        self.sums = [np.cumsum(p) for p in (self.chances if ids == "fields" else self.chances[:1])]
        self.weights = random.standard_normal(rows)
        self._scale(spread)

    def id_of(self, f, rank):
        return self.first[f] + (rank if self.order is None else self.order[rank])

    def _scale(self, spread):
        """Weights such that logits have mean 0 and standard deviation `spread`, exactly, before the bias."""
        variance = 0.0
        for f, p in enumerate(self.chances if self.ids == "fields" else self.chances[:1]):
            at = self.id_of(f, np.arange(len(p)))
            self.weights[at] -= p @ self.weights[at]
            variance += p @ self.weights[at] ** 2
        self.weights *= spread / np.sqrt(variance * (1 if self.ids == "fields" else FIELDS))

    def draw(self, random, count):
        """Ranks [count, 39]."""
        ranks = np.empty((count, FIELDS), np.int32)
        for f in range(FIELDS):
            if self.ids == "uniform":
                ranks[:, f] = random.integers(0, self.rows, count)
            else:
                sums = self.sums[f if self.ids == "fields" else 0]
                found = np.searchsorted(sums, random.random(count), side="right")
                ranks[:, f] = np.minimum(found, len(sums) - 1)
        return ranks


def bias_for(spread, base_rate):
    """The bias with which sigmoid(bias + spread * normal) has this mean."""
    points, weights = np.polynomial.hermite_e.hermegauss(64)
    low, high = -20.0, 20.0
    for _ in range(80):
        middle = (low + high) / 2
        mean = weights @ (1 / (1 + np.exp(-middle - spread * points))) / weights.sum()
        low, high = (middle, high) if mean < base_rate else (low, middle)
    return middle


def blocks(values, bias, seed, split, samples):
    """(first sample, ranks, planted logits, labels) block by block."""
    for first in range(0, samples, BLOCK):
        random = np.random.default_rng([seed, 1 + split, first // BLOCK])
        ranks = values.draw(random, BLOCK)
        chance = random.random(BLOCK)
        logits = np.full(BLOCK, bias)
        for f in range(FIELDS):
            logits += values.weights[values.id_of(f, ranks[:, f])]
        labels = chance < 1 / (1 + np.exp(-logits))
        count = min(BLOCK, samples - first)
        yield first, ranks[:count], logits[:count], labels[:count]


def area_under_curve(logits, labels):
    """Exact, by mid-ranks."""
    _, inverse, counts = np.unique(logits, return_inverse=True, return_counts=True)
    ranks = np.cumsum(counts) - (counts - 1) / 2
    positives = int(labels.sum())
    above = ranks[inverse][labels].sum() - positives * (positives + 1) / 2
    return float(above / (positives * (len(labels) - positives)))


def reached(logits, labels):
    rate = float(labels.mean())
    loss = np.mean(np.logaddexp(0, logits) - labels * logits)
    entropy = -(rate * np.log(rate) + (1 - rate) * np.log(1 - rate))
    return {
        "samples": len(labels),
        "base_rate": rate,
        "base_rate_log_loss": float(entropy),
        "planted_log_loss": float(loss),
        "planted_auc": area_under_curve(logits, labels),
    }


# ---- text


def integer_of(field, rank):
    """The integer that stands for a rank: 0, 1, 2, … and then with growing gaps; some of NEGATIVE fields are below 0."""
    far = np.maximum(rank - 20, 0)
    value = np.where(rank < 20, rank, 20 + (far**1.4).astype(np.int64) + 2 * far)
    return np.where(rank % 7 == 2, -(rank // 7) - 1, value) if field in NEGATIVE else value


def hex_of(field, rank):
    """32 bits that differ for all values of all fields: an invertible mix of (field, rank)."""
    x = (rank.astype(np.uint64) * FIELDS + field).astype(np.uint32)
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        x = (x ^ (x >> np.uint32(shift))) * np.uint32(factor)
    return x ^ (x >> np.uint32(16))


def tokens_of(field, count):
    """The text of every value with its tab or line end, as bytes [count, width], padded with zeros."""
    rank = np.arange(count)
    if field < INTEGERS:
        text = np.char.mod("%d", integer_of(field, rank)).astype(bytes)
    else:
        text = np.array([b"%08x" % x for x in hex_of(field, rank)])
    if field in MISSING:
        text[-1] = b""
    text = np.char.add(text, b"\n" if field == FIELDS - 1 else b"\t")
    return text.view(np.uint8).reshape(count, -1)


def text_of(tokens, ranks, labels):
    """The rows as one byte string."""
    head = np.empty((len(labels), 2), np.uint8)
    head[:, 0], head[:, 1] = ord("0") + labels, ord("\t")
    row = np.concatenate([head, *(tokens[f][ranks[:, f]] for f in range(FIELDS))], axis=1)
    return row[row != 0].tobytes()


class TextFiles:
    def __init__(self, folder, split, samples, values, shards):
        names = [f"{split}.tsv"] if shards == 1 else [f"{split}_{k}.tsv" for k in range(shards)]
        self.files = [(folder / name).open("wb") for name in names]
        self.per_file = -(-samples // shards)
        self.tokens = [tokens_of(f, len(p)) for f, p in enumerate(values.chances)]

    def add(self, first, ranks, labels):
        for k, file in enumerate(self.files):
            low, high = (max(0, min(len(labels), self.per_file * n - first)) for n in (k, k + 1))
            if high > low:
                file.write(text_of(self.tokens, ranks[low:high], labels[low:high]))

    def close(self):
        for file in self.files:
            file.close()


# ---- arrays


class ArrayFile:
    def __init__(self, path, samples, values, table_rows):
        self.path, self.values, self.table_rows = path, values, table_rows
        self.arrays = {"ids": np.empty((samples, FIELDS), np.int32), "label": np.empty(samples, np.float32)}
        if values.ids == "fields":
            self.arrays["dense"] = np.empty((samples, INTEGERS), np.float32)
            self.arrays["categories"] = np.empty((samples, CATEGORIES), np.int32)

    def add(self, first, ranks, labels):
        part, a = slice(first, first + len(labels)), self.arrays
        a["label"][part] = labels
        for f in range(FIELDS):
            a["ids"][part, f] = self.values.id_of(f, ranks[:, f])
            if "dense" in a and f < INTEGERS:
                missing = f in MISSING and len(self.values.chances[f]) - 1
                number = np.log1p(np.maximum(integer_of(f, ranks[:, f].astype(np.int64)), 0))
                a["dense"][part, f] = np.where(ranks[:, f] == missing, 0, number) if missing else number
            elif "categories" in a:
                a["categories"][part, f - INTEGERS] = ranks[:, f] % self.table_rows

    def close(self):
        np.savez(self.path, **self.arrays)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("format", choices=("npz", "criteo"))
    parser.add_argument("--to", type=pathlib.Path, required=True, help="folder, made where it is missing")
    parser.add_argument("--samples", type=int, default=1000000, help="to train on")
    parser.add_argument("--eval-samples", type=int, default=200000)
    parser.add_argument("--rows", type=int, default=5000, help="number of values of all fields together")
    parser.add_argument("--ids", choices=("fields", "zipf", "uniform"), default="fields")
    parser.add_argument("--table-rows", type=int, default=100, help="bound of `categories`")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--base-rate", type=float, default=0.25)
    parser.add_argument("--spread", type=float, default=1.5, help="standard deviation of the planted logits; 0: labels are noise")
    parser.add_argument("--shards", type=int, default=1, help="files of the training text")
    options = parser.parse_args()
    if options.format == "criteo" and options.ids != "fields":
        parser.error("criteo needs --ids fields")
    options.to.mkdir(parents=True, exist_ok=True)
    start = time.perf_counter()
    values = Values(options.ids, options.rows, options.seed, options.spread)
    bias = bias_for(options.spread, options.base_rate)
    facts = {k: v for k, v in vars(options).items() if k != "to"}
    for split, (name, samples) in enumerate((("train", options.samples), ("eval", options.eval_samples))):
        if samples == 0:
            continue
        if options.format == "npz":
            out = ArrayFile(options.to / f"{name}.npz", samples, values, options.table_rows)
        else:
            out = TextFiles(options.to, name, samples, values, options.shards if split == 0 else 1)
        logits, labels = np.empty(samples), np.empty(samples, bool)
        for first, ranks, planted, drawn in blocks(values, bias, options.seed, split, samples):
            logits[first : first + len(drawn)], labels[first : first + len(drawn)] = planted, drawn
            out.add(first, ranks, drawn)
        out.close()
        facts[name] = reached(logits, labels)
    (options.to / "data.json").write_text(json.dumps(facts, indent=1) + "\n")
    print(f"{options.to}: {time.perf_counter() - start:.1f} s; held out: {facts.get('eval')}")


if __name__ == "__main__":
    main()

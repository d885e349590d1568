"""Writes tests/data/losses.json: what PyTorch computes for the loss terms of a configuration.

    python tests/scripts/loss_expectations.py

A case holds the term's kind and options as they stand in train.toml, the model's values, the labels, weights of
samples, the loss and the gradients of the values, computed in float64 from float32 inputs. PyTorch 2.15.0 made the
committed file.
"""
import json
import pathlib

import torch
import torch.nn.functional as F

TARGET = pathlib.Path(__file__).parents[1] / "data" / "losses.json"
cases = []


def pattern(shape, k=0):
    """((37 i + 11 k) mod 101 - 50) / 16 in row-major order: exact in float32."""
    count = torch.Size(shape).numel()
    index = torch.arange(count, dtype=torch.float64)
    return (((37 * index + 11 * k) % 101) - 50).div(16).reshape(shape)


def classes_of(shape, count, k=0):
    index = torch.arange(torch.Size(shape).numel())
    return ((5 * index + k) % count).reshape(shape)


def tensor(t):
    dtype = {torch.int64: "int64", torch.int32: "int32"}.get(t.dtype, "float32")
    return {"shape": list(t.shape), "dtype": dtype, "numbers": t.flatten().tolist()}


def keep(name, term, x, labels, loss, weights=None):
    """`loss` maps float64 values to a scalar; `term` is KIND or KIND, options. x: a value, or a list of them."""
    values = [v.clone().requires_grad_() for v in (x if isinstance(x, list) else [x])]
    result = loss(*values)
    result.backward()
    kind, comma, options = term.partition(",")
    case = {"name": name, "kind": kind, "options": comma + options}
    case["values"] = [{**tensor(v.detach()), "gradient": v.grad.flatten().tolist()} for v in values]
    if labels is not None:
        case["labels"] = tensor(labels)
    if weights is not None:
        case["weights"] = tensor(weights)
        case["options"] += ', sample_weights = "weights"'
    cases.append({**case, "loss": result.item()})


def cross_entropy(name, options, x, labels, **settings):
    def loss(x):
        # PyTorch wants classes on axis 1; int32 labels and [B, 1] are Tandem's own.
        if labels.is_floating_point():
            return F.cross_entropy(x.reshape(-1, x.shape[-1]), labels.double().reshape(-1, x.shape[-1]),
                                   **settings)
        y = labels.long()
        if y.shape == (x.shape[0], 1):
            y = y[:, 0]
        if y.shape == x.shape[:-1]:
            return F.cross_entropy(x.reshape(-1, x.shape[-1]), y.reshape(-1), **settings)
        return F.cross_entropy(x, y, **settings)

    keep(name, f"softmax_cross_entropy{options}", x, labels, loss)


def cross_entropies():
    x, y = pattern((5, 4)), classes_of((5,), 4)
    ignored = y.clone()
    ignored[1] = ignored[3] = -100
    weights = [0.5, 2.0, 1.0, 0.25]
    weight = torch.tensor(weights, dtype=torch.float64)
    w = f", class_weights = {weights}"
    cross_entropy("ce_mean", "", x, y)
    cross_entropy("ce_sum", ', reduction = "sum"', x, y, reduction="sum")
    cross_entropy("ce_int32", "", x, y.int())
    cross_entropy("ce_column_of_labels", "", x, y[:, None])
    cross_entropy("ce_ignore_index", ", ignore_index = -100", x, ignored)
    cross_entropy("ce_ignore_index_sum", ', ignore_index = -100, reduction = "sum"', x, ignored, reduction="sum")
    cross_entropy("ce_ignore_a_class", ", ignore_index = 2", x, y, ignore_index=2)
    cross_entropy("ce_class_weights", w, x, y, weight=weight)
    cross_entropy("ce_class_weights_sum", w + ', reduction = "sum"', x, y, weight=weight, reduction="sum")
    cross_entropy("ce_class_weights_ignore", w + ", ignore_index = -100", x, ignored, weight=weight)
    cross_entropy("ce_smoothing", ", label_smoothing = 0.1", x, y, label_smoothing=0.1)
    cross_entropy("ce_smoothing_ignore", ", label_smoothing = 0.1, ignore_index = -100", x, ignored,
                  label_smoothing=0.1)
    cross_entropy("ce_smoothing_class_weights", w + ", label_smoothing = 0.2", x, y, weight=weight,
                  label_smoothing=0.2)
    cross_entropy("ce_smoothing_class_weights_ignore", w + ", label_smoothing = 0.2, ignore_index = -100", x,
                  ignored, weight=weight, label_smoothing=0.2)
    cross_entropy("ce_smoothing_class_weights_sum", w + ', label_smoothing = 0.2, reduction = "sum"', x, y,
                  weight=weight, label_smoothing=0.2, reduction="sum")
    one_hot = F.one_hot(y, 4)
    cross_entropy("ce_one_hot_float", "", x, one_hot.float())
    soft = (pattern((5, 4), 3) * 0.25).exp()
    soft = (soft / soft.sum(1, keepdim=True)).float()
    cross_entropy("ce_probabilities", "", x, soft)
    cross_entropy("ce_probabilities_smoothing", ", label_smoothing = 0.1", x, soft, label_smoothing=0.1)
    cross_entropy("ce_probabilities_sum", ', reduction = "sum"', x, soft, reduction="sum")
    sequence, tokens = pattern((2, 3, 5), 1), classes_of((2, 3), 5, 1)
    cross_entropy("ce_sequence", "", sequence, tokens)
    tokens_ignored = tokens.clone()
    tokens_ignored[1, 2] = -1
    cross_entropy("ce_sequence_ignore", ", ignore_index = -1", sequence, tokens_ignored, ignore_index=-1)
    cross_entropy("ce_sequence_one_hot", ', reduction = "sum"', sequence, F.one_hot(tokens, 5).float(),
                  reduction="sum")
    image, pixels = pattern((2, 3, 2, 4), 2), classes_of((2, 2, 4), 3)
    cross_entropy("ce_classes_on_axis_1", "", image, pixels)
    cross_entropy("ce_classes_on_axis_1_weights", ", class_weights = [1.0, 3.0, 0.5]", image, pixels,
                  weight=torch.tensor([1.0, 3.0, 0.5], dtype=torch.float64))
    # One-hot integers go Tandem's way of probabilities.
    keep("ce_one_hot_int64", "softmax_cross_entropy", x, one_hot, lambda x: F.cross_entropy(x, y))
    keep("ce_weight", "softmax_cross_entropy, weight = 2.5", x, y, lambda x: 2.5 * F.cross_entropy(x, y))


def squared_errors():
    def mse(name, options, x, target, **settings):
        keep(name, f"mse{options}", x, target,
             lambda x: F.mse_loss(x, target.double().reshape(x.shape), **settings))

    x = pattern((4, 3))
    mse("mse_mean", "", x, pattern((4, 3), 5).float())
    mse("mse_sum", ', reduction = "sum"', x, pattern((4, 3), 5).float(), reduction="sum")
    mse("mse_column", "", pattern((4, 1), 2), pattern((4,), 7).float())
    mse("mse_row", "", pattern((4,), 2), pattern((4, 1), 7).float())
    mse("mse_integers", "", pattern((4, 1), 2), classes_of((4,), 3))


def binary_cross_entropies():
    def bce(name, options, x, z, **settings):
        keep(name, f"binary_cross_entropy{options}", x, z,
             lambda x: F.binary_cross_entropy_with_logits(x, z.double().reshape(x.shape), **settings))

    x, z = pattern((6,), 1) * 3, classes_of((6,), 2)
    one = torch.tensor([3.0], dtype=torch.float64)
    each = torch.tensor([0.5, 2.0, 4.0], dtype=torch.float64)
    bce("bce_mean", "", x, z)
    bce("bce_sum", ', reduction = "sum"', x, z, reduction="sum")
    bce("bce_column_of_logits", "", x[:, None], z)
    bce("bce_float_labels", "", x, (z * 0.8 + 0.1).float())
    bce("bce_pos_weight", ", pos_weight = 3.0", x[:, None], z, pos_weight=one)
    bce("bce_pos_weight_sum", ', pos_weight = 3.0, reduction = "sum"', x, z, pos_weight=one, reduction="sum")
    classes, marks = pattern((4, 3), 4), classes_of((4, 3), 2, 1)
    bce("bce_pos_weight_each", ", pos_weight = [0.5, 2.0, 4.0]", classes, marks, pos_weight=each)


def weighted(x, labels, weights, losses, kind, name, label_weights=None):
    """A mean under weights of samples: sum(w loss) / sum(w), also times the labels' weights."""
    def loss(x):
        found = losses(x)
        w = weights.double().reshape(weights.shape + (1,) * (found.dim() - weights.dim())).expand(found.shape)
        below = w if label_weights is None else w * label_weights
        return (w * found).sum() / below.sum()
    keep(name, kind, x, labels, loss, weights)


def sample_weights():
    w = torch.tensor([1.0, 0.0, 2.0, 0.5, 3.0])
    x, y = pattern((5, 4)), classes_of((5,), 4)
    class_weight = torch.tensor([0.5, 2.0, 1.0, 0.25], dtype=torch.float64)
    ce = "softmax_cross_entropy"
    weighted(x, y, w, lambda x: F.cross_entropy(x, y, reduction="none"), ce, "weights_ce")
    weighted(x, y, w, lambda x: F.cross_entropy(x, y, weight=class_weight, reduction="none"),
             ce + ", class_weights = [0.5, 2.0, 1.0, 0.25]", "weights_ce_class_weights", class_weight[y])
    keep("weights_ce_sum", ce + ', reduction = "sum"', x, y,
         lambda x: (w * F.cross_entropy(x, y, reduction="none")).sum(), w)
    sequence, tokens = pattern((2, 3, 5), 1), classes_of((2, 3), 5, 1)
    tokens[1, 2] = -100
    by_token = lambda x: F.cross_entropy(x.transpose(1, 2), tokens, reduction="none")
    counts = (tokens >= 0).double()
    of_sequence = torch.tensor([1.0, 3.0])
    of_token = torch.tensor([[1.0, 0.5, 0.0], [2.0, 1.0, 1.0]])
    weighted(sequence, tokens, of_sequence, by_token, ce + ", ignore_index = -100", "weights_of_sequences", counts)
    weighted(sequence, tokens, of_token, by_token, ce + ", ignore_index = -100", "weights_of_tokens", counts)
    image, pixels = pattern((2, 3, 2, 4), 2), classes_of((2, 2, 4), 3)
    weighted(image, pixels, of_sequence, lambda x: F.cross_entropy(x, pixels, reduction="none"), ce,
             "weights_of_images")
    target = pattern((5, 3), 5).float()
    square = lambda x: (x - target.double()) ** 2
    weighted(pattern((5, 3)), target, w, square, "mse", "weights_mse")
    # The weight argument of F.mse_loss is one an element.
    each = (pattern((5, 3), 9).abs() + 0.5).float()
    keep("weights_mse_each", "mse", pattern((5, 3)), target,
         lambda x: F.mse_loss(x, target.double(), weight=each.double()), each)
    keep("weights_mse_batchmean", 'mse, reduction = "batchmean"', pattern((5, 3)), target,
         lambda x: (w.double() * square(x).sum(1)).sum() / w.sum(), w)
    z = classes_of((5,), 2)
    weighted(pattern((5, 1)), z, w[:, None],
             lambda x: F.binary_cross_entropy_with_logits(x, z.double()[:, None], reduction="none",
                                                          pos_weight=torch.tensor([3.0])),
             "binary_cross_entropy, pos_weight = 3.0", "weights_bce_pos_weight")


if __name__ == "__main__":
    cross_entropies()
    squared_errors()
    binary_cross_entropies()
    sample_weights()
    lines = ",\n".join(json.dumps(case) for case in cases)
    TARGET.write_text(f"[\n{lines}\n]\n")
    print(f"{TARGET}: {len(cases)} cases")

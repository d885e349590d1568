"""Writes tests/data/losses.json: what PyTorch computes for the loss terms of a configuration.

    python tests/scripts/loss_expectations.py

A case holds the term's kind and options as they stand in train.toml, the model's values, the labels, weights of
samples, the loss and the gradients of the values, computed in float64 from float32 inputs. PyTorch 2.15.0,
torchvision 0.29.2 (sigmoid_focal), MONAI 1.6.1 (dice) and transformers 4.57.0 (CLIP's loss) made the committed file.
hinge, softmax_focal, gaussian_kl and the losses of sentence-transformers are written out here.
"""
import json
import pathlib

import monai.losses
import torch
import torch.nn.functional as F
import torchvision.ops
from transformers.models.clip.modeling_clip import clip_loss

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


def short(numbers):
    """Eight digits, which tests need, so that the file stays small."""
    return [float(f"{number:.8g}") for number in numbers]


def keep(name, term, x, labels, loss, weights=None, fields=None, whole=False):
    """`loss` maps float64 values to a scalar; `term` is KIND or KIND, options. x: a value, or a list of them.
    fields: further data fields by their keys. whole: it is not computed in micro-batches."""
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
    if fields:
        case["fields"] = {key: tensor(field) for key, field in fields.items()}
        case["options"] += "".join(f', {key} = "{key}"' for key in fields)
    if whole:
        case["whole"] = True
    cases.append({**case, "loss": result.item()})


def keep_short(*arguments, **named):
    keep(*arguments, **named)
    for value in cases[-1]["values"]:
        value["gradient"] = short(value["gradient"])


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
         lambda x: (w.double() * square(x).sum(1)).sum() / 5, w)
    z = classes_of((5,), 2)
    weighted(pattern((5, 1)), z, w[:, None],
             lambda x: F.binary_cross_entropy_with_logits(x, z.double()[:, None], reduction="none",
                                                          pos_weight=torch.tensor([3.0])),
             "binary_cross_entropy, pos_weight = 3.0", "weights_bce_pos_weight")


def both(name, kind, x, labels, loss, options=""):
    """As mean and as sum; `loss(reduction)` maps values to a scalar."""
    keep(name, kind + options, x, labels, loss("mean"))
    keep(name + "_sum", kind + ', reduction = "sum"' + options, x, labels, loss("sum"))


def numbers():
    x, y = pattern((4, 3)), pattern((4, 3), 5).float()
    for name, kind, options, function in [
            ("mae", "mae", "", F.l1_loss),
            ("huber", "huber", "", F.huber_loss),
            ("huber_delta", "huber", ", delta = 2.5", lambda x, y, **r: F.huber_loss(x, y, delta=2.5, **r)),
            ("smooth_l1", "smooth_l1", "", F.smooth_l1_loss),
            ("smooth_l1_beta", "smooth_l1", ", beta = 0.25",
             lambda x, y, **r: F.smooth_l1_loss(x, y, beta=0.25, **r)),
            ("smooth_l1_without", "smooth_l1", ", beta = 0.0",
             lambda x, y, **r: F.smooth_l1_loss(x, y, beta=0.0, **r))]:
        both(name, kind, x, y, lambda reduction: lambda x: function(x, y.double(), reduction=reduction), options)
    images, targets = pattern((3, 2, 2, 2)), pattern((3, 2, 2, 2), 7).float()
    keep("huber_images", "huber", images, targets, lambda x: F.huber_loss(x, targets.double()))
    equal = x.float()
    keep("mae_equal", "mae", x, equal, lambda x: F.l1_loss(x, equal.double()))
    keep("huber_equal", "huber", x, equal, lambda x: F.huber_loss(x, equal.double()))


def class_losses():
    x, y = F.log_softmax(pattern((5, 4)), 1).float().double(), classes_of((5,), 4)
    ignored = y.clone()
    ignored[1] = ignored[3] = -100
    weights = [0.5, 2.0, 1.0, 0.25]
    weight = torch.tensor(weights, dtype=torch.float64)
    both("nll", "nll", x, y, lambda r: lambda x: F.nll_loss(x, y, reduction=r))
    keep("nll_ignore", f"nll, class_weights = {weights}, ignore_index = -100", x, ignored,
         lambda x: F.nll_loss(x, ignored, weight=weight))
    image, pixels = pattern((2, 3, 2, 4), 2).div(4).abs().neg(), classes_of((2, 2, 4), 3)
    keep("nll_images", "nll", image, pixels, lambda x: F.nll_loss(x, pixels))
    x = pattern((5, 4))
    for options, settings in [("", {}), (", margin = 0.5", {"margin": 0.5}), (", p = 2.0", {"p": 2}),
                              (", p = 2.0, margin = 2.0", {"p": 2, "margin": 2})]:
        name = "multi_margin" + options.replace(", ", "_").replace(" = ", "").replace(".", "_")
        both(name, "multi_margin", x, y,
             lambda r: lambda x: F.multi_margin_loss(x, y, reduction=r, **settings), options)
    sequence, tokens = pattern((2, 3, 5), 1), classes_of((2, 3), 5, 1)
    keep("multi_margin_sequence", "multi_margin", sequence, tokens,
         lambda x: F.multi_margin_loss(x.reshape(-1, 5), tokens.reshape(-1)))

    def focal(x, y, gamma, weight=None, reduction="mean"):  # classes on axis 1
        log_p = F.log_softmax(x, 1)
        own = log_p.gather(1, y.clamp(min=0).unsqueeze(1)).squeeze(1)
        w = (y >= 0).double() if weight is None else weight[y.clamp(min=0)] * (y >= 0)
        total = (w * (1 - own.exp()) ** gamma * -own).sum()
        return total / w.sum() if reduction == "mean" else total

    both("softmax_focal", "softmax_focal", x, y, lambda r: lambda x: focal(x, y, 2, reduction=r))
    keep("softmax_focal_weights", f"softmax_focal, gamma = 1.5, class_weights = {weights}, ignore_index = -100", x,
         ignored, lambda x: focal(x, ignored, 1.5, weight))
    keep("softmax_focal_without", "softmax_focal, gamma = 0.0", x, y, lambda x: F.cross_entropy(x, y))
    image = pattern((2, 3, 2, 4), 2)
    keep("softmax_focal_images", "softmax_focal, gamma = 0.5", image, pixels, lambda x: focal(x, pixels, 0.5))


def binary_losses():
    sigmoid_focal = torchvision.ops.sigmoid_focal_loss
    x, z = pattern((6,), 1) * 3, classes_of((6,), 2)
    both("sigmoid_focal", "sigmoid_focal", x, z,
         lambda r: lambda x: sigmoid_focal(x, z.double(), reduction=r))
    keep("sigmoid_focal_without_alpha", "sigmoid_focal, alpha = -1.0, gamma = 1.0", x[:, None], z,
         lambda x: sigmoid_focal(x, z.double()[:, None], alpha=-1, gamma=1, reduction="mean"))
    keep("sigmoid_focal_without_gamma", "sigmoid_focal, alpha = 0.75, gamma = 0.0", x, z,
         lambda x: sigmoid_focal(x, z.double(), alpha=0.75, gamma=0, reduction="mean"))
    boxes, marks = pattern((2, 3, 4), 4), classes_of((2, 3, 4), 2, 1)
    keep("sigmoid_focal_classes", "sigmoid_focal, gamma = 3.5", boxes, marks,
         lambda x: sigmoid_focal(x, marks.double(), gamma=3.5, reduction="mean"))
    signs = (2 * z - 1).double()
    both("hinge", "hinge", x, z, lambda r: lambda x: getattr((1 - signs * x).clamp(min=0), r)())
    keep("hinge_margin", "hinge, margin = 0.25", x[:, None], z,
         lambda x: (0.25 - signs[:, None] * x).clamp(min=0).mean())
    images = pattern((2, 3, 2, 4), 2) * 0.5
    truth = classes_of((2, 3, 2, 4), 2, 1)
    for options, settings in [("", {}), (", squared_pred = true", {"squared_pred": True}),
                              (", smooth_nr = 0.0, smooth_dr = 0.5", {"smooth_nr": 0, "smooth_dr": 0.5})]:
        name = "dice" + options.split(" = ")[0].replace(", ", "_")
        both(name, "dice", images, truth,
             lambda r: lambda x: monai.losses.DiceLoss(sigmoid=True, reduction=r, **settings)(x, truth.double()),
             options)
    one_hot = F.one_hot(classes_of((2, 2, 4), 3), 3).movedim(-1, 1)
    keep("dice_softmax", 'dice, activation = "softmax"', images, one_hot,
         lambda x: monai.losses.DiceLoss(softmax=True)(x, one_hot.double()))


def divergences():
    x = F.log_softmax(pattern((5, 4)), 1).float().double()
    target = F.softmax(pattern((5, 4), 3) * 0.25, 1).float()
    target[1] = torch.tensor([0.0, 1.0, 0.0, 0.0])
    both("kl_div", "kl_div", x, target, lambda r: lambda x: F.kl_div(x, target.double(), reduction=r))
    keep("kl_div_batchmean", 'kl_div, reduction = "batchmean"', x, target,
         lambda x: F.kl_div(x, target.double(), reduction="batchmean"))
    logs = F.log_softmax(pattern((5, 4), 3) * 0.25, 1).float()
    keep("kl_div_log_target", "kl_div, log_target = true", x, logs,
         lambda x: F.kl_div(x, logs.double(), log_target=True))
    mu, log_var = pattern((4, 3)), pattern((4, 3), 5) * 0.5
    kl = lambda mu, log_var: -0.5 * (1 + log_var - mu ** 2 - log_var.exp()).flatten(1).sum(1)
    both("gaussian_kl", "gaussian_kl", [mu, log_var], None,
         lambda r: lambda mu, log_var: getattr(kl(mu, log_var), r)())
    keep("gaussian_kl_maps", "gaussian_kl", [pattern((2, 3, 2, 2)) * 0.5, pattern((2, 3, 2, 2), 3) * 0.25], None,
         lambda mu, log_var: kl(mu, log_var).mean())


def embeddings():
    a, b, c = pattern((5, 4)), pattern((5, 4), 3), pattern((5, 4), 8)
    y = 2 * classes_of((5,), 2) - 1
    for name, options, settings in [("cosine_embedding", "", {}),
                                    ("cosine_embedding_margin", ", margin = -0.5", {"margin": -0.5})]:
        both(name, "cosine_embedding", [a, b], y,
             lambda r: lambda a, b: F.cosine_embedding_loss(a, b, y, reduction=r, **settings), options)
    near = a + 0.25
    for name, options, settings in [("triplet", "", {}), ("triplet_margin", ", margin = 4.5", {"margin": 4.5}),
                                    ("triplet_p1", ", p = 1.0, margin = 8.0", {"p": 1, "margin": 8.0}),
                                    ("triplet_p3", ", p = 3.0, margin = 5.0, eps = 1e-3",
                                     {"p": 3, "margin": 5.0, "eps": 1e-3}),
                                    ("triplet_swap", ", swap = true, margin = 6.0", {"swap": True, "margin": 6.0})]:
        both(name, "triplet_margin", [a, b, c], None,
             lambda r: lambda a, p, n: F.triplet_margin_loss(a, p, n, reduction=r, **settings), options)
    keep("triplet_at_the_anchor", "triplet_margin, margin = 3.0, eps = 0.0", [a, a, c], None,
         lambda a, p, n: F.triplet_margin_loss(a, p, n, margin=3.0, eps=0.0))
    keep("triplet_p6_at_the_anchor", "triplet_margin, margin = 3.0, p = 6.0, eps = 0.0", [a, a, c], None,
         lambda a, p, n: F.triplet_margin_loss(a, p, n, margin=3.0, p=6.0, eps=0.0))
    keep("triplet_near", "triplet_margin, margin = 3.0", [a, near, c], None,
         lambda a, p, n: F.triplet_margin_loss(a, p, n, margin=3.0))


def distillations():
    def loss(temperature, axis=-1, reduction="mean"):
        def of(student, teacher):
            log_q, log_p = (F.log_softmax(x / temperature, axis) for x in (student, teacher))
            terms = F.kl_div(log_q, log_p, reduction="none", log_target=True).sum(axis) * temperature**2
            return terms.mean() if reduction == "mean" else terms.sum()
        return of

    a, b = pattern((4, 3)), pattern((4, 3), 5) * 0.5
    keep("distillation", "distillation", [a, b], None, loss(2.0))
    keep("distillation_sum", 'distillation, temperature = 4.5, reduction = "sum"', [a, b], None, loss(4.5, reduction="sum"))
    keep("distillation_axis", "distillation, axis = 1, temperature = 1.0", [pattern((2, 3, 2, 2)), pattern((2, 3, 2, 2), 4)],
         None, loss(1.0, 1))
    keep("distillation_sequence", "distillation", [pattern((3, 2, 4)), pattern((3, 2, 4), 6)], None, loss(2.0))


def info_nces():
    def similarities(a, b, cosine=True):
        return F.normalize(a, dim=-1) @ F.normalize(b, dim=-1).T if cosine else a @ b.T

    def ranking(a, b, scale, cosine=True, symmetric=False, reduction="mean"):
        """MultipleNegativesRankingLoss.forward and MultipleNegativesSymmetricRankingLoss.forward, where the documents
        are positives, then the negatives of all samples."""
        candidates = b[:, None] if b.dim() == 2 else b
        documents = candidates.transpose(0, 1).flatten(0, 1)
        labels = torch.arange(len(a))
        scores = similarities(a, documents, cosine) * scale
        forward = F.cross_entropy(scores, labels, reduction=reduction)
        if not symmetric:
            return forward
        return (forward + F.cross_entropy(scores[:, :len(a)].T, labels, reduction=reduction)) / 2

    a, b = pattern((4, 3)), pattern((4, 3), 3)
    both = pattern((3, 2, 3), 5)
    keep_short("info_nce", "info_nce", [a, b], None, lambda a, b: ranking(a, b, 20.0), whole=True)
    keep_short("info_nce_dot", 'info_nce, similarity = "dot", temperature = 2.0, reduction = "sum"', [a, b], None,
               lambda a, b: ranking(a, b, 0.5, cosine=False, reduction="sum"), whole=True)
    keep_short("info_nce_clip", "info_nce, symmetric = true, temperature = 0.25", [a, b], None,
               lambda a, b: clip_loss(similarities(a, b) * 4.0), whole=True)
    keep_short("info_nce_candidates", "info_nce, temperature = 0.25", [a[:3], both], None,
               lambda a, b: ranking(a, b, 4.0), whole=True)
    keep_short("info_nce_symmetric_candidates", "info_nce, symmetric = true, temperature = 0.5", [a[:3], both], None,
               lambda a, b: ranking(a, b, 2.0, symmetric=True), whole=True)


def ctcs():
    def loss(labels, counts, frames=None, time_first=False, **settings):
        def of(x):
            x = x if time_first else x.transpose(0, 1)
            own = torch.full((len(labels),), len(x)) if frames is None else frames
            return F.ctc_loss(F.log_softmax(x, -1), labels, own, counts, **settings)
        return of

    x = pattern((4, 4, 3))
    labels = torch.tensor([[1, 2, 1], [2, 2, -100], [-100, -100, -100], [1, -100, -100]])
    counts, frames = torch.tensor([3, 2, 0, 1]), torch.tensor([4, 3, 4, 1])
    keep_short("ctc", "ctc", x, labels, loss(labels, counts))
    keep_short("ctc_input_lengths", 'ctc, reduction = "sum"', x, labels, loss(labels, counts, frames, reduction="sum"),
               fields={"input_lengths": frames})
    others = torch.tensor([[0, 1, 0], [1, 1, 0], [0, 0, 0], [0, 1, 1]])
    few = torch.tensor([2, 2, 4, 4])
    keep_short("ctc_blank", "ctc, blank = 2, zero_infinity = true", x, others,
               loss(others, counts, few, blank=2, zero_infinity=True),
               fields={"input_lengths": few, "target_lengths": counts})
    keep_short("ctc_time_first", "ctc, time_first = true, ignore_index = 0", pattern((3, 2, 3), 4),
               torch.tensor([[1, 2], [2, 0]], dtype=torch.int32),
               loss(torch.tensor([[1, 2], [2, 0]]), torch.tensor([2, 1]), time_first=True), whole=True)


if __name__ == "__main__":
    cross_entropies()
    squared_errors()
    binary_cross_entropies()
    sample_weights()
    numbers()
    class_losses()
    binary_losses()
    divergences()
    embeddings()
    distillations()
    info_nces()
    ctcs()
    lines = ",\n".join(json.dumps(case) for case in cases)
    TARGET.write_text(f"[\n{lines}\n]\n")
    print(f"{TARGET}: {len(cases)} cases")

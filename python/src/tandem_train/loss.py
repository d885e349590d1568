"""Terms of the loss: values of the key `loss`, alone or in a list."""

# Written by `make docs` from the table of keys; do not edit.

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypedDict, Unpack

from tandem_train._table import Term as Term


class TermKeys(TypedDict, total=False):
    """The keys of every term."""

    # its name in metrics and selectors. Default: the kind.
    name: str
    # factor of this term. Default: 1.0.
    weight: float
    # over the batch (batchmean is the sum divided by the number of samples). Default: "mean".
    reduction: Literal["mean", "sum", "batchmean"]


def softmax_cross_entropy(
    logits: str,
    labels: str,
    *,
    sample_weights: str | None = None,
    ignore_index: int | None = None,
    class_weights: Sequence[float] | None = None,
    label_smoothing: float | None = None,
    **others: Unpack[TermKeys],
) -> Term:
    """-log softmax(logits)[label]. As PyTorch: cross_entropy.

    logits: value of the graph; never the output of a Softmax or Sigmoid.
    labels: data field: class numbers or one-hot.
    sample_weights: data field with a weight for each sample, or for each position of it; a mean divides by the sum of
        the weights.
    ignore_index: label that does not count.
    class_weights: one weight a class; a mean divides by the sum of the weights.
    label_smoothing: part of the label spread over all classes. Default: 0.0.
    """
    return Term("softmax_cross_entropy", locals())


def mse(predictions: str, targets: str, *, sample_weights: str | None = None, **others: Unpack[TermKeys]) -> Term:
    """(prediction - target)^2. As PyTorch: mse_loss.

    predictions: value of the graph.
    targets: data field.
    sample_weights: data field with a weight for each sample, or for each position of it; a mean divides by the sum of
        the weights.
    """
    return Term("mse", locals())


def binary_cross_entropy(
    logits: str,
    labels: str,
    *,
    sample_weights: str | None = None,
    pos_weight: float | Sequence[float] | None = None,
    **others: Unpack[TermKeys],
) -> Term:
    """-(z log p + (1 - z) log(1 - p)) with p = sigmoid(logit) and label z. As PyTorch:
    binary_cross_entropy_with_logits.

    logits: value of the graph; never the output of a Softmax or Sigmoid.
    labels: data field: 0 to 1.
    sample_weights: data field with a weight for each sample, or for each position of it; a mean divides by the sum of
        the weights.
    pos_weight: weight of positive labels, one or one a class. Default: 1.
    """
    return Term("binary_cross_entropy", locals())


def sum_of_squares(of: str, **others: Unpack[TermKeys]) -> Term:
    """x^2. As a penalty on any value.

    of: value of the graph.
    """
    return Term("sum_of_squares", locals())


def nll(
    labels: str,
    log_probabilities: str,
    *,
    sample_weights: str | None = None,
    ignore_index: int | None = None,
    class_weights: Sequence[float] | None = None,
    **others: Unpack[TermKeys],
) -> Term:
    """-log_probabilities[label]. As PyTorch: nll_loss.

    labels: data field: class numbers.
    log_probabilities: value of the graph, such as the output of a LogSoftmax.
    sample_weights: data field with a weight for each sample, or for each position of it; a mean divides by the sum of
        the weights.
    ignore_index: label that does not count.
    class_weights: one weight a class; a mean divides by the sum of the weights.
    """
    return Term("nll", locals())


def softmax_focal(
    logits: str,
    labels: str,
    *,
    sample_weights: str | None = None,
    ignore_index: int | None = None,
    class_weights: Sequence[float] | None = None,
    gamma: float | None = None,
    **others: Unpack[TermKeys],
) -> Term:
    """(1 - p)^gamma (-log p) with p = softmax(logits)[label]. As Lin et al. 2017, over a softmax; class_weights are
    its alpha.

    logits: value of the graph; never the output of a Softmax or Sigmoid.
    labels: data field: class numbers.
    sample_weights: data field with a weight for each sample, or for each position of it; a mean divides by the sum of
        the weights.
    ignore_index: label that does not count.
    class_weights: one weight a class; a mean divides by the sum of the weights.
    gamma: how much less a label counts that is predicted well. Default: 2.0.
    """
    return Term("softmax_focal", locals())


def sigmoid_focal(
    logits: str,
    labels: str,
    *,
    sample_weights: str | None = None,
    gamma: float | None = None,
    alpha: float | None = None,
    **others: Unpack[TermKeys],
) -> Term:
    """alpha_z (1 - p)^gamma times the binary cross entropy; p is the probability of label z, alpha_1 is alpha,
    alpha_0 is 1 - alpha. As torchvision: sigmoid_focal_loss.

    logits: value of the graph; never the output of a Softmax or Sigmoid.
    labels: data field: 0 to 1.
    sample_weights: data field with a weight for each sample, or for each position of it; a mean divides by the sum of
        the weights.
    gamma: how much less a label counts that is predicted well. Default: 2.0.
    alpha: weight of positive labels, 1 - alpha of negative ones; -1: neither. Default: 0.25.
    """
    return Term("sigmoid_focal", locals())


def hinge(
    labels: str,
    predictions: str,
    *,
    sample_weights: str | None = None,
    margin: float | None = None,
    **others: Unpack[TermKeys],
) -> Term:
    """max(0, margin - (2 label - 1) prediction). As Keras: Hinge.

    labels: data field: 0 to 1.
    predictions: value of the graph.
    sample_weights: data field with a weight for each sample, or for each position of it; a mean divides by the sum of
        the weights.
    margin: margin from which a right score costs nothing. Default: 1.0.
    """
    return Term("hinge", locals())


def multi_margin(
    labels: str,
    predictions: str,
    *,
    sample_weights: str | None = None,
    margin: float | None = None,
    p: float | None = None,
    **others: Unpack[TermKeys],
) -> Term:
    """The sum of max(0, margin - own score + score)^p over the other classes, divided by the number of classes. As
    PyTorch: multi_margin_loss.

    labels: data field: class numbers.
    predictions: value of the graph.
    sample_weights: data field with a weight for each sample, or for each position of it; a mean divides by the sum of
        the weights.
    margin: margin from which a right score costs nothing. Default: 1.0.
    p: exponent of the loss of a class. Default: 1.0.
    """
    return Term("multi_margin", locals())


def mae(predictions: str, targets: str, *, sample_weights: str | None = None, **others: Unpack[TermKeys]) -> Term:
    """|prediction - target|. As PyTorch: l1_loss.

    predictions: value of the graph.
    targets: data field.
    sample_weights: data field with a weight for each sample, or for each position of it; a mean divides by the sum of
        the weights.
    """
    return Term("mae", locals())


def huber(
    predictions: str,
    targets: str,
    *,
    sample_weights: str | None = None,
    delta: float | None = None,
    **others: Unpack[TermKeys],
) -> Term:
    """e^2 / 2 where |e| <= delta, else delta (|e| - delta / 2); e = prediction - target. As PyTorch: huber_loss.

    predictions: value of the graph.
    targets: data field.
    sample_weights: data field with a weight for each sample, or for each position of it; a mean divides by the sum of
        the weights.
    delta: where the parabola ends. Default: 1.0.
    """
    return Term("huber", locals())


def smooth_l1(
    predictions: str,
    targets: str,
    *,
    sample_weights: str | None = None,
    beta: float | None = None,
    **others: Unpack[TermKeys],
) -> Term:
    """e^2 / (2 beta) where |e| < beta, else |e| - beta / 2; e = prediction - target. As PyTorch: smooth_l1_loss.

    predictions: value of the graph.
    targets: data field.
    sample_weights: data field with a weight for each sample, or for each position of it; a mean divides by the sum of
        the weights.
    beta: where the parabola ends; 0: mae. Default: 1.0.
    """
    return Term("smooth_l1", locals())


def kl_div(
    targets: str,
    log_probabilities: str,
    *,
    sample_weights: str | None = None,
    log_target: bool | None = None,
    **others: Unpack[TermKeys],
) -> Term:
    """target (log(target) - log_probability); the divergence is its sum over the classes, which reduction =
    "batchmean" makes. As PyTorch: kl_div.

    targets: data field.
    log_probabilities: value of the graph, such as the output of a LogSoftmax.
    sample_weights: data field with a weight for each sample, or for each position of it; a mean divides by the sum of
        the weights.
    log_target: the targets are logarithms of probabilities. Default: False.
    """
    return Term("kl_div", locals())


def gaussian_kl(mu: str, log_var: str, *, sample_weights: str | None = None, **others: Unpack[TermKeys]) -> Term:
    """sum(mu^2 + exp(log_var) - 1 - log_var) / 2 for each sample. As Kingma and Welling 2013, appendix B.

    mu: value of the graph: means.
    log_var: value of the graph: logarithms of variances.
    sample_weights: data field with a weight for each sample, or for each position of it; a mean divides by the sum of
        the weights.
    """
    return Term("gaussian_kl", locals())


def cosine_embedding(
    labels: str,
    input1: str,
    input2: str,
    *,
    sample_weights: str | None = None,
    margin: float | None = None,
    **others: Unpack[TermKeys],
) -> Term:
    """1 - cos(input1, input2) where the label is 1, max(0, cos - margin) where it is -1. As PyTorch:
    cosine_embedding_loss.

    labels: data field: -1 or 1, one a sample.
    input1: value of the graph.
    input2: value of the graph.
    sample_weights: data field with a weight for each sample, or for each position of it; a mean divides by the sum of
        the weights.
    margin: cosine below which the loss is 0. Default: 0.0.
    """
    return Term("cosine_embedding", locals())


def triplet_margin(
    anchor: str,
    positive: str,
    negative: str,
    *,
    sample_weights: str | None = None,
    margin: float | None = None,
    p: float | None = None,
    eps: float | None = None,
    swap: bool | None = None,
    **others: Unpack[TermKeys],
) -> Term:
    """max(0, d(anchor, positive) - d(anchor, negative) + margin) with d the distance. As PyTorch:
    triplet_margin_loss.

    anchor: value of the graph.
    positive: value of the graph that is to be near the anchor.
    negative: value of the graph that is to be far from it.
    sample_weights: data field with a weight for each sample, or for each position of it; a mean divides by the sum of
        the weights.
    margin: how much farther the negative has to be. Default: 1.0.
    p: exponent of the norm that gives the distance. Default: 2.0.
    eps: added to each difference. Default: 1e-6.
    swap: take the distance of positive and negative where it is smaller. Default: False.
    """
    return Term("triplet_margin", locals())


def info_nce(
    anchor: str,
    positive: str,
    *,
    sample_weights: str | None = None,
    temperature: float | None = None,
    similarity: Literal["cosine", "dot"] | None = None,
    symmetric: bool | None = None,
    **others: Unpack[TermKeys],
) -> Term:
    """-log softmax(similarity(anchor, all positives) / temperature)[own positive]: the positives of the other
    samples of the batch are the negatives. It needs whole batches, so no micro_batch; ranks exchange their
    embeddings. As sentence-transformers: MultipleNegativesRankingLoss and its symmetric form; CLIP's loss.

    anchor: value of the graph: [batch, dim].
    positive: value of the graph: [batch, dim], or [batch, candidates, dim] with further negatives behind the positive.
    sample_weights: data field with a weight for each sample, or for each position of it; a mean divides by the sum of
        the weights.
    temperature: number by which similarities are divided: 1 / the scale. Default: 0.05.
    similarity: of two embeddings. Default: "cosine".
    symmetric: the mean with the loss that finds the anchor of a positive among all anchors. Default: False.
    """
    return Term("info_nce", locals())


def dice(
    logits: str,
    labels: str,
    *,
    sample_weights: str | None = None,
    activation: Literal["sigmoid", "softmax"] | None = None,
    squared_pred: bool | None = None,
    smooth_nr: float | None = None,
    smooth_dr: float | None = None,
    **others: Unpack[TermKeys],
) -> Term:
    """1 - (2 sum(p t) + smooth_nr) / (sum(p) + sum(t) + smooth_dr) for each sample and channel, over all axes after
    it; p: probabilities from the logits, t: the labels. As MONAI: DiceLoss.

    logits: value of the graph; never the output of a Softmax or Sigmoid.
    labels: data field: 0 to 1.
    sample_weights: data field with a weight for each sample, or for each position of it; a mean divides by the sum of
        the weights.
    activation: the function that computes p from the logits. Default: "sigmoid".
    squared_pred: sums of squares in the denominator. Default: False.
    smooth_nr: added to the numerator. Default: 1e-5.
    smooth_dr: added to the denominator. Default: 1e-5.
    """
    return Term("dice", locals())


def ctc(
    logits: str,
    labels: str,
    *,
    input_lengths: str | None = None,
    target_lengths: str | None = None,
    sample_weights: str | None = None,
    ignore_index: int | None = None,
    blank: int | None = None,
    time_first: bool | None = None,
    zero_infinity: bool | None = None,
    **others: Unpack[TermKeys],
) -> Term:
    """-log of the probability that the frames spell the labels, after runs of one class became one and blanks were
    left out; the mean divides the loss of a sample by the number of its labels first. As PyTorch: ctc_loss.

    logits: value of the graph: [batch, time, classes], also logarithms of probabilities.
    labels: data field: class numbers of each sample, padded.
    input_lengths: data field: frames of each sample; default: all.
    target_lengths: data field: labels of each sample; default: those before ignore_index.
    sample_weights: data field with a weight for each sample, or for each position of it; a mean divides by the sum of
        the weights.
    ignore_index: padding behind the labels of a sample; not read with target_lengths. Default: -100.
    blank: the class that stands for no label. Default: 0.
    time_first: the logits are [time, batch, classes]. Default: False.
    zero_infinity: a sample with too few frames for its labels has loss and gradient 0 instead of inf. Default: False.
    """
    return Term("ctc", locals())


def distillation(
    logits: str,
    teacher_logits: str,
    *,
    sample_weights: str | None = None,
    temperature: float | None = None,
    axis: int | None = None,
    **others: Unpack[TermKeys],
) -> Term:
    """T^2 sum over classes of p (log p - log q), p = softmax(teacher_logits / T), q = softmax(logits / T), T =
    temperature. As Hinton, Vinyals, Dean 2015: Distilling the Knowledge in a Neural Network.

    logits: value of the graph; never the output of a Softmax or Sigmoid.
    teacher_logits: of the teacher: teacher.NAME (see [distillation]).
    sample_weights: data field with a weight for each sample, or for each position of it; a mean divides by the sum of
        the weights.
    temperature: number by which both logits are divided. Default: 2.0.
    axis: axis of the classes. Default: -1.
    """
    return Term("distillation", locals())

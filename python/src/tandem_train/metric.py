"""Metrics: items of the key `eval.metrics`."""

# Written by `make docs` from the table of keys; do not edit.

from __future__ import annotations

from typing import Literal, TypedDict, Unpack

from tandem_train._table import Metric as Metric


class MetricKeys(TypedDict, total=False):
    """The keys of every metric."""

    # its name in metrics.jsonl, eval.best and schedules. Default: the kind, with what distinguishes it from others.
    name: str
    # data field with an integer for each sample: one value of the metric for each value of the field, of which there
    # may be 1000.
    by: str


def accuracy(**others: Unpack[MetricKeys]) -> Metric:
    """The share of labels that are predicted: the first greatest score, or a score above 0 for yes. As scikit-learn:
    accuracy_score.
    """
    return Metric("accuracy", locals())


def auc(**others: Unpack[MetricKeys]) -> Metric:
    """The area under the ROC curve: the share of pairs of a positive and a negative label whose positive has the
    larger score, equal ones counting one half. As scikit-learn: roc_auc_score.
    """
    return Metric("auc", locals())


def auc_pr(**others: Unpack[MetricKeys]) -> Metric:
    """Average precision: the sum of (R_n - R_(n-1)) P_n over all thresholds, with precision P and recall R. As
    scikit-learn: average_precision_score.
    """
    return Metric("auc_pr", locals())


def bits_per_token(**others: Unpack[MetricKeys]) -> Metric:
    """The logarithm of perplexity to base 2; of a model of bytes, bits per byte. As PyTorch's cross_entropy divided
    by log 2.
    """
    return Metric("bits_per_token", locals())


def bits_per_byte(*, bytes_per_token: float | None = None, **others: Unpack[MetricKeys]) -> Metric:
    """bits_per_token divided by bytes_per_token, so that models with other tokens compare. As PyTorch's
    cross_entropy divided by log 2 and by the bytes of a token.

    bytes_per_token: the bytes of the held-out text divided by its tokens. Default: 1.0.
    """
    return Metric("bits_per_byte", locals())


def calibration(**others: Unpack[MetricKeys]) -> Metric:
    """The mean of sigmoid(logit) divided by the mean label: 1 where as many positives are predicted as there are. As
    the mean prediction divided by the mean label.
    """
    return Metric("calibration", locals())


def confusion(**others: Unpack[MetricKeys]) -> Metric:
    """How many labels of each class (rows) were predicted as each class (columns); of up to 1000 classes. As
    scikit-learn: confusion_matrix.
    """
    return Metric("confusion", locals())


def dice(
    *,
    average: Literal["binary", "macro", "micro", "none"] | None = None,
    ignore_index: int | None = None,
    **others: Unpack[MetricKeys],
) -> Metric:
    """Twice the intersection over the sum of labels and predictions of a class: 2 right / (2 right + wrong +
    missed). As scikit-learn: f1_score.

    average: binary: of class 1; macro: the mean over the classes that occur among labels or predictions; micro: of all
        decisions together; none: one number a class. Default: "macro".
    ignore_index: labels that do not count, nor does that class among the averaged ones. Default: that of the loss.
    """
    return Metric("dice", locals())


def f1(*, average: Literal["binary", "macro", "micro", "none"] | None = None, **others: Unpack[MetricKeys]) -> Metric:
    """The harmonic mean of precision and recall: 2 right / (2 right + wrong + missed). As scikit-learn: f1_score.

    average: binary: of class 1; macro: the mean over the classes that occur among labels or predictions; micro: of all
        decisions together; none: one number a class. Default: "binary".
    """
    return Metric("f1", locals())


def gauc(group: str, **others: Unpack[MetricKeys]) -> Metric:
    """The mean of the groups' auc, each weighted by its samples; groups without both classes are left out. As Zhu et
    al. 2017, arXiv:1706.06978.

    group: data field with an integer for each sample.
    """
    return Metric("gauc", locals())


def iou(
    *,
    average: Literal["binary", "macro", "micro", "none"] | None = None,
    ignore_index: int | None = None,
    **others: Unpack[MetricKeys],
) -> Metric:
    """Intersection over union of labels and predictions of a class: right / (right + wrong + missed). As
    scikit-learn: jaccard_score.

    average: binary: of class 1; macro: the mean over the classes that occur among labels or predictions; micro: of all
        decisions together; none: one number a class. Default: "macro".
    ignore_index: labels that do not count, nor does that class among the averaged ones. Default: that of the loss.
    """
    return Metric("iou", locals())


def log_loss(**others: Unpack[MetricKeys]) -> Metric:
    """The mean of -(y log p + (1 - y) log(1 - p)) with p = sigmoid(logit), without the weights of the loss. As
    scikit-learn: log_loss.
    """
    return Metric("log_loss", locals())


def loss(**others: Unpack[MetricKeys]) -> Metric:
    """The loss over all held-out samples; it is always measured. As [loss] terms, or the model."""
    return Metric("loss", locals())


def mae(**others: Unpack[MetricKeys]) -> Metric:
    """The mean of |prediction - target| over all elements. As scikit-learn: mean_absolute_error."""
    return Metric("mae", locals())


def mse(**others: Unpack[MetricKeys]) -> Metric:
    """The mean of (prediction - target)² over all elements. As scikit-learn: mean_squared_error."""
    return Metric("mse", locals())


def perplexity(**others: Unpack[MetricKeys]) -> Metric:
    """Exp of the mean of -log softmax(logits)[label] over all labels that count, without the loss's weights and
    smoothing. As exp of PyTorch's cross_entropy.
    """
    return Metric("perplexity", locals())


def precision(
    *, average: Literal["binary", "macro", "micro", "none"] | None = None, **others: Unpack[MetricKeys]
) -> Metric:
    """The share of predictions of a class that are right; 0 where there is none. As scikit-learn: precision_score.

    average: binary: of class 1; macro: the mean over the classes that occur among labels or predictions; micro: of all
        decisions together; none: one number a class. Default: "binary".
    """
    return Metric("precision", locals())


def r2(**others: Unpack[MetricKeys]) -> Metric:
    """1 - Σ (prediction - target)² / Σ (target - mean target)², over all elements together. As scikit-learn:
    r2_score.
    """
    return Metric("r2", locals())


def recall(
    *, average: Literal["binary", "macro", "micro", "none"] | None = None, **others: Unpack[MetricKeys]
) -> Metric:
    """The share of labels of a class that are predicted; 0 where there is none. As scikit-learn: recall_score.

    average: binary: of class 1; macro: the mean over the classes that occur among labels or predictions; micro: of all
        decisions together; none: one number a class. Default: "binary".
    """
    return Metric("recall", locals())


def rmse(**others: Unpack[MetricKeys]) -> Metric:
    """The square root of mse, in the unit of the targets. As scikit-learn: root_mean_squared_error."""
    return Metric("rmse", locals())


def top_5(**others: Unpack[MetricKeys]) -> Metric:
    """top_k with k = 5. As scikit-learn: top_k_accuracy_score."""
    return Metric("top_5", locals())


def top_k(*, k: int | None = None, **others: Unpack[MetricKeys]) -> Metric:
    """The share of labels whose score is among the k greatest. As scikit-learn: top_k_accuracy_score.

    k: how many of the greatest scores count. Default: 5.
    """
    return Metric("top_k", locals())

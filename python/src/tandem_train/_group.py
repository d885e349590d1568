"""Items of an optimizer's key `groups`."""

# Written by `make docs` from the table of keys; do not edit.

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from tandem_train._table import Group as Group


def group(
    at: str,
    *,
    kind: str | None = None,
    lr: float | None = None,
    weight_decay: float | None = None,
    momentum: float | None = None,
    dampening: float | None = None,
    nesterov: bool | None = None,
    betas: Sequence[float] | None = None,
    eps: float | None = None,
    epsilon_form: Literal["pytorch", "onnx"] | None = None,
    bias_correction: bool | None = None,
    lr_decay: float | None = None,
    initial_accumulator: float | None = None,
    l1: float | None = None,
    l2: float | None = None,
    beta: float | None = None,
    l2_shrinkage: float | None = None,
    lr_power: float | None = None,
    dialect: Literal["mcmahan", "tensorflow", "mindspore"] | None = None,
    l21: float | None = None,
    always_adapt: bool | None = None,
    trust_clip: float | None = None,
    alpha: float | None = None,
    centered: bool | None = None,
    rho: float | None = None,
    momentum_decay: float | None = None,
    decoupled_weight_decay: bool | None = None,
    beta2_decay: float | None = None,
    eps1: float | None = None,
    eps2: float | None = None,
    d: float | None = None,
    ns_coefficients: Sequence[float] | None = None,
    ns_steps: float | None = None,
    adjust_lr_fn: Literal["original", "match_rms_adamw", "spectral_unclamped"] | None = None,
    flatten: bool | None = None,
    r: float | None = None,
    weight_lr_power: float | None = None,
    schedule: Mapping[str, Any] | Sequence[Any] | None = None,
    clip_norm: float | None = None,
    clip_value: float | None = None,
    clip_adaptive: float | None = None,
) -> Group:
    """Other options for some parameters, an item of `groups`. What is left out is that of the optimizer.

    at: which parameters.
    kind: the rule. Default: optimizer.kind.
    lr: learning rate. Default: optimizer.lr.
    weight_decay: added to the gradient (sgd, adam, lazy_adam, adagrad, rowwise_adagrad, momentum, rmsprop, adadelta,
        adamax, adam8bit); decoupled (adamw, lamb, lion, adafactor, muon, adamw8bit); added to the gradient unless
        decoupled_weight_decay (nadam, radam); decoupled, of the weights that train (schedule_free_adamw). Default:
        optimizer.weight_decay.
    momentum: decay of the sum of gradients (sgd); decay of the velocity (momentum); decay of the sum of scaled
        gradients (rmsprop); decay of the mean of gradients (muon). Default: optimizer.momentum.
    dampening: 1 - dampening of a gradient enters the sum (sgd). Default: optimizer.dampening.
    nesterov: a step ahead; with momentum and without dampening (sgd); a step ahead along the velocity (momentum); a
        step ahead along this mean (muon). Default: optimizer.nesterov.
    betas: decay of both moments (adam, adamw, lazy_adam, lamb, nadam, radam, adam8bit, adamw8bit); decay of the first
        moment and of the greatest gradient (adamax); decay of the moment in the step, and in what is kept (lion); how
        much of the mean is in the weights that train; decay of the second moment (schedule_free_adamw). Default:
        optimizer.betas.
    eps: added to the root of the second moment (adam, adamw, lazy_adam, lamb, nadam, radam, schedule_free_adamw,
        adam8bit, adamw8bit); added to the root of the sum (adagrad, rowwise_adagrad); added to the root of the mean
        square (rmsprop); added to both mean squares (adadelta); added to the size of the gradient (adamax); least norm
        of what is orthogonalised (muon). Default: optimizer.eps.
    epsilon_form: eps added after (pytorch) or before (onnx) bias correction (adam, adamw, lazy_adam, adam8bit,
        adamw8bit). Default: optimizer.epsilon_form.
    bias_correction: of both moments (adam, adamw, lazy_adam, lamb, adam8bit, adamw8bit). Default:
        optimizer.bias_correction.
    lr_decay: lr / (1 + (step - 1) lr_decay) (adagrad, rowwise_adagrad). Default: optimizer.lr_decay.
    initial_accumulator: where the sum of squares starts (adagrad, rowwise_adagrad, ftrl, group_ftrl). Default:
        optimizer.initial_accumulator.
    l1: makes weights exactly 0 (ftrl, group_ftrl). Default: optimizer.l1.
    l2: pulls weights to 0 (ftrl, group_ftrl). Default: optimizer.l2.
    beta: added to the root of the accumulator (ftrl, group_ftrl); factor of gradients after the first (momentum).
        Default: optimizer.beta.
    l2_shrinkage: adds 2 l2_shrinkage w to the gradient of linear (ftrl, group_ftrl). Default: optimizer.l2_shrinkage.
    lr_power: power of the accumulator in the rate (ftrl, group_ftrl). Default: optimizer.lr_power.
    dialect: l2 |w|^2 / 2 as in the paper, or l2 |w|^2 as in TensorFlow and MindSpore (ftrl, group_ftrl). Default:
        optimizer.dialect.
    l21: makes whole rows exactly 0 (group_ftrl). Default: optimizer.l21.
    always_adapt: false: no ratio of norms where weight_decay is 0 (lamb). Default: optimizer.always_adapt.
    trust_clip: the ratio of norms is at most this; 0: no bound (lamb). Default: optimizer.trust_clip.
    alpha: decay of the mean square (rmsprop). Default: optimizer.alpha.
    centered: the variance replaces the mean square (rmsprop). Default: optimizer.centered.
    rho: decay of both mean squares (adadelta). Default: optimizer.rho.
    momentum_decay: how soon beta1 counts in full (nadam). Default: optimizer.momentum_decay.
    decoupled_weight_decay: w shrinks by lr weight_decay instead, as in adamw (nadam, radam). Default:
        optimizer.decoupled_weight_decay.
    beta2_decay: step t counts t^beta2_decay in the means of squares (adafactor). Default: optimizer.beta2_decay.
    eps1: least root of the second moment (adafactor). Default: optimizer.eps1.
    eps2: least size of a parameter, to which steps are relative (adafactor). Default: optimizer.eps2.
    d: greatest size of a step before the rate (adafactor). Default: optimizer.d.
    ns_coefficients: of the polynomial that orthogonalises (muon). Default: optimizer.ns_coefficients.
    ns_steps: how often the polynomial is applied (muon). Default: optimizer.ns_steps.
    adjust_lr_fn: how the rate follows a matrix's shape: sqrt(max(1, outputs / inputs)); 0.2 sqrt(max(outputs, inputs)),
        for rates of AdamW; sqrt(outputs / inputs) (muon). Default: optimizer.adjust_lr_fn.
    flatten: weights of convolutions are taken as matrices [outputs, all others] (muon). Default: optimizer.flatten.
    r: step t counts t^r in the mean (schedule_free_adamw). Default: optimizer.r.
    weight_lr_power: and the largest rate so far to this power: steps of a warm-up count less (schedule_free_adamw).
        Default: optimizer.weight_lr_power.
    schedule: of the group's own learning rate.
    clip_norm: the gradient of the group's parameters is scaled down to this norm; they then do not count in
        optimizer.clip_norm.
    clip_value: for the group's parameters; 0: none. Default: optimizer.clip_value.
    clip_adaptive: for the group's parameters; 0: none. Default: optimizer.clip_adaptive.
    """
    return Group(None, locals())

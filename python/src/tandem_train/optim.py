"""Optimizers: values of the key `optimizer`."""

# Written by `make docs` from the table of keys; do not edit.

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict, Unpack

from tandem_train._group import group as group
from tandem_train._table import Group as Group
from tandem_train._table import Optimizer as Optimizer


class OptimizerKeys(TypedDict, total=False):
    """The keys of every optimizer."""

    # other options for some parameters; the last group that covers one takes it. Default: [].
    groups: Sequence[Mapping[str, Any]]
    # the learning rate over the run; groups without one of their own follow in proportion.
    schedule: Mapping[str, Any] | Sequence[Any]
    # the gradient of all parameters together is scaled down to this norm.
    clip_norm: float
    # each element of a gradient is moved to the nearest number from -clip_value to clip_value.
    clip_value: float
    # the gradient of each output unit is scaled down to at most this multiple of the norm of its weights (Brock et al.
    # 2021); the paper leaves the last layer out.
    clip_adaptive: float
    # norms of weights count as this at least. Default: 0.001.
    clip_adaptive_eps: float
    # each block of the network has the learning rate of the next one times this, from the head to the input (BEiT,
    # MAE); 1: the same rate for all. Default: 1.0.
    layer_decay: float
    # an exponential moving average of the weights: states NAME/ema, used by choice.
    ema: Mapping[str, Any]
    # the mean of the weights at several times (stochastic weight averaging): states NAME/swa, used by choice.
    swa: Mapping[str, Any]
    # slow weights, which the trained ones go back to (Zhang et al. 2019): states NAME/slow.
    lookahead: Mapping[str, Any]


class SGD(Optimizer):
    """PyTorch's SGD.

    lr: learning rate. Default: 0.001.
    weight_decay: added to the gradient. Default: 0.0.
    momentum: decay of the sum of gradients. Default: 0.0.
    dampening: 1 - dampening of a gradient enters the sum. Default: 0.0.
    nesterov: a step ahead; with momentum and without dampening. Default: False.
    """

    def __init__(
        self,
        *,
        lr: float | None = None,
        weight_decay: float | None = None,
        momentum: float | None = None,
        dampening: float | None = None,
        nesterov: bool | None = None,
        **others: Unpack[OptimizerKeys],
    ) -> None:
        super().__init__("sgd", locals())


class Adam(Optimizer):
    """PyTorch's Adam.

    lr: learning rate. Default: 0.001.
    weight_decay: added to the gradient. Default: 0.0.
    betas: decay of both moments. Default: [0.9, 0.999].
    eps: added to the root of the second moment. Default: 1e-08.
    epsilon_form: eps added after (pytorch) or before (onnx) bias correction. Default: "pytorch".
    bias_correction: of both moments. Default: True.
    """

    def __init__(
        self,
        *,
        lr: float | None = None,
        weight_decay: float | None = None,
        betas: Sequence[float] | None = None,
        eps: float | None = None,
        epsilon_form: Literal["pytorch", "onnx"] | None = None,
        bias_correction: bool | None = None,
        **others: Unpack[OptimizerKeys],
    ) -> None:
        super().__init__("adam", locals())


class AdamW(Optimizer):
    """PyTorch's AdamW.

    lr: learning rate. Default: 0.001.
    weight_decay: decoupled. Default: 0.01.
    betas: decay of both moments. Default: [0.9, 0.999].
    eps: added to the root of the second moment. Default: 1e-08.
    epsilon_form: eps added after (pytorch) or before (onnx) bias correction. Default: "pytorch".
    bias_correction: of both moments. Default: True.
    """

    def __init__(
        self,
        *,
        lr: float | None = None,
        weight_decay: float | None = None,
        betas: Sequence[float] | None = None,
        eps: float | None = None,
        epsilon_form: Literal["pytorch", "onnx"] | None = None,
        bias_correction: bool | None = None,
        **others: Unpack[OptimizerKeys],
    ) -> None:
        super().__init__("adamw", locals())


class LazyAdam(Optimizer):
    """MindSpore's LazyAdam, PyTorch's SparseAdam.

    lr: learning rate. Default: 0.001.
    weight_decay: added to the gradient. Default: 0.0.
    betas: decay of both moments. Default: [0.9, 0.999].
    eps: added to the root of the second moment. Default: 1e-08.
    epsilon_form: eps added after (pytorch) or before (onnx) bias correction. Default: "onnx".
    bias_correction: of both moments. Default: True.
    """

    def __init__(
        self,
        *,
        lr: float | None = None,
        weight_decay: float | None = None,
        betas: Sequence[float] | None = None,
        eps: float | None = None,
        epsilon_form: Literal["pytorch", "onnx"] | None = None,
        bias_correction: bool | None = None,
        **others: Unpack[OptimizerKeys],
    ) -> None:
        super().__init__("lazy_adam", locals())


class Adagrad(Optimizer):
    """PyTorch's Adagrad.

    lr: learning rate. Default: 0.001.
    weight_decay: added to the gradient. Default: 0.0.
    eps: added to the root of the sum. Default: 1e-10.
    lr_decay: lr / (1 + (step - 1) lr_decay). Default: 0.0.
    initial_accumulator: where the sum of squares starts. Default: 0.0.
    """

    def __init__(
        self,
        *,
        lr: float | None = None,
        weight_decay: float | None = None,
        eps: float | None = None,
        lr_decay: float | None = None,
        initial_accumulator: float | None = None,
        **others: Unpack[OptimizerKeys],
    ) -> None:
        super().__init__("adagrad", locals())


class RowwiseAdagrad(Optimizer):
    """FBGEMM's EXACT_ROWWISE_ADAGRAD.

    lr: learning rate. Default: 0.001.
    weight_decay: added to the gradient. Default: 0.0.
    eps: added to the root of the sum. Default: 1e-08.
    lr_decay: lr / (1 + (step - 1) lr_decay). Default: 0.0.
    initial_accumulator: where the sum of squares starts. Default: 0.0.
    """

    def __init__(
        self,
        *,
        lr: float | None = None,
        weight_decay: float | None = None,
        eps: float | None = None,
        lr_decay: float | None = None,
        initial_accumulator: float | None = None,
        **others: Unpack[OptimizerKeys],
    ) -> None:
        super().__init__("rowwise_adagrad", locals())


class Ftrl(Optimizer):
    """McMahan et al. 2013, algorithm 1.

    lr: learning rate. Default: 0.001.
    initial_accumulator: where the sum of squares starts. Default: 0.1.
    l1: makes weights exactly 0. Default: 0.0.
    l2: pulls weights to 0. Default: 0.0.
    beta: added to the root of the accumulator. Default: 0.0.
    l2_shrinkage: adds 2 l2_shrinkage w to the gradient of linear. Default: 0.0.
    lr_power: power of the accumulator in the rate. Default: -0.5.
    dialect: l2 |w|^2 / 2 as in the paper, or l2 |w|^2 as in TensorFlow and MindSpore. Default: "mcmahan".
    """

    def __init__(
        self,
        *,
        lr: float | None = None,
        initial_accumulator: float | None = None,
        l1: float | None = None,
        l2: float | None = None,
        beta: float | None = None,
        l2_shrinkage: float | None = None,
        lr_power: float | None = None,
        dialect: Literal["mcmahan", "tensorflow", "mindspore"] | None = None,
        **others: Unpack[OptimizerKeys],
    ) -> None:
        super().__init__("ftrl", locals())


class GroupFtrl(Optimizer):
    """Yue et al. 2021.

    lr: learning rate. Default: 0.001.
    initial_accumulator: where the sum of squares starts. Default: 0.1.
    l1: makes weights exactly 0. Default: 0.0.
    l2: pulls weights to 0. Default: 0.0.
    beta: added to the root of the accumulator. Default: 0.0.
    l2_shrinkage: adds 2 l2_shrinkage w to the gradient of linear. Default: 0.0.
    lr_power: power of the accumulator in the rate. Default: -0.5.
    dialect: l2 |w|^2 / 2 as in the paper, or l2 |w|^2 as in TensorFlow and MindSpore. Default: "mcmahan".
    l21: makes whole rows exactly 0. Default: 0.0.
    """

    def __init__(
        self,
        *,
        lr: float | None = None,
        initial_accumulator: float | None = None,
        l1: float | None = None,
        l2: float | None = None,
        beta: float | None = None,
        l2_shrinkage: float | None = None,
        lr_power: float | None = None,
        dialect: Literal["mcmahan", "tensorflow", "mindspore"] | None = None,
        l21: float | None = None,
        **others: Unpack[OptimizerKeys],
    ) -> None:
        super().__init__("group_ftrl", locals())


class Lamb(Optimizer):
    """You et al. 2019, algorithm 2.

    lr: learning rate. Default: 0.001.
    weight_decay: decoupled. Default: 0.0.
    betas: decay of both moments. Default: [0.9, 0.999].
    eps: added to the root of the second moment. Default: 1e-06.
    bias_correction: of both moments. Default: True.
    always_adapt: false: no ratio of norms where weight_decay is 0. Default: True.
    trust_clip: the ratio of norms is at most this; 0: no bound. Default: 0.0.
    """

    def __init__(
        self,
        *,
        lr: float | None = None,
        weight_decay: float | None = None,
        betas: Sequence[float] | None = None,
        eps: float | None = None,
        bias_correction: bool | None = None,
        always_adapt: bool | None = None,
        trust_clip: float | None = None,
        **others: Unpack[OptimizerKeys],
    ) -> None:
        super().__init__("lamb", locals())


class Momentum(Optimizer):
    """ONNX's and MindSpore's Momentum.

    lr: learning rate. Default: 0.001.
    weight_decay: added to the gradient. Default: 0.0.
    momentum: decay of the velocity. Default: 0.9.
    nesterov: a step ahead along the velocity. Default: False.
    beta: factor of gradients after the first. Default: 1.0.
    """

    def __init__(
        self,
        *,
        lr: float | None = None,
        weight_decay: float | None = None,
        momentum: float | None = None,
        nesterov: bool | None = None,
        beta: float | None = None,
        **others: Unpack[OptimizerKeys],
    ) -> None:
        super().__init__("momentum", locals())


class RMSprop(Optimizer):
    """PyTorch's RMSprop.

    lr: learning rate. Default: 0.01.
    weight_decay: added to the gradient. Default: 0.0.
    momentum: decay of the sum of scaled gradients. Default: 0.0.
    eps: added to the root of the mean square. Default: 1e-08.
    alpha: decay of the mean square. Default: 0.99.
    centered: the variance replaces the mean square. Default: False.
    """

    def __init__(
        self,
        *,
        lr: float | None = None,
        weight_decay: float | None = None,
        momentum: float | None = None,
        eps: float | None = None,
        alpha: float | None = None,
        centered: bool | None = None,
        **others: Unpack[OptimizerKeys],
    ) -> None:
        super().__init__("rmsprop", locals())


class Adadelta(Optimizer):
    """PyTorch's Adadelta.

    lr: learning rate. Default: 1.0.
    weight_decay: added to the gradient. Default: 0.0.
    eps: added to both mean squares. Default: 1e-06.
    rho: decay of both mean squares. Default: 0.9.
    """

    def __init__(
        self,
        *,
        lr: float | None = None,
        weight_decay: float | None = None,
        eps: float | None = None,
        rho: float | None = None,
        **others: Unpack[OptimizerKeys],
    ) -> None:
        super().__init__("adadelta", locals())


class Adamax(Optimizer):
    """PyTorch's Adamax.

    lr: learning rate. Default: 0.002.
    weight_decay: added to the gradient. Default: 0.0.
    betas: decay of the first moment and of the greatest gradient. Default: [0.9, 0.999].
    eps: added to the size of the gradient. Default: 1e-08.
    """

    def __init__(
        self,
        *,
        lr: float | None = None,
        weight_decay: float | None = None,
        betas: Sequence[float] | None = None,
        eps: float | None = None,
        **others: Unpack[OptimizerKeys],
    ) -> None:
        super().__init__("adamax", locals())


class NAdam(Optimizer):
    """PyTorch's NAdam.

    lr: learning rate. Default: 0.002.
    weight_decay: added to the gradient unless decoupled_weight_decay. Default: 0.0.
    betas: decay of both moments. Default: [0.9, 0.999].
    eps: added to the root of the second moment. Default: 1e-08.
    momentum_decay: how soon beta1 counts in full. Default: 0.004.
    decoupled_weight_decay: w shrinks by lr weight_decay instead, as in adamw. Default: False.
    """

    def __init__(
        self,
        *,
        lr: float | None = None,
        weight_decay: float | None = None,
        betas: Sequence[float] | None = None,
        eps: float | None = None,
        momentum_decay: float | None = None,
        decoupled_weight_decay: bool | None = None,
        **others: Unpack[OptimizerKeys],
    ) -> None:
        super().__init__("nadam", locals())


class RAdam(Optimizer):
    """PyTorch's RAdam.

    lr: learning rate. Default: 0.001.
    weight_decay: added to the gradient unless decoupled_weight_decay. Default: 0.0.
    betas: decay of both moments. Default: [0.9, 0.999].
    eps: added to the root of the second moment. Default: 1e-08.
    decoupled_weight_decay: w shrinks by lr weight_decay instead, as in adamw. Default: False.
    """

    def __init__(
        self,
        *,
        lr: float | None = None,
        weight_decay: float | None = None,
        betas: Sequence[float] | None = None,
        eps: float | None = None,
        decoupled_weight_decay: bool | None = None,
        **others: Unpack[OptimizerKeys],
    ) -> None:
        super().__init__("radam", locals())


class Lion(Optimizer):
    """Chen et al. 2023, algorithm 2.

    lr: learning rate. Default: 1e-04.
    weight_decay: decoupled. Default: 0.0.
    betas: decay of the moment in the step, and in what is kept. Default: [0.9, 0.99].
    """

    def __init__(
        self,
        *,
        lr: float | None = None,
        weight_decay: float | None = None,
        betas: Sequence[float] | None = None,
        **others: Unpack[OptimizerKeys],
    ) -> None:
        super().__init__("lion", locals())


class Adafactor(Optimizer):
    """PyTorch's Adafactor.

    lr: learning rate. Default: 0.01.
    weight_decay: decoupled. Default: 0.0.
    beta2_decay: step t counts t^beta2_decay in the means of squares. Default: -0.8.
    eps1: least root of the second moment. Default: 1.1920928955078125e-07.
    eps2: least size of a parameter, to which steps are relative. Default: 0.001.
    d: greatest size of a step before the rate. Default: 1.0.
    """

    def __init__(
        self,
        *,
        lr: float | None = None,
        weight_decay: float | None = None,
        beta2_decay: float | None = None,
        eps1: float | None = None,
        eps2: float | None = None,
        d: float | None = None,
        **others: Unpack[OptimizerKeys],
    ) -> None:
        super().__init__("adafactor", locals())


class Muon(Optimizer):
    """Jordan et al. 2024, as torch.optim.Muon.

    lr: learning rate. Default: 0.001.
    weight_decay: decoupled. Default: 0.1.
    momentum: decay of the mean of gradients. Default: 0.95.
    nesterov: a step ahead along this mean. Default: True.
    eps: least norm of what is orthogonalised. Default: 1e-07.
    ns_coefficients: of the polynomial that orthogonalises. Default: [3.4445, -4.775, 2.0315].
    ns_steps: how often the polynomial is applied. Default: 5.0.
    adjust_lr_fn: how the rate follows a matrix's shape: sqrt(max(1, outputs / inputs)); 0.2 sqrt(max(outputs, inputs)),
        for rates of AdamW; sqrt(outputs / inputs). Default: "original".
    flatten: weights of convolutions are taken as matrices [outputs, all others]. Default: False.
    """

    def __init__(
        self,
        *,
        lr: float | None = None,
        weight_decay: float | None = None,
        momentum: float | None = None,
        nesterov: bool | None = None,
        eps: float | None = None,
        ns_coefficients: Sequence[float] | None = None,
        ns_steps: float | None = None,
        adjust_lr_fn: Literal["original", "match_rms_adamw", "spectral_unclamped"] | None = None,
        flatten: bool | None = None,
        **others: Unpack[OptimizerKeys],
    ) -> None:
        super().__init__("muon", locals())


class ScheduleFreeAdamW(Optimizer):
    """Defazio et al. 2024.

    lr: learning rate. Default: 0.0025.
    weight_decay: decoupled, of the weights that train. Default: 0.0.
    betas: how much of the mean is in the weights that train; decay of the second moment. Default: [0.9, 0.999].
    eps: added to the root of the second moment. Default: 1e-08.
    r: step t counts t^r in the mean. Default: 0.0.
    weight_lr_power: and the largest rate so far to this power: steps of a warm-up count less. Default: 2.0.
    """

    def __init__(
        self,
        *,
        lr: float | None = None,
        weight_decay: float | None = None,
        betas: Sequence[float] | None = None,
        eps: float | None = None,
        r: float | None = None,
        weight_lr_power: float | None = None,
        **others: Unpack[OptimizerKeys],
    ) -> None:
        super().__init__("schedule_free_adamw", locals())


class Adam8bit(Optimizer):
    """bitsandbytes' Adam8bit.

    lr: learning rate. Default: 0.001.
    weight_decay: added to the gradient. Default: 0.0.
    betas: decay of both moments. Default: [0.9, 0.999].
    eps: added to the root of the second moment. Default: 1e-08.
    epsilon_form: eps added after (pytorch) or before (onnx) bias correction. Default: "pytorch".
    bias_correction: of both moments. Default: True.
    """

    def __init__(
        self,
        *,
        lr: float | None = None,
        weight_decay: float | None = None,
        betas: Sequence[float] | None = None,
        eps: float | None = None,
        epsilon_form: Literal["pytorch", "onnx"] | None = None,
        bias_correction: bool | None = None,
        **others: Unpack[OptimizerKeys],
    ) -> None:
        super().__init__("adam8bit", locals())


class AdamW8bit(Optimizer):
    """bitsandbytes' AdamW8bit.

    lr: learning rate. Default: 0.001.
    weight_decay: decoupled. Default: 0.01.
    betas: decay of both moments. Default: [0.9, 0.999].
    eps: added to the root of the second moment. Default: 1e-08.
    epsilon_form: eps added after (pytorch) or before (onnx) bias correction. Default: "pytorch".
    bias_correction: of both moments. Default: True.
    """

    def __init__(
        self,
        *,
        lr: float | None = None,
        weight_decay: float | None = None,
        betas: Sequence[float] | None = None,
        eps: float | None = None,
        epsilon_form: Literal["pytorch", "onnx"] | None = None,
        bias_correction: bool | None = None,
        **others: Unpack[OptimizerKeys],
    ) -> None:
        super().__init__("adamw8bit", locals())

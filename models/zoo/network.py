"""The entries of the zoo's lists: a network, its inputs, and what it is trained on."""

import dataclasses
import typing

import torch
import torch.nn as nn

FREE_BATCH, FIXED_BATCH = 3, 2  # samples of a step, by whether the export leaves the batch free


def floats(*shape):
    """An input [batch, *shape] of normal numbers."""
    return lambda batch, random: torch.randn(batch, *shape, generator=random)


def fractions(*shape):
    """An input [batch, *shape] of numbers from 0 to 1."""
    return lambda batch, random: torch.rand(batch, *shape, generator=random)


def tokens(length, vocabulary, least=0):
    """An input [batch, length] of class numbers from `least` to below `vocabulary`."""
    return lambda batch, random: torch.randint(least, vocabulary, (batch, length), generator=random)


def mask(length):
    """An input [batch, length] of ones with zeros after a random place, as tokenizers give it."""

    def make(batch, random):
        lengths = torch.randint(2 * length // 3, length + 1, (batch, 1), generator=random)
        return (torch.arange(length)[None] < lengths).long()

    return make


@dataclasses.dataclass(frozen=True)
class Network:
    """name: also its folder. build: makes the module. inputs: by the name of the module's argument.

    loss: "cross_entropy" (of the last axis for [batch, length, classes], else of axis 1), "mse" or "binary_cross_entropy"
    for each output. pick: what of the module's result is trained. call: arguments that are no tensors. lengths: the name of axis 1 of
    inputs whose length the export leaves free, with `other_inputs` of another length; outputs have the length of the last of them.
    """

    name: str
    build: typing.Callable[[], nn.Module]
    inputs: dict
    loss: str = "cross_entropy"
    pick: typing.Callable | None = None
    call: dict = dataclasses.field(default_factory=dict)
    lr: float = 0.01
    family: str = ""
    free: bool = True
    note: str = ""  # why the file cannot train as the module does, or rounding decides
    lengths: dict = dataclasses.field(default_factory=dict)
    other_inputs: dict = dataclasses.field(default_factory=dict)


def own(name, build, inputs, loss="cross_entropy", **settings):
    return Network(name, build, inputs, loss, family="own", **settings)


class Called(nn.Module):
    """The module called by the names of its arguments; gives the tensors that `pick` takes of its result."""

    def __init__(self, model, names, call, pick):
        super().__init__()
        self.model, self.names, self.call, self.pick = model, names, call, pick

    def forward(self, *tensors):
        return self.pick(self.model(**dict(zip(self.names, tensors)), **self.call))


def _without_randomness(model):
    for module in model.modules():
        if isinstance(module, nn.modules.dropout._DropoutNd):
            module.p = 0.0
        if isinstance(module, (nn.LSTM, nn.GRU, nn.RNN, nn.MultiheadAttention)):
            module.dropout = 0.0
        if isinstance(getattr(module, "drop_rate", None), float):
            module.drop_rate = 0.0  # rate of a functional dropout
        if type(module).__name__ in ("StochasticDepth", "DropPath"):
            for name in ("p", "drop_prob"):
                if hasattr(module, name):
                    setattr(module, name, 0.0)


def make(network):
    """The module in training mode: seeded, without dropout, and no parameter at a round number, so that each one counts."""
    torch.manual_seed(0)
    model = network.build()
    _without_randomness(model)
    random = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.is_floating_point():
                parameter.add_(0.02 * torch.randn(parameter.shape, generator=random))
    if network.pick is not None:
        model = Called(model, tuple(network.inputs), network.call, network.pick)
    return model.train()


def make_inputs(network, batch, seed=2, other_length=False):
    random = torch.Generator().manual_seed(seed)
    inputs = network.other_inputs if other_length else network.inputs
    return {name: make_one(batch, random) for name, make_one in inputs.items()}


def free_axes(network):
    """The names of each input's free axes, and of each output's."""
    inputs = {n: {0: "batch", 1: network.lengths[n]} if n in network.lengths else {0: "batch"} for n in network.inputs}
    length = list(network.lengths.values())[-1:]
    return inputs, {0: "batch", **{1: name for name in length}}


def extents(network, inputs):
    """The lengths of these inputs by the names of their axes: model.bind of train.toml."""
    return {axis: inputs[name].shape[1] for name, axis in network.lengths.items()}


def outputs_of(model, inputs):
    result = model(*inputs)
    return result if isinstance(result, (tuple, list)) else (result,)


def class_axis(output):
    return output.dim() - 1 if output.dim() == 3 else 1


def make_labels(network, outputs, seed=3):
    """What each output is compared with: the field's name -> tensor."""
    random = torch.Generator().manual_seed(seed)
    labels = {}
    for i, output in enumerate(outputs):
        if network.loss == "cross_entropy":
            axis = class_axis(output)
            shape = [d for a, d in enumerate(output.shape) if a != axis]
            value = torch.randint(0, output.shape[axis], shape, generator=random)
        elif network.loss == "binary_cross_entropy":
            value = torch.randint(0, 2, output.shape, generator=random).float()
        else:
            value = torch.randn(output.shape, generator=random)
        labels[f"target_{i}"] = value
    return labels


def loss_of(network, outputs, labels):
    """The sum over all outputs, as train.toml has it."""
    total = 0.0
    for output, label in zip(outputs, labels):
        if network.loss == "cross_entropy":
            total = total + nn.functional.cross_entropy(
                output.movedim(class_axis(output), 1), label
            )
        elif network.loss == "binary_cross_entropy":
            total = total + nn.functional.binary_cross_entropy_with_logits(output, label)
        else:
            total = total + nn.functional.mse_loss(output, label)
    return total

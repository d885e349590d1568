"""Networks for peft_test.py, whose names and uses of weights PEFT reads in its own way, and what the export makes of adapters on them."""

import dataclasses

import torch
from torch import nn


@dataclasses.dataclass
class Case:
    """network: a class. inputs: the shape of `x` without samples, or None for ids. parameters: lines of [parameters].

    expected: entries of adapter_config.json. refusal: words of the error instead, of the export or, with `at_train`, of the training.
    """

    network: type
    inputs: tuple | None
    parameters: str
    expected: dict = dataclasses.field(default_factory=dict)
    refusal: tuple = ()
    at_train: bool = False
    strip: str = ""
    inner: str = ""  # the attribute that the adapters are of


class Convolutions(nn.Module):
    """BatchNorm's statistics train together with the adapters, so that its modules are saved whole."""

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(2, 6, 3, padding=1), nn.BatchNorm2d(6), nn.ReLU(), nn.Conv2d(6, 4, 1))
        self.classifier = nn.Linear(4, 5)

    def forward(self, x):
        return self.classifier(self.features(x).mean((2, 3)))


class Signals(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(3, 6, 3, stride=2)
        self.fc = nn.Linear(6, 5)

    def forward(self, x):
        return self.fc(torch.relu(self.conv(x)).mean(2))


class Ends(nn.Module):
    """The path of one module is the end of another's. No two weights are equal, which the newer exporter would make one."""

    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([nn.ModuleDict({"fc1": nn.Linear(8, 8), "norm": nn.LayerNorm(8)})])
        self.fc1, self.norm, self.c_fc, self.fc = nn.Linear(8, 8), nn.LayerNorm(8), nn.Linear(8, 8), nn.Linear(8, 5)
        for norm in (self.norm, self.blocks[0]["norm"]):
            nn.init.normal_(norm.weight, 1, 0.1)
            nn.init.normal_(norm.bias, 0, 0.1)

    def forward(self, x):
        x = self.norm(self.fc1(self.blocks[0]["norm"](torch.tanh(self.blocks[0]["fc1"](x)))))
        return self.fc(torch.relu(self.c_fc(x)))


class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale, self.fc = nn.Parameter(torch.ones(5)), nn.Linear(8, 5)

    def forward(self, x):
        return self.scale * self.fc(x)


class Nested(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.head, self.gain = nn.Linear(8, 8), Head(), nn.Parameter(torch.ones(8))

    def forward(self, x):
        return self.head(self.gain * torch.tanh(self.q(x)))


class Attention(nn.Module):
    """Its out_proj is no module that is called."""

    def __init__(self):
        super().__init__()
        self.attn, self.fc = nn.MultiheadAttention(8, 2, batch_first=True), nn.Linear(8, 5)

    def forward(self, x):
        return self.fc(self.attn(x, x, x, need_weights=False)[0].mean(1))


class Shared(nn.Module):
    """One module that is called twice, and two that have one weight."""

    def __init__(self):
        super().__init__()
        self.twice, self.first, self.second = nn.Linear(8, 8), nn.Linear(8, 8, bias=False), nn.Linear(8, 8, bias=False)
        self.second.weight = self.first.weight
        self.fc = nn.Linear(8, 5)

    def forward(self, x):
        x = self.twice(torch.tanh(self.twice(x)))
        return self.fc(self.second(torch.tanh(self.first(x))))


class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.fc = nn.Embedding(20, 8), nn.Linear(8, 5)

    def forward(self, x):
        return self.fc(torch.tanh(self.words(x)).mean(1))


class Parallel(nn.Module):
    """As DataParallel names a model: all names get `module.`."""

    def __init__(self):
        super().__init__()
        self.module = Ends()

    def forward(self, x):
        return self.module(x)


class Numbers(nn.Sequential):
    """Modules without names: "0", "2"; a path ends in the number of another."""

    def __init__(self):
        super().__init__(nn.Linear(8, 8), nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.ReLU()), nn.Linear(8, 5))


BOTH = 'lora = [ { at = "**.fc1:weight", rank = 2, alpha = 6 }, { at = "fc1:weight", rank = 3, alpha = 3 } ]'
CASES = {
    "conv": Case(Convolutions, (2, 6, 6), 'lora = [ { at = "{features.*,classifier}:weight", rank = 2, alpha = 6 } ]',
                 {"target_modules": ["classifier", "features.0", "features.3"], "modules_to_save": ["features.1"]}),
    "signals": Case(Signals, (3, 9), 'lora = [ { at = "conv:weight", rank = 2, alpha = 6 }, { at = "fc:weight", rank = 4, alpha = 2 } ]',
                    {"rank_pattern": {"fc": 4}, "alpha_pattern": {"fc": 2.0}}),
    "rank_stabilised": Case(Signals, (3, 9), 'lora = [ { at = "{conv,fc}:weight", rank = 3, alpha = 4, rslora = true } ]', {"use_rslora": True}),
    "some_rank_stabilised": Case(Signals, (3, 9), 'lora = [ { at = "conv:weight", rank = 2, alpha = 6 },'
                                 ' { at = "fc:weight", rank = 4, alpha = 2, rslora = true } ]', {"use_rslora": False, "alpha_pattern": {"fc": 4.0}}),
    "dora": Case(Signals, (3, 9), 'lora = [ { at = "{conv,fc}:weight", rank = 3, alpha = 4, dora = true } ]', {"use_dora": True}),
    "some_dora": Case(Signals, (3, 9), 'lora = [ { at = "conv:weight", rank = 2 }, { at = "fc:weight", rank = 2, dora = true } ]', refusal=("use_dora",)),
    "ranks": Case(Ends, (8,), BOTH, {"rank_pattern": {"blocks.0.fc1": 2, "fc1": 3}}),
    "all_linear": Case(Ends, (8,), 'lora = [ { at = "all-linear", rank = 2, alpha = 6 } ]', {"target_modules": ["blocks.0.fc1", "c_fc", "fc1"]}),
    "one_of_two": Case(Ends, (8,), 'lora = [ { at = "fc1:weight", rank = 2, alpha = 6 } ]', {"target_modules": "fc1"}),
    "saved_ends": Case(Ends, (8,), 'lora = [ { at = "c_fc:weight", rank = 2, alpha = 6 } ]\ntrain = [ "norm:weight" ]', {"modules_to_save": ["norm"]}),
    "saved_end_of_adapted": Case(Ends, (8,), 'lora = [ { at = "c_fc:weight", rank = 2 } ]\ntrain = [ "fc" ]', refusal=("not both", "c_fc")),
    "nested": Case(Nested, (8,), 'lora = [ { at = "q:weight", rank = 2, alpha = 6 } ]\ntrain = [ "head:scale", "head.fc:bias" ]', {"modules_to_save": ["head"]}),
    "inside_saved": Case(Nested, (8,), 'lora = [ { at = "head.fc:weight", rank = 2 } ]\ntrain = [ "head:scale" ]', refusal=("not both", "head.fc")),
    "of_the_model": Case(Nested, (8,), 'lora = [ { at = "q:weight", rank = 2 } ]\ntrain = [ "gain" ]', refusal=("gain", "module")),
    "attention": Case(Attention, (4, 8), 'lora = [ { at = "attn.out_proj:weight", rank = 2 } ]', refusal=("attn.out_proj", "do nothing")),
    "attention_saved": Case(Attention, (4, 8), 'lora = [ { at = "fc:weight", rank = 2, alpha = 6 } ]\ntrain = [ "attn.out_proj" ]',
                            {"modules_to_save": ["attn.out_proj"]}),
    "called_twice": Case(Shared, (8,), 'lora = [ { at = "twice:weight", rank = 2, alpha = 6 } ]', {"target_modules": ["twice"]}),
    "one_weight": Case(Shared, (8,), 'lora = [ { at = "first:weight", rank = 2 } ]', refusal=("several modules", "second")),
    "words": Case(Words, None, 'lora = [ { at = "fc:weight", rank = 2, alpha = 6 } ]\ntrain = [ "words" ]', {"modules_to_save": ["words"]}),
    "adapted_words": Case(Words, None, 'lora = [ { at = "words:weight", rank = 2 } ]', refusal=("words", "no product"), at_train=True),
    "dropouts": Case(Ends, (8,), 'lora = [ { at = "c_fc:weight", rank = 2, dropout = 0.1 }, { at = "fc:weight", rank = 2 } ]', refusal=("dropout",)),
    "parallel": Case(Parallel, (8,), BOTH.replace('"fc1', '"module.fc1'), {"rank_pattern": {"module.fc1": 3}}),
    "parallel_strip": Case(Parallel, (8,), 'lora = [ { at = "module.{c_fc,fc}:weight", rank = 2, alpha = 6 } ]',
                           {"target_modules": ["c_fc", "fc"]}, strip="module.", inner="module"),
    "numbers": Case(Numbers, (8,), 'lora = [ { at = "2:weight", rank = 2, alpha = 6 } ]\ntrain = [ "1.0" ]',
                    {"target_modules": "2", "modules_to_save": ["1.0"]}),
}

"""Writes tests/data/notices/: small networks exported by both of PyTorch's exporters, and expected.json.

python tests/scripts/model_notices.py [--keep]   # --keep: only files that are missing

random/NAME.WAY.onnx: modules that draw random numbers in training, with what `module.eval()` gives in float64 (null where
it draws there, too). buffers/NAME.WAY.onnx: modules with buffers, which of them the module registered, and which of its
parameters train. quantized/NAME.onnx: made by onnxruntime's quantization, with the numbers of its weights by type.
batch_norm.onnx: a frozen backbone in inference and a neck in training, with PyTorch's losses.
"""

import contextlib
import io
import json
import logging
import math
import pathlib
import sys
import tempfile
import warnings

import numpy
import onnx
import torch
import torch.nn.functional as F
import torchvision
from torch import nn

FOLDER = pathlib.Path(__file__).parent.parent / "data" / "notices"
KEEP = "--keep" in sys.argv


class InTraining(nn.Module):
    """f in training, x itself in evaluation."""

    def __init__(self, f):
        super().__init__()
        self.f = f

    def forward(self, x):
        return self.f(x) if self.training else x


class Always(InTraining):
    def forward(self, x):
        return self.f(x)


def rows(x):
    return [x.shape[0]] + [1] * (x.ndim - 1)


def stochastic_depth(x, shape, keep=0.8, scaled=True):  # as torchvision and timm have it
    noise = torch.empty(shape, dtype=x.dtype).bernoulli_(keep)
    return x * (noise.div_(keep) if scaled else noise)


def floored(x, keep=0.8):  # as transformers has it
    return x.div(keep) * (keep + torch.rand(rows(x), dtype=x.dtype)).floor_()


def hidden(x, drop=0.2):
    return torch.where(torch.rand_like(x) > drop, x / (1 - drop), torch.zeros_like(x))


def filled(x, drop=0.2):
    return x.masked_fill(torch.rand_like(x) < drop, 0.0) / (1 - drop)


def masked(x, keep=0.8):
    return x * (torch.rand_like(x) < keep).to(x.dtype) / keep


def reparametrized(x):
    return x + torch.randn_like(x) * torch.exp(0.5 * x)


def drawn(x, share=0.3):
    return (torch.rand_like(x) < share).to(x.dtype)


def with_mask(f, mask=drawn):
    """f(x, m) with one mask m, which f may use more than once."""
    return InTraining(lambda x: f(x, mask(x)))


def step_by_step(x, scale=1.0, keep=0.8):  # one mask for all steps, as recurrent layers have it
    m = (torch.rand(x.shape[0], 1, *x.shape[2:]) < keep).to(x.dtype) * scale
    return torch.cat([x[:, i : i + 1] * m for i in range(x.shape[1])], 1)


def blocks(x, drop=0.2, size=3):  # DropBlock of Ghiasi et al. (2018)
    m = (torch.rand(x.shape[0], 1, *x.shape[2:]) < drop / size**2).to(x.dtype)
    m = 1 - F.max_pool2d(m, size, 1, size // 2)
    return x * m * m.numel() / m.sum()


class Token(nn.Module):
    """f of x, a mask, and a token that is learned."""

    def __init__(self, f):
        super().__init__()
        self.token, self.f = nn.Parameter(torch.full((1, 3, 1, 1), 0.5)), f

    def forward(self, x):
        return self.f(x, drawn(x), self.token.expand(x.shape[0], -1, 2, 2)) if self.training else x


RANDOM = {
    "depth_rows": (InTraining(lambda x: stochastic_depth(x, rows(x))), "stochastic depth"),
    "depth_batch": (InTraining(lambda x: stochastic_depth(x, [1] * x.ndim)), "stochastic depth"),
    "depth_unscaled": (InTraining(lambda x: stochastic_depth(x, rows(x), scaled=False)), "stochastic depth"),
    "depth_floor": (InTraining(floored), "stochastic depth"),
    "dropout_where": (InTraining(hidden), "dropout"),
    "dropout_fill": (InTraining(filled), "dropout"),
    "dropout_mask": (InTraining(masked), "dropout"),
    "dropout_bernoulli": (InTraining(lambda x: x * torch.bernoulli(torch.full_like(x, 0.8)) / 0.8), "dropout"),
    "dropout_2d": (nn.Dropout2d(0.2), "dropout of channels"),
    "dropout_alpha": (nn.AlphaDropout(0.2), "alpha dropout"),
    "dropout_alpha_2d": (nn.FeatureAlphaDropout(0.2), "alpha dropout"),
    "noise_added": (InTraining(lambda x: x + 0.1 * torch.randn_like(x)), "noise added"),
    "noise_relative": (InTraining(lambda x: x + 0.1 * x.detach() * torch.randn_like(x)), "noise added"),
    "noise_uniform": (InTraining(lambda x: x + 0.2 * (torch.rand_like(x) - 0.5)), "noise added"),
    "noise_multiplied": (InTraining(lambda x: x * (1 + 0.1 * torch.randn_like(x))), "noise multiplied"),
    "rrelu": (nn.RReLU(), "RReLU"),
    "less_masked": (with_mask(lambda x, m: x - x * m), "dropout"),
    "dropout_less": (with_mask(lambda x, m: (x - x * m) / 0.7), "dropout"),
    "dropout_steps": (InTraining(lambda x: step_by_step(x, 1.25)), "dropout"),
    "mask_steps": (InTraining(step_by_step), "dropout"),
    # One mask chooses between two values: the sum of both is in no evaluation.
    "zoneout": (with_mask(lambda x, m: m * x + (1 - m) * x.tanh()), ""),
    "zoneout_sum": (with_mask(lambda x, m: x + m * (x.tanh() - x)), ""),
    "zoneout_where": (with_mask(lambda x, m: x.masked_fill(m > 0, 0.0) + m * x.tanh()), ""),
    "flipped": (with_mask(lambda x, m: x.flip(-1) * m + x * (1 - m), lambda x: drawn(x[:, :1, :1, :1], 0.5)), ""),
    "either": (with_mask(lambda x, m: (x * m).exp() + (x.tanh() * (1 - m)).exp()), ""),
    "either_scaled": (with_mask(lambda x, m: x * m / 0.3 + x.tanh() * (1 - m) / 0.7), ""),
    "masked_twice": (with_mask(lambda x, m: x * m + x.tanh() * m / 0.3), ""),
    "mask_token": (Token(lambda x, m, token: x * (1 - m) + token * m), ""),
    "token_added": (Token(lambda x, m, token: x + token * m), ""),
    "gumbel": (Always(lambda x: F.gumbel_softmax(x, dim=1)), ""),
    "reparametrized": (Always(reparametrized), ""),
    "drop_block": (InTraining(blocks), ""),
    "drop_block_torchvision": (InTraining(lambda x: torchvision.ops.drop_block2d(x, 0.2, 1)), ""),
    "drawn_gate": (Always(lambda x: x * torch.bernoulli(torch.sigmoid(x))), ""),
}


# Forms that are not known: the means of their numbers give what `module.eval()` does.
BY_MEANS = {"drop_block", "drop_block_torchvision"}


class Around(nn.Module):
    """The draw's place has a name of its own, next to and after layers."""

    def __init__(self, middle):
        super().__init__()
        self.first, self.middle, self.last = nn.Conv2d(3, 3, 1), middle, nn.Conv2d(3, 2, 1)

    def forward(self, x):
        return self.last(x + self.middle(self.first(x)))


def sines(positions, width, interleaved=True):
    rates = torch.exp(torch.arange(0, width, 2) * (-math.log(10000.0) / width))
    angles = torch.arange(positions)[:, None] * rates
    pairs = torch.stack([angles.sin(), angles.cos()], -1)
    return pairs.flatten(1) if interleaved else torch.cat([angles.sin(), angles.cos()], 1)


class Normalized(nn.Module):
    sure, doubtful = ["mean", "std", "pe"], ["temperature"]

    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.tensor([0.5, 0.4, 0.3]).view(1, 3, 1, 1))
        self.register_buffer("std", torch.tensor([0.2, 0.25, 0.3]).view(1, 3, 1, 1))
        self.register_buffer("pe", sines(16, 6)[None])
        self.register_buffer("temperature", torch.tensor(2.0))
        self.position = nn.Parameter(torch.zeros(1, 16, 6))
        self.gamma = nn.Parameter(torch.full((6,), 1e-2))
        self.conv, self.norm, self.fc = nn.Conv2d(3, 6, 3, padding=1), nn.LayerNorm(6), nn.Linear(6, 4)

    def forward(self, x):
        h = self.conv((x - self.mean) / self.std).flatten(2).transpose(1, 2)
        h = self.norm(h + self.pe + self.position) * self.gamma
        return self.fc(h.mean(1)) / self.temperature


class Attention(nn.Module):
    sure, doubtful = ["inv_freq", "bias_mask", "slopes_mask"], ["slopes"]

    def __init__(self):
        super().__init__()
        self.register_buffer("inv_freq", 1.0 / 10000 ** (torch.arange(0, 16, 2) / 16))
        self.register_buffer("bias_mask", torch.full((8, 8), float("-inf")).triu(1))
        self.register_buffer("slopes_mask", torch.tril(torch.ones(8, 8)))
        self.register_buffer("slopes", 2.0 ** -torch.arange(2.0, 10.0, 2.0).view(1, 4, 1, 1))
        self.relative_position_bias = nn.Parameter(torch.randn(4, 8, 8) * 0.02)
        self.logit_scale = nn.Parameter(torch.tensor(2.659))
        self.qkv, self.out = nn.Linear(64, 192, bias=False), nn.Linear(64, 64)

    def forward(self, x):
        q, k, v = self.qkv(x).view(x.shape[0], 8, 3, 4, 16).permute(2, 0, 3, 1, 4).unbind(0)
        angles = torch.arange(8.0)[:, None] * self.inv_freq
        cos, sin = torch.cat([angles.cos()] * 2, 1), torch.cat([angles.sin()] * 2, 1)
        turn = lambda t: t * cos + torch.cat([-t[..., 8:], t[..., :8]], -1) * sin
        scores = turn(q) @ turn(k).transpose(-1, -2) * self.logit_scale + self.relative_position_bias
        scores = (scores - self.slopes) + self.bias_mask
        h = (scores.softmax(-1) * self.slopes_mask) @ v
        return self.out(h.transpose(1, 2).reshape(x.shape[0], 8, 64))


class Filters(nn.Module):
    sure, doubtful = ["edges", "running_mean", "window", "grid_x"], ["blur", "class_weights"]

    def __init__(self):
        super().__init__()
        sobel = torch.tensor([[1.0, 0, -1], [2, 0, -2], [1, 0, -1]])
        self.register_buffer("edges", torch.stack([sobel, sobel.T])[:, None])
        blur = torch.tensor([1.0, 2, 1])
        self.register_buffer("blur", (blur[:, None] * blur / 16)[None, None].repeat(2, 1, 1, 1))
        self.register_buffer("running_mean", torch.randn(2, 1, 1))
        self.register_buffer("window", torch.hann_window(8))
        self.register_buffer("grid_x", torch.arange(8.0).expand(8, 8).clone())
        self.register_buffer("class_weights", torch.tensor([1.0, 2.0, 0.5]))
        self.shift = nn.Parameter(torch.zeros(1, 1, 8, 8))
        self.conv, self.norm, self.fc = nn.Conv2d(2, 4, 3), nn.GroupNorm(2, 4), nn.Linear(4, 3)

    def forward(self, x):
        h = F.conv2d(x - self.shift, self.edges, padding=1) - self.running_mean
        h = F.conv2d(h, self.blur, padding=1, groups=2) * self.window + self.grid_x
        return self.fc(self.norm(self.conv(h)).mean((2, 3))) * self.class_weights


class Spectral(nn.Module):
    """Nothing but what trains, and what looks like a buffer."""

    sure, doubtful = [], ["tau", "mask"]

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(10, 6)
        self.scale, self.bias = nn.Parameter(torch.ones(6)), nn.Parameter(torch.zeros(6))
        self.alpha = nn.Parameter(torch.zeros(1))
        self.tau = nn.Parameter(torch.tensor(0.07))
        self.mask = nn.Parameter(torch.tensor([0.3, 0.1, 0.4, 0.2, 0.9, 0.5]))
        self.gates = nn.Parameter(torch.linspace(0, 1, 6))
        self.prelu, self.fc = nn.PReLU(), nn.Linear(6, 3)

    def forward(self, x):
        h = self.table(x) * self.scale + self.bias
        h = h + self.alpha * self.prelu(h) * self.mask * self.gates
        return self.fc(h.mean(1)) / self.tau


class Frozen(nn.Module):
    """As torchvision, DETR and detectron2 have it: all four are buffers."""

    def __init__(self, scaled_first):
        super().__init__()
        self.scaled_first = scaled_first
        for name in ["weight", "bias", "running_mean", "running_var"]:
            self.register_buffer(name, torch.rand(4) + 0.5)

    def forward(self, x):
        column = lambda t: t.view(1, -1, 1, 1)
        if self.scaled_first:
            scale = self.weight * (self.running_var + 1e-5).rsqrt()
            return x * column(scale) + column(self.bias - self.running_mean * scale)
        scale = column(self.weight) * (column(self.running_var) + 1e-5).rsqrt()
        return x * scale + (column(self.bias) - column(self.running_mean) * scale)


class Affine(nn.Module):
    """Fixed statistics, and a scale and a shift that are learned."""

    def __init__(self):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.rand(4, 1, 1)), nn.Parameter(torch.rand(4, 1, 1))
        self.register_buffer("running_mean", torch.rand(4, 1, 1))
        self.register_buffer("running_var", torch.rand(4, 1, 1) + 0.5)

    def forward(self, x):
        return (x - self.running_mean) / (self.running_var + 1e-5).sqrt() * self.weight + self.bias


class Norms(nn.Module):
    sure = [f"{m}.{n}" for m in ["bn1", "bn2"] for n in ["weight", "bias", "running_mean", "running_var"]]
    sure += ["fixed.running_mean", "fixed.running_var"]
    doubtful = ["fixed.weight", "fixed.bias"]

    def __init__(self):
        super().__init__()
        self.conv, self.bn1, self.bn2, self.fixed = nn.Conv2d(2, 4, 1), Frozen(False), Frozen(True), Affine()
        self.bn3, self.fc = nn.BatchNorm2d(4), nn.Linear(4, 3)

    def forward(self, x):
        return self.fc(self.bn3(self.fixed(self.bn2(self.bn1(self.conv(x))).relu())).mean((2, 3)))


class Tables(nn.Module):
    """Tables that somebody has computed, and learned ones next to them."""

    sure, doubtful = ["pe"], ["distances", "identity", "order"]

    def __init__(self):
        super().__init__()
        places = torch.arange(4)
        self.register_buffer("pe", sines(4, 6) * 1.7)
        self.register_buffer("distances", -(places - places[:, None]).abs() * torch.tensor([0.5, 0.25]).view(2, 1, 1))
        self.register_buffer("identity", torch.eye(6))
        self.register_buffer("order", torch.eye(6)[[3, 1, 0, 2, 5, 4]])
        self.position = nn.Parameter(F.normalize(torch.randn(4, 6), dim=1))
        self.bias = nn.Parameter(torch.randn(2, 4, 4))
        self.square, self.fc = nn.Parameter(torch.eye(6) * 0.5 + 0.01), nn.Linear(6, 3)

    def forward(self, x):
        h = (x + self.pe + self.position) @ self.identity @ self.square @ self.order
        heads = h.view(x.shape[0], 4, 2, 3).transpose(1, 2)
        scores = heads @ heads.transpose(-1, -2) + self.distances + self.bias
        return self.fc((scores.softmax(-1) @ heads).transpose(1, 2).reshape(x.shape[0], 4, 6))


class Moving(nn.Module):
    """What a training step changes without gradients: DINO's center, MoCo's queue, a codebook, statistics."""

    sure, doubtful = [], ["center", "queue", "einsum_queue", "codebook", "running_scale"]

    def __init__(self):
        super().__init__()
        self.register_buffer("center", torch.randn(1, 6))
        self.register_buffer("queue", F.normalize(torch.randn(6, 10), dim=0))
        self.register_buffer("einsum_queue", F.normalize(torch.randn(6, 10), dim=0))
        self.register_buffer("codebook", torch.randn(6, 10))
        self.register_buffer("running_scale", torch.rand(6) + 0.5)
        self.fc, self.prototypes = nn.Linear(6, 6), nn.Parameter(F.normalize(torch.randn(6, 10), dim=0))

    def forward(self, x):
        h = (self.fc(x) - self.center) / 0.07 * self.running_scale
        kept = h @ self.queue + torch.einsum("nc,ck->nk", h, self.einsum_queue) + h @ self.prototypes
        return kept + h.pow(2).sum(1, keepdim=True) - 2 * h @ self.codebook


class Waves(nn.Module):
    """Random frequencies, and sines that are learned."""

    sure, doubtful = [], ["B", "W", "shift", "proj"]

    def __init__(self):
        super().__init__()
        self.register_buffer("B", torch.randn(3, 8) * 10)
        self.register_buffer("W", torch.randn(4))
        self.register_buffer("shift", torch.rand(8) * 6)
        self.register_buffer("proj", torch.randn(8, 3))
        self.omega, self.phase = nn.Parameter(torch.randn(3, 8)), nn.Parameter(torch.rand(8))
        self.first, self.fc = nn.Linear(3, 8), nn.Linear(48, 3)

    def forward(self, x):
        angles, times = 2 * math.pi * x @ self.B, x[:, :1] * self.W[None] * 2 * math.pi
        parts = [angles.sin(), angles.cos(), times.sin(), times.cos()]
        parts += [(F.linear(x, self.proj) + self.shift).cos(), (x @ self.omega + self.phase).sin(), self.first(x).sin()]
        return self.fc(torch.cat(parts, 1))


BUFFERS = {
    "norms": (Norms(), torch.randn(2, 2, 4, 4)),
    "tables": (Tables(), torch.randn(2, 4, 6)),
    "normalized": (Normalized(), torch.randn(2, 3, 4, 4)),
    "attention": (Attention(), torch.randn(2, 8, 64)),
    "filters": (Filters(), torch.randn(2, 1, 8, 8)),
    "moving": (Moving(), torch.randn(2, 6)),
    "waves": (Waves(), torch.randn(2, 3)),
    "learned": (Spectral(), torch.randint(0, 10, (2, 5))),
}


def export(model, args, path, way):
    if KEEP and path.exists():
        return
    options = {"opset_version": 18, "input_names": ["x"], "output_names": ["y"]}
    if way == "dynamo":
        options |= {"dynamo": True, "optimize": False, "external_data": False}
        options["dynamic_shapes"] = {list(model.forward.__code__.co_varnames)[1]: {0: torch.export.Dim("batch")}}
    else:
        options |= {"dynamo": False, "training": torch.onnx.TrainingMode.TRAINING, "do_constant_folding": False}
        options["dynamic_axes"] = {"x": {0: "batch"}, "y": {0: "batch"}}
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        torch.onnx.export(model.train(), args, path, **options)
    proto = onnx.load(path)
    for node in proto.graph.node:
        kept = [p for p in node.metadata_props if p.key == "pkg.torch.onnx.name_scopes"]
        del node.metadata_props[:]
        node.metadata_props.extend(kept)
        node.doc_string = ""
    onnx.save(proto, path)


def numbers(tensor):
    return [float(v) for v in tensor.detach().double().flatten()]


def random_cases(answers):
    x = torch.arange(36.0).view(3, 3, 2, 2) / 18 - 1
    for name, (middle, kind) in RANDOM.items():
        torch.manual_seed(0)
        model = Around(middle)
        for way in ["torchscript", "dynamo"]:
            path = FOLDER / "random" / f"{name}.{way}.onnx"
            try:
                export(model, (x,), path, way)
            except Exception:  # not every exporter takes every module
                path.unlink(missing_ok=True)
                continue
            y = numbers(model.double().eval()(x.double())) if kind or name in BY_MEANS else None
            model.float()
            answers[f"random/{path.name}"] = {"kind": kind, "x": numbers(x), "y": y}


def buffer_cases(answers):
    for name, (model, x) in BUFFERS.items():
        for way in ["torchscript", "dynamo"]:
            path = FOLDER / "buffers" / f"{name}.{way}.onnx"
            export(model, (x,), path, way)
            trains = [n for n, _ in model.named_parameters()]
            buffers = [n for n, _ in model.named_buffers()]
            answers[f"buffers/{path.name}"] = {
                "trains": trains, "buffers": buffers, "sure": model.sure, "doubtful": model.doubtful}


def quantized_cases(answers):
    from onnxruntime.quantization import CalibrationDataReader, QuantType, quantize_dynamic, quantize_static

    class Reader(CalibrationDataReader):
        def __init__(self):
            self.left = [{"x": numpy.linspace(-1, 1, 64, dtype=numpy.float32).reshape(2, 32)}]

        def get_next(self):
            return self.left.pop() if self.left else None

    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(32, 48), nn.ReLU(), nn.Linear(48, 32), nn.ReLU(), nn.Linear(32, 4))
    (FOLDER / "quantized").mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        path = pathlib.Path(scratch) / "float.onnx"
        export(model, (torch.randn(2, 32),), path, "torchscript")
        quantize_dynamic(path, FOLDER / "quantized/dynamic.onnx", weight_type=QuantType.QInt8)
        quantize_dynamic(path, FOLDER / "quantized/unsigned.onnx", weight_type=QuantType.QUInt8, per_channel=True)
        quantize_static(path, FOLDER / "quantized/static.onnx", Reader(), weight_type=QuantType.QInt8)
        first = ["/0/Gemm", "/0/Gemm_MatMul", "/0/Gemm_Add"]
        quantize_dynamic(path, FOLDER / "quantized/last.onnx", weight_type=QuantType.QInt8, nodes_to_exclude=first)
    weights = 32 * 48 + 48 * 32 + 32 * 4
    biases = 48 + 32 + 4
    # Scales of weights are float numbers: one a tensor, or a channel. MatMulInteger has whole numbers as its result,
    # so that of float numbers only those of the last layer get a gradient: 4 biases, and its scales.
    last = 4
    answers["quantized/dynamic.onnx"] = {"quantized": weights, "trained": biases, "float": biases, "type": "INT8"}
    answers["quantized/unsigned.onnx"] = {"quantized": weights, "trained": biases, "float": biases, "type": "UINT8"}
    answers["quantized/static.onnx"] = {"quantized": weights + biases, "trained": 0, "float": 0, "type": "INT32, INT8"}
    answers["quantized/last.onnx"] = {"quantized": weights - 32 * 48, "trained": biases + 32 * 48, "float": biases + 32 * 48, "type": "INT8"}


def batch_norm_case(answers):
    torch.manual_seed(5)
    block = lambda a, b: nn.Sequential(nn.Conv2d(a, b, 1), nn.BatchNorm2d(b), nn.ReLU())

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.backbone, self.neck, self.fc = block(2, 4), block(4, 4), nn.Linear(4, 3)

        def forward(self, x):
            return self.fc(self.neck(self.backbone(x)).mean((2, 3)))

    model = Net()
    with torch.no_grad():
        for m in model.modules():
            if isinstance(m, nn.BatchNorm2d):
                m.running_mean.uniform_(-0.5, 0.5)
                m.running_var.uniform_(0.5, 1.5)
    x, labels = torch.randn(16, 2, 3, 3), torch.randint(0, 3, (16,))
    model.train()
    model.backbone.eval()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        torch.onnx.export(model, (x[:8],), FOLDER / "batch_norm.onnx", dynamo=False, opset_version=18,
                          training=torch.onnx.TrainingMode.PRESERVE, do_constant_folding=False, input_names=["x"],
                          output_names=["y"], dynamic_axes={"x": {0: "batch"}, "y": {0: "batch"}})
    start = {k: v.clone() for k, v in model.state_dict().items()}
    losses = {}
    for mode in ["file", "train", "inference"]:
        model.load_state_dict(start)
        model.double().train(mode != "inference")
        if mode == "file":
            model.backbone.eval()
        model.backbone.requires_grad_(False)
        trained = [p for p in model.parameters() if p.requires_grad]
        optimizer = torch.optim.SGD(trained, lr=0.1)
        losses[mode] = []
        for part in [slice(0, 8), slice(8, 16)]:
            loss = F.cross_entropy(model(x[part].double()), labels[part])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses[mode].append(loss.item())
        model.float()
    answers["batch_norm.onnx"] = {"x": numbers(x), "labels": labels.tolist(), "losses": losses}


def main():
    warnings.filterwarnings("ignore")
    logging.disable(logging.CRITICAL)
    for folder in ["random", "buffers"]:
        (FOLDER / folder).mkdir(parents=True, exist_ok=True)
    answers = {}
    random_cases(answers)
    buffer_cases(answers)
    if KEEP:
        answers |= {k: v for k, v in json.loads((FOLDER / "expected.json").read_text()).items() if k not in answers}
    else:
        quantized_cases(answers)
        batch_norm_case(answers)
    text = ",\n".join(f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in answers.items())
    (FOLDER / "expected.json").write_text("{\n" + text + "\n}\n")


if __name__ == "__main__":
    sys.exit(main())

"""Writes tests/operators/network_expectations.cpp: what PyTorch computes for the cases of the network operators.

    python tests/scripts/operator_expectations.py

Inputs are `pattern`, the same numbers as pattern() of tests/operators/network_cases.h. A name here is the name of an
OperatorCase after its operator: "Conv/grouped". PyTorch 2.15.0 made the committed file.
"""
import itertools
import pathlib
import textwrap

import torch
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)
torch.use_deterministic_algorithms(True)
TARGET = pathlib.Path(__file__).parents[1] / "operators" / "network_expectations.cpp"
results = {}


def pattern(shape, k=0):
    """((37 i + 11 k) mod 101 - 50) / 64 in row-major order: exact in float32."""
    count = 1
    for extent in shape:
        count *= extent
    index = torch.arange(count)
    return ((((37 * index + 11 * k) % 101) - 50) / 64.0).reshape(shape)


def leaf(shape, k=0):
    return pattern(shape, k).requires_grad_()


def keep(name, value):
    results[name] = value.detach().flatten().tolist()


def pad(x, pads, value=0.0):
    """ONNX pads (begins, then ends) to F.pad's order."""
    half = len(pads) // 2
    flat = []
    for axis in reversed(range(half)):
        flat += [pads[axis], pads[axis + half]]
    return F.pad(x, flat, value=value)


def convolutions():
    functions = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
    cases = {
        "line": ((2, 2, 7), (3, 2, 3), [2], [1, 1], [1], 1),
        "asymmetric": ((1, 3, 5, 6), (2, 3, 3, 2), [1, 2], [1, 0, 2, 1], [1, 1], 1),
        "grouped": ((2, 4, 6, 5), (6, 2, 3, 3), [2, 1], [1, 1, 1, 1], [1, 2], 2),
        "depthwise": ((1, 3, 4, 4), (3, 1, 3, 3), [1, 1], [1, 1, 1, 1], [1, 1], 3),
        "volume": ((1, 2, 3, 4, 3), (2, 2, 2, 2, 2), [1, 2, 1], [0, 1, 0, 0, 0, 1], [1, 1, 1], 1),
    }
    for name, (x_shape, w_shape, strides, pads, dilations, group) in cases.items():
        x, w, b = leaf(x_shape), leaf(w_shape, 1), pattern((w_shape[0],), 2)
        conv = functions[len(x_shape) - 2]
        y = conv(pad(x, pads), w, b, stride=strides, dilation=dilations, groups=group)
        keep(f"Conv/{name}", y)
        dy = pattern(y.shape, 3)
        dx, dw = torch.autograd.grad(y, (x, w), dy)
        keep(f"ConvGradInput/{name}", dx)
        keep(f"ConvGradWeight/{name}", dw)
        if name == "grouped":
            residual = pattern(y.shape, 4)
            keep("ConvFused/relu", F.relu(y + residual))
            keep("ConvFused/gelu", F.gelu(y + residual))
            keep("ConvFused/gelu_tanh", F.gelu(y + residual, approximate="tanh"))


def pooling():
    x = leaf((2, 2, 7, 6))
    y = F.max_pool2d(x, (3, 2), (2, 3), padding=(1, 1), ceil_mode=True)
    keep("MaxPool/ceil", y)
    keep("MaxPoolGrad/ceil", torch.autograd.grad(y, x, pattern(y.shape, 3))[0])
    keep("MaxPool/dilated", F.max_pool2d(x, (2, 3), (1, 2), padding=(0, 1), dilation=(3, 1)))
    line = leaf((1, 3, 9))
    y = F.max_pool1d(line, 2, 3)
    keep("MaxPool/line", y)
    keep("MaxPoolGrad/line", torch.autograd.grad(y, line, pattern(y.shape, 3))[0])
    volume = leaf((1, 1, 4, 5, 4))
    keep("MaxPool/volume", F.max_pool3d(volume, 2, 2))
    for include in (False, True):
        name = "include_pad" if include else "exclude_pad"
        y = F.avg_pool2d(x, (3, 2), (2, 3), padding=(1, 1), ceil_mode=True, count_include_pad=include)
        keep(f"AveragePool/{name}", y)
        keep(f"AveragePoolGrad/{name}", torch.autograd.grad(y, x, pattern(y.shape, 3))[0])
    keep("AveragePool/line", F.avg_pool1d(line, 2, 3))
    keep("AveragePool/volume", F.avg_pool3d(volume, 2, 1))


def normalization():
    x, scale, bias = leaf((3, 4, 2, 3)), leaf((4,), 1), leaf((4,), 2)
    mean, var = pattern((4,), 3), pattern((4,), 4).abs() + 0.5
    keep("BatchNormalization/images", F.batch_norm(x, mean, var, scale, bias, False, 0.0, 1e-3))
    y = F.batch_norm(x, None, None, scale, bias, True, 0.0, 1e-3)
    keep("BatchNormalizationTraining/images", y)
    keep("BatchNormalizationGrad/images", torch.autograd.grad(y, x, pattern(y.shape, 3))[0])
    x, scale, bias = leaf((3, 2, 5)), leaf((2, 5), 1), leaf((2, 5), 2)
    keep("LayerNormalization/two_axes", F.layer_norm(x, (2, 5), scale, bias, 1e-3))
    y = F.layer_norm(x, (5,), scale[0], None)
    keep("LayerNormalization/last_axis", y)
    keep("LayerNormalizationGrad/last_axis", torch.autograd.grad(y, x, pattern(y.shape, 3))[0])


def softmaxes():
    for axis, name in ((1, "middle"), (2, "last")):
        x = leaf((2, 5, 3))
        for op, function in (("Softmax", F.softmax), ("LogSoftmax", F.log_softmax)):
            y = function(4 * x, axis)
            keep(f"{op}/{name}", function(x, axis))
            z = function(x, axis)
            keep(f"{op}Grad/{name}", torch.autograd.grad(z, x, pattern(z.shape, 3))[0])


def losses():
    logits, labels = leaf((2, 5, 3)), torch.tensor([[0, 4, 2], [1, 1, 3]])
    weights = pattern((2, 3), 5).abs()
    for smoothing, name in ((0.0, "sharp"), (0.1, "smooth")):
        loss = F.cross_entropy(logits, labels, reduction="none", label_smoothing=smoothing) * weights
        keep(f"SoftmaxCrossEntropy/{name}", loss)
        keep(f"SoftmaxCrossEntropyGrad/{name}", torch.autograd.grad(loss, logits, pattern((2, 3), 3))[0])
        keep(f"SoftmaxCrossEntropyWithGrad/{name}", loss)
    loss = F.nll_loss(logits, labels, reduction="none") * weights
    keep("NegativeLogLikelihood/weighted", loss)
    keep("NegativeLogLikelihoodGrad/weighted", torch.autograd.grad(loss, logits, pattern((2, 3), 3))[0])
    # PyTorch's own class weights and ignored label, element by element.
    class_weights = pattern((5,), 6).abs()
    ones = torch.full((2, 5, 3), -1.0)
    keep("LabelWeights/weighted", F.nll_loss(ones, labels, class_weights, ignore_index=1, reduction="none"))


def spelled(path, blank):
    """What a path of classes spells: runs of one class are one, and blanks are left out."""
    return [c for c, _ in itertools.groupby(path) if c != blank]


def ctc_over_all_paths(x, labels, blank):
    """-log of the sum over every path that spells the labels, one by one; 0 where there is none. F.ctc_loss gives the
    same loss, but its gradient presumes that the probabilities of a frame add up to 1."""
    paths = [path for path in itertools.product(range(x.shape[1]), repeat=len(x)) if spelled(path, blank) == labels]
    sums = [sum(x[t, c] for t, c in enumerate(path)) for path in paths]
    return -torch.logsumexp(torch.stack(sums), 0) if sums else torch.tensor(0.0)


def ctc():
    cases = {
        "labels": ((3, 5, 4), [[1, 2, 3], [2, 2, 0], [3, 0, 0]], [3, 2, 1], [5, 5, 5], 0),
        "lengths": ((3, 5, 4), [[1, 2, 1], [2, 2, 0], [3, 0, 0]], [3, 2, 0], [4, 3, 2], 0),
        "blank": ((2, 4, 3), [[0, 1], [1, 1]], [2, 2], [4, 4], 2),
        "one_frame": ((2, 1, 3), [[1], [2]], [1, 0], [1, 1], 0),
        "zero_infinity": ((3, 2, 3), [[1, 1], [1, 2], [2, 0]], [2, 2, 1], [2, 2, 0], 0),
    }
    for name, (shape, labels, counts, lengths, blank) in cases.items():
        x, dloss = leaf(shape), pattern(shape[:1], 3)
        losses = F.ctc_loss(x.transpose(0, 1), torch.tensor(labels), torch.tensor(lengths), torch.tensor(counts),
                            blank=blank, reduction="none", zero_infinity=True)
        keep(f"CtcLoss/{name}", losses)
        over_paths = torch.stack([ctc_over_all_paths(x[i, :n], row[:count], blank)
                                  for i, (n, row, count) in enumerate(zip(lengths, labels, counts))])
        assert torch.allclose(losses, over_paths), (name, losses, over_paths)
        keep(f"CtcLossGrad/{name}", torch.autograd.grad((dloss * over_paths).sum(), x)[0])


def attention():
    q, k, v = leaf((2, 2, 3, 4)), leaf((2, 2, 5, 4), 1), leaf((2, 2, 5, 3), 2)
    mask = pattern((1, 2, 3, 5), 4)
    hidden = torch.ones(3, 5).tril(diagonal=2) == 0
    for name, bias in (("plain", torch.zeros(3, 5)), ("masked", mask),
                       ("causal", torch.zeros(3, 5).masked_fill(hidden, float("-inf")))):
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=bias, scale=0.5)
        keep(f"Attention/{name}", y)
        keep(f"AttentionGrad/{name}", torch.autograd.grad(y, q, pattern(y.shape, 3))[0])


def recurrent():
    """xw is x itself: the weights of the input are the identity. ONNX's gates are i, o, f, c and z, r, h; PyTorch's i, f, c, o and r, z, h."""
    steps, batch, hidden = 3, 2, 3
    orders = {"lstm": (0, 2, 3, 1), "gru": (1, 0, 2), "rnn": (0,)}

    def run(kind, xw, r, bias_h, h0, c0, is_reverse=False):
        order = orders[kind]
        rows = len(order) * hidden
        module = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU, "rnn": torch.nn.RNN}[kind](rows, hidden)

        def reordered(x, axis):
            return torch.cat([x.narrow(axis, q * hidden, hidden) for q in order], axis)

        bias = torch.zeros(rows)
        if bias_h is not None:
            bias = torch.cat([torch.zeros(rows - hidden), bias_h])
        parameters = {"weight_ih_l0": torch.eye(rows), "weight_hh_l0": reordered(r, 0), "bias_ih_l0": torch.zeros(rows), "bias_hh_l0": bias}
        x = reordered(xw, 2)
        state = (h0[None], c0[None]) if kind == "lstm" else h0[None]
        y = torch.func.functional_call(module, parameters, (x.flip(0) if is_reverse else x, state))[0]
        return y.flip(0) if is_reverse else y

    for name, kind, both in (("lstm", "lstm", False), ("lstm_both", "lstm", True), ("gru", "gru", False), ("rnn", "rnn", False)):
        directions, rows = 2 if both else 1, len(orders[kind]) * hidden
        xw, r = leaf((steps, batch, directions, rows)), leaf((directions, rows, hidden), 1)
        bias_h = pattern((directions, hidden), 2) if kind == "gru" else None
        zeros = torch.zeros(directions, batch, hidden)
        h0 = zeros if both else pattern(zeros.shape, 4)
        c0 = pattern(zeros.shape, 5) if name == "lstm" else zeros
        y = torch.stack([run(kind, xw[:, :, d], r[d], None if bias_h is None else bias_h[d], h0[d], c0[d], d == 1)
                         for d in range(directions)], 1)
        keep(f"RnnScan/{name}", y)
        keep(f"RnnScanGrad/{name}", torch.autograd.grad(y, xw, pattern(y.shape, 3))[0])


def updates():
    """One step at number `step` from given state: what the optimizer does to the parameter."""
    for name, step, settings in (
            ("plain", 3, dict(weight_decay=0.1)),
            ("momentum", 3, dict(momentum=0.9, dampening=0.5)),
            ("nesterov", 3, dict(momentum=0.9, nesterov=True, weight_decay=0.1)),
            ("first_step", 1, dict(momentum=0.9, dampening=0.5))):
        w = torch.nn.Parameter(pattern((3, 5)))
        optimizer = torch.optim.SGD([w], lr=0.25, **settings)
        if step > 1 and "momentum" in settings:
            optimizer.state[w]["momentum_buffer"] = pattern((3, 5), 2)
        w.grad = 0.5 * pattern((3, 5), 1)
        optimizer.step()
        keep(f"SgdUpdate/{name}", w)
    for name, kind, step, settings in (
            ("plain", torch.optim.Adam, 3, dict()),
            ("decayed", torch.optim.Adam, 3, dict(betas=(0.8, 0.95), weight_decay=0.1, eps=1e-3)),
            ("decoupled", torch.optim.AdamW, 7, dict(weight_decay=0.1)),
            ("first_step", torch.optim.Adam, 1, dict())):
        w = torch.nn.Parameter(pattern((3, 5)))
        optimizer = kind([w], lr=0.25, **settings)
        if step > 1:
            optimizer.state[w] = dict(step=torch.tensor(float(step - 1)), exp_avg=pattern((3, 5), 2),
                                      exp_avg_sq=pattern((3, 5), 3).abs())
        w.grad = 0.5 * pattern((3, 5), 1)
        optimizer.step()
        keep(f"AdamUpdate/{name}", w)
    results["GroupedUpdate/sgd"] = results["SgdUpdate/nesterov"]
    results["GroupedUpdate/adam"] = results["AdamUpdate/decoupled"]
    parameters = [torch.nn.Parameter(torch.zeros(4)) for _ in range(2)]
    for i, p in enumerate(parameters):
        p.grad = pattern((4,), i)
    before = parameters[0].grad.clone()
    torch.nn.utils.clip_grad_norm_(parameters, 0.25)
    keep("ClipScale/clips", parameters[0].grad[0] / before[0])
    keep("Accumulate/sum", pattern((3, 5)) + pattern((3, 5), 1))


def main():
    for part in (convolutions, pooling, normalization, softmaxes, losses, attention, recurrent, updates, ctc):
        part()
    lines = ["// Made by tests/scripts/operator_expectations.py with PyTorch; not edited by hand.",
             '#include "tests/operators/network_cases.h"', "", "#include <map>", "", "namespace tandem::testing {",
             "", "std::vector<double> expectation(const std::string& name) {",
             "  static const std::map<std::string, std::vector<double>> expectations{", "// clang-format off"]
    for name, values in results.items():
        numbers = ", ".join(f"{v:.8g}" for v in values)
        lines += textwrap.wrap(f'{{"{name}", {{{numbers}}}}},', 100, break_on_hyphens=False)
    lines += ["// clang-format on", "  };", "  return expectations.at(name);", "}", "", "}  // namespace tandem::testing", ""]
    TARGET.write_text("\n".join(lines))
    print(f"{TARGET}: {len(results)} results, {len(lines)} lines")


if __name__ == "__main__":
    main()

"""Exports models with a batch of one by both exporters, and computes a batch of four in PyTorch.

    python tests/scripts/batch_of_one.py [--keep]   # torch, onnx, onnxscript; --keep: only files that are missing

Writes tests/data/batch_of_one/NAME.EXPORTER.onnx and cases.json. If `outputs` is null, the file does
not show what the model means, so it must be refused.
"""

import json
import logging
import pathlib
import sys
import warnings

import onnx
import torch
import torch.nn.functional as F

warnings.filterwarnings("ignore")
logging.disable(logging.CRITICAL)
HERE = pathlib.Path(__file__).parents[1] / "data" / "batch_of_one"
B, T, C = 4, 5, 6


class Net(torch.nn.Module):
    def __init__(self, of):
        super().__init__()
        generator = torch.Generator().manual_seed(3)

        def values(*shape):
            return torch.randn(*shape, generator=generator)

        self.f = torch.nn.Linear(C, C)
        self.o = torch.nn.Linear(C, 3)
        self.table = torch.nn.Embedding(16, C)
        for p in self.parameters():
            p.data = values(*p.shape) * 0.5
        self.token = torch.nn.Parameter(values(1, 1, C))
        self.register_buffer("numbers", torch.arange(32))
        self.register_buffer("rows", values(32, C))
        self.register_buffer("types", torch.zeros(1, T, dtype=torch.long))
        self.sums, self.means = (torch.nn.EmbeddingBag(16, C, mode=mode, _weight=values(16, C)) for mode in ("sum", "mean"))
        self.norm = torch.nn.BatchNorm1d(C, track_running_stats=False)
        self.steps = torch.nn.LSTM(C, C)
        for p in self.steps.parameters():
            p.data = values(*p.shape) * 0.5
        self.of = of

    def forward(self, *inputs):
        return self.of(self, *inputs)


x = torch.sin(torch.arange(B * T * C).float() * 0.7).reshape(B, T, C).mul(1e6).round().div(1e6)
ids = torch.tensor([[3, 9, 1, 0, 0], [4, 2, 15, 7, 0], [15, 0, 0, 0, 0], [1, 2, 3, 4, 14]])
lengths = torch.tensor([2, 5, 1, 4])


def rows(x):
    return torch.arange(x.shape[0])


def scattered(net, x, places):
    y = net.f(x)[:, :, 0] * 1
    y[rows(x), places] = 0.5
    return y


def pair_logits(net, x):
    z = F.normalize(net.f(x).mean(1), dim=-1)
    return z @ z.T


def sample_by_sample(net, x):
    return torch.stack([net.o(x[b]).mean(0) for b in range(x.shape[0])])


def in_heads(x):
    """[B * 2, T, C / 2] of [B, T, C], as attention of two heads has it."""
    return x.reshape(*x.shape[:2], 2, C // 2).transpose(1, 2).reshape(x.shape[0] * 2, x.shape[1], C // 2)


def relative(net, x):
    """Scores of places, one table for all samples: as DeBERTa repeats it."""
    q = in_heads(net.f(x))
    return q @ in_heads(net.f(net.rows[None, :8])).repeat(q.shape[0] // 2, 1, 1).transpose(1, 2)


def probe(net, x):
    """Pooling by a query that is a parameter: as SigLIP's head."""
    x = net.f(x)
    k = x.transpose(0, 1).reshape(T, -1, C // 2).transpose(0, 1)
    q = net.token.repeat(x.shape[0], 1, 1).transpose(0, 1).reshape(1, -1, C // 2).transpose(0, 1)
    return (torch.softmax(q @ k.transpose(1, 2), -1) @ k).transpose(0, 1).reshape(x.shape[0], C)


def normalized(x, groups, repeated=()):
    """Normalization of [samples, channels, ...] in groups of its own for each sample, by F.batch_norm."""
    scale, shift = (v.repeat(x.shape[0]) for v in repeated) if repeated else (None, None)
    return F.batch_norm(x.reshape(1, x.shape[0] * groups, -1), None, None, scale, shift, training=True).reshape(x.shape)


def matched(net, x):
    """Each sample is convolved with a part of itself, as trackers do."""
    x = x.transpose(1, 2)
    return F.conv1d(x.reshape(1, -1, T), net.f(x[:, :, :2].transpose(1, 2)).transpose(1, 2), groups=x.shape[0]).transpose(0, 1).mean(2)


def modulated(net, x):
    """Weights that differ from sample to sample, as StyleGAN2's."""
    weight = net.f.weight * net.f(x.mean(1))[:, None]
    return F.conv1d(x.transpose(1, 2).reshape(1, -1, T), weight.reshape(-1, C, 1), groups=x.shape[0]).reshape(-1, C, T)


def correlation(net, x):
    z = net.f(x).mean(1)
    return (z.T @ z.abs() / x.shape[0] - torch.eye(C)).pow(2).mean()


def recurrent(net, x):
    h = torch.zeros(x.shape[0], C)
    for t in range(T):
        h = torch.tanh(net.f(x[:, t]) + h @ net.f.weight)
    return h


def reversed_numbers(x):
    return torch.arange(x.shape[0] - 1, -1, -1)


# name: (inputs, function, whether the file shows what is meant)
CASES = {
    # Lookups that number the samples
    "argmax_place": ([x], lambda n, x: n.o(n.f(x)[rows(x), x[:, :, 0].argmax(1)]), True),
    "end_of_text": ([ids], lambda n, i: n.o(n.f(n.table(i))[rows(i), i.argmax(-1)]), True),
    "last_token": ([ids], lambda n, i: n.o(n.table(i))[rows(i), (i == 0).int().argmax(-1) - 1], True),
    "lengths": ([x, lengths], lambda n, x, l: n.o(n.f(x)[rows(x), l - 1]), True),
    "fixed_place": ([x], lambda n, x: n.o(n.f(x)[rows(x), 2]), True),
    "buffer_of_numbers": ([x], lambda n, x: n.o(n.f(x)[n.numbers[: x.shape[0]], x[:, :, 1].argmax(1)]), True),
    "columns": ([x], lambda n, x: n.o(x)[rows(x), :, x[:, :3, 0].argmax(1)], True),
    "grid": ([x], lambda n, x: n.f(x)[rows(x)[:, None], x[:, :, :2].argmax(1)], True),
    "flat": ([x], lambda n, x: n.f(x).reshape(-1, C)[rows(x) * T + x[:, :, 0].argmax(1)], True),
    "written": ([x, lengths], lambda n, x, l: scattered(n, x, l - 1), True),
    "written_at_2": ([x], lambda n, x: scattered(n, x, 2), True),
    # Broadcasting
    "class_token": ([x], lambda n, x: n.f(torch.cat([n.token.expand(x.shape[0], -1, -1), x], 1)), True),
    "positions": ([x], lambda n, x: n.f(x + n.table(torch.arange(T)[None])), True),
    "token_types": ([x], lambda n, x: n.f(x + n.table(n.types)), True),
    "mask": ([x], lambda n, x: torch.softmax(x @ x.transpose(1, 2) + torch.full((x.shape[0], T, T), -9.0).triu(1), -1), True),
    "zeros": ([x], lambda n, x: torch.cat([torch.zeros(x.shape[0], 1, C), n.f(x)], 1), True),
    "gathered": ([x], lambda n, x: torch.gather(n.f(x), 1, x.argsort(1)), True),
    "picked": ([x], lambda n, x: n.f(x).gather(1, (x[:, :, :1].argmax(1, keepdim=True)).expand(-1, -1, C)), True),
    "windows": ([x], lambda n, x: n.f(x.reshape(x.shape[0] * T, C)).reshape(x.shape[0], T, C).mean(1), True),
    "relative": ([x], relative, True),
    "probe": ([x], probe, True),
    "flat_positions": ([x], lambda n, x: n.f(x).reshape(-1, C) + n.rows[:T].repeat(x.shape[0], 1), True),
    "positions_first": ([x], lambda n, x: n.f(x).transpose(0, 1).reshape(-1, C) + n.rows[:T].repeat_interleave(x.shape[0], 0), True),
    "affine": ([x], lambda n, x: F.affine_grid(n.o(x)[:, :2], (x.shape[0], 1, 4, 3), align_corners=False), True),
    "mean_loss": ([x], lambda n, x: 0.5 * n.f(x).pow(2).mean(), True),
    "chunks": ([x], lambda n, x: torch.cat([n.f(p).mean(1) for p in x.chunk(x.shape[0])]), True),
    "quotient": ([x], lambda n, x: -0.5 * n.f(x).pow(2).sum() / n.f(x).abs().sum().clamp(min=1), True),
    "all_from_the_first": ([x], lambda n, x: n.f(x) + n.f(x)[0:], True),
    "mean_of_samples": ([x], lambda n, x: n.f(x) + n.f(x).mean(0, keepdim=True), True),
    "largest_of_samples": ([x], lambda n, x: n.f(x) - x.amax(0, keepdim=True), True),
    "reversed_samples": ([x], lambda n, x: n.f(x) + x.flip(0), True),
    "first_place": ([x], lambda n, x: n.f(x) + n.f(x)[:, 0:1], True),
    "all_samples": ([x], lambda n, x: n.o(n.f(x)[rows(x)]), False),
    # Samples together
    "module_norm": ([x], lambda n, x: n.norm(n.f(x).transpose(1, 2)), True),
    "start_state": ([x], recurrent, True),
    "bag": ([x], lambda n, x: n.f(torch.softmax(n.o(x.mean(1)).T, -1) @ x.mean(1)), True),
    "deviation": ([x], lambda n, x: n.f(x) / (n.f(x).std(0, unbiased=False) + 0.1), True),
    "variance": ([x], lambda n, x: n.f(x).var(0).relu(), True),
    "sorted": ([x], lambda n, x: n.f(x) + x.sort(0)[0], True),
    "order": ([x], lambda n, x: n.f(x) + x.argsort(0).float(), True),
    # What a batch of one does not show
    "sample_by_sample": ([x], sample_by_sample, False),
    "iterated": ([x], lambda n, x: torch.stack([n.o(s).mean(0) for s in x]), False),
    "unbound": ([x], lambda n, x: n.f(x).mean(1) + n.f(x).unbind(0)[0].mean(0), False),
    "bags": ([ids], lambda n, i: n.o(n.sums(i)), False),
    "bags_of_offsets": ([ids], lambda n, i: n.o(n.means(i.reshape(-1), torch.arange(0, i.numel(), T))), False),
    "first_sample": ([x], lambda n, x: n.f(x) + n.f(x[0]), False),
    "last_sample": ([x], lambda n, x: n.f(x) + x[-1:], False),
    "buffer_of_samples": ([x], lambda n, x: n.f(x).mean(1) + n.rows[: x.shape[0]], False),
    "pairs": ([x], lambda n, x: pair_logits(n, x) * (1 - torch.eye(x.shape[0])), False),
    "pair_loss": ([x], lambda n, x: F.cross_entropy(pair_logits(n, x), rows(x)), False),
    "sum_loss": ([x], lambda n, x: -0.5 * n.f(x).pow(2).sum(), False),
    "per_batch": ([x], lambda n, x: n.f(x).pow(2).sum() / x.shape[0], False),
    "per_element": ([x], lambda n, x: n.f(x).pow(2).sum() / (x.shape[0] * T), False),
    "one_hot_of_samples": ([x, lengths * 0], lambda n, x, l: n.f(x).mean(1)[:, :1] * F.one_hot(l, x.shape[0]).float(), False),
    "noise": ([x], lambda n, x: n.f(x) * torch.rand(x.shape[0], 1, 1), False),
    "first_range": ([x], lambda n, x: n.f(x) + n.f(x)[0:1], False),
    "range_of_all": ([x], lambda n, x: n.f(x) + n.f(x)[: x.shape[0]] * 0.5, False),
    "narrowed": ([x], lambda n, x: n.f(x) + x.narrow(0, 0, 1), False),
    "first_of_second_axis": ([x], lambda n, x: n.f(x) + x.transpose(0, 1)[:, 0:1].transpose(0, 1), False),
    "first_rows": ([x], lambda n, x: n.f(x) + n.f(x).reshape(-1, C)[:T].reshape(1, T, C), False),
    "first_part": ([x], lambda n, x: n.f(x) + n.f(x).split(1)[0], False),
    "rolled": ([x], lambda n, x: n.f(x) + x.roll(1, 0), False),
    "kept_axis": ([x], lambda n, x: n.f(x) + x[0].unsqueeze(0), False),
    "split_samples": ([x], lambda n, x: torch.cat([n.f(p) for p in x.split(1)]), True),
    "instance_norm": ([x], lambda n, x: n.f(normalized(x.transpose(1, 2), C).transpose(1, 2)), False),
    "group_norm": ([x], lambda n, x: n.f(normalized(x.transpose(1, 2), 2).transpose(1, 2)), False),
    "layer_norm": ([x], lambda n, x: n.f(normalized(x, T)), False),
    "repeated_norm": ([x], lambda n, x: normalized(x.transpose(1, 2), C, (n.f.bias, n.f.weight[0])), False),
    "matched": ([x], matched, False),
    "modulated": ([x], modulated, False),
    "correlation": ([x], correlation, False),
    "covariance": ([x], lambda n, x: (n.f(x).mean(1).T @ x.mean(1)) / (x.shape[0] - 1 + 1e-9), False),
    "products": ([x], lambda n, x: (torch.einsum("bti,btj->ij", n.f(x), x) / x.shape[0]).tanh(), False),
    "centred": ([x], lambda n, x: n.f(torch.softmax(x - x.sum(0, keepdim=True) / x.shape[0], -1)), False),
    "selected": ([x], lambda n, x: n.f(x).index_select(0, reversed_numbers(x)), False),
    "mixed": ([x], lambda n, x: n.f(0.7 * x + 0.3 * x[reversed_numbers(x)]), False),
    "shifted": ([x], lambda n, x: n.f(x) - n.f(x)[(rows(x) + 1) % x.shape[0]], False),
    "added_rows": ([x], lambda n, x: torch.zeros_like(x).index_add(0, reversed_numbers(x), n.f(x)), False),
    "numbered_rows": ([x], lambda n, x: n.f(x).mean(1) + n.table(rows(x)), False),
    "one_sequence": ([x], lambda n, x: n.steps(x.reshape(T, x.shape[0], C))[0].reshape(x.shape), False),
    "written_rows": ([x, lengths], lambda n, x, l: torch.zeros(x.shape[0], T).index_put((rows(x), l - 1), n.f(x)[:, 0, 0]), False),
}

# PyTorch's value or a refusal: a list of parts as long as the file's batch, indices for each element, samples behind places.
EITHER = {"chunks", "split_samples", "written_at_2", "positions_first", "variance", "sorted", "order"}
# The newer exporter folds these into one row, leaves the Slice out, or writes labels == 0: fine models have that, too.
FOLDED = {"buffer_of_samples", "last_sample", "one_hot_of_samples", "first_range", "range_of_all", "narrowed",
          "first_of_second_axis", "first_rows", "repeated_norm", "added_rows", "numbered_rows"}
# The older exporter keeps a Reshape, which is refused in other words.
WITHOUT_RESHAPE = {"modulated"}
# Without its optimizer ("plain") these Slices and lists of parts stay.
PLAIN = {"first_range", "range_of_all", "narrowed", "first_rows", "first_part", "rolled", "kept_axis",
         "all_from_the_first", "first_place", "split_samples"}


def main():
    HERE.mkdir(exist_ok=True)
    cases = []
    for name, (inputs, of, is_shown) in CASES.items():
        net = Net(of).eval()
        ones = tuple(v[:1].clone() for v in inputs)
        for exporter in ("script", "dynamo", "plain"):
            if (exporter == "script" and name in WITHOUT_RESHAPE) or (exporter == "dynamo" and name in FOLDED) or (exporter == "plain" and name not in PLAIN):
                continue
            path = HERE / f"{name}.{exporter}.onnx"
            names = [f"in{i}" for i in range(len(inputs))]
            newer = {"verbose": False, "external_data": False, "optimize": exporter == "dynamo"}
            more = {"do_constant_folding": False} if exporter == "script" else newer
            try:
                if "--keep" not in sys.argv or not path.exists():
                    torch.onnx.export(net, ones, path, dynamo=exporter != "script", opset_version=20,
                                      input_names=names, output_names=["y"], **more)
            except Exception as error:
                print(f"{path.name}: not exported: {str(error).splitlines()[0][:90]}")
                path.unlink(missing_ok=True)
                continue
            model = onnx.load(path)
            model.ClearField("metadata_props")
            model.graph.ClearField("value_info")
            for node in model.graph.node:
                node.ClearField("metadata_props")
                node.ClearField("doc_string")
            onnx.save(model, path)
            with torch.no_grad():
                y = net(*[v.clone() for v in inputs])
            cases.append({
                "file": path.name,
                "inputs": [{"name": k, "shape": list(v.shape), "type": "float32" if v.is_floating_point() else "int64", "values": [round(e, 6) if v.is_floating_point() else e for e in v.flatten().tolist()]} for k, v in zip(names, inputs) if is_shown],
                "may_refuse": name in EITHER,
                "outputs": {"shape": list(y.shape), "values": [float(f"{e:.7g}") for e in y.flatten().tolist()]} if is_shown else None,
            })
    (HERE / "cases.json").write_text("[\n" + ",\n".join(json.dumps(c) for c in cases) + "\n]\n")


main()

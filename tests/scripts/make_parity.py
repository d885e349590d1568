"""Writes the parity fixtures: ONNX files by both exporters, 20 batches, and the losses of PyTorch's training on them.

    python tests/scripts/make_parity.py [--to tests/data/parity] [--only NAME] [--full]

For each network: NAME.json, NAME_batches.npz, NAME_torchscript.onnx, NAME_dynamo.onnx, and for some NAME_loss_torchscript.onnx,
NAME_loss_dynamo.onnx, whose graphs end in the scalar loss and take the labels as an input. --full writes the networks of models/ at
full size instead (large files, not committed). tests/data/README.md describes the format.
"""

import argparse
import json
import pathlib
import sys

import numpy as np
import onnx
import torch
import torch.nn.functional as F

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "models"))
from export import export  # noqa: E402
from parity_networks import FULL, NARROW, OPTIMIZER_NAMES, WithLoss  # noqa: E402

STEPS = 20
SCALE, OFFSET = 1 / 64, -2.0  # image value = byte * SCALE + OFFSET, exact in float32
OPTIMIZERS = {
    "sgd": dict(kind="sgd"),
    "sgd_momentum": dict(kind="sgd", momentum=0.9),
    "sgd_nesterov": dict(kind="sgd", momentum=0.9, nesterov=True, weight_decay=0.01),
    "adam": dict(kind="adam"),
    "adamw": dict(kind="adamw", weight_decay=0.05),
}
KINDS = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW}
# Training must move a loss by this much (relative), so that agreement says something about the gradients.
MOVED = 0.02


def perturb(model, gain, generator):
    """Gives constant tensors (zero biases, unit scales) distinct values, so that no two initializers are equal.

    gain: factor on matrices and filters; above 1 where PyTorch's initial values let the signal fade.
    """
    with torch.no_grad():
        for tensor in model.parameters():
            if tensor.dim() > 1:
                tensor *= gain
        for tensor in [*model.parameters(), *model.buffers()]:
            if tensor.is_floating_point() and tensor.numel() > 1 and tensor.min() == tensor.max():
                tensor += 0.2 * torch.rand(tensor.shape, generator=generator)


def batches(case):
    """Seeded feeds of STEPS batches: {feed: [STEPS * B, ...], "labels": …}; labels can be learned from the inputs."""
    random = np.random.default_rng(11)
    samples = STEPS * case.batch
    if case.feed == "image":
        # Two grey values, drawn with a chance that a pattern of the class gives: learnable, without ties in max pooling (as
        # flat areas would have), and small when compressed.
        labels = random.integers(0, case.classes, samples)
        chance = random.choice((0.2, 0.8), (case.classes, *case.shape))
        images = np.where(random.random((samples, *case.shape)) < chance[labels], 192, 64).astype(
            np.uint8
        )
        return {"image": images, "labels": labels}
    length = case.shape[0]
    if case.name in ("encoder", "lstm"):  # the class is the most frequent residue of the tokens
        tokens = random.integers(0, 50, (samples, length))
        counts = np.stack([(tokens % case.classes == c).sum(1) for c in range(case.classes)], 1)
        return {"tokens": tokens, "labels": counts.argmax(1).astype(np.int64)}
    sequence = random.integers(0, case.classes, (samples, length + 1))
    for t in range(
        length
    ):  # a noisy chain: the next token is (3 * token + 7) mod classes in 7 of 10 cases
        follow = random.random(samples) < 0.7
        sequence[follow, t + 1] = (3 * sequence[follow, t] + 7) % case.classes
    feeds = {"tokens": sequence[:, :-1].copy(), "labels": sequence[:, 1:].copy()}
    if case.lengths:
        feeds["lengths"] = random.integers(1, length + 1, samples)
    return feeds


def train(case, state, feeds, optimizer, dtype):
    """The STEPS losses of PyTorch's training and the trained model, from the parameters `state`."""
    model = case.build()
    model.load_state_dict(state)
    model.to(dtype).train()
    options = {k: v for k, v in optimizer.items() if k != "kind"}
    step = KINDS[optimizer["kind"]](model.parameters(), **options)
    losses = []
    for i in range(STEPS):
        part = slice(i * case.batch, (i + 1) * case.batch)
        x = torch.from_numpy(feeds[case.feed][part])
        x = x.to(dtype) * SCALE + OFFSET if case.feed == "image" else x
        lengths = [torch.from_numpy(feeds["lengths"][part])] if case.lengths else []
        logits = model(x, *lengths)
        loss = F.cross_entropy(
            logits.flatten(0, -2), torch.from_numpy(feeds["labels"][part]).flatten()
        )
        step.zero_grad()
        loss.backward()
        step.step()
        losses.append(loss.item())
    return losses, model


def relative_difference(a, b):
    return max(abs(x - y) / abs(y) for x, y in zip(a, b))


def slim(path):
    """Keeps of the metadata only the module scopes, so that a committed file stays small."""
    model = onnx.load(str(path))
    for node in model.graph.node:
        kept = [p for p in node.metadata_props if p.key == "pkg.torch.onnx.name_scopes"]
        del node.metadata_props[:]
        node.metadata_props.extend(kept)
    for value in [*model.graph.value_info, *model.graph.input, *model.graph.output]:
        del value.metadata_props[:]
    path.write_bytes(model.SerializeToString())


def export_files(case, model, feeds, folder, committed):
    """Writes the ONNX files; returns {variant: {exporter: file name}}."""
    x = torch.from_numpy(feeds[case.feed][:2])
    x = x.float() * SCALE + OFFSET if case.feed == "image" else x
    labels = torch.from_numpy(feeds["labels"][:2])
    lengths = {"lengths": torch.from_numpy(feeds["lengths"][:2])} if case.lengths else {}
    variants = [("logits", model, (x, *lengths.values()), (case.feed, *lengths))]
    if case.loss_in_graph:
        variants.append(("loss", WithLoss(model), (x, labels), (case.feed, "labels")))
    files = {}
    for output, module, inputs, names in variants:
        for exporter in case.exporters:
            name = (
                f"{case.name}_{exporter}.onnx"
                if output == "logits"
                else f"{case.name}_loss_{exporter}.onnx"
            )
            path = export(
                module, inputs, folder / name, exporter, names, (output,), inline=committed
            )
            if committed:
                slim(path)
            files.setdefault(output, {})[exporter] = name
    return files


def checksums(model):
    """{parameter: [sum, sum of squares]} in double; a tied parameter once."""
    return {
        n: [p.double().sum().item(), p.double().square().sum().item()]
        for n, p in model.named_parameters()
    }


def aliases(model):
    """{other name: parameter} of tied parameters: an exporter may keep either name."""
    first = {id(p): n for n, p in model.named_parameters()}
    return {
        n: first[id(p)]
        for n, p in model.named_parameters(remove_duplicate=False)
        if first[id(p)] != n
    }


def write_case(case, folder, committed):
    torch.manual_seed(3)
    model = case.build()
    perturb(model, case.gain, torch.Generator().manual_seed(5))
    state = {k: v.clone() for k, v in model.state_dict().items()}
    feeds = batches(case)
    np.savez_compressed(folder / f"{case.name}_batches.npz", **feeds)
    untrained, _ = train(case, state, feeds, {"kind": "sgd", "lr": 0.0}, torch.float32)
    optimizers, final = [], {}
    rates = dict(zip(OPTIMIZER_NAMES, case.lr))
    for name, options in OPTIMIZERS.items():
        options = {**options, "lr": rates[name]}
        losses, trained = train(case, state, feeds, options, torch.float32)
        exact, _ = train(case, state, feeds, options, torch.float64)
        difference, moved = relative_difference(losses, exact), relative_difference(
            losses, untrained
        )
        print(
            f"{case.name:14s} {name:13s} lr {options['lr']:<7g} loss {losses[0]:.4f} -> {losses[-1]:.4f} "
            f"float64 differs by {difference:.1e}, training moves the loss by {moved:.1e}",
            flush=True,
        )
        assert (
            difference < case.stable and moved > MOVED and min(losses) > 0.05
        ), "choose another learning rate"
        optimizers.append(
            {
                "name": name,
                **options,
                "losses": losses,
                "float64_difference": float(f"{difference:.1e}"),
            }
        )
        if name in ("sgd", "adamw"):
            final[name] = checksums(trained)
    image = case.feed == "image"
    feed = {"dtype": "float32" if image else "int64", "shape": [case.batch, *case.shape]}
    if image:
        feed.update(stored="uint8", scale=SCALE, offset=OFFSET)
    others = {n: {"dtype": "int64", "shape": list(feeds[n][: case.batch].shape)} for n in ("labels", "lengths") if n in feeds}
    record = {
        "name": case.name,
        "pytorch": torch.__version__.split("+")[0],
        "steps": STEPS,
        "batch": case.batch,
        "input": case.feed,
        "feeds": {case.feed: feed, **others},
        "loss": {"kind": "softmax_cross_entropy", "logits": "logits", "labels": "labels"},
        "batches": f"{case.name}_batches.npz",
        "files": export_files(case, model, feeds, folder, committed),
        "optimizers": optimizers,
        "final": final,
        "aliases": aliases(model),
    }
    (folder / f"{case.name}.json").write_text(json.dumps(record, indent=1) + "\n")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--to", type=pathlib.Path, default=None)
    parser.add_argument("--only", action="append")
    parser.add_argument("--full", action="store_true")
    options = parser.parse_args()
    folder = options.to or (
        ROOT / "build" / "parity" if options.full else ROOT / "tests" / "data" / "parity"
    )
    folder.mkdir(parents=True, exist_ok=True)
    torch.use_deterministic_algorithms(True)
    for case in FULL if options.full else NARROW:
        if not options.only or case.name in options.only:
            write_case(case, folder, committed=not options.full)


if __name__ == "__main__":
    main()

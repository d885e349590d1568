"""Times one workload of the GPU check in PyTorch on a card: one process is one measurement, printed as JSON lines.

    python bench/peers/gpu_torch.py WORKLOAD [--variant eager|compile|graphs] [--seconds S] [--tf32] [--list]

The models, shapes, precisions and optimizers of `gpu_check times`; tools/gpu_check.sh --torch runs both in turn. Images are channels-last,
16-bit types by autocast (float16 with a gradient scaler), float32 without TF32 unless --tf32 asks for it, as `precision.tf32` does of ours.
Wide & Deep keeps its tables on the host, with sparse gradients and their SGD: PyTorch has neither FTRL nor a lazy Adam for a table of the
host beside a model on the card.
"""

import argparse
import json
import pathlib
import sys
import time

MODELS = pathlib.Path(__file__).resolve().parents[2] / "models"
# name: (folder of models/, batch, precision, optimizer)
WORKLOADS = {
    **{f"mlp_b{b}": ("mlp", b, "float32", "sgd") for b in (32, 64, 1024)},
    "wide_deep_host_tables": ("wide_deep", 16000, "float32", "wide_deep"),
    **{f"gpt_b16_{p}": ("gpt", 16, p, "adamw") for p in ("float32", "bfloat16")},
    **{
        f"{folder}_b256_{p}": (folder, 256, p, "momentum")
        for folder in ("resnet50", "resnet50_224")
        for p in ("bfloat16", "float16")
    },
    "bert_base_b32_bfloat16": ("bert_base", 32, "bfloat16", "adamw"),
}
VARIANTS = ("eager", "compile", "graphs")
CLASSES = {"mlp": 10, "resnet50": 10, "resnet50_224": 1000, "gpt": 65, "bert_base": 30522}


def load(name):
    sys.path.insert(0, str(MODELS))
    import export

    return export.load(name)


def optimizer_of(kind, parameters):
    import torch

    if kind == "adamw":
        return torch.optim.AdamW(parameters, 1e-4, weight_decay=0.01, fused=True, capturable=True)
    return torch.optim.SGD(parameters, 1e-2, momentum=0.9 if kind == "momentum" else 0.0, fused=True)


def whole_step(name, variant, device):
    """Two batches in turn: a function of the step's number, its loss on the card."""
    import torch
    import torch.nn.functional as F

    folder, batch, precision, kind = WORKLOADS[name]
    module = load(folder)
    model = module.build().to(device).train()
    images = folder.startswith("resnet")
    if images:
        model = model.to(memory_format=torch.channels_last)
    batches = []
    for _ in range(2):
        (x,) = module.example(batch)
        x = x.to(device)
        if x.is_floating_point():
            x = x * 2 - 1
        if images:
            x = x.contiguous(memory_format=torch.channels_last)
        shape = x.shape if x.dtype == torch.int64 else (batch,)
        batches.append((x, torch.randint(0, CLASSES[folder], shape, device=device)))
    optimizer = optimizer_of(kind, model.parameters())
    half = precision != "float32"
    scaler = torch.amp.GradScaler(device.type, enabled=precision == "float16")
    call = torch.compile(model) if variant == "compile" else model

    def step(x, labels):
        optimizer.zero_grad(set_to_none=variant != "graphs")
        with torch.autocast(device.type, getattr(torch, precision) if half else torch.bfloat16, enabled=half):
            logits = call(x)
        loss = F.cross_entropy(logits.float().reshape(-1, logits.shape[-1]), labels.reshape(-1))
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        return loss.detach()

    if variant != "graphs":
        return lambda i: step(*batches[i % 2])
    if precision == "float16":
        raise SystemExit(skip(name, variant, "a step with a gradient scaler waits for the host: it cannot be captured whole"))
    x, labels = batches[0][0].clone(), batches[0][1].clone()
    aside = torch.cuda.Stream()
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        for _ in range(3):
            step(x, labels)
    torch.cuda.current_stream().wait_stream(aside)
    graph = torch.cuda.CUDAGraph()
    optimizer.zero_grad(set_to_none=False)
    with torch.cuda.graph(graph):
        loss = step(x, labels)

    def replay(i):
        x.copy_(batches[i % 2][0])
        labels.copy_(batches[i % 2][1])
        graph.replay()
        return loss

    return replay


def wide_deep_step(variant, device):
    """Tables and their updates on the host, the MLP on the card."""
    import torch
    import torch.nn.functional as F

    if variant != "eager":
        raise SystemExit(skip("wide_deep_host_tables", variant, "tables on the host cut the step"))
    size = load("wide_deep").FULL
    fields, dim, batch = load("wide_deep").FIELDS, size["dim"], 16000
    wide = torch.nn.Embedding(size["rows"], 1, sparse=True)
    deep = torch.nn.Embedding(size["rows"], dim, sparse=True)
    bias = torch.nn.Parameter(torch.zeros(1, device=device))
    widths = (fields * dim, *size["hidden"])
    layers = [m for a, b in zip(widths, size["hidden"]) for m in (torch.nn.Linear(a, b), torch.nn.ReLU())]
    mlp = torch.nn.Sequential(*layers, torch.nn.Linear(widths[-1], 1)).to(device)
    tables = torch.optim.SGD([*wide.parameters(), *deep.parameters()], 1e-2)
    dense = torch.optim.Adam([bias, *mlp.parameters()], 3.5e-4, fused=True)
    batches = [
        (torch.randint(0, size["rows"], (batch, fields)), torch.randint(0, 2, (batch, 1), device=device).float())
        for _ in range(2)
    ]

    def step(i):
        ids, labels = batches[i % 2]
        tables.zero_grad(set_to_none=True)
        dense.zero_grad(set_to_none=True)
        wide_rows = wide(ids).sum(1).to(device)
        deep_rows = deep(ids).flatten(1).to(device)
        loss = F.binary_cross_entropy_with_logits(wide_rows + bias + mlp(deep_rows), labels)
        loss.backward()
        tables.step()
        dense.step()
        return loss.detach()

    return step


def say(**line):
    print(json.dumps(line), flush=True)


def skip(name, variant, why):
    """Says so; the exit code."""
    say(check=f"{name} {variant}", skipped=why)
    say(verdict="skipped", checks=0, failed=0, why=why)
    return 77


def measure(step, seconds, wait):
    """The medians of single steps after warming up, in ms: [p10, median, p90], and how many."""
    for i in range(12):
        step(i)
    wait()
    times, total = [], 0.0
    while len(times) < 30 or (total < seconds and len(times) < 5000):
        start = time.perf_counter()
        step(len(times))
        wait()
        times.append(time.perf_counter() - start)
        total += times[-1]
    times.sort()
    return [1e3 * times[int(q * (len(times) - 1))] for q in (0.1, 0.5, 0.9)], len(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workload", nargs="?", choices=WORKLOADS)
    parser.add_argument("--variant", choices=VARIANTS, default="eager")
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--tf32", action="store_true")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    if options.list or not options.workload:
        print("\n".join(WORKLOADS))
        return 0
    name, variant = options.workload, options.variant
    import torch

    if not torch.cuda.is_available():
        return skip(name, variant, "this PyTorch sees no card")
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = options.tf32
    torch.backends.cudnn.benchmark = True
    device = torch.device("cuda", 0)
    step = wide_deep_step(variant, device) if WORKLOADS[name][3] == "wide_deep" else whole_step(name, variant, device)
    loss = float(step(0))
    (p10, median, p90), count = measure(step, options.seconds, torch.cuda.synchronize)
    say(value=f"{name} torch {variant} step", number=median, unit="ms")
    say(
        note=f"{name} torch {variant}",
        content={
            "step_ms": median,
            "step_ms_p10": p10,
            "step_ms_p90": p90,
            "steps": count,
            "torch": torch.__version__,
            "tf32": options.tf32,
            "first_loss": loss,
            "peak_card_mib": torch.cuda.max_memory_allocated() / 2**20,
        },
    )
    say(check=f"{name} {variant}", ok=True)
    say(verdict="passed", checks=1, failed=0)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Times one workload of the GPU check in PyTorch on a GPU, in one of its variants and both ways of feeding, as JSON lines.

    python bench/peers/gpu_torch.py WORKLOAD [--variant eager|compile|graphs] [--seconds S] [--tf32] [--device cuda|cpu] [--list]

The models, shapes, precisions and optimizers of `gpu_check times`; `tools/gpu_run.sh times` runs both in turn. Batches come from the GPU, which holds
two, and from the loader: a DataLoader of whole page-locked batches, which are copied while the step before computes, by the process
itself or by two workers, whichever is faster. Tandem's batches always come through its loader. Images are channels-last,
16-bit types by autocast (float16 with a gradient scaler), float32 without TF32 unless --tf32 asks for it, like the key `precision.tf32`.
Wide & Deep keeps its tables on the host, with sparse gradients and their SGD: PyTorch has neither FTRL nor a lazy Adam for a table on the
host whose model is on the GPU.
"""

import argparse
import importlib.util
import json
import pathlib
import sys
import time

import gpu_feeding

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


def optimizer_of(kind, parameters, device):
    import torch

    if kind == "adamw":
        return torch.optim.AdamW(parameters, 1e-4, weight_decay=0.01, fused=True, capturable=device.type == "cuda")
    return torch.optim.SGD(parameters, 1e-2, momentum=0.9 if kind == "momentum" else 0.0, fused=True)


def batches_of(name):
    """Two batches on the host: tensors of the model's input and the labels."""
    import torch

    folder, batch, _, _ = WORKLOADS[name]
    module = load(folder)
    batches = []
    for _ in range(2):
        if folder == "wide_deep":
            batches.append((torch.randint(0, module.FULL["rows"], (batch, module.FIELDS)), torch.randint(0, 2, (batch, 1)).float()))
            continue
        (x,) = module.example(batch)
        if x.is_floating_point():
            x = x * 2 - 1
        if folder.startswith("resnet"):
            x = x.contiguous(memory_format=torch.channels_last)
        shape = x.shape if x.dtype == torch.int64 else (batch,)
        batches.append((x, torch.randint(0, CLASSES[folder], shape)))
    return batches


def whole_step(name, variant, device):
    """The step as a function of a batch on the device, its loss there."""
    import torch
    import torch.nn.functional as F

    folder, _, precision, kind = WORKLOADS[name]
    model = load(folder).build().to(device).train()
    if folder.startswith("resnet"):
        model = model.to(memory_format=torch.channels_last)
    optimizer = optimizer_of(kind, model.parameters(), device)
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

    return captured(step, batches_of(name)[0], device) if variant == "graphs" else step


def captured(step, batch, device):
    """The whole step as one CUDA graph: batches are copied into its own."""
    import torch

    own = [x.to(device, copy=True) for x in batch]
    aside = torch.cuda.Stream()
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        for _ in range(3):
            step(*own)
    torch.cuda.current_stream().wait_stream(aside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = step(*own)

    def replay(*given):
        for to, x in zip(own, given):
            to.copy_(x)
        graph.replay()
        return loss

    return replay


def wide_deep_step(device):
    """Tables and their updates on the host, the MLP on the GPU. Ids stay on the host in both ways of feeding."""
    import torch
    import torch.nn.functional as F

    module = load("wide_deep")
    size, fields = module.FULL, module.FIELDS
    dim = size["dim"]
    wide = torch.nn.Embedding(size["rows"], 1, sparse=True)
    deep = torch.nn.Embedding(size["rows"], dim, sparse=True)
    bias = torch.nn.Parameter(torch.zeros(1, device=device))
    widths = (fields * dim, *size["hidden"])
    layers = [m for a, b in zip(widths, size["hidden"]) for m in (torch.nn.Linear(a, b), torch.nn.ReLU())]
    mlp = torch.nn.Sequential(*layers, torch.nn.Linear(widths[-1], 1)).to(device)
    tables = torch.optim.SGD([*wide.parameters(), *deep.parameters()], 1e-2)
    dense = torch.optim.Adam([bias, *mlp.parameters()], 3.5e-4, fused=True)

    def step(ids, labels):
        labels = labels.to(device)
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


def feedings(name, step, device, seconds, wait):
    """(name, function of a step's number, facts) of each way of feeding."""
    batches = batches_of(name)
    if WORKLOADS[name][3] == "wide_deep":  # its ids are for tables of the host: a loader that page-locks them would not help
        yield "the host", lambda i: step(*batches[i % 2]), {}
        host_loader = gpu_feeding.loaded(batches, 0, False)
        yield "loader", lambda _: step(*next(host_loader)), {"workers": 0}
        return
    there = [tuple(x.to(device) for x in batch) for batch in batches]
    yield "the card", lambda i: step(*there[i % 2]), {}
    del there
    runs, times, why = {}, {}, {}
    for workers in (0, 2):
        try:
            runs[workers] = gpu_feeding.fed_by_loader(step, batches, workers, device)
            times[workers] = measure(runs[workers], seconds / 4, wait)[0][1]
        except RuntimeError as error:  # workers need shared memory of the system, which may be small
            why[workers] = str(error).splitlines()[0]
    best = min(times, key=times.get)
    others = {str(workers): times.get(workers, why.get(workers)) for workers in (0, 2) if workers != best}
    yield "loader", runs[best], {"workers": best, "other_workers": others}


def say(**line):
    print(json.dumps(line), flush=True)


def skipped(name, why):
    """Prints the reason as a JSON line, and returns the exit code."""
    say(check=name, skipped=why)
    say(verdict="skipped", checks=0, failed=0, why=why)
    return 77


def impossible(name, variant, device):
    """The reason why PyTorch has no such variant, or None."""
    if WORKLOADS[name][3] == "wide_deep" and variant != "eager":
        return "tables on the host cut the step"
    if variant == "graphs" and device == "cpu":
        return "only GPUs have graphs"
    if variant == "graphs" and WORKLOADS[name][2] == "float16":
        return "a step with a gradient scaler waits for the host: it cannot be captured whole"
    return None


def measure(step, seconds, wait):
    """Single steps after warming up, each waited for, in ms: [p10, median, p90], and how many; and the mean of as many that are not
    waited for but at the end."""
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
    start = time.perf_counter()
    for i in range(len(times)):
        step(i)
    wait()
    streamed = 1e3 * (time.perf_counter() - start) / len(times)
    return [1e3 * times[int(q * (len(times) - 1))] for q in (0.1, 0.5, 0.9)], len(times), streamed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workload", nargs="?", choices=WORKLOADS)
    parser.add_argument("--variant", choices=VARIANTS, default="eager")
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--tf32", action="store_true")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda", help="cpu: to try the script where there is no card")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    if options.list or not options.workload:
        print("\n".join(WORKLOADS))
        return 0
    name, variant = options.workload, options.variant
    label = f"{name} torch {variant}"
    why = impossible(name, variant, options.device)
    if why is None and importlib.util.find_spec("torch") is None:
        why = f"{sys.executable} has no torch"
    if why:
        return skipped(label, why)
    import torch

    cuda = options.device == "cuda"
    if cuda and not torch.cuda.is_available():
        return skipped(label, "this PyTorch sees no card")
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = options.tf32
    torch.backends.cudnn.benchmark = True
    device = torch.device(options.device, 0) if cuda else torch.device("cpu")
    wait = torch.cuda.synchronize if cuda else lambda: None
    step = wide_deep_step(device) if WORKLOADS[name][3] == "wide_deep" else whole_step(name, variant, device)
    for feed, fed, facts in feedings(name, step, device, options.seconds, wait):
        loss = float(fed(0))
        (p10, median, p90), count, streamed = measure(fed, options.seconds, wait)
        say(value=f"{label} from {feed}", number=median, unit="ms")
        content = {"workload": name, "variant": variant, "feed": feed, "step_ms": median, "step_ms_p10": p10, "step_ms_p90": p90}
        content.update(streamed_ms=streamed, steps=count, torch=torch.__version__, tf32=options.tf32, first_loss=loss, **facts)
        if cuda:
            content["peak_card_mib"] = torch.cuda.max_memory_allocated() / 2**20
        say(note=f"{label} from {feed}", content=content)
        say(check=f"{label} from {feed}", ok=True)
    say(verdict="passed", checks=2, failed=0)
    return 0


if __name__ == "__main__":
    sys.exit(main())

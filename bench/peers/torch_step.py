"""Times one training workload in PyTorch (eager, CPU): one process is one measurement, printed as one JSON line.

    python bench/peers/torch_step.py WORKLOAD [--variant NAME] [--threads N] [--seconds S] [--list]

--list prints {workload: [variants]}. run.py measures every variant of a workload and compares with the fastest.
The line: {name, variant, ms, p10, p90, cpu_ms, steps, peak_rss_mib, torch, first_loss}.
"""

import argparse
import json
import os
import pathlib
import resource
import sys
import time

MODELS = pathlib.Path(__file__).resolve().parents[2] / "models"
# variant: channels-last activations and weights / the optimizer's fused implementation
VARIANTS = {
    "mlp_b32": ("default", "fused"),
    "mlp_b256": ("default", "fused"),
    "lenet5_b64": ("default", "fused", "channels_last", "channels_last+fused"),
    "resnet18_b32": ("default", "channels_last", "channels_last+fused"),
    "resnet50_b32": ("default", "channels_last", "channels_last+fused"),
    "gpt_b16": ("default", "fused"),
    "lstm_b32": ("default", "fused"),
    "gru_b32": ("default", "fused"),
    "mobilenet_v2_b32": ("default", "channels_last", "channels_last+fused"),
    "efficientnet_b0_b32": ("default", "channels_last", "channels_last+fused"),
    "unet_b8": ("default", "channels_last", "channels_last+fused"),
    "vit_b16_b4": ("default", "fused"),
    "bert_base_b8": ("default", "fused"),
    "adamw_64mi": ("foreach", "fused", "deepspeed"),
}
# Networks that an optimizer other than SGD trains: its class and learning rate.
ADAM = {
    "gpt": ("AdamW", 1e-3),
    "lstm": ("Adam", 1e-3),
    "gru": ("Adam", 1e-3),
    "vit_b16": ("AdamW", 1e-4),
    "bert_base": ("AdamW", 1e-4),
}
ELEMENTS = 64 << 20
LONG_STEP = 2.0  # seconds from which on three steps are measured, not ten


def training(workload, variant):
    """A function that does one whole step (zero_grad, forward, backward, update) and returns the loss."""
    import torch
    import torch.nn.functional as F

    sys.path.insert(0, str(MODELS))
    from export import load

    name, _, batch = workload.rpartition("_b")
    batch = int(batch)
    torch.manual_seed(0)
    module = load(name)
    model, (x,) = module.build().train(), module.example(batch)
    classes, shape = {
        "gpt": (65, x.shape),
        "bert_base": (30522, x.shape),
        "unet": (4, (batch, *x.shape[2:])),
    }.get(name, (10, (batch,)))
    labels = torch.randint(0, classes, shape)
    if "channels_last" in variant:
        model = model.to(memory_format=torch.channels_last)
        x = x.contiguous(memory_format=torch.channels_last)
    fused = {"fused": True} if "fused" in variant else {}
    if name in ADAM:
        kind, rate = ADAM[name]
        optimizer = getattr(torch.optim, kind)(model.parameters(), rate, **fused)
    else:
        optimizer = torch.optim.SGD(
            model.parameters(), 1e-2, momentum=0.0 if name == "mlp" else 0.9, **fused
        )
    flat = name in ("gpt", "bert_base")

    def step():
        optimizer.zero_grad(set_to_none=True)
        logits = model(x)
        loss = (
            F.cross_entropy(logits.view(-1, classes), labels.view(-1))
            if flat
            else F.cross_entropy(logits, labels)
        )
        loss.backward()
        optimizer.step()
        return loss

    return step


def deepspeed_adam():
    """DeepSpeed's CPUAdam. Its C++ is compiled at first use, by torch and ninja, into the cache."""
    os.environ["DS_ACCELERATOR"] = "cpu"
    ninja = str(pathlib.Path(sys.executable).parent)
    os.environ["PATH"] = os.pathsep.join([ninja, os.environ["PATH"]])
    import logging

    import deepspeed

    deepspeed.utils.logger.setLevel(logging.WARNING)  # what it logs would follow the JSON line
    from deepspeed.ops.adam import DeepSpeedCPUAdam

    return DeepSpeedCPUAdam


def adamw(variant):
    """One AdamW update of a single parameter of 64 Mi elements."""
    import torch

    parameter = torch.nn.Parameter(torch.zeros(ELEMENTS))
    parameter.grad = torch.full((ELEMENTS,), 0.01)
    if variant == "deepspeed":
        optimizer = deepspeed_adam()([parameter], 1e-3, weight_decay=1e-2, adamw_mode=True)
    else:
        optimizer = torch.optim.AdamW([parameter], 1e-3, **{variant: True})

    def step():
        optimizer.step()
        return parameter.detach()[0]

    return step


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("workload", nargs="?", choices=VARIANTS)
    parser.add_argument("--variant", default="default")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument(
        "--seconds", type=float, default=4.0, help="at least this long, and at least 10 steps, or 3 long ones"
    )
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    if options.list or not options.workload:
        print(json.dumps(VARIANTS))
        return
    os.environ["OMP_NUM_THREADS"] = str(options.threads)
    import torch

    torch.set_num_threads(options.threads)
    step = (
        adamw(options.variant)
        if options.workload == "adamw_64mi"
        else training(options.workload, options.variant)
    )
    first = float(step().detach())
    start = time.perf_counter()
    step()
    is_long = time.perf_counter() - start > LONG_STEP
    for _ in range(1 if is_long else 3):
        step()
    times, cpu, total = [], [], 0.0
    least = 3 if is_long else 10
    while len(times) < least or (total < options.seconds and len(times) < 5000):
        start, used = time.perf_counter(), time.process_time()
        step()
        times.append(time.perf_counter() - start)
        cpu.append(time.process_time() - used)
        total += times[-1]
    times.sort()
    cpu.sort()
    at = lambda q, values=times: round(1e3 * values[min(len(values) - 1, int(q * len(values)))], 4)
    print(
        json.dumps(
            {
                "name": options.workload,
                "variant": options.variant,
                "ms": at(0.5),
                "p10": at(0.1),
                "p90": at(0.9),
                "cpu_ms": at(0.5, cpu),
                "steps": len(times),
                "peak_rss_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
                "torch": torch.__version__.split("+")[0],
                "first_loss": round(first, 5),
            }
        )
    )


if __name__ == "__main__":
    main()

"""Times one training workload in PyTorch (eager, CPU): one process is one measurement, printed as one JSON line.

    python bench/peers/torch_step.py WORKLOAD [--variant NAME] [--threads N] [--seconds S] [--list]

--list prints {workload: [variants]}. run.py measures every variant of a workload and compares with the fastest.
The line: {name, variant, ms, p10, p90, steps, peak_rss_mib, torch, first_loss}.
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
    "adamw_64mi": ("foreach", "fused", "deepspeed"),
}
ELEMENTS = 64 << 20


def training(workload, variant):
    """A function that does one whole step (zero_grad, forward, backward, update) and returns the loss."""
    import torch
    import torch.nn.functional as F

    sys.path.insert(0, str(MODELS))
    from export import load

    name, batch = workload.split("_b")
    batch = int(batch)
    torch.manual_seed(0)
    module = load(name)
    model, (x,) = module.build().train(), module.example(batch)
    labels = torch.randint(0, 65, x.shape) if name == "gpt" else torch.randint(0, 10, (batch,))
    if "channels_last" in variant:
        model = model.to(memory_format=torch.channels_last)
        x = x.contiguous(memory_format=torch.channels_last)
    fused = {"fused": True} if "fused" in variant else {}
    if name == "gpt":
        optimizer = torch.optim.AdamW(model.parameters(), 1e-3, **fused)
    else:
        optimizer = torch.optim.SGD(
            model.parameters(), 1e-2, momentum=0.0 if name == "mlp" else 0.9, **fused
        )
    flat = name == "gpt"

    def step():
        optimizer.zero_grad(set_to_none=True)
        logits = model(x)
        loss = (
            F.cross_entropy(logits.view(-1, 65), labels.view(-1))
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
        "--seconds", type=float, default=4.0, help="at least this long, and at least 10 steps"
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
    for _ in range(4):
        step()
    times, total = [], 0.0
    while len(times) < 10 or (total < options.seconds and len(times) < 5000):
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
        total += times[-1]
    times.sort()
    at = lambda q: round(1e3 * times[min(len(times) - 1, int(q * len(times)))], 4)
    print(
        json.dumps(
            {
                "name": options.workload,
                "variant": options.variant,
                "ms": at(0.5),
                "p10": at(0.1),
                "p90": at(0.9),
                "steps": len(times),
                "peak_rss_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
                "torch": torch.__version__.split("+")[0],
                "first_loss": round(first, 5),
            }
        )
    )


if __name__ == "__main__":
    main()

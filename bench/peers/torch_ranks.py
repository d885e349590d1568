"""Times one training workload in PyTorch's DistributedDataParallel over gloo: ranks of this machine share its batch. Prints one JSON line.

    python bench/peers/torch_ranks.py WORKLOAD [--ranks 2] [--variant NAME] [--threads 1] [--seconds S]

The line: {name, variant, ranks, ms, p10, p90, steps, torch, first_loss}; `ms` of a step of all ranks together, as rank 0 sees it.
"""

import argparse
import json
import os
import socket
import sys
import time

import torch_step


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def steps_of(workload, variant, ranks):
    """As torch_step.training, of a rank's share of the batch, with gradients that are averaged over ranks."""
    import torch.nn.parallel

    name, _, batch = workload.rpartition("_b")
    own = f"{name}_b{int(batch) // ranks}"
    # The step is made for the module that `load(name).build()` gives: wrapped here, all else is as for one process.
    sys.path.insert(0, str(torch_step.MODELS))
    import export

    load = export.load

    class Wrapped:
        def __init__(self, module):
            self.module = module
            self.example = module.example

        def build(self):
            return Model(self.module.build())

    class Model:
        """Becomes a DistributedDataParallel once its memory format is known."""

        def __init__(self, model):
            self.model = model

        def train(self):
            self.model.train()
            return self

        def to(self, **how):
            self.model = self.model.to(**how)
            return self

        def parameters(self):
            self.ddp = torch.nn.parallel.DistributedDataParallel(
                self.model, gradient_as_bucket_view=True
            )
            return self.ddp.parameters()

        def __call__(self, x):
            return self.ddp(x)

    export.load = lambda wanted: Wrapped(load(wanted))
    return torch_step.training(own, variant)


def join(rank, port, options):
    """Makes this process one of the ranks."""
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    os.environ["OMP_NUM_THREADS"] = str(options.threads)
    import torch
    import torch.distributed

    torch.set_num_threads(options.threads)
    torch.distributed.init_process_group("gloo", rank=rank, world_size=options.ranks)


def measure(rank, options, step):
    """Times step() on all ranks together and has rank 0 print the line."""
    import torch
    import torch.distributed

    first_loss = float(step())
    for _ in range(3):
        step()
    torch.distributed.barrier()
    start = time.perf_counter()
    step()
    count = torch.tensor([max(10, int(options.seconds / (time.perf_counter() - start)))])
    torch.distributed.broadcast(count, 0)
    times = []
    for _ in range(int(count)):
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()
    if rank > 0:
        return
    times.sort()
    at = lambda q: round(1e3 * times[min(len(times) - 1, int(q * len(times)))], 4)
    line = {
        "name": options.workload,
        "variant": options.variant,
        "ranks": options.ranks,
        "ms": at(0.5),
        "p10": at(0.1),
        "p90": at(0.9),
        "steps": len(times),
        "torch": torch.__version__.split("+")[0],
        "first_loss": round(first_loss, 5),
    }
    print(json.dumps(line))


def start(run, options):
    """run(rank, port, options) on processes of this machine, as many as `options.ranks`."""
    import torch.multiprocessing

    torch.multiprocessing.spawn(run, args=(free_port(), options), nprocs=options.ranks)


def run(rank, port, options):
    join(rank, port, options)
    measure(rank, options, steps_of(options.workload, options.variant, options.ranks))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("workload", choices=torch_step.VARIANTS)
    parser.add_argument("--variant", default="default")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=4.0)
    options = parser.parse_args()
    start(run, options)


if __name__ == "__main__":
    main()

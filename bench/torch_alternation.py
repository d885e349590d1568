#!/usr/bin/env python3
"""Measures steps of a Session and of PyTorch in one process, alternating, compared with each alone.

PYTHONPATH=build/python python3 bench/torch_alternation.py [mlp resnet gpt] [--rounds 7] [--seconds 2] [--ways off on]

The Python needs torch, torchvision and onnx. A round has three series of steps without and with the sharing of cores: ours
alone, PyTorch's alone, and both in turn, in an order that rotates. A series gives the median of its steps. Printed are
the medians over the rounds in ms, the ratio of each side in turn to itself alone, and that of the sums, which is to be
at most 1.05, with its least and greatest round. Wall-clock time: it wants an idle machine; load averages are printed.

--runtime measures instead what sharing takes in the OpenMP of this machine, without PyTorch: a region with one thread
more than there are processors, and for comparison omp_pause_resource_all, which ends all threads.
"""

import argparse
import ctypes
import itertools
import os
import statistics
import time

GOAL = 1.05


def mlp(torch):
    net = torch.nn.Sequential(torch.nn.Linear(512, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 512))
    return net, torch.randn(256, 512), torch.randn(256, 512)


def resnet(torch):
    import torchvision

    return torchvision.models.resnet18(num_classes=10), torch.randn(8, 3, 64, 64), torch.randint(10, (8,))


def layer(torch, width, heads):
    """A Transformer's layer with causal attention; the class needs torch."""

    class Layer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.before, self.after = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
            self.mix, self.out = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
            self.up, self.down = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)

        def forward(self, x):
            batch, length = x.shape[0], x.shape[1]
            parts = self.mix(self.before(x)).chunk(3, -1)
            q, k, v = (p.reshape(batch, length, heads, width // heads).transpose(1, 2) for p in parts)
            scores = q @ k.transpose(-1, -2) * (width // heads) ** -0.5
            later = torch.ones(length, length, dtype=torch.bool).triu(1)
            mixed = scores.masked_fill(later, -1e9).softmax(-1) @ v
            x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
            return x + self.down(torch.nn.functional.gelu(self.up(self.after(x))))

    return Layer()


def gpt(torch, width=192, heads=6, layers=3, words=512, length=64, batch=8):
    class Gpt(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.places = torch.nn.Embedding(words, width), torch.nn.Embedding(length, width)
            self.blocks = torch.nn.Sequential(*(layer(torch, width, heads) for _ in range(layers)))
            self.head = torch.nn.Linear(width, words)

        def forward(self, ids):
            x = self.words(ids) + self.places(torch.arange(length))
            return self.head(self.blocks(x)).transpose(1, 2)

    return Gpt(), torch.randint(words, (batch, length)), torch.randint(words, (batch, length))


NETWORKS = {"mlp": mlp, "resnet": resnet, "gpt": gpt}


def steps_of(name):
    """A step of a Session and one of PyTorch, on the same network and batch."""
    import torch

    import tandem_train as tt

    torch.manual_seed(0)
    net, x, y = NETWORKS[name](torch)
    is_class = y.dtype == torch.int64
    loss = tt.loss.softmax_cross_entropy("y", labels="t") if is_class else tt.loss.mse("y", "t")
    session = tt.from_torch(
        net, x[:2], inputs=["x"], outputs=["y"], batch_size=len(x), loss=loss, optimizer=tt.optim.SGD(lr=1e-4)
    )
    criterion = torch.nn.functional.cross_entropy if is_class else torch.nn.functional.mse_loss
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-4)

    def of_torch():
        optimizer.zero_grad()
        criterion(net(x), y).backward()
        optimizer.step()

    return lambda: session.step(x=x, t=y), of_torch


def series(steps, seconds):
    """The median time of each of the steps, which are taken in turn."""
    taken = [[] for _ in steps]
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(taken[0]) < 5:
        for step, times in zip(steps, taken):
            begin = time.perf_counter()
            step()
            times.append(time.perf_counter() - begin)
    return [1e3 * statistics.median(times) for times in taken]


def measured(name, ways, rounds, seconds):
    """By way: a list of (ours alone, theirs alone, ours in turn, theirs in turn) in ms, one for each round."""
    from tandem_train import _tandem

    ours, theirs = steps_of(name)
    kinds = {"ours": [ours], "theirs": [theirs], "both": [ours, theirs]}
    orders = itertools.cycle(itertools.permutations(kinds))
    for steps in kinds.values():
        series(steps, 0.5)
    found = {way: [] for way in ways}
    for number in range(rounds):
        order = next(orders)
        for way in ways[number % len(ways) :] + ways[: number % len(ways)]:
            _tandem.set_core_sharing(way == "on")
            times = {kind: series(kinds[kind], seconds) for kind in order}
            found[way].append((*times["ours"], *times["theirs"], *times["both"]))
    return found


def report(name, way, rows):
    ours, theirs, ours_in_turn, theirs_in_turn = (statistics.median(column) for column in zip(*rows))
    sums = [(row[2] + row[3]) / (row[0] + row[1]) for row in rows]
    ratio = statistics.median(sums)
    print(
        f"{name:<7} {way:<6} alone {ours:8.2f} + {theirs:8.2f} ms   in turn {ours_in_turn:8.2f} + {theirs_in_turn:8.2f} ms   "
        f"ours x{statistics.median([r[2] / r[0] for r in rows]):.3f} theirs x{statistics.median([r[3] / r[1] for r in rows]):.3f} "
        f"both x{ratio:.3f} ({min(sums):.3f} to {max(sums):.3f}) {'ok' if ratio <= GOAL else 'ABOVE'} {GOAL}",
        flush=True,
    )


def runtime(path, count=200):
    """Microseconds of regions, of one with an extra thread, and of omp_pause_resource_all."""
    openmp, libc = ctypes.CDLL(path), ctypes.CDLL(None)
    work = ctypes.cast(libc.getppid, ctypes.c_void_p)
    threads = openmp.omp_get_num_procs()

    def region(size):
        openmp.GOMP_parallel(work, None, size, 0)

    def timed(*calls):
        begin = time.perf_counter()
        for call in calls:
            call()
        return 1e6 * (time.perf_counter() - begin)

    def median_of(before, *calls, wait=0.0):
        taken = []
        for _ in range(count):
            before()
            time.sleep(wait)
            taken.append(timed(*calls))
        return f"{statistics.median(taken):8.1f} us"

    print(f"{threads} threads of {path}")
    print("a region after another            ", median_of(lambda: region(threads), lambda: region(threads)))
    print("a region after 30 ms, all asleep  ", median_of(lambda: region(threads), lambda: region(threads), wait=0.03))
    print("one thread more                   ", median_of(lambda: region(threads), lambda: region(threads + 1)))
    after = lambda: (region(threads), region(threads + 1))  # noqa: E731
    print("a region after that and 1 ms      ", median_of(after, lambda: region(threads), wait=0.001))
    pause = lambda: openmp.omp_pause_resource_all(1)  # noqa: E731
    print("pause                             ", median_of(lambda: region(threads), pause))
    after = lambda: (region(threads), pause())  # noqa: E731
    print("a region after pause and 1 ms     ", median_of(after, lambda: region(threads), wait=0.001))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("networks", nargs="*", default=list(NETWORKS), help=", ".join(NETWORKS))
    parser.add_argument("--ways", nargs="+", choices=["off", "on"], default=["off", "on"])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=2.0, help="of a series of steps")
    parser.add_argument("--runtime", nargs="?", const="libgomp.so.1", metavar="LIBRARY")
    chosen = parser.parse_args()
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors, GOMP_SPINCOUNT {os.environ.get('GOMP_SPINCOUNT')}")
    if chosen.runtime:
        runtime(chosen.runtime)
        return
    for name in chosen.networks:
        for way, rows in measured(name, chosen.ways, chosen.rounds, chosen.seconds).items():
            report(name, way, rows)
    print(f"load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()

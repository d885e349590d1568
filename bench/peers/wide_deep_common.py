"""What the Wide & Deep peers share: sizes, ids, the command line, timing and the JSON line."""

import argparse
import json
import os
import resource
import time

import numpy as np

ROWS, BATCH, FIELDS, DIM = 184968, 16000, 39, 80
WIDTHS = (FIELDS * DIM, 1024, 512, 256, 128)
EXPONENT = 1.05


def ids(kind):
    """int64 [BATCH, FIELDS]; the same for every peer."""
    random = np.random.default_rng(7)
    if kind == "uniform":
        return random.integers(0, ROWS, (BATCH, FIELDS))
    p = 1.0 / np.arange(1, ROWS + 1) ** EXPONENT
    sums = np.cumsum(p / p.sum())
    order = random.permutation(ROWS)
    return order[np.minimum(np.searchsorted(sums, random.random((BATCH, FIELDS))), ROWS - 1)]


def labels():
    return np.random.default_rng(8).integers(0, 2, (BATCH, 1)).astype(np.float32)


def arguments(doc, variants):
    """The parsed command line; None where --list was answered. OMP_NUM_THREADS is set before a library is loaded."""
    parser = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("workload", nargs="?", choices=variants)
    parser.add_argument("--variant", help="default: the first that --list names")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument(
        "--seconds", type=float, default=4.0, help="at least this long, and at least 5 steps"
    )
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    if options.list or not options.workload:
        print(json.dumps(variants))
        return None
    options.variant = options.variant or variants[options.workload][0]
    if options.variant not in variants[options.workload]:
        parser.error(f"{options.workload} has no variant {options.variant}")
    os.environ["OMP_NUM_THREADS"] = str(options.threads)
    return options


class Parts:
    """Wall times of the named parts of a step: parts("look-up", function) runs and times the function."""

    def __init__(self):
        self.times = {}

    def __call__(self, name, function):
        start = time.perf_counter()
        result = function()
        self.times.setdefault(name, []).append(time.perf_counter() - start)
        return result

    def medians(self, warm):
        return {n: round(1e3 * float(np.median(t[warm:])), 3) for n, t in self.times.items()}


def measure(options, step, parts=None, warm=2, **facts):
    """Times step() and prints the line: {name, variant, ms, p10, p90, steps, peak_rss_mib, parts, …}."""
    for _ in range(warm):
        step()
    times, total = [], 0.0
    while len(times) < 5 or (total < options.seconds and len(times) < 5000):
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
        total += times[-1]
    times.sort()
    at = lambda q: round(1e3 * times[min(len(times) - 1, int(q * len(times)))], 4)
    line = {
        "name": options.workload,
        "variant": options.variant,
        "ms": at(0.5),
        "p10": at(0.1),
        "p90": at(0.9),
        "steps": len(times),
        "peak_rss_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        **facts,
    }
    if parts is not None:
        line["parts"] = parts.medians(warm)
    print(json.dumps(line))

#!/usr/bin/env python3
"""Measures Tandem beside PyTorch, alternating processes, and writes docs/bench/DATE-CPU.md. bench/README.md tells how to read it.

python3 bench/run.py [--only WORKLOAD …] [--pairs 7] [--binary build/tandem] [--python PEER_PYTHON] [--to FILE]
"""

import argparse
import datetime
import json
import os
import pathlib
import platform
import re
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "tandem"
PEER = ROOT / "bench" / "peers"
# What glibc needs to hear so that it keeps memory between steps: without it page faults cost PyTorch up to a tenth of a step.
KEEP_MEMORY = {"MALLOC_MMAP_THRESHOLD_": "4294967296", "MALLOC_TRIM_THRESHOLD_": "17179869184"}
# What a step must do: floating-point operations of the matrix products and convolutions (2 per multiply-add, forward and both backward
# products, no input gradient for the first layer), and bytes of parameters and optimizer state that must pass through memory.
WORK = {
    "mlp_b32": (103e6, 0),
    "mlp_b256": (821e6, 0),
    "lenet5_b64": (145e6, 0),
    "resnet18_b32": (7.0e9, 0.22e9),
    "resnet50_b32": (15.9e9, 0.47e9),
    "gpt_b16": (40.5e9, 0),
    "adamw_64mi": (0, 28 * 64 * 2**20),
}
TITLES = {
    "mlp_b32": "MLP 784-512-512-10, batch 32, SGD",
    "mlp_b256": "MLP 784-512-512-10, batch 256, SGD",
    "lenet5_b64": "LeNet-5, batch 64, SGD 0.9",
    "resnet18_b32": "ResNet-18, 3×32×32, batch 32, SGD 0.9",
    "resnet50_b32": "ResNet-50, 3×32×32, batch 32, SGD 0.9",
    "gpt_b16": "GPT 4 layers, width 256, T 128, batch 16, AdamW",
    "adamw_64mi": "AdamW alone, 64 Mi parameters",
}


class Failed(Exception):
    pass


def run_json(command, env=None, timeout=900):
    """The JSON object on the last line that `command` prints."""
    result = subprocess.run(
        list(map(str, command)),
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=timeout,
        env={**os.environ, **(env or {})},
    )
    if result.returncode:
        raise Failed(
            f"exit code {result.returncode}: {(result.stderr.strip().splitlines() or ['no message'])[-1]}"
        )
    text = result.stdout.strip()
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return json.loads(text.splitlines()[-1])


def peer_python(given):
    """The interpreter with PyTorch; makes a virtual environment in the cache where none is named."""
    given = given or os.environ.get("TANDEM_PEER_PYTHON")
    if given:
        return pathlib.Path(given)
    folder, pins = CACHE / "peer-venv", (PEER / "requirements.txt").read_text()
    stamp = folder / "requirements.txt"
    if not stamp.exists() or stamp.read_text() != pins:
        print(f"making {folder} (several GB, minutes)", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        subprocess.run(
            [folder / "bin" / "pip", "install", "--quiet", "-r", PEER / "requirements.txt"],
            check=True,
        )
        stamp.write_text(pins)
    return folder / "bin" / "python"


def models_folder(python):
    """The folder of the exported networks and their synthetic data, written once."""
    folder = pathlib.Path(os.environ.get("TANDEM_MODELS", CACHE / "models"))
    if not (folder / "gpt" / "bench.npz").exists():
        subprocess.run([python, ROOT / "models" / "make_all.py", "--to", folder], check=True)
    return folder


def cpu_name():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor() or "unknown"


class Bench:
    def __init__(self, options):
        self.binary, self.pairs, self.seconds = options.binary, options.pairs, options.seconds
        self.threads = options.threads or len(os.sched_getaffinity(0))
        self.python = peer_python(options.python)
        self.env = {
            "TANDEM_MODELS": str(models_folder(self.python)),
            "OMP_NUM_THREADS": str(self.threads),
        }

    def ours(self, workload):
        if workload == "adamw_64mi":
            command = [self.binary, "bench", "--kernel", "adamw", "--elements", 64 << 20, "--json"]
        else:
            command = [
                self.binary,
                "bench",
                ROOT / "bench" / "workloads" / f"{workload}.toml",
                "--json",
            ]
        line = run_json(command, self.env)
        return {"ms": line["step_ms"], "peak_rss_mib": line["peak_rss_mib"]}

    def peer(self, workload, variant):
        name, keep = variant
        return run_json(
            [
                self.python,
                PEER / "torch_step.py",
                workload,
                "--variant",
                name,
                "--threads",
                self.threads,
                "--seconds",
                self.seconds,
            ],
            {**self.env, **(KEEP_MEMORY if keep else {})},
        )

    def fastest_variant(self, workload, names):
        """The variant (name, memory kept) with the least median of three processes each."""
        rows = {(n, keep): [] for n in names for keep in (False, True)}
        for _ in range(3):
            for variant, times in rows.items():
                times.append(self.peer(workload, variant)["ms"])
        return min(rows, key=lambda v: statistics.median(rows[v]))

    def measure(self, workload, names):
        self.ours(workload)  # fails at once where there is nothing to compare
        variant = self.fastest_variant(workload, names)
        ours, peers = [], []
        for i in range(self.pairs):
            first, second = (ours, peers) if i % 2 == 0 else (peers, ours)
            for rows in (first, second):
                rows.append(self.ours(workload) if rows is ours else self.peer(workload, variant))
        median = lambda rows, key: statistics.median(r[key] for r in rows)
        ratios = [p["ms"] / o["ms"] for o, p in zip(ours, peers)]
        return {
            "workload": workload,
            "variant": variant[0] + (", memory kept" if variant[1] else ""),
            "ours_ms": median(ours, "ms"),
            "peer_ms": median(peers, "ms"),
            "ratio": statistics.median(ratios),
            "ratio_least": min(ratios),
            "ratio_most": max(ratios),
            "ours_mib": median(ours, "peak_rss_mib"),
            "peer_mib": median(peers, "peak_rss_mib"),
            "torch": peers[0]["torch"],
        }


def doctor(binary, env):
    """Machine limits and versions as Tandem reports them; {} where it cannot."""
    try:
        return run_json([binary, "doctor", "--json"], env)
    except (Failed, OSError, ValueError):
        return {}


def find(report, key):
    """The first number named `key` anywhere in a nested report, or None."""
    if isinstance(report, dict):
        if isinstance(report.get(key), (int, float)):
            return report[key]
        report = list(report.values())
    if isinstance(report, list):
        for part in report:
            value = find(part, key)
            if value is not None:
                return value
    return None


def bound_ms(workload, gemm, bandwidth):
    flops, size = WORK[workload]
    if (flops and not gemm) or (size and not bandwidth):
        return None
    return 1e3 * (
        (flops / (gemm * 1e9) if flops else 0) + (size / (bandwidth * 1e9) if size else 0)
    )


def number(value):
    return "—" if value is None else f"{value:.3g}" if value < 1000 else f"{value:.0f}"


def report(rows, missing, bench, limits):
    gemm, bandwidth = find(limits, "gemm_gflops"), find(limits, "bandwidth_gb_s")
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True
    ).stdout.strip()
    lines = [
        f"# Tandem beside PyTorch, {datetime.date.today()}, {cpu_name()}",
        "",
        f"- Machine: {cpu_name()}, {bench.threads} threads, {os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') / 2**30:.0f} GiB, "
        f"{platform.system()} {platform.release()}.",
        f"- Versions: Tandem {commit or 'without commit'}; PyTorch {rows[0]['torch'] if rows else '—'}, eager, CPU; Python {platform.python_version()}.",
        f"- Protocol: {bench.pairs} alternating pairs of processes; each process reports the median of its steps after warm-up. The peer runs in the "
        "fastest of its variants (layout, fused optimizer, glibc told to keep memory), chosen by three processes of each just before.",
        "- Ratio: peer time ÷ Tandem's time, median over the pairs (least–most). Memory: peak of the whole process.",
        f"- Machine's limits, measured by `tandem doctor`: matrix products {number(gemm)} GFLOP/s, memory {number(bandwidth)} GB/s. "
        "Bound: the step's products and state traffic at these rates, with nothing else.",
        f"- Load average at the end: {os.getloadavg()[0]:.1f} (1 min).",
        "",
        "| workload | Tandem ms | PyTorch ms | ratio | Tandem MiB | PyTorch MiB | bound ms | Tandem ÷ bound | PyTorch variant |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for r in rows:
        bound = bound_ms(r["workload"], gemm, bandwidth)
        lines.append(
            f"| {TITLES[r['workload']]} | {number(r['ours_ms'])} | {number(r['peer_ms'])} | **{r['ratio']:.2f}** "
            f"({r['ratio_least']:.2f}–{r['ratio_most']:.2f}) | {r['ours_mib']:.0f} | {r['peer_mib']:.0f} | {number(bound)} | "
            f"{number(r['ours_ms'] / bound if bound else None)} | {r['variant']} |"
        )
    if missing:
        lines += ["", "Missing rows:", ""] + [f"- {TITLES[w]}: {why}" for w, why in missing]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", action="append", choices=list(WORK))
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument(
        "--seconds", type=float, default=4.0, help="steps of one peer process, at least 10 of them"
    )
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--binary", type=pathlib.Path, default=ROOT / "build" / "tandem")
    parser.add_argument(
        "--python", type=pathlib.Path, help="an interpreter that has bench/peers/requirements.txt"
    )
    parser.add_argument("--to", type=pathlib.Path)
    options = parser.parse_args()
    bench = Bench(options)
    variants = run_json([bench.python, PEER / "torch_step.py", "--list"])
    rows, missing = [], []
    for workload in options.only or WORK:
        try:
            rows.append(bench.measure(workload, variants[workload]))
            r = rows[-1]
            print(
                f"{workload:13s} {r['ours_ms']:9.3f} ms, peer {r['peer_ms']:9.3f} ms ({r['variant']}), ratio {r['ratio']:.2f}, "
                f"memory {r['ours_mib']:.0f} / {r['peer_mib']:.0f} MiB",
                flush=True,
            )
        except (Failed, OSError, KeyError, ValueError, subprocess.TimeoutExpired) as error:
            missing.append((workload, f"{type(error).__name__}: {error}"))
            print(f"{workload:13s} not measured: {missing[-1][1]}", flush=True)
    slug = re.sub(
        r"[^a-z0-9]+", "-", re.sub(r"\((r|tm)\)|cpu|processor|@.*", "", cpu_name().lower())
    ).strip("-")
    path = options.to or ROOT / "docs" / "bench" / f"{datetime.date.today()}-{slug}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(report(rows, missing, bench, doctor(options.binary, bench.env)))
    print(path)
    sys.exit(1 if missing else 0)


if __name__ == "__main__":
    main()

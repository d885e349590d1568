"""Composes the report of bench/run.py from its saved measurements."""

import datetime
import pathlib
import re
import statistics

ROOT = pathlib.Path(__file__).resolve().parents[1]
ADAMW_ELEMENTS = 64 << 20
# What a step must do: floating-point operations of the matrix products and convolutions (2 per multiply-add, forward and both backward
# products, no input gradient for the first layer), and bytes of parameters, gradients and optimizer state that must pass through memory
# (20 a parameter with momentum, 28 with AdamW; 0 where they stay in the caches).
WORK = {
    "mlp_b32": (103e6, 0),
    "mlp_b256": (821e6, 0),
    "lenet5_b64": (145e6, 0),
    "resnet18_b32": (7.0e9, 0.22e9),
    "resnet50_b32": (15.9e9, 0.47e9),
    "gpt_b16": (40.5e9, 0.09e9),
    "lstm_b32": (2.31e9, 0),
    "gru_b32": (1.73e9, 0),
    "mobilenet_v2_b32": (4.6e9, 0.045e9),
    "efficientnet_b0_b32": (6.1e9, 0.08e9),
    "unet_b8": (29.0e9, 0.039e9),
    "vit_b16_b4": (424e9, 2.4e9),
    "bert_base_b8": (687e9, 3.7e9),
    "adamw_64mi": (0, 28 * ADAMW_ELEMENTS),
}
TITLES = {
    "mlp_b32": "MLP 784-512-512-10, batch 32, SGD",
    "mlp_b256": "MLP 784-512-512-10, batch 256, SGD",
    "lenet5_b64": "LeNet-5, batch 64, SGD 0.9",
    "resnet18_b32": "ResNet-18, 3×32×32, batch 32, SGD 0.9",
    "resnet50_b32": "ResNet-50, 3×32×32, batch 32, SGD 0.9",
    "gpt_b16": "GPT 4 layers, width 256, T 128, batch 16, AdamW",
    "lstm_b32": "LSTM, 2 layers of 128, T 50, batch 32, Adam",
    "gru_b32": "GRU, 2 layers of 128, T 50, batch 32, Adam",
    "mobilenet_v2_b32": "MobileNet-V2, 3×64×64, batch 32, SGD 0.9",
    "efficientnet_b0_b32": "EfficientNet-B0, 3×64×64, batch 32, SGD 0.9",
    "unet_b8": "U-Net with ConvTranspose and Resize, 3×64×64, batch 8, SGD 0.9",
    "vit_b16_b4": "ViT-B/16, batch 4, AdamW",
    "bert_base_b8": "BERT-base, T 128, batch 8, AdamW",
    "adamw_64mi": "AdamW alone, 64 Mi parameters",
}
ALSO = "executor"  # the key of bench_executor's numbers, and their row for --only
ALSO_TITLE = "Dispatch, fork and join, layouts"


def variant_name(variant):
    name, keep = variant
    return name + (", memory kept" if keep else "")


def number(value):
    return "—" if value is None else f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"


def spread(values, form=number):
    """Median (least–most)."""
    return f"{form(statistics.median(values))} ({form(min(values))}–{form(max(values))})"


def best_rate(row, key):
    return max((limits[key] for limits in row["limits"] if key in limits), default=None)


def bound_ms(workload, row):
    """The time of the step's products and state traffic at the rates measured just before and after the row, or None."""
    flops, size = WORK[workload]
    gemm, bandwidth = best_rate(row, "gemm_gflops"), best_rate(row, "bandwidth_gb_s")
    if (flops and not gemm) or (size and not bandwidth):
        return None
    return (flops / gemm if flops else 0) * 1e-6 + (size / bandwidth if size else 0) * 1e-6


def columns(row):
    """Per pair: our times, the peer's, ratios; and memory of both."""
    pairs = row["pairs"]
    ours, peer = [p["ours"]["ms"] for p in pairs], [p["peer"]["ms"] for p in pairs]
    memory = [statistics.median(p[side]["mib"] for p in pairs) for side in ("ours", "peer")]
    return ours, peer, [b / a for a, b in zip(ours, peer)], memory


def summary(workload, row):
    ours, peer, ratios, memory = columns(row)
    return (
        f"{workload:13s} {spread(ours)} ms, peer {spread(peer)} ms ({variant_name(row['variant'])}), "
        f"ratio {statistics.median(ratios):.2f}, memory {memory[0]:.0f} / {memory[1]:.0f} MiB, {len(ours)} pairs"
    )


def missing(results, pairs):
    """[(title, reason)] for each row that is not measured, or not often enough."""
    result = []
    for workload, title in TITLES.items():
        done = len(results["rows"].get(workload, {}).get("pairs", []))
        if done >= pairs and workload not in results["failed"]:
            continue
        reason = results["failed"].get(workload, "not run" if done == 0 else "not finished")
        result.append((title, reason + (f" ({done} of {pairs} pairs)" if done else "")))
    if ALSO not in results or ALSO in results["failed"]:
        result.append((ALSO_TITLE, results["failed"].get(ALSO, "not run")))
    errors = {
        b["run_name"].removesuffix("/manual_time"): b.get("error_message", "failed")
        for b in results.get(ALSO, {}).get("benchmarks", [])
        if b.get("error_occurred")
    }
    result += list(errors.items())
    return result


def failed_variants(results):
    """[(title, reason)] for each variant of the peer that does not run here; the ratio compares with the fastest of the others."""
    return [
        (f"{TITLES[workload]}, peer's variant {name}", reason)
        for workload, chosen in results["variants"].items()
        for name, reason in chosen.get("failed", {}).items()
    ]


def default_path(results):
    dates = [row["date"] for row in results["rows"].values()]
    cpu = re.sub(r"\((r|tm)\)|cpu|processor|@.*", "", results["machine"]["cpu"].lower())
    slug = re.sub(r"[^a-z0-9]+", "-", cpu).strip("-") or "cpu"
    return ROOT / "docs" / "bench" / f"{max(dates, default=datetime.date.today())}-{slug}.md"


def build_text(build):
    return f"{build['commit']} (binary {build['binary']})"


def conditions(results, rows, pairs):
    """The lines above the table: machine, versions, protocol, disturbances."""
    machine = results["machine"]
    builds = {}
    for workload, row in rows.items():
        builds.setdefault(build_text(row["build"]), []).append(workload)
    if len(builds) <= 1:
        versions = next(iter(builds), "—")
    else:
        versions = "; ".join(f"{build} for {', '.join(names)}" for build, names in builds.items())
    rates = {
        key: [limits[key] for row in rows.values() for limits in row["limits"] if key in limits]
        for key in ("gemm_gflops", "bandwidth_gb_s")
    }
    rate_text = lambda key, unit: f"{spread(rates[key])} {unit}" if rates[key] else "not measured"
    used = [use for row in rows.values() for use in row["cpu"]]
    most = lambda key: f"{max(use[key] for use in used):.2f}" if used else "—"
    torch = sorted({p["peer"]["torch"] for row in rows.values() for p in row["pairs"]})
    return [
        f"- Machine: {machine['cpu']}, {machine['threads']} threads, {machine['memory_gib']} GiB, {machine['system']}.",
        f"- Versions: Tandem {versions}; PyTorch {', '.join(torch) or machine['torch']}, eager, CPU. Measured {days(rows)}.",
        f"- Protocol: {pairs} pairs of processes, alternating which goes first; each process reports the median of its steps after "
        "warm-up. The peer runs in the fastest of its variants (layout, fused optimizer, glibc told to keep memory), chosen by up to "
        "three processes of each.",
        *(
            ["- Clock: processor time of all threads of the process, not the time of day: others used the machine meanwhile."]
            if machine.get("clock") == "processor"
            else []
        ),
        "- Times: median over processes (least–most). Ratio: peer's time ÷ Tandem's, median over pairs (least–most); above 1 Tandem is "
        "faster. Memory: peak of the whole process.",
        "- Bound: the step's matrix products, convolutions and state traffic, nothing else, at the best rates that `tandem doctor` "
        "measured just before and after the row; % of bound: bound ÷ Tandem's time. Above 100 % where convolutions skip taps that fall into "
        "the padding, which the bound counts, or where a row's mix of reads and writes is faster than doctor's.",
        f"- Limits, over all rows: matrix products {rate_text('gemm_gflops', 'GFLOP/s')}, in-place updates "
        f"{rate_text('bandwidth_gb_s', 'GB/s')}.",
        f"- Disturbance, most in any row: other programs {most('others')} cores, other guests of the host {most('stolen')} cores.",
    ]


def days(rows):
    dates = sorted({row["date"] for row in rows.values()})
    return "—" if not dates else dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"


def table(rows):
    lines = [
        "| workload | Tandem ms | PyTorch ms | ratio | Tandem MiB | PyTorch MiB | bound ms | % of bound | pairs | PyTorch variant |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for workload, row in rows.items():
        ours, peer, ratios, memory = columns(row)
        bound = bound_ms(workload, row)
        percent = "—" if bound is None else f"{100 * bound / statistics.median(ours):.0f}"
        ratio = (
            f"**{statistics.median(ratios):.2f}** ({min(ratios):.2f}–{max(ratios):.2f})"
        )
        lines.append(
            f"| {TITLES[workload]} | {spread(ours)} | {spread(peer)} | {ratio} | {memory[0]:.0f} | {memory[1]:.0f} | "
            f"{number(bound)} | {percent} | {len(ours)} | {variant_name(row['variant'])} |"
        )
    return lines


def also_measured(executor):
    """The lines about measurements of bench_executor."""
    named = {}
    for b in executor["benchmarks"]:
        named.setdefault(b["run_name"].removesuffix("/real_time").removesuffix("/manual_time"), []).append(b)
    lines = ["| what | median (least–most) |", "|---|---|"]

    def times(name, per="one"):
        runs = [b for b in named.get(name, []) if not b.get("error_occurred")]
        return [b["real_time"] / (1 if per == "one" else b[per]) for b in runs]

    def add(what, values, unit):
        lines.append(f"| {what} | {spread(values) + ' ' + unit if values else 'not measured'} |")

    chains = [name.split("/")[1:] for name in named if name.startswith("dispatch/")]
    for kernel, count in sorted(chains, key=lambda chain: (chain[0], int(chain[1]))):
        what = "an empty kernel" if kernel == "empty" else "the smallest real kernel, Neg of 16 numbers"
        plural = "instruction" if count == "1" else "instructions"
        add(f"dispatch per instruction, {what}, step of {count} {plural}", times(f"dispatch/{kernel}/{count}", "instructions"), "ns")
    team = next((int(b["team"]) for b in named.get("fork_join", []) if "team" in b), 0)
    add(f"fork and join of one parallel region, team of {team}", times("fork_join"), "ns")
    notes = []
    for name in sorted(name for name in named if re.match(r"network/.*/chosen$", name)):
        network = name.split("/")[1]
        other = name.replace("/chosen", "/row_major")
        chosen, plain = times(name), times(other)
        counts = lambda n: next(
            (f", {b['channels_last_maps']:.0f} maps channels-last, {b['reorders']:.0f} reorders"
             for b in named.get(n, []) if "reorders" in b),
            "",
        )  # fmt: skip
        add(f"{TITLES.get(network, network)}: step with the layouts chosen{counts(name)}", chosen, "ms")
        add(f"the same, all maps row-major{counts(other)}", plain, "ms")
        if chosen and plain:
            ratio = statistics.median(plain) / statistics.median(chosen)
            notes.append(f"The choice of layouts makes a step {ratio:.2f} × as fast as row-major maps ({network}).")
    return lines + ([""] + notes if notes else [])


def compose(results, pairs):
    rows = {w: results["rows"][w] for w in WORK if results["rows"].get(w, {}).get("pairs")}
    cpu = results["machine"]["cpu"]
    lines = [f"# Tandem compared with PyTorch, {days(rows)}, {cpu}", ""]
    lines += conditions(results, rows, pairs) + [""] + table(rows)
    lines += ["", "## Also measured", ""]
    if ALSO in results:
        build, use = results[ALSO]["build"], results[ALSO]["cpu"]
        lines += also_measured(results[ALSO])
        lines += ["", f"`bench_executor` next to {build_text(build)}; other programs used {use['others']:.2f} cores meanwhile."]
    else:
        lines += [f"Nothing: {results['failed'].get('executor', 'not run')}."]
    gone = missing(results, pairs) + failed_variants(results)
    lines += ["", "## Missing", ""] + ([f"- {title}: {reason}" for title, reason in gone] or ["Nothing."])
    return "\n".join(lines) + "\n"

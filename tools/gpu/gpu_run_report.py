"""The report of tools/gpu_run.sh, from the lines of its parts."""

import json
import math
import re


def table(head, rows):
    return ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)] + [
        "| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in row) + " |" for row in rows
    ]


def section(title, head, rows):
    return ["", f"## {title}", "", *table(head, rows)] if rows else []


def note_of(lines, stage, name):
    return next((line["content"] for line in lines if line["stage"] == stage and line.get("note") == name), None)


def card_of(lines):
    """The GPU's name; None: it is not known."""
    card = note_of(lines, "env", "card 0")
    if card:
        return card["name"]
    told = note_of(lines, "machine", "card")
    return told.split(",")[0] if told and "," in told else None


def date_of(lines):
    return (note_of(lines, "machine", "date") or "unknown")[:10]


def name_of(parts):
    """What docs/gpu has the report as: the date of the first part and the GPU."""
    lines = [line for part in parts for line in part]
    return date_of(lines) + "-" + re.sub(r"[^a-z0-9]+", "-", (card_of(lines) or "no card").lower()).strip("-")


def text_of(content):
    return content if isinstance(content, str) else json.dumps(content)


def machine(lines):
    """Driver, versions, tools; of several parts what they agree in stands once."""
    rows = dict.fromkeys(
        (line["note"], text_of(line["content"]))
        for line in lines
        if "note" in line and line["stage"] in ("machine", "env") and line["note"] != "date"
    )
    return section("Machine", ("what", "is"), list(rows))


def in_ms(content, *keys):
    return [f"{content[key]:.4g}" if isinstance(content.get(key), (int, float)) else "" for key in keys]


KEYS = ("step_ms", "step_ms_p10", "step_ms_p90", "streamed_ms")


def step_times(lines):
    """Each workload: Tandem's runs, before and after the peer's, and PyTorch's variants, the better of their two times divided by
    Tandem's mean."""
    ours, theirs = {}, {}
    for line in lines:
        content = line.get("content")
        if not isinstance(content, dict) or "step_ms" not in content:
            continue
        if line["stage"] == "times":
            ours.setdefault(line["note"], []).append(content)
        elif line["stage"] == "torch":
            theirs.setdefault(content["workload"], []).append(content)
    rows = []
    for name in dict.fromkeys([*ours, *theirs]):
        mean = sum(run["step_ms"] for run in ours[name]) / len(ours[name]) if name in ours else None
        rows += [(name, "Tandem", "", "loader", *in_ms(run, *KEYS), "") for run in ours.get(name, [])]
        for run in theirs.get(name, []):
            ratio = f"{min(run['step_ms'], run.get('streamed_ms', math.inf)) / mean:.2f}" if mean else ""
            tf32 = ", TF32" if run.get("tf32") else ""
            rows.append((name, f"PyTorch {run.get('torch', '')}", run["variant"] + tf32, run["feed"], *in_ms(run, *KEYS), ratio))
    head = ("workload", "engine", "variant", "batches from", "median ms", "p10", "p90", "ms in a row", "× Tandem's time")
    return section("Step times", head, rows)


def profiles(lines):
    rows = []
    for line in lines:
        if line["stage"] != "profile" or "note" not in line or not line["note"].startswith("kernel "):
            continue
        c = line["content"]
        rest = ", ".join(f"{k} {v}" for k, v in c.items() if k not in ("kernel", "launches", "ns", "share"))
        rows.append((line["label"], c["kernel"], c["launches"], f"{c['ns'] / 1e3:.1f}", f"{100 * c['share']:.1f} %", rest))
    return section("Kernels that take longest", ("of", "kernel", "launches", "µs together", "share", "a launch alone"), rows)


def report(parts):
    """Markdown. `parts`: the lines of results.jsonl of each."""
    lines = [line for part in parts for line in part]
    verdicts = [line for line in lines if "verdict" in line and line["verdict"] != "noted"]
    text = ["# GPU run", "", f"{date_of(lines)}, {card_of(lines) or 'no card'}. Written by `tools/gpu_run.sh report`."]
    text += step_times(lines)
    text += section(
        "Stages",
        ("stage", "verdict", "checks", "failed", "s", "why"),
        [
            (v["label"], v["verdict"], v.get("checks", ""), v.get("failed", ""), v.get("seconds", ""), v.get("why", ""))
            for v in verdicts
        ],
    )
    text += section(
        "Failures",
        ("stage", "check", "why"),
        [
            (f["label"], f["check"], f.get("why") or f"{f['error']} > {f['limit']}")
            for f in lines
            if f.get("ok") is False
        ][:200],
    )
    text += section(
        "Skipped", ("stage", "check", "why"), [(s["label"], s["check"], s["skipped"]) for s in lines if "check" in s and "skipped" in s]
    )
    text += profiles(lines)
    for v in verdicts:
        text += section(
            f"{v['label']}: nearest to their limits",
            ("check", "error", "limit"),
            [(w["check"], w["error"], w["limit"]) for w in v.get("worst") or []],
        )
    text += section(
        "Numbers", ("stage", "what", "number", "unit"), [(n["label"], n["value"], n["number"], n["unit"]) for n in lines if "value" in n]
    )
    text += machine(lines)
    return "\n".join(text) + "\n"

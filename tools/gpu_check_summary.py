"""The table at the end of tools/gpu_check.sh, from its results."""

import datetime
import json
import platform


def table(head, rows):
    return ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)] + [
        "| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in row) + " |" for row in rows
    ]


def summary(results):
    """Markdown. `results` has `verdicts`, one of each process, and all `lines` as in results.jsonl."""
    head = [
        "# GPU check",
        "",
        f"{datetime.datetime.now().isoformat(timespec='seconds')}, {platform.system()} {platform.release()}",
        "",
    ]
    rows = [
        (v.get("label", v["stage"]), v["verdict"], v.get("checks", ""), v.get("failed", ""), v.get("seconds", ""), v.get("why", ""))
        for v in results.verdicts
    ]
    text = head + table(("stage", "verdict", "checks", "failed", "s", "why"), rows)
    for verdict in results.verdicts:
        if not verdict.get("worst"):
            continue
        text += ["", f"## {verdict['label']}: nearest to their limits", ""]
        text += table(
            ("check", "error", "limit"),
            [(w["check"], w["error"], w["limit"]) for w in verdict["worst"]],
        )
    failures = [line for line in results.lines if line.get("ok") is False]
    if failures:
        text += ["", "## Failures", ""]
        text += table(
            ("stage", "check", "why"),
            [(f["stage"], f["check"], f.get("why") or f"{f['error']} > {f['limit']}") for f in failures[:200]],
        )
    skips = [line for line in results.lines if "skipped" in line and "check" in line]
    if skips:
        text += ["", "## Skipped", ""]
        text += table(("stage", "check", "why"), [(s["stage"], s["check"], s["skipped"]) for s in skips])
    numbers = [line for line in results.lines if "value" in line]
    if numbers:
        text += ["", "## Numbers", ""]
        text += table(
            ("stage", "what", "number", "unit"),
            [(n["stage"], n["value"], n["number"], n["unit"]) for n in numbers],
        )
    notes = [line for line in results.lines if "note" in line and line["stage"] == "env"]
    if notes:
        text += ["", "## Machine", ""]
        text += table(("what", "is"), [(n["note"], json.dumps(n["content"])) for n in notes])
    return "\n".join(text) + "\n"

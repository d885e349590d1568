"""Writes docs/zoo.md: the results of run.py, one row for each export."""

import collections
import re

import language_table
from checks import CHECKS, EXPORT_BOUND, OTHER_BOUND, REFERENCE_BOUND, SPLIT_BOUND

TOLERANCE, SPREADS, WEIGHTS = 1e-3, 3, 0.02
FAILED, INSPECTED, IMPORTED, TRAINED, AGREES = (
    "not exported",
    "not imported",
    "not trained",
    "differs",
    "agrees",
)


def also_refused(result):
    return " (onnxruntime does not run the file either)" if result.get("file", 0) is None else ""


def reason_of(result):
    """A few words for the table."""
    if result["state"] == FAILED:
        lines = [re.sub(r"\x1b\[\d*m", "", line) for line in result["reason"].split("\n")]
        causes = [line for line in lines if line.startswith("<class")]
        cause = re.sub(r"(?<=\s)/\S+", "…", causes[0] if causes else lines[0])  # folders of this machine
        return "the exporter: " + cause[:160]
    if result["state"] == INSPECTED:
        counts = collections.Counter(
            p.get("reason") or p.get("operator") or p.get("what", "?") for p in result["problems"]
        )
        text = "; ".join(f"{n} × {w}" if n > 1 else w for w, n in counts.most_common())[:200]
        return text + also_refused(result)
    if result["state"] == IMPORTED:
        lines = [line.strip() for line in result["reason"].splitlines() if line.strip()]
        text = re.sub(r"^tandem: (\S*/)?", "", lines[0] if lines else "")
        return text[:200] + also_refused(result)
    file = result.get("file")
    if "losses" not in result or "expected" not in result:
        return ""
    first = abs(result["losses"][0] - result["expected"][0]) / max(abs(result["expected"][0]), 1e-6)
    if file is not None and file > 1e-5 and abs(first - file) < 0.1 * file:
        note = result.get("note")
        text = f"the file is not the network: onnxruntime is as far from PyTorch ({file:.0e})"
        return text + (f"; {note}" if note else "")
    if result.get("weights", 0) > max(WEIGHTS, SPREADS * result.get("weights_spread", 0)):
        note = result.get("note") or "beyond its spread in PyTorch"
        return f"trains `{result['worst_weight']}` otherwise: {note}"
    if result["state"] == TRAINED:
        return result.get("note", "")
    return ""


def trained_ones(results):
    return [r for r in results.values() if r["state"] in (TRAINED, AGREES)]


def checks_line(results):
    """How many of the trained rows pass each check."""
    trained = trained_ones(results)
    parts = []
    for check in CHECKS:
        asked = [r["checks"][check]["ok"] for r in trained if check in r.get("checks", {})]
        of = "" if len(asked) == len(trained) else f" of {len(asked)}"
        parts.append(f"{check} {sum(asked)}{of}")
    return f"{len(trained)} of {len(results)} rows: " + ", ".join(parts)


def check_cell(result, check):
    found = result.get("checks", {}).get(check)
    return "" if found is None else "yes" if found["ok"] else found["why"]


def head(results, counts):
    networks = {name.rsplit("/", 1)[0] for name in results}
    return [
        "# The zoo",
        "",
        "Public networks in small sizes, exported by both of PyTorch's exporters in training form, networks of Keras by its own export, by PyTorch's and by",
        "tf2onnx, and fitted models of scikit-learn by skl2onnx, trained five steps by the tool and by the framework from the same weights on the same",
        "data (SGD). Written by `python models/zoo/run.py`; do not edit. Files of language models as hub tools write them have a section at the end.",
        "",
        f"{len(networks)} networks, {len(results)} exports: "
        + ", ".join(f"{counts[s]} {s}" for s in (AGREES, TRAINED, IMPORTED, INSPECTED, FAILED))
        + ".",
        "",
        f"Checked: {checks_line(results)}.",
        "",
        f"- **agrees**: the largest relative difference of the five losses is at most {TOLERANCE:g}, or {SPREADS} times the spread.",
        "- **spread**: the same difference in PyTorch itself, without oneDNN and from weights that differ in their last bit. Networks that",
        "  spread by more than 1e-4 take steps of a tenth or a hundredth of 0.01.",
        "- **weights**: the largest difference of a parameter after five steps, in parts of the largest change of that tensor.",
        "- **tensors**: parameters that PyTorch trains and the export has under their names, of how many.",
        f"- **export**: onnxruntime makes of the exported file what the tool makes of the run, within {EXPORT_BOUND:g} of an output's largest element.",
        "- **split**: the first half of the operators on an emulated device, a quarter of all made again instead of kept: the same losses within",
        f"  {SPLIT_BOUND:g}, or {SPREADS} times the spread.",
        "- **resume**: stopped after three steps and gone on with, the fifth checkpoint has the same bytes.",
        f"- **batch**: the loss of a step of twice the batch is PyTorch's within {OTHER_BOUND:g}, or {SPREADS} times the spread; also where the export fixes the batch.",
        "- **length**: the same of texts of another length, where the export leaves it free.",
        f"- **reference**: no operator on a reference kernel takes more than {REFERENCE_BOUND:.0%} of the step, else which one and how much.",
        "",
    ]


def write_table(results, path):
    counts = collections.Counter(r["state"] for r in results.values())
    columns = ["network", "exporter", "state", "difference", "spread", "weights", "tensors", *CHECKS, "reason"]
    text = head(results, counts)
    text += ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    for name, r in results.items():
        network, exporter = name.rsplit("/", 1)
        number = lambda key: f"{r[key]:.1e}" if key in r else ""
        tensors = f"{r['matched']} of {r['parameters']}" if "matched" in r else ""
        cells = [
            network,
            exporter,
            r["state"],
            number("difference"),
            number("spread"),
            number("weights"),
            tensors,
            *(check_cell(r, check) for check in CHECKS),
            reason_of(r),
        ]
        cells = [cell.replace("|", "\\|").replace("\n", " ") for cell in cells]
        text.append("| " + " | ".join(cells) + " |")
    language_files = language_table.section_of(path)  # another script writes it
    text += ["", *language_files.splitlines()] if language_files else []
    path.write_text("\n".join(text) + "\n")

"""The zoo in one command: exports what is not there, inspects and trains it by the tool, compares with PyTorch, writes docs/zoo.md.

    python models/zoo/run.py [--tool build/tandem] [--to FOLDER] [--only GLOB]… [--again] [--table FILE]

FOLDER (default build/zoo) keeps the exports and results.jsonl, one line an export; a second run goes on where the first ended. --again
trains again, --only does part. docs/zoo.md is written where all of it was run (or --table names another file).
"""

import argparse
import collections
import fnmatch
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

import numpy as np
import sklearn_models
from compare import weight_difference

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TOLERANCE, SPREADS, WEIGHTS = 1e-3, 3, 0.02
FAILED, INSPECTED, IMPORTED, TRAINED, AGREES = (
    "not exported",
    "not imported",
    "not trained",
    "differs",
    "agrees",
)


def call(tool, arguments, folder, limit):
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    try:
        done = subprocess.run(
            [str(tool), *arguments],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=limit,
        )
        return done.returncode, done.stdout, done.stderr
    except subprocess.TimeoutExpired:
        return 124, "", f"more than {limit} seconds"


def tensors(path):
    """The float32 tensors of a safetensors file, and names of the same tensor from its metadata."""
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    names = header.pop("__metadata__", {})
    result = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        if entry["dtype"] == "F32":
            part = data[8 + size + begin : 8 + size + end]
            result[name] = np.frombuffer(part, np.float32).reshape(entry["shape"])
    for name, of in names.items():
        if name.startswith("alias:") and of in result:
            result[name[len("alias:") :]] = result[of]
    return result


def initial_weights(path):
    import onnx
    import onnx.numpy_helper

    model = onnx.load(str(path))
    return {
        i.name: onnx.numpy_helper.to_array(i)
        for i in model.graph.initializer
        if i.data_type == onnx.TensorProto.FLOAT
    } | sklearn_models.attribute_weights(model)


def first_line(text):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:300] if lines else ""


def problems_of(inspected, error):
    try:
        return json.loads(inspected).get("problems", [])
    except json.JSONDecodeError:
        return [{"reason": first_line(error)}]


def run_one(tool, folder, limit):
    """Inspect, train, compare: what goes into one line of results.jsonl."""
    failed = folder / "failed.txt"
    if failed.exists():
        return {"state": FAILED, "reason": failed.read_text().strip()[:6000]}
    expected = json.loads((folder / "expected.json").read_text())
    result = {
        key: expected[key]
        for key in ("free", "spread", "weights_spread", "lr", "file", "note")
        if key in expected
    }
    result["expected"] = expected["losses"]
    begin = time.monotonic()
    code, out, error = call(tool, ["inspect", "model.onnx", "--json"], folder, limit)
    result["inspect_seconds"] = round(time.monotonic() - begin, 2)
    if code != 0:
        problems = problems_of(out, error)
        return {**result, "state": INSPECTED, "problems": problems, "reason": first_line(error)}
    run = folder / "run"
    shutil.rmtree(run, ignore_errors=True)
    begin = time.monotonic()
    code, out, error = call(tool, ["train", "train.toml", "--run-dir", "run"], folder, limit)
    result["train_seconds"] = round(time.monotonic() - begin, 2)
    if code != 0:
        return {**result, "state": IMPORTED, "code": code, "reason": error.strip()[-800:]}
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    losses = [float(line["loss"]) for line in lines if "phase" not in line]
    pairs = list(zip(losses, expected["losses"]))
    result["losses"] = losses
    result["difference"] = max(abs(a - b) / max(abs(b), 1e-6) for a, b in pairs)
    call(tool, ["export", "run", "--to", "after.safetensors"], folder, limit)
    if (folder / "after.safetensors").exists():
        ours, theirs = (tensors(folder / f"{which}.safetensors") for which in ("after", "expected"))
        before = initial_weights(folder / "model.onnx")
        result["weights"], result["worst_weight"] = weight_difference(before, theirs, ours)
        result["matched"] = sum(n in ours and ours[n].shape == v.shape for n, v in theirs.items())
        result["parameters"] = len(theirs)
        (folder / "after.safetensors").unlink()
    shutil.rmtree(run, ignore_errors=True)
    good = len(pairs) == len(expected["losses"]) and result["difference"] <= max(
        TOLERANCE, SPREADS * expected["spread"]
    )
    result["state"] = AGREES if good else TRAINED
    return result


def is_stale(folder, result):
    """Whether the network was exported anew since."""
    path = folder / "expected.json"
    if not path.exists():
        return "expected" in result
    expected = json.loads(path.read_text())
    same = ("losses", "expected"), ("spread", "spread"), ("weights_spread", "weights_spread")
    return any(expected.get(theirs) != result.get(ours) for theirs, ours in same)


def also_refused(result):
    return " (onnxruntime does not run the file either)" if result.get("file", 0) is None else ""


def reason_of(result):
    """A few words for the table."""
    if result["state"] == FAILED:
        lines = [re.sub(r"\x1b\[\d*m", "", line) for line in result["reason"].split("\n")]
        causes = [line for line in lines if line.startswith("<class")]
        return "the exporter: " + (causes[0] if causes else lines[0])[:160]
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
    return ""


def write_table(results, path):
    counts = collections.Counter(r["state"] for r in results.values())
    total = len(results)
    networks = {name.rsplit("/", 1)[0] for name in results}
    text = [
        "# The zoo",
        "",
        "Public networks in small sizes, exported by both of PyTorch's exporters in training form, and fitted models of scikit-learn by skl2onnx,",
        "trained five steps by the tool and by PyTorch from the same weights on the same data (SGD). Written by `python models/zoo/run.py`; do not edit.",
        "",
        f"{len(networks)} networks, {total} exports: "
        + ", ".join(f"{counts[s]} {s}" for s in (AGREES, TRAINED, IMPORTED, INSPECTED, FAILED))
        + ".",
        "",
        f"- **agrees**: the largest relative difference of the five losses is at most {TOLERANCE:g}, or {SPREADS} times the spread.",
        "- **spread**: the same difference in PyTorch itself, without oneDNN and from weights that differ in their last bit. Networks that",
        "  spread by more than 1e-4 take steps of a tenth or a hundredth of 0.01.",
        "- **weights**: the largest difference of a parameter after five steps, in parts of the largest change of that tensor.",
        "- **tensors**: parameters that PyTorch trains and the export has under their names, of how many.",
        "",
        "| network | exporter | state | difference | spread | weights | tensors | reason |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, r in results.items():
        network, exporter = name.rsplit("/", 1)
        number = lambda key: f"{r[key]:.1e}" if key in r else ""
        tensors_text = f"{r['matched']} of {r['parameters']}" if "matched" in r else ""
        reason = reason_of(r).replace("|", "\\|").replace("\n", " ")
        cells = [
            network,
            exporter,
            r["state"],
            number("difference"),
            number("spread"),
            number("weights"),
            tensors_text,
            reason,
        ]
        text.append("| " + " | ".join(cells) + " |")
    path.write_text("\n".join(text) + "\n")
    return counts


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tool", type=pathlib.Path, default=ROOT / "build" / "tandem")
    parser.add_argument("--to", type=pathlib.Path, default=ROOT / "build" / "zoo")
    parser.add_argument("--only", action="append", help="a glob over SOURCE/NAME; may be repeated")
    parser.add_argument("--again", action="store_true", help="train again what was trained")
    parser.add_argument("--failing", action="store_true", help="with --again: what did not agree")
    parser.add_argument("--no-export", action="store_true", help="only what was exported before")
    parser.add_argument("--limit", type=int, default=60, help="seconds for one call of the tool")
    parser.add_argument("--table", type=pathlib.Path)
    options = parser.parse_args()
    options.to.mkdir(parents=True, exist_ok=True)
    only = options.only or ["*"]
    if not options.no_export:
        flags = [part for glob in only for part in ("--only", glob)]
        script = [sys.executable, str(HERE / "export.py"), "--to", str(options.to), *flags]
        subprocess.run(script, check=True)
    log = options.to / "results.jsonl"
    results = {}
    if log.exists():
        for line in log.read_text().splitlines():
            entry = json.loads(line)
            results[entry.pop("name")] = entry
    folders = sorted(
        p.parent for p in options.to.glob("*/*/*/*") if p.name in ("expected.json", "failed.txt")
    )
    tool = options.tool.resolve()
    with log.open("a") as file:
        for folder in dict.fromkeys(folders):
            name = str(folder.relative_to(options.to))
            if not any(fnmatch.fnmatch(name, glob + "/*") for glob in only):
                continue
            if name in results and not options.again and not is_stale(folder, results[name]):
                continue
            if options.failing and results.get(name, {}).get("state") == AGREES:
                continue
            result = run_one(tool, folder, options.limit)
            results[name] = result
            file.write(json.dumps({"name": name, **result}) + "\n")
            file.flush()
            numbers = f"{result.get('difference', float('nan')):.1e}"
            print(f"{name}: {result['state']} {numbers} {reason_of(result)}", flush=True)
    there = {str(folder.relative_to(options.to)) for folder in folders}
    results = {name: r for name, r in sorted(results.items()) if name in there}
    table = options.table or (ROOT / "docs" / "zoo.md" if not options.only else None)
    if table:
        write_table(results, table)
    counts = collections.Counter(r["state"] for r in results.values())
    print(", ".join(f"{n} {state}" for state, n in counts.items()))


if __name__ == "__main__":
    main()

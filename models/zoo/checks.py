"""Checks a network that the tool has trained: each check is one function, and `checks_of` calls them all.

A check returns {"ok": whether it passes, "why": a few words if it does not, "value": the number that decides}, or None if it does not apply.
"""

import hashlib
import json
import re
import shutil

import numpy as np
import onnx_outputs
from calls import THREADS, call, first_words, relative, train
from split_policy import homeless_parameters, split_policy, write_policy

EXPORT_BOUND = 1e-4  # part of an output's largest element
SPLIT_BOUND = 1e-6  # part of the loss
OTHER_BOUND = 1e-4  # part of the loss of one step on other data
SPREADS = 3  # times what the network spreads in PyTorch itself
REFERENCE_BOUND = 0.05  # part of the step, for one node on a reference kernel
STEPS, STOPPED_AT = 5, 3
FOLDERS = ("run", "split", "resumed", "batch", "length")
FILES = ("out.onnx", "out.onnx.data", "predicted.npz", "split.toml")


def failed(why):
    return {"ok": False, "why": why}


def judged(value, bound, why=""):
    ok = bool(value <= bound)  # a value that is not a number is no agreement
    return {"ok": ok, "value": float(value), "why": "" if ok else f"{value:.1e}{why and ' ' + why}"}


def check_export(tool, folder, limit, expected, losses):
    """The exported file in onnxruntime against the tool's own evaluation of the run, on the first batch."""
    code, _, error = call(tool, ["export", "run", "--to", "out.onnx"], folder, limit)
    if code != 0:
        return failed(f"export: {first_words(error)}")
    arrays = np.load(folder / "data.npz")
    size = int(re.search(r"batch_size = (\d+)", (folder / "train.toml").read_text())[1])
    given = {name: arrays[name][:size] for name in arrays.files}
    try:
        theirs = onnx_outputs.run(folder / "out.onnx", given)
    except Exception as exception:
        return failed(f"onnxruntime: {first_words(str(exception))}")
    theirs = {n: v for n, v in theirs.items() if v.ndim > 0 and len(v) == size}
    if not theirs:
        return failed("no output has an entry for each sample")
    arguments = ["predict", "run", "--data", "data.npz", "--as", "values", "--to", "predicted.npz"]
    code, _, error = call(tool, [*arguments, "--output", *theirs], folder, limit)
    if code != 0:
        return failed(f"predict: {first_words(error)}")
    ours = np.load(folder / "predicted.npz")
    worst, worst_name = 0.0, ""
    for name, value in theirs.items():
        if name not in ours.files or ours[name][:size].shape != value.shape:
            return failed(f"{name} has another shape")
        difference = onnx_outputs.difference(ours[name][:size], value)
        if not difference <= worst:
            worst, worst_name = difference, name
    return judged(worst, EXPORT_BOUND, f"in {worst_name}")


def check_split(tool, folder, limit, expected, losses):
    """Repeats the training with about half of the operators on another device; backward recomputes a part of them."""
    code, out, error = call(tool, ["policy", "names", "--config", "train.toml", "--json"], folder, limit)
    if code != 0:
        return failed(f"policy names: {first_words(error)}")
    names = json.loads(out)["names"]
    rules = split_policy([n["path"] for n in names if n["kind"] == "operator"])
    if rules is None:
        return failed("paths with the letters of a pattern")
    write_policy(rules, folder / "split.toml")
    error, split = train(tool, folder, "split", limit, 'policy="split.toml"')
    shared = homeless_parameters(error)
    if shared:
        rules += [f'{{ at = "{name}", on = "cpu" }}' for name in dict.fromkeys(shared)]
        write_policy(rules, folder / "split.toml")
        error, split = train(tool, folder, "split", limit, 'policy="split.toml"')
    if error:
        return failed(first_words(error))
    worst = max(relative(split[step], loss) for step, loss in losses.items())
    return judged(worst, max(SPLIT_BOUND, SPREADS * expected["spread"]))


def hashes(checkpoint):
    """The hashes of all files that hold parameters, running statistics and optimizer states."""
    return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in checkpoint.glob("*.safetensors")}


def check_resume(tool, folder, limit, expected, losses):
    """Stops after three steps and resumes: the last checkpoint has the same bytes."""
    for arguments in (f"steps={STOPPED_AT}",), (f"steps={STEPS}", "--resume"):
        error, _ = train(tool, folder, "resumed", limit, *arguments)
        if error:
            return failed(first_words(error))
    one, other = (hashes(folder / run / "checkpoints" / f"step-{STEPS:08}") for run in ("run", "resumed"))
    if not one or one.keys() != other.keys():
        return failed("other files")
    different = [name for name in one if one[name] != other[name]]
    return {"ok": not different, "why": " and ".join(different) + " differ" if different else ""}


def one_step(tool, folder, limit, run, wanted, spread, *keys):
    """The loss of one step against PyTorch's."""
    error, losses = train(tool, folder, run, limit, "steps=1", *keys)
    if error:
        return failed(first_words(error))
    if wanted is None:
        finite = bool(np.isfinite(losses[1]))
        return {"ok": finite, "why": "" if finite else "not finite"}
    return judged(relative(losses[1], wanted), max(OTHER_BOUND, SPREADS * spread))


def check_batch(tool, folder, limit, expected, losses):
    """One step of twice the batch."""
    other = expected["other_batch"]
    size = f"batch_size={other['size']}"
    return one_step(tool, folder, limit, "batch", other["loss"], expected["spread"], size)


def check_length(tool, folder, limit, expected, losses):
    """One step of texts of another length."""
    other = expected.get("other_length")
    if other is None:
        return None
    bind = ", ".join(f"{axis} = {size}" for axis, size in other["bind"].items())
    keys = f"model.bind={{ {bind} }}", 'data.train.files=["other_length.npz"]'
    return one_step(tool, folder, limit, "length", other["loss"], expected["spread"], *keys)


def check_reference(tool, folder, limit, expected, losses):
    """No operator on a reference kernel takes more than a twentieth of the step."""
    code, out, error = call(tool, ["bench", "train.toml", THREADS, "--seconds", "0.05", "--json"], folder, limit)
    if code != 0:
        return failed(f"bench: {first_words(error)}")
    times = [o for o in json.loads(out)["operators"] if o["ms"] is not None]
    whole = sum(o["ms"] for o in times)
    slow = max((o for o in times if o["kernel"].startswith("reference.")), key=lambda o: o["ms"], default=None)
    if slow is None or whole == 0:
        return {"ok": True, "why": "", "value": 0.0}
    share = slow["ms"] / whole
    ok = share <= REFERENCE_BOUND
    return {"ok": ok, "why": "" if ok else f"{slow['op']} {share:.0%}", "value": share, "operator": slow["op"]}


CHECKS = {
    "export": check_export,
    "split": check_split,
    "resume": check_resume,
    "batch": check_batch,
    "length": check_length,
    "reference": check_reference,
}


def checks_of(tool, folder, limit, expected, losses):
    """All checks of a folder whose `run` has trained with these losses by step."""
    results = {}
    for name, check in CHECKS.items():
        if "other_batch" not in expected and name == "batch":
            continue
        if name == "export" and expected.get("file", 0) is None:
            continue  # onnxruntime does not run what the exporter wrote, either
        try:
            results[name] = check(tool, folder, limit, expected, losses)
        except Exception as error:
            results[name] = failed(f"{type(error).__name__}: {first_words(str(error))}")
    return {name: result for name, result in results.items() if result is not None}


def remove_files(folder):
    for name in FOLDERS:
        shutil.rmtree(folder / name, ignore_errors=True)
    for name in FILES:
        (folder / name).unlink(missing_ok=True)

"""Makes one row of the zoo: inspects, trains, compares and checks an export by the tool, in a process of its own."""

import json
import multiprocessing
import multiprocessing.connection
import time

import numpy as np
import sklearn_models
from calls import call, relative, train
from checks import checks_of, remove_files
from compare import weight_difference
from table import AGREES, FAILED, IMPORTED, INSPECTED, SPREADS, TOLERANCE, TRAINED


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


def compare_weights(tool, folder, limit):
    """Compares the parameters that the run has trained with expected.safetensors."""
    call(tool, ["export", "run", "--to", "after.safetensors"], folder, limit)
    if not (folder / "after.safetensors").exists():
        return {}
    ours, theirs = (tensors(folder / f"{which}.safetensors") for which in ("after", "expected"))
    before = initial_weights(folder / "model.onnx")
    weights, worst = weight_difference(before, theirs, ours)
    (folder / "after.safetensors").unlink()
    matched = sum(n in ours and ours[n].shape == v.shape for n, v in theirs.items())
    return {"weights": weights, "worst_weight": worst, "matched": matched, "parameters": len(theirs)}


def run_one(tool, folder, limit):
    """What goes into one line of results.jsonl."""
    failed = folder / "failed.txt"
    if failed.exists():
        return {"state": FAILED, "reason": failed.read_text().strip()[:6000]}
    expected = json.loads((folder / "expected.json").read_text())
    kept = ("free", "spread", "weights_spread", "moved", "lr", "file", "note")
    result = {key: expected[key] for key in kept if key in expected}
    result["expected"] = expected["losses"]
    begin = time.monotonic()
    lengths = [f"{axis}={size}" for axis, size in expected.get("bind", {}).items()]
    command = ["inspect", "model.onnx", "--json", *(["--bind", *lengths] if lengths else [])]
    code, out, error = call(tool, command, folder, limit)
    result["inspect_seconds"] = round(time.monotonic() - begin, 2)
    if code != 0:
        problems = problems_of(out, error)
        return {**result, "state": INSPECTED, "problems": problems, "reason": first_line(error)}
    remove_files(folder)
    begin = time.monotonic()
    error, losses = train(tool, folder, "run", limit)
    result["train_seconds"] = round(time.monotonic() - begin, 2)
    if error:
        return {**result, "state": IMPORTED, "reason": error[-800:]}
    result["losses"] = list(losses.values())
    pairs = list(zip(result["losses"], expected["losses"]))
    result["difference"] = max(relative(ours, theirs) for ours, theirs in pairs)
    result.update(compare_weights(tool, folder, limit))
    result["checks"] = checks_of(tool, folder, limit, expected, losses)
    remove_files(folder)
    result["seconds"] = round(time.monotonic() - begin, 2)
    bound = max(TOLERANCE, SPREADS * expected["spread"])
    good = len(pairs) == len(expected["losses"]) and result["difference"] <= bound
    result["state"] = AGREES if good else TRAINED
    return result


def is_stale(folder, result):
    """Whether the network was exported again since then, or there is more to check."""
    path = folder / "expected.json"
    if not path.exists():
        return "expected" in result
    expected = json.loads(path.read_text())
    if result["state"] in (TRAINED, AGREES):
        checks = result.get("checks", {})
        if "split" not in checks or ("other_batch" in expected) != ("batch" in checks):
            return True
    same = ("losses", "expected"), ("spread", "spread"), ("weights_spread", "weights_spread")
    return any(expected.get(theirs) != result.get(ours) for theirs, ours in same)


def _send_row(sender, tool, folder, limit):
    try:
        result = run_one(tool, folder, limit)
    except Exception as error:
        result = {"state": IMPORTED, "reason": f"{type(error).__name__}: {error}"[:800]}
    sender.send(result)
    sender.close()


def all_rows(tool, work, limit, jobs):
    """(name, result) of [(name, folder)], as they end; `jobs` of them at a time."""
    import onnx.numpy_helper  # noqa: F401  # loaded once: processes are forked
    import onnxruntime  # noqa: F401

    context = multiprocessing.get_context("fork")
    running, waiting = {}, list(reversed(work))
    while running or waiting:
        while waiting and len(running) < jobs:
            name, folder = waiting.pop()
            receiver, sender = context.Pipe(False)
            process = context.Process(target=_send_row, args=(sender, tool, folder, limit))
            process.start()
            sender.close()
            running[receiver] = name, process
        for receiver in multiprocessing.connection.wait(list(running)):
            name, process = running.pop(receiver)
            try:
                result = receiver.recv()
            except EOFError:  # a library has crashed
                result = {"state": IMPORTED, "reason": "the process of this row was ended"}
            process.join()
            yield name, result

"""Checks Wide & Deep at its published size.

The first losses must be those of a script in double precision, and the losses of ten steps must not depend on the device of its tables. It also
checks the bytes that are copied to the device, and the message about a device that is too small."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

from common import BINARY, ROOT, models, peer_python, tandem, train, verdict

ROWS, COLUMNS, IDS, STEPS = 184968, 81, 624000, 10
MOST_BYTES = ROWS * COLUMNS * 4 + IDS * 4  # each row of both tables once, and one int32 an id
CONFIG = ROOT / "models" / "wide_deep" / "full.toml"
DEVICES = 'policy = 1\ndevices = {{ gpu = {{ use = "emulated:0", memory = "{memory}" }} }}\n'
ALL_ON_DEVICE = 'rules = [ { at = "**", on = "gpu" } ]\n'
TABLES_ON_HOST = 'rules = [ { at = "**", on = "gpu" }, { at = "{wide,deep}.**", on = "cpu", ship = "rows" } ]\n'
ONE_TABLE_ON_HOST = 'rules = [ { at = "**", on = "gpu" }, { at = "deep.**", on = "cpu" } ]\n'


def data(kind, python):
    """The folder of ready ids of that kind, made where it is missing."""
    folder = pathlib.Path(os.environ["TANDEM_MODELS"]) / "wide_deep" / kind
    if not (folder / "train.npz").exists():
        script = ROOT / "models" / "wide_deep" / "make_data.py"
        sizes = ["--rows", str(ROWS), "--samples", "160000", "--eval-samples", "0"]
        command = [python, script, "npz", "--ids", kind, *sizes, "--to", folder]
        subprocess.run(command, check=True, stdout=sys.stderr)
    return folder / "train.npz"


def relative(a, b):
    return abs(a - b) / abs(b)


def make_model(python):
    """Writes the network at its published size where it is missing."""
    folder = ROOT / "models" / "wide_deep"
    if not (pathlib.Path(os.environ["TANDEM_MODELS"]) / "wide_deep" / "torchscript.onnx").exists():
        subprocess.run([python, folder / "make_model.py", "--full"], check=True, stdout=sys.stderr)


def losses_of(kind, python, policies):
    os.environ["IDS"] = kind
    script = ROOT / "tests" / "scripts" / "wide_deep_losses.py"
    model = pathlib.Path(os.environ["TANDEM_MODELS"]) / "wide_deep" / "torchscript.onnx"
    found = subprocess.run([python, script, model, data(kind, python)], check=True, stdout=subprocess.PIPE)
    wanted = json.loads(found.stdout)
    lines = train(CONFIG, f"steps={STEPS}")[0]
    first, last = lines[0], lines[-1]
    ok = verdict(abs(first["wide_loss"] - 0.693) <= 0.02, f"{kind}: wide_loss {first['wide_loss']:.4f} at step 1")
    ok &= verdict(
        relative(first["l2"], wanted["l2"]) <= 1e-4,
        f"{kind}: l2 {first['l2']:.6f}, in double precision {wanted['l2']:.6f}",
    )
    if kind == "uniform":
        ok &= verdict(relative(first["l2"], 0.1997) <= 0.005, f"{kind}: l2 {first['l2']:.6f} next to 0.1997")
    most = wanted["base_rate_entropy"] + 0.02
    ok &= verdict(last["wide_loss"] <= most, f"{kind}: wide_loss {last['wide_loss']:.4f} at step {STEPS}, at most {most:.4f}")
    for name, policy in policies.items():
        others = train(CONFIG, f"steps={STEPS}", f"policy={policy}")[0]
        most = max(relative(a[k], b[k]) for a, b in zip(others, lines) for k in ("wide_loss", "l2"))
        ok &= verdict(len(others) == len(lines) and most <= 1e-5, f"{kind}: losses with {name} differ by {most:.1e}")
    return ok


with tempfile.TemporaryDirectory() as folder:
    folder = pathlib.Path(folder)

    def policy(name, text):
        (folder / name).write_text(text)
        return folder / name

    models()
    python = peer_python(os.environ.get("TANDEM_PEER_PYTHON"))
    make_model(python)
    large = DEVICES.format(memory="8GiB")
    policies = {
        "all on the device": policy("device.toml", large + ALL_ON_DEVICE),
        "tables on the host": policy("host.toml", large + TABLES_ON_HOST),
        "one table on the host": policy("one.toml", large + ONE_TABLE_ON_HOST),
    }
    ok = losses_of("uniform", python, policies)
    ok &= losses_of("zipf", python, {"tables on the host": policies["tables on the host"]})

    plan = json.loads(tandem("policy", "plan", policies["tables on the host"], "--config", CONFIG, "--json"))
    sent = [c for c in plan["transfers"] if c["to"] == "gpu" and not c["scalar"] and c["producer"] != "label"]
    sent = sum(c["bytes"] * c["times"] for c in sent)
    ok &= verdict(0 < sent <= MOST_BYTES, f"at most {sent} bytes of rows and indices a step to the device, limit {MOST_BYTES}")

    small = policy("small.toml", DEVICES.format(memory="256MiB") + ALL_ON_DEVICE)
    command = [str(BINARY), "train", str(CONFIG), f"policy={small}", "--run-dir", str(folder / "run")]
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    ok &= verdict(
        result.returncode == 3 and "deep" in result.stdout and 'on = "cpu"' in result.stdout,
        f"256 MiB: exit code {result.returncode}",
    )
    print(result.stdout, file=sys.stderr)
sys.exit(0 if ok else 1)

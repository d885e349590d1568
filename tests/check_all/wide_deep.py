"""Wide & Deep on made-up clicks comes within 0.005 of the planted model's own area under the curve after two epochs; DLRM learns."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

from common import ROOT, expected, peer_python, train, verdict

with tempfile.TemporaryDirectory() as folder:
    os.environ["TANDEM_MODELS"] = folder
    data = pathlib.Path(folder) / "wide_deep"
    script = ROOT / "models" / "wide_deep" / "make_data.py"
    python = peer_python(os.environ.get("TANDEM_PEER_PYTHON"))
    subprocess.run([python, script, "npz", "--to", data], check=True, stdout=sys.stderr)
    planted = json.loads((data / "data.json").read_text())["eval"]
    last = train(ROOT / "models" / "wide_deep" / "train.toml")[1][-1]
    auc, loss, base = planted["planted_auc"], last["log_loss"], planted["base_rate_log_loss"]
    ok = verdict(
        last["auc"] >= auc - 0.005, f"wide_deep: auc {last['auc']:.4f}, planted {auc:.4f}"
    )
    ok &= verdict(loss <= base - 0.1, f"wide_deep: log_loss {loss:.4f}, base rate's {base:.4f}")
    ok &= verdict(abs(last["calibration"] - 1) < 0.05, f"wide_deep: calibration {last['calibration']:.3f}")
    last = train(ROOT / "models" / "dlrm" / "train.toml")[1][-1]
    wanted = expected("dlrm")["eval"]["auc"]["at_least"]
    ok &= verdict(last["auc"] >= wanted, f"dlrm: auc {last['auc']:.4f}, wanted {wanted}")
sys.exit(0 if ok else 1)

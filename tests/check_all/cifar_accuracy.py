"""models/cifar with augmentation, six seeds, compared with PyTorch: the mean held-out accuracies differ by at most 1.5 points.

800 samples are held out. On both sides, accuracies of two seeds differ by about a point, and even means of three seeds differ by a point
by chance.

    python3 tests/check_all/cifar_accuracy.py [--seeds 1 2 3 4 5 6] [--epochs 60]
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from common import ROOT, peer_python, shared_data, train, verdict

POINTS = 1.5

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3, 4, 5, 6])
parser.add_argument("--epochs", type=int, default=60)
options = parser.parse_args()
shared_data("data/cifar10")
python = peer_python(os.environ.get("TANDEM_PEER_PYTHON"))
with tempfile.TemporaryDirectory() as folder:
    os.environ["TANDEM_MODELS"] = folder
    made = pathlib.Path(folder) / "cifar"
    subprocess.run([python, ROOT / "models" / "cifar" / "make_model.py", made], check=True)
    config = ROOT / "models" / "cifar" / "train.toml"
    ours = [train(config, f"seed={seed}", f"epochs={options.epochs}")[1][-1]["accuracy"] for seed in options.seeds]
    command = [python, ROOT / "tests" / "check_all" / "cifar_peer.py", made, "--epochs", str(options.epochs), "--seeds", *map(str, options.seeds)]
    theirs = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
means = [100 * sum(values) / len(values) for values in (ours, theirs)]
print("accuracies:", " ".join(f"{x:.4f}" for x in ours), "PyTorch's:", " ".join(f"{x:.4f}" for x in theirs))
ok = verdict(abs(means[0] - means[1]) <= POINTS, f"cifar: {means[0]:.2f} % in the mean, PyTorch {means[1]:.2f} %, at most {POINTS} points apart")
sys.exit(0 if ok else 1)

"""Real MNIST: the perceptron and LeNet-5 reach their accuracies on the 10,000 test images within the epochs of their train.toml."""

import sys

from common import ROOT, expected, models, shared_data, train, verdict

shared_data("data/mnist")
models("mlp", "lenet5")
ok = True
for name in ("mlp", "lenet5"):
    wanted = expected(name)["eval"]["accuracy"]["at_least"]
    accuracies = [line["accuracy"] for line in train(ROOT / "models" / name / "train.toml")[1]]
    ok &= verdict(
        bool(accuracies) and max(accuracies) >= wanted,
        f"{name}: best accuracy {max(accuracies, default=0):.4f} of {len(accuracies)} epochs, wanted {wanted}",
    )
sys.exit(0 if ok else 1)

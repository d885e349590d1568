"""ResNet-18 on 4,000 images of CIFAR-10: the mean training loss of an epoch falls below 0.1 within 30 epochs."""

import sys

from common import ROOT, expected, models, shared_data, train, verdict

STEPS_PER_EPOCH = 125
shared_data("data/cifar10")
models("resnet18")
losses = [
    line["loss"]
    for line in train(ROOT / "models" / "resnet18" / "train.toml", "log.every=1 steps")[0]
]
means = [
    sum(losses[i : i + STEPS_PER_EPOCH]) / STEPS_PER_EPOCH
    for i in range(0, len(losses), STEPS_PER_EPOCH)
]
wanted = expected("resnet18")["train"]["epoch_mean_loss"]["below"]
first = next((i + 1 for i, mean in enumerate(means) if mean < wanted), None)
print("mean loss of each epoch:", " ".join(f"{mean:.3f}" for mean in means))
ok = verdict(
    len(losses) == 30 * STEPS_PER_EPOCH and first is not None,
    f"resnet18: below {wanted} in epoch {first} of {len(means)}",
)
sys.exit(0 if ok else 1)

"""The small GPT on a text: the training loss, averaged over 10 steps, falls below 2.0 within 1,000 steps."""

import sys

from common import ROOT, expected, models, shared_data, train, verdict

WINDOW = 10
shared_data("data/text")
models("gpt")
losses = [
    line["loss"] for line in train(ROOT / "models" / "gpt" / "train.toml", "log.every=1 steps")[0]
]
means = [sum(losses[i : i + WINDOW]) / WINDOW for i in range(len(losses) - WINDOW + 1)]
wanted = expected("gpt")["train"]["loss"]["below"]
first = next((i + WINDOW for i, mean in enumerate(means) if mean < wanted), None)
ok = verdict(
    len(losses) == 1000 and first is not None,
    f"gpt: below {wanted} at step {first}, {means[-1] if means else 0:.3f} at the end",
)
sys.exit(0 if ok else 1)

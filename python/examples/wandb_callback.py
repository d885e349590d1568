"""Logs a run to Weights & Biases: python wandb_callback.py train.toml (needs `pip install wandb`)."""

import sys

import wandb

import tandem_train as tt


class WandbCallback(tt.Callback):
    """Sends what is logged and evaluated."""

    def __init__(self, project: str) -> None:
        self.run = wandb.init(project=project)

    def on_step(self, progress: tt.Progress) -> None:
        self.run.log(progress.values | {"samples_per_second": progress.samples_per_second}, step=progress.step)

    def on_evaluation(self, progress: tt.Progress) -> None:
        self.run.log({f"eval/{name}": value for name, value in progress.values.items()}, step=progress.step)

    def finish(self, result: tt.TrainResult) -> None:
        self.run.summary["run_dir"] = result.run_dir
        self.run.finish()


if __name__ == "__main__":
    callback = WandbCallback("tandem")
    callback.finish(tt.train(sys.argv[1], callbacks=[callback]))

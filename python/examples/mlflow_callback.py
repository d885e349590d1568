"""Logs a run to MLflow, with the trained model: python mlflow_callback.py train.toml (needs `pip install mlflow`)."""

import pathlib
import sys

import mlflow

import tandem_train as tt


class MlflowCallback(tt.Callback):
    """Sends what is logged and evaluated to the active run of MLflow."""

    def on_step(self, progress: tt.Progress) -> None:
        mlflow.log_metrics(progress.values, step=progress.step)

    def on_evaluation(self, progress: tt.Progress) -> None:
        mlflow.log_metrics({f"eval_{name}": value for name, value in progress.values.items()}, step=progress.step)


if __name__ == "__main__":
    with mlflow.start_run():
        result = tt.train(sys.argv[1], callbacks=[MlflowCallback()])
        model = pathlib.Path(result.run_dir) / "trained.onnx"
        tt.export(result.run_dir, model)
        mlflow.log_artifact(str(pathlib.Path(result.run_dir) / "train.resolved.toml"))
        mlflow.log_artifact(str(model))

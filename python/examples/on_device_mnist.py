"""The walk-through of onnxruntime's on-device training: python on_device_mnist.py MNIST_FOLDER OUTPUT_FOLDER.

The program for onnxruntime-training differs in one import: `from onnxruntime.training import api, artifacts`.
"""

import gzip
import pathlib
import sys
from typing import Any

import numpy
import numpy.typing
import onnx
import onnxruntime
import torch

from tandem_train.ort import api, artifacts

Array = numpy.typing.NDArray[Any]
BATCH, TEST_BATCH = 64, 1000


def read(folder: pathlib.Path, part: str) -> tuple[Array, Array]:
    """Rows of normalised pixels, and labels. `part`: "train" or "t10k"."""
    with gzip.open(folder / f"{part}-images-idx3-ubyte.gz") as file:
        _, count, height, width = numpy.frombuffer(file.read(16), ">i4")
        pixels = numpy.frombuffer(file.read(), numpy.uint8).reshape(count, height * width)
    with gzip.open(folder / f"{part}-labels-idx1-ubyte.gz") as file:
        labels = numpy.frombuffer(file.read()[8:], numpy.uint8).astype(numpy.int64)
    return ((pixels / numpy.float32(255) - 0.1307) / 0.3081).astype(numpy.float32), labels


def prepare(folder: pathlib.Path, pixels: int, hidden: int = 500) -> None:
    """Offline: exports the network in training form, and makes what training starts from."""
    torch.manual_seed(0)
    layers = torch.nn.Linear(pixels, hidden), torch.nn.ReLU(), torch.nn.Linear(hidden, 10)
    torch.onnx.export(
        torch.nn.Sequential(*layers),
        torch.zeros(BATCH, pixels),
        str(folder / "network.onnx"),
        input_names=["input"],
        output_names=["output"],
        dynamic_axes={"input": {0: "batch"}, "output": {0: "batch"}},
        training=torch.onnx.TrainingMode.TRAINING,
        do_constant_folding=False,
        opset_version=14,
        dynamo=False,
    )
    network = onnx.load(str(folder / "network.onnx"))
    artifacts.generate_artifacts(
        network,
        requires_grad=[weight.name for weight in network.graph.initializer],
        loss=artifacts.LossType.CrossEntropyLoss,
        optimizer=artifacts.OptimType.AdamW,
        artifact_directory=folder,
        additional_output_names=["output"],
    )


def train(folder: pathlib.Path, data: pathlib.Path, epochs: int) -> float:
    """On the device: trains, and writes the model for inferencing. Returns the accuracy."""
    images, labels = read(data, "train")
    state = api.CheckpointState.load_checkpoint(folder / "checkpoint")
    module = api.Module(folder / "training_model.onnx", state, folder / "eval_model.onnx")
    optimizer = api.Optimizer(folder / "optimizer_model.onnx", module)
    steps = epochs * -(-len(images) // BATCH)
    scheduler = api.LinearLRScheduler(optimizer, steps // 10, steps, 1e-3)
    accuracy = 0.0
    for epoch in range(epochs):
        module.train()
        losses = []
        for start in range(0, len(images), BATCH):
            loss, _ = module(images[start : start + BATCH], labels[start : start + BATCH])
            optimizer.step()
            scheduler.step()
            module.lazy_reset_grad()
            losses.append(loss)
        accuracy = test(module, *read(data, "t10k"))
        print(f"epoch {epoch + 1}: loss {sum(losses) / len(losses):.4f}, accuracy {accuracy:.4f}")
    api.CheckpointState.save_checkpoint(state, folder / "trained", include_optimizer_state=True)
    module.export_model_for_inferencing(str(folder / "inference.onnx"), ["output"])
    return accuracy


def test(module: api.Module, images: Array, labels: Array) -> float:
    """The part of the images that get their label."""
    module.eval()
    right = 0
    for start in range(0, len(images), TEST_BATCH):
        part = slice(start, start + TEST_BATCH)
        _, logits = module(images[part], labels[part])
        right += int((numpy.argmax(logits, axis=1) == labels[part]).sum())
    return right / len(images)


def infer(folder: pathlib.Path, images: Array) -> Array:
    """The labels that onnxruntime finds with the trained model."""
    session = onnxruntime.InferenceSession(str(folder / "inference.onnx"), providers=["CPUExecutionProvider"])
    (logits,) = session.run(["output"], {"input": images})
    found: Array = logits.argmax(1)
    return found


def main(data: str, output: str, epochs: int = 2) -> float:
    folder = pathlib.Path(output)
    folder.mkdir(parents=True, exist_ok=True)
    images, labels = read(pathlib.Path(data), "t10k")
    prepare(folder, images.shape[1])
    accuracy = train(folder, pathlib.Path(data), epochs)
    print("predicted", infer(folder, images[:8]), "labels", labels[:8])
    return accuracy


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])

"""Trains with a DataLoader of PyTorch: python data_loader.py model.onnx digits.npz trained.onnx.

The file of data has the arrays `image` and `label`; the model gives `logits`.
"""

import sys

import numpy
import torch
import torch.utils.data

import tandem_train as tt


def main(model: str, data: str, trained: str, epochs: int = 3, batch_size: int = 32) -> list[float]:
    """Returns the mean loss of each epoch."""
    with numpy.load(data) as file:
        tensors = [torch.from_numpy(file[name]) for name in ("image", "label")]
    samples = torch.utils.data.TensorDataset(*tensors)
    loader = torch.utils.data.DataLoader(samples, batch_size, shuffle=True)
    session = tt.Session(
        model,
        batch_size,
        loss=tt.loss.softmax_cross_entropy("logits", labels="label"),
        optimizer=tt.optim.AdamW(lr=1e-3, schedule=tt.schedule.cosine(warmup=20)),
        steps=epochs * len(loader),
    )
    means = []
    for epoch in range(epochs):
        losses = [session.step(image=image, label=label) for image, label in loader]
        means.append(sum(losses) / len(losses))
        print(f"epoch {epoch + 1}: loss {means[-1]:.4f}")
    session.save(trained)
    return means


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3])

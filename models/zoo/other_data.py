"""Computes a network's first step in PyTorch on other data: twice the batch, and another length if the export leaves it free.

`other_batch` and `other_length` of expected.json hold the loss of one step (null if PyTorch has none), `other_batch.size` how many of the first samples of
data.npz it takes, `other_length.bind` the lengths of other_length.npz; `bind` has those of data.npz.
"""

import json


def _forward_loss(network, inputs, labels):
    """A number that is not finite, and what the module refuses, is no loss to compare with."""
    import math

    import torch
    from network import loss_of, make, outputs_of

    try:
        with torch.no_grad():
            loss = loss_of(network, outputs_of(make(network), tuple(inputs.values())), list(labels.values())).item()
    except Exception:
        return None
    return loss if math.isfinite(loss) else None


def _other_batch(network, folder, batch):
    import numpy as np
    import torch

    arrays = np.load(folder / "data.npz")
    part = {n: torch.from_numpy(arrays[n][: 2 * batch]) for n in arrays.files}
    inputs = {n: part.pop(n) for n in network.inputs}
    return {"size": 2 * batch, "loss": _forward_loss(network, inputs, part)}


def _other_length(network, folder, batch):
    import numpy as np
    import torch
    from network import extents, make, make_inputs, make_labels, outputs_of

    inputs = make_inputs(network, batch, other_length=True)
    with torch.no_grad():
        labels = make_labels(network, outputs_of(make(network), tuple(inputs.values())))
    np.savez(folder / "other_length.npz", **{n: v.numpy() for n, v in {**inputs, **labels}.items()})
    return {"bind": extents(network, inputs), "loss": _forward_loss(network, inputs, labels)}


def is_complete(folder):
    return "other_batch" in json.loads((folder / "expected.json").read_text())


def write_other_data(network, folder, expected=None):
    """Adds both to expected.json."""
    from network import FIXED_BATCH, FREE_BATCH, extents, make_inputs

    path = folder / "expected.json"
    expected = expected or json.loads(path.read_text())
    batch = FREE_BATCH if expected["free"] else FIXED_BATCH
    expected["other_batch"] = _other_batch(network, folder, batch)
    if network.lengths:
        expected["bind"] = extents(network, make_inputs(network, 1))
        expected["other_length"] = _other_length(network, folder, batch)
    path.write_text(json.dumps(expected) + "\n")

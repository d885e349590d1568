"""The small dense network of the tests, with its training step in numpy."""

import numpy

BATCH = 8
LOSS = {"loss.terms": [{"kind": "mse", "predictions": "y", "targets": "t"}]}
SGD = {"optimizer": {"kind": "sgd", "lr": 0.1}}
SETTINGS = {**LOSS, **SGD}


def weights(seed=0):
    random = numpy.random.default_rng(seed)
    shapes = {"w1": (5, 4), "b1": (5,), "w2": (3, 5), "b2": (3,)}
    return {name: random.normal(0, 0.5, shape).astype(numpy.float32) for name, shape in shapes.items()}


def batch(step, size=BATCH):
    random = numpy.random.default_rng(100 + step)
    return {
        "x": random.normal(size=(size, 4)).astype(numpy.float32),
        "t": random.normal(size=(size, 3)).astype(numpy.float32),
    }


def outputs(w, x):
    return numpy.maximum(x @ w["w1"].T + w["b1"], 0) @ w["w2"].T + w["b2"]


def sgd_step(w, feeds, lr):
    """The loss before the step; changes the weights. All in double."""
    x, t = feeds["x"].astype(float), feeds["t"].astype(float)
    hidden = x @ w["w1"].T + w["b1"]
    active = numpy.maximum(hidden, 0)
    difference = active @ w["w2"].T + w["b2"] - t
    of_outputs = 2 * difference / difference.size
    of_hidden = (of_outputs @ w["w2"]) * (hidden > 0)
    gradients = {
        "w2": of_outputs.T @ active,
        "b2": of_outputs.sum(0),
        "w1": of_hidden.T @ x,
        "b1": of_hidden.sum(0),
    }
    for name, gradient in gradients.items():
        w[name] -= lr * gradient
    return (difference**2).mean()

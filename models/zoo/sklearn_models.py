"""Exports fitted models of scikit-learn by skl2onnx, and computes five steps of their training in PyTorch.

`write` writes the same files as models/zoo/export.py. Parameters have the names that the tool gives them: an initializer's, or
NODE:coefficients and NODE:intercepts of linear models, which keep them as attributes.
"""

import dataclasses
import json
import typing
import warnings

import numpy as np

STEPS, BATCH, RATE = 5, 4, 0.05
SAMPLES = 60
LOSSES = {
    "classes": ("softmax_cross_entropy", "logits", "labels"),
    "binary": ("binary_cross_entropy", "logits", "labels"),
    "numbers": ("mse", "predictions", "targets"),
}


@dataclasses.dataclass(frozen=True)
class Estimator:
    """build: makes it, unfitted. loss: one of LOSSES. targets: classes, or numbers a sample. text: classes are words."""

    name: str
    build: typing.Callable
    loss: str
    targets: int = 1
    text: bool = False


def _network(kind, **settings):
    from sklearn import neural_network

    return getattr(neural_network, kind)(hidden_layer_sizes=(6, 5), max_iter=40, random_state=1, **settings)


def _linear(kind, **settings):
    from sklearn import linear_model

    return getattr(linear_model, kind)(**settings)


def _behind(scaler, last):
    from sklearn import pipeline, preprocessing

    return pipeline.make_pipeline(getattr(preprocessing, scaler)(), last)


ESTIMATORS = [
    Estimator("linear", lambda: _linear("LinearRegression"), "numbers"),
    Estimator("ridge", lambda: _linear("Ridge"), "numbers", targets=2),
    Estimator("logistic", lambda: _linear("LogisticRegression"), "classes", targets=3),
    Estimator("logistic_binary", lambda: _linear("LogisticRegression"), "binary", targets=2),
    Estimator("logistic_text", lambda: _linear("LogisticRegression"), "classes", targets=3, text=True),
    Estimator("logistic_minmax", lambda: _behind("MinMaxScaler", _linear("LogisticRegression")), "classes", targets=3),
    Estimator("logistic_normalized", lambda: _behind("Normalizer", _linear("LogisticRegression")), "classes", targets=3),
    Estimator("mlp_scaled", lambda: _behind("StandardScaler", _network("MLPClassifier")), "classes", targets=3),
    Estimator("mlp_binary", lambda: _network("MLPClassifier"), "binary", targets=2),
    Estimator("mlp_tanh", lambda: _network("MLPClassifier", activation="tanh"), "classes", targets=3),
    Estimator("mlp_regressor", lambda: _network("MLPRegressor"), "numbers"),
]
NAMES = [e.name for e in ESTIMATORS]


def estimator_of(name):
    return next(e for e in ESTIMATORS if e.name == name)


def data_of(estimator):
    """Features, and classes or numbers, of SAMPLES samples; the first STEPS * BATCH are trained on."""
    random = np.random.default_rng(5)
    x = (2 * random.standard_normal((SAMPLES, 4)) + [1, 0, -3, 0.5]).astype(np.float32)
    mix = random.standard_normal((4, max(estimator.targets, 2)))
    if estimator.loss == "numbers":
        return x, (x @ mix[:, : estimator.targets] + 0.1 * random.standard_normal((SAMPLES, estimator.targets)))
    return x, np.argmax(x @ mix + random.standard_normal((SAMPLES, mix.shape[1])), 1)


def fitted(estimator):
    x, y = data_of(estimator)
    if estimator.loss == "numbers":
        y = y[:, 0] if estimator.targets == 1 else y
    elif estimator.text:
        y = np.array(["ash", "birch", "cedar"])[y]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # networks are fitted by a few steps alone
        return estimator.build().fit(x, y)


def to_onnx(model):
    import skl2onnx
    from skl2onnx.common.data_types import FloatTensorType

    return skl2onnx.convert_sklearn(model, initial_types=[("x", FloatTensorType([None, 4]))], target_opset={"": 18, "ai.onnx.ml": 3})


def _numbers(node, name):
    return np.array(next((a.floats for a in node.attribute if a.name == name), []), np.float32)


def _text(node, name):
    return next((a.s.decode() for a in node.attribute if a.name == name), "")


def attribute_weights(model):
    """Weights that linear models of ai.onnx.ml keep as attributes, by the tool's names; of two mirrored rows the second."""
    weights = {}
    for node in model.graph.node:
        if node.op_type not in ("LinearClassifier", "LinearRegressor"):
            continue
        w, b = _numbers(node, "coefficients"), _numbers(node, "intercepts")
        w = w.reshape(max(len(b), 1), -1)
        if len(b) == 2 and _text(node, "post_transform") == "LOGISTIC" and (w[0] == -w[1]).all() and b[0] == -b[1]:
            w, b = w[1:], b[1:]
        weights[f"{node.name}:coefficients"] = w
        weights[f"{node.name}:intercepts"] = b
    return weights


def with_weights(model, weights):
    """A copy of the file with these weights, by the tool's names."""
    import onnx
    import onnx.numpy_helper

    model = onnx.ModelProto.FromString(model.SerializeToString())
    for node in model.graph.node:
        for attribute in node.attribute:
            value = weights.get(f"{node.name}:{attribute.name}")
            if value is None:
                continue
            rows = np.concatenate((-value, value)) if 2 * value.size == len(attribute.floats) else value
            del attribute.floats[:]
            attribute.floats.extend(rows.ravel().tolist())
    for tensor in model.graph.initializer:
        if tensor.name in weights:
            like = onnx.numpy_helper.to_array(tensor)
            tensor.CopyFrom(onnx.numpy_helper.from_array(weights[tensor.name].reshape(like.shape), tensor.name))
    return model


def layers_of(model, onnx_model):
    """[(weight, bias)]: names of the file's parameters, first layer first, and whether weights are transposed; the value of the scores."""
    import onnx.numpy_helper

    last = model[-1] if hasattr(model, "steps") else model
    linear = [n for n in onnx_model.graph.node if n.op_type in ("LinearClassifier", "LinearRegressor")]
    if linear:
        node = linear[0]
        names = [(f"{node.name}:coefficients", f"{node.name}:intercepts")]
        return names, True, f"{node.name}:scores" if node.op_type == "LinearClassifier" else None
    arrays = {i.name: onnx.numpy_helper.to_array(i) for i in onnx_model.graph.initializer}

    def name_of(value):
        wanted = value.astype(np.float32).ravel()
        return next(n for n, a in arrays.items() if a.dtype == np.float32 and a.size == wanted.size and (a.ravel() == wanted).all())

    names = [(name_of(w), name_of(b)) for w, b in zip(last.coefs_, last.intercepts_)]
    ends = [n for n in onnx_model.graph.node if n.op_type in ("Softmax", "Sigmoid")]
    return names, False, ends[-1].input[0] if ends else None


def trained(estimator, model, onnx_model, rate=RATE, steps=STEPS, batch=BATCH):
    """Losses of steps of SGD in PyTorch, and the parameters after them, by the tool's names."""
    import onnx.numpy_helper
    import torch

    x, y = data_of(estimator)
    if hasattr(model, "steps"):
        x = model[:-1].transform(x)
    last = model[-1] if hasattr(model, "steps") else model
    x = torch.tensor(np.asarray(x, np.float32))
    names, transposed, _ = layers_of(model, onnx_model)
    arrays = {i.name: onnx.numpy_helper.to_array(i) for i in onnx_model.graph.initializer} | attribute_weights(onnx_model)
    parameters = {n: torch.tensor(arrays[n].copy(), requires_grad=True) for pair in names for n in pair}
    activation = torch.tanh if getattr(last, "activation", "relu") == "tanh" else torch.relu

    def scores(rows):
        for i, (w, b) in enumerate(names):
            weight = parameters[w].T if transposed else parameters[w]
            rows = rows @ weight + parameters[b].reshape(-1)
            rows = activation(rows) if i + 1 < len(names) else rows
        return rows

    functions = torch.nn.functional
    optimizer = torch.optim.SGD(parameters.values(), lr=rate)
    losses = []
    for step in range(steps):
        part = slice(step * batch, (step + 1) * batch)
        optimizer.zero_grad()
        out = scores(x[part])
        if estimator.loss == "classes":
            loss = functions.cross_entropy(out, torch.tensor(y[part]))
        elif estimator.loss == "binary":
            loss = functions.binary_cross_entropy_with_logits(out, torch.tensor(y[part, None], dtype=torch.float32))
        else:
            loss = functions.mse_loss(out, torch.tensor(y[part], dtype=torch.float32))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, {n: p.detach().numpy() for n, p in parameters.items()}


def fed(estimator):
    """The arrays of data.npz."""
    x, y = data_of(estimator)
    y = y.astype(np.int64) if estimator.loss == "classes" else y.reshape(len(y), -1).astype(np.float32)
    if estimator.loss == "binary":
        y = y.reshape(-1, 1)
    return {"x": x[: STEPS * BATCH], "target": y[: STEPS * BATCH]}


def loss_value(model, onnx_model):
    return layers_of(model, onnx_model)[2] or onnx_model.graph.output[0].name


def train_toml(estimator, value):
    kind, key, labels = LOSSES[estimator.loss]
    return f"""model      = "model.onnx"
batch_size = {BATCH}
steps      = {STEPS}
[loss]
terms = [ {{ name = "loss", kind = "{kind}", {key} = "{value}", {labels} = "target" }} ]
[optimizer]
kind = "sgd"
lr   = {RATE:g}
[data]
kind = "npz"
[data.train]
files   = [ "data.npz" ]
shuffle = "none"
[log]
every = "1 steps"
"""


def write(name, folder):
    """model.onnx, train.toml, data.npz, expected.json and expected.safetensors, as export.py writes them."""
    import onnx
    import safetensors.numpy

    estimator = estimator_of(name)
    model = fitted(estimator)
    onnx_model = to_onnx(model)
    folder.mkdir(parents=True, exist_ok=True)
    onnx.save(onnx_model, str(folder / "model.onnx"))
    losses, after = trained(estimator, model, onnx_model)
    np.savez(folder / "data.npz", **fed(estimator))
    (folder / "train.toml").write_text(train_toml(estimator, loss_value(model, onnx_model)))
    safetensors.numpy.save_file({n: np.ascontiguousarray(v) for n, v in after.items()}, str(folder / "expected.safetensors"))
    other_batch = {"size": 2 * BATCH, "loss": trained(estimator, model, onnx_model, steps=1, batch=2 * BATCH)[0][0]}
    expected = dict(losses=losses, spread=0.0, weights_spread=0.0, free=True, lr=RATE, note="", file=0.0, other_batch=other_batch)
    (folder / "expected.json").write_text(json.dumps(expected) + "\n")

"""Writes tests/data/row_optimizers/: 50 steps of every optimizer for tables whose gradients come as rows; a file for each optimizer.

    python tests/scripts/row_optimizers.py [--check mindspore|torch|tensorflow]

Each formula is written as published, in NumPy's float64, one row after the other. --check does not write, but compares with a library
that has the optimizer (float32) if it is installed.

For all optimizers: a step takes ids [n] and gradient rows [n, D]. The gradient of a table's row is the sum of the gradient rows with
its id, in their order. Rows that occur are updated once; all others keep every bit of value and states, except with formulas marked @dense,
which are dense. Steps count from 1, and a step with an empty batch counts, too. A row that occurs with a sum of zero is updated like any
other.

Gradients are multiples of 1/64 below 2: float32 sums of them are exact in any order.
"""

import argparse
import json
import pathlib

import numpy as np

DATA = pathlib.Path(__file__).parents[1] / "data" / "row_optimizers"
STEPS = 50
TABLES = {"d1": (37, 1), "d5": (37, 5), "d19": (23, 19)}  # rows, columns
TABLES_WITH_STATES = ("d1", "d5")
EMPTY, EQUAL, DIFFERENT, CANCELLING = (7, 31), (13, 44), (20, 50), (26,)


def dense(formula):
    """Marks a formula under which rows that occur nowhere move, too."""
    formula.is_dense = True
    return formula


# ---- the formulas: update(row's states, g, t, options) changes the states in place. o = options, t = step from 1


def ftrl(s, g, t, o):
    """FTRL-Proximal. Source: McMahan et al., Ad Click Prediction: a View from the Trenches, KDD 2013, algorithm 1, with the exponent
    free as in Keras's documentation of Ftrl (lr_power = -0.5 is the paper's square root).

    n' = n + g^2; sigma = (n'^-lr_power - n^-lr_power) / lr; z += g - sigma * w with the old w;
    w = 0 where |z| <= l1, else (sign(z) * l1 - z) / ((beta + n'^-lr_power) / lr + l2). n starts at initial_accumulator, z at 0.
    """
    _proximal(s, g, o, g, o["l2"])


def ftrl_tensorflow(s, g, t, o):
    """Source: TensorFlow's API documentation, tf.raw_ops.ApplyFtrlV2 (ApplyFtrl: l2_shrinkage = 0) and Keras's of beta.

    grad_with_shrinkage = g + 2 * l2_shrinkage * w with the old w; accum_new = accum + g^2 (without shrinkage);
    linear += grad_with_shrinkage - (accum_new^-lr_power - accum^-lr_power) / lr * w;
    quadratic = accum_new^-lr_power / lr + 2 * l2; w = (sign(linear) * l1 - linear) / quadratic where |linear| > l1, else 0.
    The optimizer passes l2 + beta / (2 lr) for l2, which adds beta / lr. (The page prints 1 / (accum_new^lr_power * lr): the same.)
    """
    _proximal(s, g, o, g + 2 * o["l2_shrinkage"] * s["w"], 2 * o["l2"])


def ftrl_mindspore(s, g, t, o):
    """Source: MindSpore's documentation of mindspore.nn.FTRL, whose sparse form on the host is FusedSparseFtrl.

    m' = m + g^2; u += g - (m'^-p - m^-p) / lr * w; w = (sign(u) * l1 - u) / (m'^-p / lr + 2 * l2) where |u| > l1, else 0.
    TensorFlow's without shrinkage and beta.
    """
    _proximal(s, g, {**o, "beta": 0.0}, g, 2 * o["l2"])


def _accumulate(s, g, o, shrunk):
    """New accumulator; its power; linear moved on."""
    accumulated = s["accumulator"] + g * g
    power, old = accumulated ** -o["lr_power"], s["accumulator"] ** -o["lr_power"]
    s["linear"][:] = s["linear"] + shrunk - (power - old) / o["lr"] * s["w"]
    s["accumulator"][:] = accumulated
    return power


def _proximal(s, g, o, shrunk, l2):
    power = _accumulate(s, g, o, shrunk)
    z = s["linear"]
    w = (np.sign(z) * o["l1"] - z) / ((o["beta"] + power) / o["lr"] + l2)
    s["w"][:] = np.where(np.abs(z) > o["l1"], w, 0.0)


def group_ftrl(s, g, t, o):
    """FTRL with group lasso: a whole row becomes zero. Source: the optimizers of DeepRec and of TFPlus (GroupSparseApplyFtrl), which cite
    sparse group lasso (Yue et al., arXiv 2107.14432); here with l2 and beta as in `ftrl`, not doubled.

    n and z as in `ftrl`; norm = sqrt(sum over the row of z^2); w = 0 where norm <= l1, else
    w = (l1 / norm - 1) * z / ((beta + n'^-lr_power) / lr + l2). l1 is not multiplied by the root of the row's length.
    """
    power = _accumulate(s, g, o, g)
    z = s["linear"]
    norm = np.sqrt(np.sum(z * z))
    if norm <= o["l1"]:
        s["w"][:] = 0.0
    else:
        s["w"][:] = (o["l1"] / norm - 1) * z / ((o["beta"] + power) / o["lr"] + o["l2"])


def lazy_adam(s, g, t, o):
    """Source: MindSpore's documentation of FusedSparseLazyAdam (what mindspore.nn.LazyAdam runs on the host); PyTorch's SparseAdam is the
    same. Rows without a gradient keep their moments, and are not moved by them; t is the run's step, not the row's.

    m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g^2; l = lr * sqrt(1 - beta2^t) / (1 - beta1^t); w -= l * m / (sqrt(v) + eps):
    eps is added before the correction of v (epsilon_form "onnx"). beta^t already holds in step 1.
    """
    _moments(s, g, o)
    rate = o["lr"] * np.sqrt(1 - o["beta2"] ** t) / (1 - o["beta1"] ** t)
    s["w"][:] -= rate * s["exp_avg"] / (np.sqrt(s["exp_avg_sq"]) + o["eps"])


def lazy_adam_pytorch(s, g, t, o):
    """Lazy rows with the epsilon of Kingma and Ba's algorithm 1 and of torch.optim.Adam: added after the correction of v. MindSpore's page
    of nn.LazyAdam shows this form, though its sparse kernel computes the other one."""
    adam(s, g, t, o)


@dense
def adam(s, g, t, o):
    """Source: PyTorch's documentation of torch.optim.Adam.

    m and v as above; w -= lr / (1 - beta1^t) * m / (sqrt(v) / sqrt(1 - beta2^t) + eps).
    """
    _moments(s, g, o)
    root = np.sqrt(s["exp_avg_sq"]) / np.sqrt(1 - o["beta2"] ** t)
    s["w"][:] -= o["lr"] / (1 - o["beta1"] ** t) * s["exp_avg"] / (root + o["eps"])


def _moments(s, g, o):
    s["exp_avg"][:] = o["beta1"] * s["exp_avg"] + (1 - o["beta1"]) * g
    s["exp_avg_sq"][:] = o["beta2"] * s["exp_avg_sq"] + (1 - o["beta2"]) * g * g


def adagrad(s, g, t, o):
    """Source: PyTorch's documentation of torch.optim.Adagrad (lr_decay = 0), which takes sparse gradients.

    sum += g^2; w -= lr * g / (sqrt(sum) + eps). sum starts at initial_accumulator.
    """
    s["sum"][:] += g * g
    s["w"][:] -= o["lr"] * g / (np.sqrt(s["sum"]) + o["eps"])


def rowwise_adagrad(s, g, t, o):
    """Source: FBGEMM's EXACT_ROWWISE_ADAGRAD (Caffe2's RowWiseSparseAdagrad): one sum a row, of the mean of squares over its columns.

    sum += mean over columns of g^2; w -= lr / (sqrt(sum) + eps) * g.
    """
    s["row_sum"][:] += np.mean(g * g)
    s["w"][:] -= o["lr"] / (np.sqrt(s["row_sum"]) + o["eps"]) * g


def sgd(s, g, t, o):
    """w -= lr * g."""
    s["w"][:] -= o["lr"] * g


@dense
def momentum(s, g, t, o):
    """Source: ONNX's ai.onnx.preview.training.Momentum, mode standard or nesterov; MindSpore's documentation of nn.Momentum is the same
    with beta = 1.

    v = momentum v + beta_adjusted g, beta_adjusted = 1 in the first step, then beta; w -= lr v, with nesterov lr (g + momentum v).
    """
    s["velocity"][:] = o["momentum"] * s["velocity"] + (o["beta"] if t > 1 else 1.0) * g
    s["w"][:] -= o["lr"] * (g + o["momentum"] * s["velocity"] if o["nesterov"] else s["velocity"])


@dense
def rmsprop(s, g, t, o):
    """Source: PyTorch's documentation of torch.optim.RMSprop.

    v = alpha v + (1 - alpha) g^2; centered: a = alpha a + (1 - alpha) g, v~ = v - a^2, else v~ = v; d = g / (sqrt(v~) + eps);
    momentum > 0: b = momentum b + d, w -= lr b; else w -= lr d.
    """
    s["square_avg"][:] = o["alpha"] * s["square_avg"] + (1 - o["alpha"]) * g * g
    square = s["square_avg"]
    if o["centered"]:
        s["grad_avg"][:] = o["alpha"] * s["grad_avg"] + (1 - o["alpha"]) * g
        square = square - s["grad_avg"] ** 2
    step = g / (np.sqrt(square) + o["eps"])
    if o["momentum"] > 0:
        s["momentum_buffer"][:] = o["momentum"] * s["momentum_buffer"] + step
        step = s["momentum_buffer"]
    s["w"][:] -= o["lr"] * step


@dense
def adadelta(s, g, t, o):
    """Source: Zeiler, arXiv:1212.5701, algorithm 1, with PyTorch's lr.

    v = rho v + (1 - rho) g^2; d = sqrt(u + eps) / sqrt(v + eps) g; u = rho u + (1 - rho) d^2; w -= lr d.
    """
    s["square_avg"][:] = o["rho"] * s["square_avg"] + (1 - o["rho"]) * g * g
    step = np.sqrt(s["acc_delta"] + o["eps"]) / np.sqrt(s["square_avg"] + o["eps"]) * g
    s["acc_delta"][:] = o["rho"] * s["acc_delta"] + (1 - o["rho"]) * step * step
    s["w"][:] -= o["lr"] * step


@dense
def adamax(s, g, t, o):
    """Source: PyTorch's documentation of torch.optim.Adamax.

    m as adam's; u = max(beta2 u, |g| + eps); w -= lr / (1 - beta1^t) m / u.
    """
    s["exp_avg"][:] = o["beta1"] * s["exp_avg"] + (1 - o["beta1"]) * g
    s["exp_inf"][:] = np.maximum(o["beta2"] * s["exp_inf"], np.abs(g) + o["eps"])
    s["w"][:] -= o["lr"] / (1 - o["beta1"] ** t) * s["exp_avg"] / s["exp_inf"]


@dense
def nadam(s, g, t, o):
    """Source: PyTorch's documentation of torch.optim.NAdam.

    mu_t = beta1 (1 - 0.96^(t momentum_decay) / 2); m and v as adam's; m^ = mu_{t+1} m / (1 - prod_{i <= t+1} mu_i)
    + (1 - mu_t) g / (1 - prod_{i <= t} mu_i); w -= lr m^ / (sqrt(v / (1 - beta2^t)) + eps).
    """
    _moments(s, g, o)
    mu = [o["beta1"] * (1 - 0.5 * 0.96 ** (i * o["momentum_decay"])) for i in range(1, t + 2)]
    moment = mu[-1] * s["exp_avg"] / (1 - np.prod(mu)) + (1 - mu[-2]) * g / (1 - np.prod(mu[:-1]))
    s["w"][:] -= o["lr"] * moment / (np.sqrt(s["exp_avg_sq"] / (1 - o["beta2"] ** t)) + o["eps"])


@dense
def radam(s, g, t, o):
    """Source: Liu et al., arXiv:1908.03265, algorithm 2, with PyTorch's eps and its bound of 5 for rho_t.

    rho_t = rho - 2 t beta2^t / (1 - beta2^t), rho = 2 / (1 - beta2) - 1; where rho_t > 5, l = sqrt(1 - beta2^t) / (sqrt(v) + eps),
    r = sqrt((rho_t - 4)(rho_t - 2) rho / ((rho - 4)(rho - 2) rho_t)), w -= lr m^ r l; else w -= lr m^.
    """
    _moments(s, g, o)
    power = o["beta2"] ** t
    rho = 2 / (1 - o["beta2"]) - 1
    now = rho - 2 * t * power / (1 - power)
    step = s["exp_avg"] / (1 - o["beta1"] ** t)
    if now > 5:
        r = np.sqrt((now - 4) * (now - 2) * rho / ((rho - 4) * (rho - 2) * now))
        step = step * r * np.sqrt(1 - power) / (np.sqrt(s["exp_avg_sq"]) + o["eps"])
    s["w"][:] -= o["lr"] * step


@dense
def lion(s, g, t, o):
    """Source: Chen et al., arXiv:2302.06675, algorithm 2.

    w -= lr (sign(beta1 m + (1 - beta1) g) + weight_decay w); m = beta2 m + (1 - beta2) g.
    """
    direction = np.sign(o["beta1"] * s["exp_avg"] + (1 - o["beta1"]) * g)
    s["w"][:] -= o["lr"] * (direction + o["weight_decay"] * s["w"])
    s["exp_avg"][:] = o["beta2"] * s["exp_avg"] + (1 - o["beta2"]) * g


# ---- where states start: states(table [rows, columns], options), w first


def _start(w, o):
    """The start of an accumulator, one number for each row."""
    return np.full((len(w), 1), o.get("initial_accumulator", 0.0))


def no_states(w, o):
    return {"w": w}


def ftrl_states(w, o):
    return {"w": w, "accumulator": _start(w, o) + 0 * w, "linear": 0 * w}


def adam_states(w, o):
    return {"w": w, "exp_avg": 0 * w, "exp_avg_sq": 0 * w}


def adagrad_states(w, o):
    return {"w": w, "sum": _start(w, o) + 0 * w}


def rowwise_states(w, o):
    return {"w": w, "row_sum": _start(w, o)}


def zeros(*names):
    """States that start at 0."""
    return lambda w, o: {"w": w, **{name: 0 * w for name in names}}


FTRL = {"lr": 0.05, "l1": 2.0, "l2": 0.1, "beta": 1.0, "lr_power": -0.5, "initial_accumulator": 0.1}
TF = {**FTRL, "dialect": "tensorflow", "l2_shrinkage": 0.0, "beta": 0.0}
RMSPROP = {"lr": 0.01, "alpha": 0.9, "eps": 1e-3}
ADAM = {"lr": 0.01, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8}
WIDE = {"lr": 0.05, "l1": 1e-8, "l2": 1e-8, "beta": 0.0, "lr_power": -0.5, "initial_accumulator": 1.0}
CASES = [  # name, kind, formula, states, options
    ("ftrl", "ftrl", ftrl, ftrl_states, FTRL),
    ("ftrl_power", "ftrl", ftrl, ftrl_states, {**FTRL, "lr_power": -0.7, "l1": 1.0}),
    ("ftrl_wide", "ftrl", ftrl, ftrl_states, WIDE),
    ("ftrl_tensorflow", "ftrl", ftrl_tensorflow, ftrl_states, TF),
    ("ftrl_shrinkage", "ftrl", ftrl_tensorflow, ftrl_states, {**TF, "l2_shrinkage": 0.01, "beta": 0.5, "lr_power": -0.6}),
    ("ftrl_mindspore", "ftrl", ftrl_mindspore, ftrl_states, {**TF, "dialect": "mindspore", "initial_accumulator": 1.0}),
    ("group_ftrl", "group_ftrl", group_ftrl, ftrl_states, {**FTRL, "l1": 9.0}),
    ("group_ftrl_strong", "group_ftrl", group_ftrl, ftrl_states, {**FTRL, "l1": 30.0, "beta": 0.0, "lr_power": -0.6}),
    ("lazy_adam", "lazy_adam", lazy_adam, adam_states, {**ADAM, "epsilon_form": "onnx"}),
    ("lazy_adam_eps", "lazy_adam", lazy_adam, adam_states, {**ADAM, "epsilon_form": "onnx", "eps": 1e-2, "beta1": 0.8, "beta2": 0.99}),
    ("lazy_adam_pytorch", "lazy_adam", lazy_adam_pytorch, adam_states, {**ADAM, "epsilon_form": "pytorch", "eps": 1e-2}),
    ("adam", "adam", adam, adam_states, {**ADAM, "epsilon_form": "pytorch", "eps": 1e-4}),
    ("adagrad", "adagrad", adagrad, adagrad_states, {"lr": 0.02, "eps": 1e-10, "initial_accumulator": 0.0}),
    ("adagrad_initial", "adagrad", adagrad, adagrad_states, {"lr": 0.1, "eps": 1e-3, "initial_accumulator": 0.25}),
    ("rowwise_adagrad", "rowwise_adagrad", rowwise_adagrad, rowwise_states, {"lr": 0.05, "eps": 1e-8, "initial_accumulator": 0.0}),
    ("sgd", "sgd", sgd, no_states, {"lr": 0.1}),
    ("momentum", "momentum", momentum, zeros("velocity"), {"lr": 0.05, "momentum": 0.9, "beta": 1.0, "nesterov": False}),
    ("momentum_onnx", "momentum", momentum, zeros("velocity"), {"lr": 0.05, "momentum": 0.8, "beta": 0.5, "nesterov": True}),
    ("rmsprop", "rmsprop", rmsprop, zeros("square_avg"), {**RMSPROP, "momentum": 0.0, "centered": False}),
    ("rmsprop_all", "rmsprop", rmsprop, zeros("square_avg", "grad_avg", "momentum_buffer"), {**RMSPROP, "momentum": 0.7, "centered": True}),
    ("adadelta", "adadelta", adadelta, zeros("square_avg", "acc_delta"), {"lr": 1.0, "rho": 0.9, "eps": 1e-6}),
    ("adamax", "adamax", adamax, zeros("exp_avg", "exp_inf"), {**ADAM, "eps": 1e-4}),
    ("nadam", "nadam", nadam, adam_states, {**ADAM, "eps": 1e-4, "momentum_decay": 4e-3}),
    ("radam", "radam", radam, adam_states, {**ADAM, "eps": 1e-4}),
    ("lion", "lion", lion, zeros("exp_avg"), {"lr": 0.01, "beta1": 0.9, "beta2": 0.99, "weight_decay": 0.1}),
]


def untouched(rows):
    return (3, rows // 2, rows - 2)


def make_batches(name):
    """The first table [rows, columns] float32, and 50 pairs of ids [n] int64 and gradients [n, columns] float32."""
    rows, columns = TABLES[name]
    random = np.random.default_rng(1000 + columns)
    first = (random.integers(-64, 65, (rows, columns)) / 256).astype(np.float32)
    allowed = np.setdiff1d(np.arange(rows), untouched(rows))
    batches = []
    for step in range(1, STEPS + 1):
        if step in EMPTY:
            ids = np.empty(0, np.int64)
        elif step in EQUAL:
            ids = np.full(24, allowed[step % len(allowed)])
        elif step in DIFFERENT:
            ids = random.permutation(allowed)
        else:
            popular = len(allowed) * random.random(random.integers(1, 30)) ** 3
            ids = allowed[popular.astype(np.int64)]
        if step in CANCELLING:
            ids = allowed[[2, 5, 2, 9]]
        grads = random.integers(-127, 128, (len(ids), columns)) / 64
        if step in CANCELLING:
            grads[2], grads[3] = -grads[0], 0
        batches.append((ids.astype(np.int64), grads.astype(np.float32)))
    return first, batches


def row_gradients(ids, grads):
    """Unique ids in ascending order and the sums of their gradients."""
    unique, inverse = np.unique(ids, return_inverse=True)
    sums = np.zeros((len(unique), grads.shape[1]))
    np.add.at(sums, inverse, grads.astype(np.float64))
    return unique, sums


def is_dense(update):
    return hasattr(update, "is_dense")


def run(update, start, options, first, batches):
    states = start(first.astype(np.float64), options)
    for t, (ids, grads) in enumerate(batches, 1):
        unique, sums = row_gradients(ids, grads)
        if is_dense(update):
            all_rows = np.zeros(first.shape)
            all_rows[unique] = sums
            unique, sums = np.arange(len(first)), all_rows
        for row, g in zip(unique, sums):
            update({key: value[row] for key, value in states.items()}, g, t, options)
    return states


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", choices=("mindspore", "torch", "tensorflow"))
    options = parser.parse_args()
    if options.check:
        import row_optimizers_peers

        row_optimizers_peers.check(options.check)
        return
    kinds, batches_of = {"tables": {}}, {}
    for table in TABLES:
        first, batches = batches_of[table] = make_batches(table)
        kinds["tables"][f"{table}.initial"] = first
        kinds["tables"][f"{table}.offsets"] = np.cumsum([0] + [len(ids) for ids, _ in batches]).astype(np.int64)
        kinds["tables"][f"{table}.ids"] = np.concatenate([ids for ids, _ in batches])
        kinds["tables"][f"{table}.gradients"] = np.concatenate([grads for _, grads in batches])
    cases = []
    for name, kind, update, start, settings in CASES:
        states = list(start(np.zeros((1, 1)), settings))
        cases.append({"name": name, "kind": kind, "options": settings, "states": states[1:]})
        for table, (first, batches) in batches_of.items():
            states = run(update, start, settings, first, batches)
            assert all(np.isfinite(value).all() for value in states.values()), name
            if not is_dense(update):
                assert (states["w"][list(untouched(len(first)))] == first[list(untouched(len(first)))]).all()
            for key, value in states.items():
                if key == "w" or table in TABLES_WITH_STATES:
                    kinds.setdefault(kind, {})[f"{name}.{table}.{key}"] = value
    content = {"steps": STEPS, "tables": {k: {"rows": r, "columns": c, "untouched": untouched(r)} for k, (r, c) in TABLES.items()}}
    DATA.mkdir(exist_ok=True)
    (DATA / "cases.json").write_text(json.dumps({**content, "cases": cases}, indent=1) + "\n")
    for kind, arrays in kinds.items():
        path = DATA / f"{kind}.npz"
        np.savez_compressed(path, **arrays)
        print(f"{path}: {len(arrays)} arrays, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()

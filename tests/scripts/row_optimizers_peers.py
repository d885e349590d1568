"""Compares the formulas of row_optimizers.py with the libraries they are published for: python row_optimizers.py --check LIBRARY.

The libraries compute in float32 (torch in float64): differences are relative to the largest number of the array and must stay below 2e-5
(1e-12). A difference in a formula shows as 1e-3 and more with these cases.
"""

import numpy as np
from row_optimizers import CASES, TABLES, make_batches, row_gradients, run


def mindspore_step(name, options, first):
    """MindSpore 2.10: the two fused kernels of its Wide & Deep, which sum duplicates themselves."""
    import os

    os.environ.setdefault("GLOG_v", "3")
    import mindspore as ms
    from mindspore import Parameter, Tensor, nn
    from mindspore.ops import operations as P

    ms.set_device("CPU")
    ms.set_context(mode=ms.GRAPH_MODE)
    o = options

    class Ftrl(nn.Cell):
        def __init__(self):
            super().__init__()
            self.op = P.FusedSparseFtrl(lr=o["lr"], l1=o["l1"], l2=o["l2"], lr_power=o["lr_power"])
            start = np.full_like(first, o["initial_accumulator"])
            self.states = [Parameter(Tensor(x), name=n) for n, x in (("w", first), ("a", start), ("l", 0 * first))]
            self.w, self.a, self.l = self.states

        def construct(self, grads, ids, t):
            return self.op(self.w, self.a, self.l, grads, ids)

    class LazyAdam(nn.Cell):
        def __init__(self):
            super().__init__()
            self.op = P.FusedSparseLazyAdam(False, False)
            self.states = [Parameter(Tensor(x), name=n) for n, x in (("w", first), ("m", 0 * first), ("v", 0 * first))]
            self.w, self.m, self.v = self.states

        def construct(self, grads, ids, powers):
            one, two = powers
            return self.op(self.w, self.m, self.v, one, two, o["lr"], o["beta1"], o["beta2"], o["eps"], grads, ids)

    cell = Ftrl() if name == "ftrl_mindspore" else LazyAdam()

    def step(ids, grads, t):
        if len(ids) == 0:  # its kernels refuse shapes of 0
            return
        powers = 0
        if name != "ftrl_mindspore":
            powers = tuple(Tensor(np.float32(o[b] ** t)) for b in ("beta1", "beta2"))
        cell(Tensor(grads), Tensor(ids.astype(np.int32)), powers)

    return step, lambda: [state.asnumpy() for state in cell.states]


def torch_step(name, options, first):
    """PyTorch's SparseAdam, Adagrad with sparse gradients and Adam, in float64."""
    import torch

    o, w = options, torch.nn.Parameter(torch.from_numpy(first.astype(np.float64)))
    betas = (o.get("beta1"), o.get("beta2"))
    if name.startswith("lazy_adam"):
        optimizer = torch.optim.SparseAdam([w], o["lr"], betas=betas, eps=o["eps"])
    elif name == "adam":
        optimizer = torch.optim.Adam([w], o["lr"], betas=betas, eps=o["eps"])
    elif name.startswith("adagrad"):
        optimizer = torch.optim.Adagrad(
            [w], o["lr"], eps=o["eps"], initial_accumulator_value=o["initial_accumulator"]
        )
    else:
        raise SystemExit(f"no optimizer of PyTorch is known for {name}")

    def step(ids, grads, t):
        w.grad = torch.sparse_coo_tensor(
            torch.from_numpy(ids)[None], torch.from_numpy(grads.astype(np.float64)), w.shape
        )
        if name == "adam":
            w.grad = w.grad.to_dense()
        optimizer.step()

    def states():
        names = ("sum",) if name.startswith("adagrad") else ("exp_avg", "exp_avg_sq")
        return [w.detach().numpy()] + [optimizer.state[w][n].numpy() for n in names]

    return step, states


def tensorflow_step(name, options, first):
    """TensorFlow's ResourceSparseApplyFtrlV2 on unique rows, as tf.keras and tf.compat.v1 call it."""
    import tensorflow as tf

    o = options
    start = np.full_like(first, o["initial_accumulator"])
    w, accumulator, linear = (tf.Variable(x) for x in (first, start, 0 * first))

    def step(ids, grads, t):
        unique, sums = row_gradients(ids, grads)
        tf.raw_ops.ResourceSparseApplyFtrlV2(
            var=w.handle,
            accum=accumulator.handle,
            linear=linear.handle,
            grad=sums.astype(np.float32),
            indices=unique,
            lr=o["lr"],
            l1=o["l1"],
            l2=o["l2"] + o["beta"] / (2 * o["lr"]),
            l2_shrinkage=o["l2_shrinkage"],
            lr_power=o["lr_power"],
        )

    return step, lambda: [x.numpy() for x in (w, accumulator, linear)]


LIBRARIES = {  # names of cases, the library's step, largest difference
    "mindspore": (("ftrl_mindspore", "lazy_adam", "lazy_adam_eps"), mindspore_step, 2e-5),
    "torch": (("lazy_adam", "lazy_adam_eps", "adam", "adagrad", "adagrad_initial"), torch_step, 1e-12),
    "tensorflow": (("ftrl_tensorflow", "ftrl_shrinkage"), tensorflow_step, 2e-5),
}


def check(library):
    names, make, bound = LIBRARIES[library]
    for name, _, update, start, options in CASES:
        if name not in names:
            continue
        for table in TABLES:
            first, batches = make_batches(table)
            expected = list(run(update, start, options, first, batches).values())
            step, states = make(name, options, first)
            for t, (ids, grads) in enumerate(batches, 1):
                step(ids, grads, t)
            worst = max(np.max(np.abs(a - b)) / np.max(np.abs(b)) for a, b in zip(states(), expected))
            print(f"{library} {name} {table}: {worst:.1e}", flush=True)
            assert worst < bound, (name, table)

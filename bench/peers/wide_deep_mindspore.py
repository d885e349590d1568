"""Times Wide & Deep in MindSpore 2.10 (graph mode, CPU): one process is one measurement, printed as one JSON line.

    python bench/peers/wide_deep_mindspore.py WORKLOAD [--threads N] [--seconds S] [--list]

Needs an environment of its own: pip install -r bench/peers/requirements-mindspore.txt (PyTorch's brings other versions of protobuf).
Sizes and ids are those of wide_deep_torch.py.

wide_deep_sparse_{zipf,uniform}: only the sparse part: both lookups (EmbeddingLookup on the host), FusedSparseFtrl for the wide table,
FusedSparseLazyAdam for the deep one; both sum the gradients of repeated ids themselves. `parts` are its medians in ms.
wide_deep_{zipf,uniform}: a whole step with FTRL for the wide table and the bias, LazyAdam for the rest.
"""

import os

import wide_deep_common as common

VARIANTS = {
    f"wide_deep_{part}{kind}": ("default",)
    for part in ("", "sparse_")
    for kind in ("zipf", "uniform")
}


def sparse_part(ids, parts):
    import numpy as np
    from mindspore import Parameter, Tensor, nn
    from mindspore.ops import operations as P

    random = np.random.default_rng(1)
    flat = Tensor(ids.reshape(-1).astype(np.int32))

    def table(dim, name, fill=None):
        values = random.standard_normal((common.ROWS, dim)) * 0.01
        if fill is not None:
            values[:] = fill
        return Parameter(Tensor(values.astype(np.float32)), name=name)

    class LookUp(nn.Cell):
        def __init__(self, table):
            super().__init__()
            self.table, self.op = table, P.EmbeddingLookup().set_device("CPU")

        def construct(self, at):
            return self.op(self.table, at, 0)[-1:]  # the rest stays inside; reading this waits

    class Ftrl(nn.Cell):
        def __init__(self, table_):
            super().__init__()
            self.w, self.a, self.l = table_, table(1, "accumulator", 1), table(1, "linear", 0)
            self.op = P.FusedSparseFtrl(lr=0.05, l1=1e-8, l2=1e-8, lr_power=-0.5)
            self.op.set_device("CPU")

        def construct(self, grads, at):
            return self.op(self.w, self.a, self.l, grads, at)

    class LazyAdam(nn.Cell):
        def __init__(self, table_):
            super().__init__()
            self.w, self.m, self.v = table_, table(common.DIM, "m", 0), table(common.DIM, "v", 0)
            self.op = P.FusedSparseLazyAdam(False, False)
            self.op.set_device("CPU")

        def construct(self, grads, at, one, two):
            return self.op(self.w, self.m, self.v, one, two, 3.5e-4, 0.9, 0.999, 1e-8, grads, at)

    wide, deep = table(1, "wide"), table(common.DIM, "deep")
    ask_wide, ask_deep, ftrl, adam = LookUp(wide), LookUp(deep), Ftrl(wide), LazyAdam(deep)
    grads = {
        dim: Tensor((1e-3 * random.standard_normal((ids.size, dim))).astype(np.float32))
        for dim in (1, common.DIM)
    }
    steps = [0]

    def step():
        steps[0] += 1
        one, two = (Tensor(np.float32(b ** steps[0])) for b in (0.9, 0.999))
        parts("look-up wide", lambda: ask_wide(flat).asnumpy())
        parts("look-up deep", lambda: ask_deep(flat).asnumpy())
        parts("FTRL wide", lambda: [x.asnumpy() for x in ftrl(grads[1], flat)])
        parts("LazyAdam deep", lambda: [x.asnumpy() for x in adam(grads[common.DIM], flat, one, two)])

    return step


def whole_step(ids):
    import numpy as np
    from mindspore import Parameter, ParameterTuple, Tensor, nn, ops

    class Network(nn.Cell):
        def __init__(self):
            super().__init__()
            self.wide = nn.EmbeddingLookup(common.ROWS, 1, target="CPU", sparse=True)
            self.deep = nn.EmbeddingLookup(common.ROWS, common.DIM, target="CPU", sparse=True)
            self.bias = Parameter(Tensor(np.zeros(1, np.float32)), name="wide_b")
            widths = common.WIDTHS
            layers = [m for a, b in zip(widths, widths[1:]) for m in (nn.Dense(a, b), nn.ReLU())]
            self.mlp = nn.SequentialCell(*layers, nn.Dense(widths[-1], 1))
            self.loss = nn.BCEWithLogitsLoss()

        def construct(self, x, y):
            deep = self.deep(x).reshape(common.BATCH, common.FIELDS * common.DIM)
            return self.loss(self.wide(x).sum(1) + self.bias + self.mlp(deep), y)

    class Step(nn.Cell):
        def __init__(self, network):
            super().__init__()
            linear = [network.wide.embedding_table, network.bias]
            self.linear = ParameterTuple(linear)
            self.rest = ParameterTuple(
                [p for p in network.trainable_params() if all(p is not q for q in linear)]
            )
            self.ftrl = nn.FTRL(self.linear, learning_rate=5e-2, l1=1e-8, l2=1e-8, initial_accum=1.0)
            self.adam = nn.LazyAdam(self.rest, learning_rate=3.5e-4)
            self.ftrl.target = self.adam.target = "CPU"
            weights = ParameterTuple(list(self.linear) + list(self.rest))
            self.gradients = ops.value_and_grad(network, None, weights=weights)

        def construct(self, x, y):
            loss, grads = self.gradients(x, y)
            return ops.depend(loss, (self.ftrl(grads[:2]), self.adam(grads[2:])))

    network = Network()
    network.set_train()
    step = Step(network)
    x, y = Tensor(ids.astype(np.int32)), Tensor(common.labels())
    return lambda: float(step(x, y).asnumpy())


def main():
    options = common.arguments(__doc__, VARIANTS)
    if options is None:
        return
    os.environ.setdefault("GLOG_v", "3")
    import mindspore as ms
    import numpy as np

    ms.set_device("CPU")
    ms.set_context(mode=ms.GRAPH_MODE, runtime_num_threads=options.threads)
    ids = common.ids(options.workload.rsplit("_", 1)[1])
    facts = {"mindspore": ms.__version__, "unique": int(np.unique(ids).size)}
    if "sparse" in options.workload:
        parts = common.Parts()
        common.measure(options, sparse_part(ids, parts), parts, **facts)
    else:
        step = whole_step(ids)
        common.measure(options, step, warm=1, first_loss=round(step(), 5), **facts)


if __name__ == "__main__":
    main()

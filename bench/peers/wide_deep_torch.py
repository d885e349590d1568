"""Times Wide & Deep in PyTorch (eager, CPU): one process is one measurement, printed as one JSON line.

    python bench/peers/wide_deep_torch.py WORKLOAD [--variant NAME] [--threads N] [--seconds S] [--list]

--list prints {workload: [variants]}. 184,968 rows, 16,000 × 39 ids, widths 1 and 80, MLP 3120-1024-512-256-128-1.

wide_deep_sparse_{zipf,uniform}: only the sparse part: both lookups into reused buffers, the lookups' gradients from given ones, SparseAdam
for the deep table, sparse Adagrad for the wide one (PyTorch has no FTRL). `parts` are its medians in ms. Variants: how the buffer is filled.
wide_deep_{zipf,uniform}: a whole step. Variants: tables with sparse gradients; with dense ones and fused Adam over the whole tables.

With glibc's defaults the step spends much of its time on page faults; run.py's KEEP_MEMORY (MALLOC_MMAP_THRESHOLD_=4294967296
MALLOC_TRIM_THRESHOLD_=17179869184) avoids them.
"""

import wide_deep_common as common

VARIANTS = {
    "wide_deep_zipf": ("sparse", "dense"),
    "wide_deep_uniform": ("sparse", "dense"),
    "wide_deep_sparse_zipf": ("embedding_out", "index_select_out"),
    "wide_deep_sparse_uniform": ("embedding_out", "index_select_out"),
}


def sparse_part(variant, ids, parts):
    """A function that looks up, differentiates and updates both tables."""
    import torch

    flat = ids.reshape(-1)
    deep = torch.nn.Parameter(torch.randn(common.ROWS, common.DIM) * 0.01)
    wide = torch.nn.Parameter(torch.randn(common.ROWS, 1) * 0.01)
    adam = torch.optim.SparseAdam([deep], 3.5e-4)
    adagrad = torch.optim.Adagrad([wide], 0.05, initial_accumulator_value=1.0)
    rows = {p: torch.empty(flat.numel(), p.shape[1]) for p in (deep, wide)}
    grads = {p: 1e-3 * torch.randn(flat.numel(), p.shape[1]) for p in (deep, wide)}

    def look_up(p):
        if variant == "embedding_out":
            torch.ops.aten.embedding.out(p.detach(), flat, out=rows[p])
        else:
            torch.index_select(p.detach(), 0, flat, out=rows[p])

    def differentiate(p):
        p.grad = torch.ops.aten.embedding_backward(grads[p], flat, common.ROWS, -1, False, True)

    def step():
        parts("look-up wide", lambda: look_up(wide))
        parts("look-up deep", lambda: look_up(deep))
        parts("gradient wide", lambda: differentiate(wide))
        parts("gradient deep", lambda: differentiate(deep))
        parts("Adagrad wide", adagrad.step)
        parts("SparseAdam deep", adam.step)

    return step


def whole_step(variant, ids):
    """A function that does one whole step and returns the loss."""
    import torch
    import torch.nn as nn
    import torch.nn.functional as F

    sparse = variant == "sparse"
    wide = nn.Embedding(common.ROWS, 1, sparse=sparse)
    deep = nn.Embedding(common.ROWS, common.DIM, sparse=sparse)
    for table in (wide, deep):
        nn.init.normal_(table.weight, std=0.01)
    widths = common.WIDTHS
    layers = [m for a, b in zip(widths, widths[1:]) for m in (nn.Linear(a, b), nn.ReLU())]
    mlp = nn.Sequential(*layers, nn.Linear(widths[-1], 1))
    bias = nn.Parameter(torch.zeros(1))
    labels = torch.from_numpy(common.labels())
    optimizers = [torch.optim.Adam([bias, *mlp.parameters()], 3.5e-4, fused=True)]
    if sparse:
        optimizers.append(torch.optim.SparseAdam([deep.weight], 3.5e-4))
        optimizers.append(torch.optim.Adagrad([wide.weight], 0.05, initial_accumulator_value=1.0))
    else:
        optimizers.append(torch.optim.Adam([deep.weight, wide.weight], 3.5e-4, fused=True))

    def step():
        for optimizer in optimizers:
            optimizer.zero_grad(set_to_none=True)
        logits = wide(ids).sum(1) + bias + mlp(deep(ids).flatten(1))
        loss = F.binary_cross_entropy_with_logits(logits, labels)
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
        return loss.detach()

    return step


def main():
    options = common.arguments(__doc__, VARIANTS)
    if options is None:
        return
    import torch

    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    ids = torch.from_numpy(common.ids(options.workload.rsplit("_", 1)[1]))
    facts = {"torch": torch.__version__.split("+")[0], "unique": int(torch.unique(ids).numel())}
    if "sparse" in options.workload:
        parts = common.Parts()
        common.measure(options, sparse_part(options.variant, ids, parts), parts, **facts)
    else:
        step = whole_step(options.variant, ids)
        common.measure(options, step, warm=1, first_loss=round(float(step()), 5), **facts)


if __name__ == "__main__":
    main()

"""Times tables whose rows are divided among ranks, in PyTorch over gloo's all_to_all: ranks of this machine share the batch. Prints one JSON line.

    python bench/peers/torch_sharded_lookups.py {zipf,uniform} [--ranks 2] [--variant NAME] [--threads 1] [--seconds S] [--list]
    python bench/peers/torch_sharded_lookups.py --model FILE        writes the network as ONNX

The network: two embedding bags of widths 1 and 80 over 39 ids a sample, and a Linear of the wider one's sums; binary cross-entropy. Row i of both
tables belongs to rank i mod n. Wide table: sparse Adagrad; deep one: SparseAdam; the Linear's gradient is averaged. Variants:
"bags":   ids go to their owners, which add up their rows of each bag; the sums come back (as in torchrec's row-wise sharding);
"unique": each rank asks for each row once, and adds up bags and gradients itself;
"torchrec", if it is installed: its EmbeddingBagCollection by rows, with fused row-wise Adagrad for both tables, which has one number for each row
in place of Adam's 160. The width of its rows must be a multiple of four: the wide table has four columns, of which the first is used.
The line: {name, variant, ranks, ms, p10, p90, steps, torch, first_loss}; `ms` of a step of all ranks together, as rank 0 sees it.
"""

import argparse
import importlib.util
import json
import pathlib
import sys

import torch
import torch.distributed as dist
import torch.nn.functional as F
import torch_ranks
import wide_deep_common as common

VARIANTS = ("bags", "unique") + (("torchrec",) if importlib.util.find_spec("torchrec") else ())


class Network(torch.nn.Module):
    """ids int64 [B, 39] -> logits [B, 1]."""

    def __init__(self, rows=common.ROWS):
        super().__init__()
        self.wide, self.deep = torch.nn.Embedding(rows, 1), torch.nn.Embedding(rows, common.DIM)
        for table in (self.wide, self.deep):
            torch.nn.init.normal_(table.weight, std=0.01)
        self.head = torch.nn.Linear(common.DIM, 1)

    def forward(self, ids):
        return self.wide(ids).sum(1) + self.head(self.deep(ids).sum(1))


class Sent:
    """Elements that go to owners, in their order; how many of them come from whom."""

    def __init__(self, owner, ranks):
        self.order = torch.argsort(owner, stable=True)
        sent = torch.bincount(owner, minlength=ranks)
        received = torch.empty_like(sent)
        dist.all_to_all_single(received, sent)
        self.sent, self.received = sent.tolist(), received.tolist()

    def to_owners(self, values):
        came = values.new_empty(sum(self.received), *values.shape[1:])
        dist.all_to_all_single(came, values[self.order], self.received, self.sent)
        return came

    def from_owners(self, values):
        came = values.new_empty(sum(self.sent), *values.shape[1:])
        dist.all_to_all_single(came, values, self.sent, self.received)
        back = torch.empty_like(came)
        back[self.order] = came
        return back


class Rank:
    """This rank's part of the tables, the Linear, and samples."""

    def __init__(self, kind, rank, ranks):
        torch.manual_seed(rank)
        self.ranks = ranks
        rows = len(range(rank, common.ROWS, ranks))
        self.tables = [torch.nn.Parameter(torch.randn(rows, width) * 0.01) for width in (1, common.DIM)]
        self.head = torch.nn.Linear(common.DIM, 1)
        for p in self.head.parameters():
            dist.broadcast(p.data, 0)
        wide, deep = self.tables
        self.optimizers = (
            torch.optim.Adam(self.head.parameters(), 3.5e-4, fused=True),
            torch.optim.SparseAdam([deep], 3.5e-4),
            torch.optim.Adagrad([wide], 0.05, initial_accumulator_value=1.0),
        )
        self.ids = torch.from_numpy(common.ids(kind))[rank::ranks].contiguous()
        self.labels = torch.from_numpy(common.labels())[rank::ranks].contiguous()

    def loss(self, bags):
        logits = bags[:, :1] + self.head(bags[:, 1:])
        return F.binary_cross_entropy_with_logits(logits, self.labels) / self.ranks

    def update(self):
        for p in self.head.parameters():
            dist.all_reduce(p.grad)
        for optimizer in self.optimizers:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)

    def step_by_bags(self):
        ids, samples, ranks = self.ids.reshape(-1), len(self.ids), self.ranks
        owner = ids % ranks
        sent = Sent(owner, ranks)
        sample = torch.arange(samples).repeat_interleave(self.ids.shape[1])
        lengths = torch.bincount(owner * samples + sample, minlength=ranks * samples)
        asked_lengths = torch.empty_like(lengths)
        dist.all_to_all_single(asked_lengths, lengths)
        asked = torch.div(sent.to_owners(ids), ranks, rounding_mode="floor")
        offsets = torch.cumsum(asked_lengths, 0) - asked_lengths
        parts = torch.cat([F.embedding_bag(asked, table, offsets, mode="sum", sparse=True) for table in self.tables], 1)
        came = torch.empty_like(parts)
        dist.all_to_all_single(came, parts.detach())
        bags = came.reshape(ranks, samples, -1).sum(0).requires_grad_()
        loss = self.loss(bags)
        loss.backward()
        dy = torch.empty_like(parts)
        dist.all_gather_into_tensor(dy, bags.grad)
        parts.backward(dy)
        self.update()
        return loss.detach()

    def step_by_unique_rows(self):
        unique, place = torch.unique(self.ids, return_inverse=True)
        sent = Sent(unique % self.ranks, self.ranks)
        asked = torch.div(sent.to_owners(unique), self.ranks, rounding_mode="floor")
        rows = sent.from_owners(torch.cat([F.embedding(asked, table.detach()) for table in self.tables], 1)).requires_grad_()
        bags = F.embedding_bag(place, rows, mode="sum")
        loss = self.loss(bags)
        loss.backward()
        sums = sent.to_owners(rows.grad)
        for table, first, last in ((self.tables[0], 0, 1), (self.tables[1], 1, None)):
            table.grad = torch.sparse_coo_tensor(asked[None], sums[:, first:last], table.shape, check_invariants=False)
        self.update()
        return loss.detach()


class TorchrecRank:
    """As Rank, with tables of torchrec."""

    def __init__(self, kind, rank, ranks):
        from fbgemm_gpu.split_embedding_configs import EmbOptimType
        from torchrec import EmbeddingBagCollection, EmbeddingBagConfig, KeyedJaggedTensor
        from torchrec.distributed.embedding_types import EmbeddingComputeKernel
        from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder
        from torchrec.distributed.model_parallel import DistributedModelParallel
        from torchrec.distributed.sharding_plan import construct_module_sharding_plan, row_wise
        from torchrec.distributed.types import ShardingEnv, ShardingPlan

        torch.manual_seed(rank)
        self.ranks = ranks
        widths = {"wide": 4, "deep": common.DIM}
        tables = EmbeddingBagCollection(
            device=torch.device("meta"),
            tables=[EmbeddingBagConfig(name=name, embedding_dim=width, num_embeddings=common.ROWS, feature_names=["ids"]) for name, width in widths.items()],
        )  # fmt: skip
        sharder = EmbeddingBagCollectionSharder(fused_params={"optimizer": EmbOptimType.EXACT_ROWWISE_ADAGRAD, "learning_rate": 0.05})
        by_rows = {name: row_wise(compute_kernel=EmbeddingComputeKernel.FUSED.value) for name in widths}
        plan = construct_module_sharding_plan(tables, by_rows, sharder=sharder, local_size=ranks, world_size=ranks, device_type="cpu")
        self.tables = DistributedModelParallel(
            tables, env=ShardingEnv.from_process_group(dist.group.WORLD), device=torch.device("cpu"), plan=ShardingPlan({"": plan}),
            sharders=[sharder], init_data_parallel=False,
        )  # fmt: skip
        self.head = torch.nn.Linear(common.DIM, 1)
        for p in self.head.parameters():
            dist.broadcast(p.data, 0)
        self.optimizer = torch.optim.Adam(self.head.parameters(), 3.5e-4, fused=True)
        ids = torch.from_numpy(common.ids(kind))[rank::ranks].contiguous()
        lengths = torch.full((len(ids),), ids.shape[1], dtype=torch.int64)
        self.ids = KeyedJaggedTensor.from_lengths_sync(["ids"], ids.reshape(-1), lengths)
        self.labels = torch.from_numpy(common.labels())[rank::ranks].contiguous()

    def step(self):
        bags = self.tables(self.ids).wait().values()
        logits = bags[:, :1] + self.head(bags[:, 4:])
        loss = F.binary_cross_entropy_with_logits(logits, self.labels) / self.ranks
        loss.backward()
        for p in self.head.parameters():
            dist.all_reduce(p.grad)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return loss.detach()


def run(rank, port, options):
    torch_ranks.join(rank, port, options)
    if options.variant == "torchrec":
        torch_ranks.measure(rank, options, TorchrecRank(options.workload, rank, options.ranks).step)
        return
    this = Rank(options.workload, rank, options.ranks)
    torch_ranks.measure(rank, options, this.step_by_bags if options.variant == "bags" else this.step_by_unique_rows)


def write_model(path):
    sys.path.insert(0, str(torch_ranks.torch_step.MODELS))
    from export import export

    torch.manual_seed(1)
    export(Network(), (torch.zeros(2, common.FIELDS, dtype=torch.int64),), path, "torchscript", input_names=("ids",),
           output_names=("logits",))  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workload", nargs="?", choices=("zipf", "uniform"))
    parser.add_argument("--variant", choices=VARIANTS, default=VARIANTS[0])
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--model", type=pathlib.Path)
    options = parser.parse_args()
    if options.model:
        write_model(options.model)
    elif options.list or not options.workload:
        print(json.dumps(VARIANTS))
    else:
        torch_ranks.start(run, options)


if __name__ == "__main__":
    main()

"""The options that option_pairs.py combines. It also lists the pairs that the program refuses, and those whose numbers differ for a reason."""

import dataclasses
import json
import pathlib
import random
import shutil
import struct

ROOT = pathlib.Path(__file__).resolve().parents[2]


@dataclasses.dataclass(frozen=True)
class Option:
    """`same`: changes no logged number beyond rounding. `takes`: beginnings of names of columns that depend on the other option. `excludes`: options with a word in
    common are no pair."""

    name: str
    words: tuple
    same: bool = False
    ranks: int = 1
    takes: frozenset = frozenset()
    excludes: frozenset = frozenset()
    instead_of: frozenset = frozenset()  # names in FILES
    tolerance: float = 0.0


@dataclasses.dataclass(frozen=True)
class Base:
    """What all pairs of a pass have in common, and how much rounding may change a loss."""

    name: str
    options: tuple
    tolerance: float
    not_alone: frozenset = frozenset()


def option(name, *words, same=False, ranks=1, takes=(), excludes=(), instead_of=(), tolerance=0.0):
    return Option(name, words, same, ranks, frozenset(takes), frozenset(excludes), frozenset(instead_of), tolerance)


def place(name, *rules, **more):
    return option(name, *(word for rule in rules for word in ("--place", "{ " + rule + " }")), **more)


# What every training has, unless an option stands in its place: in train.toml, not in no_files.toml.
FILES = ("data.train.files=['train.csv']", "data.eval.files=['held.csv']")
ON_DEVICE = 'at = "**", on = "gpu"'
TABLE_ON_HOST = (ON_DEVICE, 'at = "table", on = "cpu"')

# How far 16 bits take a loss, and a first step that a dynamic scale leaves out.
BITS_16, SKIPS = 4e-2, 0.4
NORMS = ("norm.",)

OPTIONS = [
    # how a step is made
    option("micro_batch", "micro_batch=4", same=True),
    option("batch_size of a list", "batch_size=[8, 4]", same=True),
    option("epochs", "epochs=1.5", same=True),
    option("max_time", "max_time='1 h'", same=True),
    option("threads", "threads=2", same=True),
    option("seed", "seed=2"),
    option("batch statistics", "model.batch_norm=train"),
    option("rules of batch_norm", 'model.batch_norm=[{ at = "**", mode = "train" }, { at = "norm.*", mode = "inference" }]', same=True),
    option("synchronised statistics", "model.sync_batch_norm=true", same=True),
    option("random", "model.random=train", same=True),
    # parameters
    option("freeze", 'parameters.freeze=[{ at = "layers.0" }]', takes=NORMS),
    option("freeze the table", 'parameters.freeze=[{ at = "table" }]', takes=NORMS),
    option("freeze until", 'parameters.freeze=[{ at = "layers.*", until = "2 steps" }]'),
    option("freeze from", 'parameters.freeze=[{ at = "{table,head}", from = "4 steps" }]'),
    option("load", 'parameters.load=[{ from = "weights.safetensors", at = "head", unexpected = "ignore", missing = "keep", other_shape = "keep" }]'),
    option("init", 'parameters.init=[{ at = "layers.1:weight", kind = "xavier_uniform" }, { at = "*:bias", kind = "zeros" }]'),
    option("head", "parameters.head=[{ classes = 5 }]"),
    option("lora", 'parameters.lora=[{ at = "layers.*:weight", rank = 2, alpha = 4.0, rslora = true }]', takes=NORMS),
    option("lora and train", 'parameters.lora=[{ at = "layers.*:weight", rank = 2, dropout = 0.1, dora = true }]', 'parameters.train=["table"]', takes=NORMS),
    option("shape", 'parameters.shape=[{ at = "table", rows = 40 }]'),
    option("split storage", 'parameters.storage=[{ at = "table", kind = "split_bfloat16" }]', takes=["norm.update.table"]),
    option("fixed rows", 'parameters.fixed_rows=[{ at = "table", rows = [0, 3] }]'),
    # loss
    option("label smoothing", "loss.terms.0.label_smoothing=0.1"),
    option("class weights", "loss.terms.0.class_weights=[1, 2, 0.5]"),
    option("sample weights", "loss.terms.0.sample_weights=weight"),
    option("ignored labels", "loss.terms.0.ignore_index=2"),
    option("sum", "loss.terms.0.reduction=sum", "loss.terms.0.weight=0.1"),
    option("distillation", "distillation.teacher=model.onnx", 'distillation.at={ logits = "logits" }'),
    # optimizers
    option("momentum", "optimizer.kind=momentum"),
    option("adam", "optimizer.kind=adam"),
    option("lazy_adam", "optimizer.kind=lazy_adam", "optimizer.lr=0.01"),
    option("adagrad", "optimizer.kind=adagrad"),
    option("ftrl", "optimizer.kind=ftrl"),
    option("lamb", "optimizer.kind=lamb", "optimizer.lr=0.01"),
    option("adafactor", "optimizer.kind=adafactor"),
    option("decay", "optimizer.weight_decay=0.1"),
    option("groups", 'optimizer.groups=[{ at = "table", kind = "rowwise_adagrad", lr = 0.1 }, { at = "head", clip_norm = 0.3, weight_decay = 0.1 }]'),
    option("limits of a group", 'optimizer.groups=[{ at = "table", clip_value = 0.01 }, { at = "layers.0", clip_adaptive = 0.05 }]'),
    option("schedule of a group", 'optimizer.groups=[{ at = "head", schedule = { kind = "linear", warmup = "2 steps" } }]'),
    option("layer_decay", "optimizer.layer_decay=0.5"),
    option("clip_norm", "optimizer.clip_norm=0.5"),
    option("clip_value", "optimizer.clip_value=0.05"),
    option("clip_adaptive", "optimizer.clip_adaptive=0.05", "optimizer.clip_adaptive_eps=0.01"),
    option("ema", 'optimizer.ema={ decay = 0.8, start = "2 steps", warmup = true }', same=True),
    option("swa", 'optimizer.swa={ start = "2 steps", every = "2 steps" }', same=True),
    option("lookahead", "optimizer.lookahead={ k = 2, alpha = 0.5 }"),
    option("averages of some", 'optimizer.ema={ at = "head" }', 'optimizer.swa={ at = "table", start = "2 steps", every = "1 steps" }',
           'optimizer.lookahead={ at = "layers.*", k = 3 }'),
    option("cosine", 'optimizer.schedule={ kind = "cosine", warmup = "2 steps", final = 0.001 }'),
    option("plateau", 'optimizer.schedule={ kind = "plateau", metric = "loss", patience = 0, threshold = 0.5, factor = 0.5 }', "eval.every='1 steps'"),
    option("several schedules", 'optimizer.schedule=[{ kind = "linear", final = 0.01, length = "3 steps" }, { kind = "cosine" }]'),
    # 16 bits
    option("bfloat16", "precision.compute=bfloat16", tolerance=BITS_16),
    option("float16", "precision.compute=float16", "precision.loss_scale=256", tolerance=BITS_16),
    option("float16 with a dynamic scale", "precision.compute=float16", "precision.loss_scale=dynamic", "precision.growth_interval=2", tolerance=SKIPS),
    option("keep_float32", 'precision.keep_float32=["head.**"]', same=True),
    option("tf32", "precision.tf32=true", same=True),
    # data
    option("workers", "data.workers=3", same=True),
    option("drop_last", "data.drop_last=true", same=True),
    option("in order", "data.train.shuffle=none"),
    option("some read ahead", "data.train.shuffle='buffer 8'"),
    option("balanced", 'data.train.sampler={ kind = "balanced", field = "label" }'),
    option("drawn by weight", 'data.train.sampler={ kind = "weighted", field = "weight", samples = 24 }'),
    option("sources", 'data.train.sources=[{ files = ["train.csv"], weight = 2 }, { files = ["more.csv"] }]', "data.train.epoch_end=first",
           instead_of=[FILES[0]]),
    option("held out", "data.eval.fraction=0.25", instead_of=[FILES[1]]),
    option("mixup", 'data.mix={ mixup = 0.4, cutmix = 0.0, fields = ["x"] }'),
    option("rows that are none", 'data.fields.id={ from = "id", as = ["int64"], out_of_range = "zero" }', same=True),
    # evaluation, checkpoints, logs
    option("eval during the run", "eval.every='2 steps'", same=True),
    option("best and patience", "eval.every='2 steps'", "eval.metrics=['accuracy']", "eval.best=accuracy", "eval.patience=5", same=True),
    option("metrics", 'eval.metrics=["accuracy", { kind = "f1", average = "none" }, { kind = "accuracy", by = "id", name = "of" }, "confusion"]', same=True),
    option("averages evaluated", "eval.weights=ema", "optimizer.ema={ decay = 0.5 }", "eval.every='3 steps'"),
    option("other checkpoints", "checkpoint.every='2 steps'", "checkpoint.keep=2", "checkpoint.shard_mib=1", same=True),
    option("log.every", "log.every='2 steps'"),
    option("norms", 'log.norms=["**"]', same=True),
    option("other logs", 'log.also=["csv", "tensorboard"]', 'log.histograms=["**"]', "log.histograms_every='2 steps'", same=True),
    # placement
    place("device", ON_DEVICE, same=True),
    place("cut", ON_DEVICE, 'at = "{norm,head}.**", on = "cpu"', same=True),
    place("states on the host", ON_DEVICE, 'at = "**", state = "cpu"', same=True),
    place("weights on the host", ON_DEVICE, 'at = "**", param = "cpu", state = "cpu", lookahead = 2', same=True),
    place("rows of a host's table", *TABLE_ON_HOST, 'at = "table", ship = "rows", lookahead = 1, run = "gpu"', same=True),
    place("results of a host's table", *TABLE_ON_HOST, 'at = "table", ship = "results", run = "gpu"', same=True),
    place("cache", *TABLE_ON_HOST, 'at = "table", cache = "50%", run = "gpu"', same=True),
    place("recompute", 'at = "**", acts = "recompute", need = "prefer"', same=True),
    place("offload", ON_DEVICE, 'at = "**", acts = "offload", need = "prefer"', same=True),
    # ranks
    option("two ranks", ranks=2, same=True),
    place("shared states", 'at = "**", shard = "state"', ranks=2, same=True),
    place("shared gradients", 'at = "**", shard = "state+gradient"', ranks=2, same=True),
    place("shared rows", 'at = "table", shard = "rows"', ranks=2, same=True),
    place("shared columns", 'at = "{table,layers.1:weight}", shard = "columns"', ranks=2, same=True),
    place("shared whole tables", 'at = "table", shard = "table"', ranks=2, same=True),
]

GPU = option("gpu", "--device", "gpu=emulated:0")
FROM_FILE = option("statistics of the file", "model.batch_norm=inference")
BASES = {
    "host": Base("host", (FROM_FILE, GPU), 2e-5),
    "16 bits": Base("16 bits", (FROM_FILE, GPU, place("all of it", ON_DEVICE), option("computed", "precision.compute=bfloat16")), BITS_16),
}

# Pairs that do not train, and words of the refusal: the key, and what to write.
AVERAGE_STOPS = r"parameters\.freeze\.from.*\(leave out from, or optimizer\.ema"
NOT_SPLIT = r"optimizer\.(ema|swa|lookahead)\.at: no average.*parameters\.storage"
WHOLE_ROWS = r"table:weight: .*needs an optimizer that updates rows"
NOT_TRAINED = r"optimizer\.(ema|swa|lookahead)\.at: .* matches no parameter that is trained"
REFUSED = {
    ("micro_batch", "batch_size of a list"): r"batch_size: .*leave micro_batch out",
    ("freeze the table", "averages of some"): NOT_TRAINED,
    ("lora", "averages of some"): NOT_TRAINED,
    ("lora and train", "averages of some"): NOT_TRAINED,
    ("freeze until", "lora"): r"parameters\.freeze: nothing to train.*leave a parameter out",
    ("freeze from", "ema"): AVERAGE_STOPS,
    ("freeze from", "swa"): AVERAGE_STOPS,
    ("freeze from", "lookahead"): AVERAGE_STOPS,
    ("freeze from", "averages of some"): AVERAGE_STOPS,
    ("freeze from", "averages evaluated"): AVERAGE_STOPS,
    ("head", "class weights"): r"class_weights: expected 5 numbers",
    ("head", "distillation"): r"loss \"distillation\".*teacher\.logits",
    ("split storage", "lamb"): WHOLE_ROWS,
    ("split storage", "adafactor"): WHOLE_ROWS,
    ("split storage", "clip_adaptive"): r"optimizer\.clip_adaptive reads whole rows.*clip_adaptive = 0.*parameters\.storage",
    ("split storage", "ema"): NOT_SPLIT,
    ("split storage", "swa"): NOT_SPLIT,
    ("split storage", "lookahead"): NOT_SPLIT,
    ("split storage", "averages of some"): NOT_SPLIT,
    ("split storage", "averages evaluated"): NOT_SPLIT,
    ("fixed rows", "lamb"): WHOLE_ROWS,
    ("fixed rows", "adafactor"): WHOLE_ROWS,
    ("ftrl", "decay"): r"optimizer\.weight_decay: not an option of ftrl",
    ("ftrl", "groups"): r"optimizer\.groups\.1\.weight_decay: not an option of ftrl",
    ("cache", "shared rows"): r"a table of which a device caches rows.*leave `cache` or `shard` out",
    ("cache", "shared gradients"): r"a table of which a device caches rows.*leave `cache` or `shard` out",
    ("lamb", "shared rows"): r"optimizer\.kind = \"lamb\".*optimizer\.groups",
    ("adafactor", "shared rows"): r"optimizer\.kind = \"adafactor\".*optimizer\.groups",
    ("in order", "balanced"): r"data\.train\.shuffle: .*leave shuffle out",
    ("in order", "drawn by weight"): r"data\.train\.shuffle: .*leave shuffle out",
    ("some read ahead", "balanced"): r"data\.train\.shuffle: ",
    ("some read ahead", "drawn by weight"): r"data\.train\.shuffle: ",
    ("balanced", "sources"): r"data\.train\.sampler: .*weigh the sources",
    ("drawn by weight", "sources"): r"data\.train\.sampler: .*weigh the sources",
}

# Options that `--lr-range` refuses, with words of the refusal.
NO_LR_RANGE = {}

# Pairs whose numbers change although one of the two options changes none by itself, and why.
DIFFERS = {
    ("micro_batch", "batch statistics"): "each micro-batch has its own",
    ("micro_batch", "lora and train"): "dropout draws for each micro-batch",
    ("batch statistics", "two ranks"): "each rank has its own",
    ("batch statistics", "shared states"): "each rank has its own",
    ("batch statistics", "shared gradients"): "each rank has its own",
    ("batch statistics", "shared rows"): "each rank has its own",
    ("batch statistics", "shared columns"): "each rank has its own",
    ("batch statistics", "shared whole tables"): "each rank has its own",
    ("epochs", "drawn by weight"): "an epoch has other steps",
    ("epochs", "held out"): "an epoch has other steps",
    ("epochs", "sources"): "an epoch has other steps",
}

# Keys that no option sets (expressions over whole keys), and why.
LEFT_OUT = {
    "files, names and what every training has": r"model\.file|policy|device|steps|name|run_dir|data\.(kind|root|cache|train\.files.*|eval\.files.*|fields.*|train\.sources.*)"
    r"|loss\.terms\[\]\.(name|kind|logits|labels)",
    "how files of other formats are read": r"data\.(separator|decimal|thousands|columns.*|header.*|missing|on_bad|tokenizer|labels|channels|resize.*|center_crop|scaled_decode"
    r"|element|vocabulary|length|stride|shift|document_end|cross_documents|pad|documents)",
    "free dimensions, which this network lacks": r"model\.bind.*|data\.buckets.*",
    "random numbers, which this network lacks": r"model\.random\[\].*",
    "losses that this network does not have": r"loss\.output|loss\.terms\[\]\.(?!label_smoothing|class_weights|sample_weights|ignore_index|reduction|weight$).*",
    "how a rule's values are made or found": r"parameters\.load\[\]\.(strip|rename.*|add|transpose)|parameters\.init\[\]\.(value|mean|std|low|high)|parameters\.head\[\]\.at"
    r"|data\.train\.sampler\.class_weights.*|distillation\.(weights|temperature|weight|at\..*|inputs.*)|eval\.metrics\[\]\.(bytes_per_token|ignore_index|group)"
    r"|rules\[\]\.(op|min|after|before|optional|why)",
    "numbers of an optimizer's formula": r"optimizer\.(groups\[\]\.)?(?!kind|lr$|weight_decay|at|schedule|clip|layer_decay|ema|swa|lookahead|groups)\w+(\[\])?",
    "numbers of a schedule's formula": r"optimizer\.(groups\[\]\.)?schedule\.(?!(kind|warmup|final|factor|metric|patience|threshold)$)[\w.\[\]]+"
    r"|optimizer\.groups\[\]\.schedule\.(final|factor|metric|patience|threshold)",
}


def refusal(one, other):
    return REFUSED.get((one, other), REFUSED.get((other, one)))


def differs(one, other):
    return (one, other) in DIFFERS or (other, one) in DIFFERS


def write_project(folder):
    """model.onnx, train.toml, three tables of samples, and weights of another head."""
    shutil.copy(ROOT / "tests" / "data" / "option_pairs" / "model.onnx", folder / "model.onnx")
    draw = random.Random(3)
    for name, count in (("train", 32), ("more", 16), ("held", 10)):
        rows = ["id,x0,x1,x2,x3,label,weight"]
        for _ in range(count):
            row, x = draw.randrange(32), [draw.gauss(0, 1) for _ in range(4)]
            scores = [x[0] + 0.1 * (row % 5), x[1] - x[2], x[3] + 0.3 * (row % 3)]
            rows.append(",".join([str(row), *(f"{v:.4f}" for v in x), str(scores.index(max(scores))), str(draw.choice([0.5, 1, 2]))]))
        (folder / f"{name}.csv").write_text("\n".join(rows) + "\n")
    values = [draw.gauss(0, 0.3) for _ in range(3 * 16)]
    header = json.dumps({"head.weight": {"dtype": "F32", "shape": [3, 16], "data_offsets": [0, 4 * len(values)]}}).encode()
    (folder / "weights.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + struct.pack(f"<{len(values)}f", *values))
    text = """model      = "model.onnx"
batch_size = 8
steps      = 6
threads    = 1
[loss]
terms = [ { name = "loss", kind = "softmax_cross_entropy", logits = "logits", labels = "label" } ]
[optimizer]
kind = "sgd"
lr   = 0.05
[data]
kind = "csv"
[data.fields]
id     = { from = "id", as = [ "int64" ] }
x      = { from = [ "x{0..3}" ] }
label  = { from = "label", as = [ "int64" ] }
weight = "weight"
[checkpoint]
every = "3 steps"
keep  = 0
[log]
every = "1 steps"
"""
    (folder / "no_files.toml").write_text(text)  # for what stands in place of FILES
    (folder / "train.toml").write_text(text.replace('kind = "csv"', 'kind = "csv"\ntrain.files = ["train.csv"]\neval.files = ["held.csv"]'))

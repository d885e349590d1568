"""Exports a model of Hugging Face's transformers in training form, with a train.toml next to it.

    python models/hugging_face/export.py MODEL --task TASK --to FOLDER [--exporter torchscript|dynamo] [--length N] [--classes N] [--free-length]

MODEL is a name or a folder, as AutoModel.from_pretrained takes it. FOLDER gets model.onnx and train.toml, whose data.npz has the arrays that its
comment names. load.py puts the trained weights back. docs/hugging_face.md explains the details.
"""

import argparse
import dataclasses
import pathlib

import torch

OPSET = 20


@dataclasses.dataclass(frozen=True)
class Task:
    """auto: the class of transformers. inputs: what forward takes and the export feeds. labels: the shape of a sample's label."""

    auto: str
    inputs: tuple
    labels: str


TEXT = ("input_ids", "attention_mask")
TASKS = {
    "sequence-classification": Task("AutoModelForSequenceClassification", TEXT, "a class"),
    "token-classification": Task("AutoModelForTokenClassification", TEXT, "a class each token, -100 where none counts"),
    "masked-lm": Task("AutoModelForMaskedLM", TEXT, "the id each hidden token had, -100 elsewhere"),
    "causal-lm": Task("AutoModelForCausalLM", TEXT, "input_ids one place ahead, -100 at the last place and in padding"),
    "seq2seq-lm": Task("AutoModelForSeq2SeqLM", (*TEXT, "decoder_input_ids"), "the ids to be written, -100 in padding"),
    "image-classification": Task("AutoModelForImageClassification", ("pixel_values",), "a class"),
}


class Logits(torch.nn.Module):
    """The model called by the names of its arguments; returns only the logits. Its parameters have the prefix `model.`."""

    def __init__(self, model, names):
        super().__init__()
        self.model, self.names = model, names

    def forward(self, *tensors):
        return self.model(**dict(zip(self.names, tensors))).logits


def load(name, task, classes=None):
    """from_pretrained in the form that both exporters can write."""
    import transformers

    settings = {}
    if classes:
        settings = {"num_labels": classes, "ignore_mismatched_sizes": True}
    if task == "seq2seq-lm":
        settings["attn_implementation"] = "eager"  # attention with a bias has no other form in the newer exporter
    return getattr(transformers, TASKS[task].auto).from_pretrained(name, **settings)


def example(model, task, length, batch=2):
    """Inputs of the right types and sizes; their values do not matter."""
    config = model.config
    if task == "image-classification":
        size = config.image_size if isinstance(config.image_size, int) else config.image_size[0]
        return {"pixel_values": torch.randn(batch, config.num_channels, size, size)}
    ids = torch.randint(3, config.vocab_size, (batch, length))
    values = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "decoder_input_ids": ids.clone()}
    return {name: values[name] for name in TASKS[task].inputs}


def axes_of(names, free_length):
    """The names of each input's free axes; input texts and generated texts have their own lengths."""
    axes = {}
    for name in names:
        axes[name] = {0: "batch"}
        if free_length and name != "pixel_values":
            axes[name][1] = "decoder_sequence" if name.startswith("decoder") else "sequence"
    return axes


def export(model, task, path, exporter="torchscript", length=128, free_length=False):
    """Writes the file; returns the module whose state_dict has its names."""
    model.config.use_cache = False  # decoders would give their keys and values as well
    values = example(model, task, length)
    names = list(values)
    module = Logits(model, names).train()
    axes = axes_of(names, free_length)
    common = dict(input_names=names, output_names=["logits"], opset_version=OPSET)
    if exporter == "torchscript":
        out = {0: "batch"}
        if task.endswith("lm") or task.startswith("token"):
            out = axes[names[-1]]
        torch.onnx.export(
            module,
            tuple(values.values()),
            str(path),
            dynamo=False,
            training=torch.onnx.TrainingMode.TRAINING,
            do_constant_folding=False,
            dynamic_axes={**axes, "logits": out},
            **common,
        )
        return module
    dims = {}
    shapes = tuple({a: dims.setdefault(n, torch.export.Dim(n)) for a, n in axes[name].items()} for name in names)
    torch.onnx.export(
        module,
        tuple(values.values()),
        str(path),
        dynamo=True,
        optimize=False,  # keeps names, biases and batch normalizations
        dynamic_shapes=(shapes,),
        external_data=False,
        verbose=False,
        **common,
    )
    return module


def without_decay(module):
    """Selectors of biases and of the weights of normalizations."""
    vectors = [n.rsplit(".", 1) for n, p in module.named_parameters() if p.dim() == 1]
    kinds = {"**.*:bias" if name == "bias" else f"**.{path.rsplit('.', 1)[-1]}:{name}" for path, name in vectors}
    return sorted(kinds)


def train_toml(module, task, length, free_length):
    """The starting point of a fine-tuning: AdamW, a warm-up, no weight decay of biases and normalizations."""
    inputs = module.names
    groups = ", ".join(f'{{ at = "{at}", weight_decay = 0.0 }}' for at in without_decay(module))
    axes = {axis for name in axes_of(inputs, free_length).values() for a, axis in name.items() if a == 1}
    bind = ", ".join(f"{axis} = {length}" for axis in sorted(axes))
    ignore = "" if task.endswith("classification") and not task.startswith("token") else ", ignore_index = -100"
    return f"""model      = {'{ file = "model.onnx", bind = { ' + bind + ' } }' if bind else '"model.onnx"'}
batch_size = 16
epochs     = 3
[loss]
terms = [ {{ name = "loss", kind = "softmax_cross_entropy", logits = "logits", labels = "labels"{ignore} }} ]
[optimizer]
kind         = "adamw"
lr           = 5e-5
weight_decay = 0.01
clip_norm    = 1.0
schedule     = {{ kind = "linear", warmup = "100 steps" }}
groups       = [ {groups} ]
[data]
kind = "npz"  # arrays {", ".join([*inputs, "labels"])}; labels: {TASKS[task].labels}
[data.train]
files = [ "data.npz" ]
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--task", choices=TASKS, required=True)
    parser.add_argument("--to", type=pathlib.Path, required=True)
    parser.add_argument("--exporter", choices=("torchscript", "dynamo"), default="torchscript")
    parser.add_argument("--length", type=int, default=128, help="tokens of a text; shorter ones are padded to it")
    parser.add_argument("--classes", type=int, help="of a new last layer")
    parser.add_argument("--free-length", action="store_true", help="leaves the length free: model.bind says it")
    options = parser.parse_args()
    model = load(options.model, options.task, options.classes)
    options.to.mkdir(parents=True, exist_ok=True)
    module = export(model, options.task, options.to / "model.onnx", options.exporter, options.length, options.free_length)
    text = train_toml(module, options.task, options.length, options.free_length)
    path = options.to / "train.toml"
    if path.exists():
        print(f"{path} is there and stays")
    else:
        path.write_text(text)
    fixed = [n for n, p in module.named_parameters() if not p.requires_grad]
    if fixed:
        print("the model does not train these; name them in parameters.freeze:", *fixed)


if __name__ == "__main__":
    main()

"""Checks docs/hugging_face.md on small models with random weights: export, training, weights back with strict=True, the same outputs in PyTorch.

    python models/hugging_face/check.py [--tool build/tandem] [--to FOLDER] [--only NAME]…

Each model is exported by both exporters, trains three steps by the tool, and load.put_back puts the weights into a new model. Then
PyTorch's logits in evaluation are compared with those of `tandem predict`. The exit code is 1 if one differs by more than 1e-4 of the largest.
"""

import argparse
import contextlib
import io
import logging
import pathlib
import shutil
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import torch
from export import Logits, example, export, train_toml
from load import put_back

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
STEPS, BATCH, LENGTH, BOUND = 3, 4, 10, 1e-4
SMALL = dict(vocab_size=99, pad_token_id=0, bos_token_id=1, eos_token_id=2)
BERT = dict(
    **SMALL, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, max_position_embeddings=40
)
# Names of models: the task, the configuration and its settings; ties are as each family has them by default.
MODELS = {
    "bert": ("sequence-classification", "BertConfig", {**BERT, "num_labels": 3}),
    "bert_masked": ("masked-lm", "BertConfig", BERT),
    "distilbert": (
        "sequence-classification",
        "DistilBertConfig",
        dict(vocab_size=99, pad_token_id=0, dim=32, n_layers=2, n_heads=4, hidden_dim=48, max_position_embeddings=40, num_labels=3),
    ),
    "roberta": ("masked-lm", "RobertaConfig", BERT),
    "gpt2": (
        "causal-lm",
        "GPT2Config",
        dict(vocab_size=99, n_embd=32, n_layer=2, n_head=4, n_positions=40, bos_token_id=1, eos_token_id=2, pad_token_id=0),
    ),
    "llama": ("causal-lm", "LlamaConfig", {**BERT, "num_key_value_heads": 2}),
    "t5": (
        "seq2seq-lm",
        "T5Config",
        dict(vocab_size=99, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, pad_token_id=0, decoder_start_token_id=0),
    ),
    "vit": (
        "image-classification",
        "ViTConfig",
        dict(image_size=32, patch_size=8, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, num_labels=3),
    ),
}


def make(name, seed):
    """The model with random weights."""
    import transformers
    from export import TASKS

    task, config, settings = MODELS[name]
    torch.manual_seed(seed)
    kind = {"attn_implementation": "eager"} if task == "seq2seq-lm" else {}
    return task, getattr(transformers, TASKS[task].auto).from_config(getattr(transformers, config)(**settings), **kind)


@contextlib.contextmanager
def quiet():
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(logging.NOTSET)


def write_data(model, task, module, folder):
    """Samples for three steps; labels of the logits' shape without the classes."""
    values = example(model, task, LENGTH, STEPS * BATCH)
    if "attention_mask" in values:
        values["attention_mask"][::2, -3:] = 0
    with torch.no_grad():
        shape = module(*values.values()).shape
    labels = torch.randint(0, shape[-1], shape[:-1])
    np.savez(folder / "data.npz", **{n: v.numpy() for n, v in values.items()}, labels=labels.numpy())
    return tuple(values.values())


def call(tool, *arguments, folder):
    done = subprocess.run([str(tool), *arguments], cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip()[-600:])


def difference(tool, name, exporter, folder):
    """The difference of PyTorch's logits with the weights put back from the tool's, relative to the largest."""
    task, model = make(name, seed=0)
    with quiet():
        module = export(model, task, folder / "model.onnx", exporter, LENGTH)
    inputs = write_data(model, task, module, folder)
    (folder / "train.toml").write_text(train_toml(module, task, LENGTH, free_length=False))
    shutil.rmtree(folder / "run", ignore_errors=True)
    keys = f"batch_size={BATCH}", "epochs=1", "optimizer.lr=1e-2", "threads=1"
    call(tool, "train", "train.toml", *keys, "--run-dir", "run", folder=folder)
    call(tool, "export", "run", "--to", "weights.safetensors", folder=folder)
    call(tool, "predict", "run", "--data", "data.npz", "--output", "logits", "--as", "values", "--to", "out.npz", folder=folder)
    ours = np.load(folder / "out.npz")["logits"]
    other = Logits(make(name, seed=1)[1], module.names)
    other.model.config.use_cache = False
    put_back(other, folder / "weights.safetensors")
    with torch.no_grad():
        theirs = other.eval()(*inputs).numpy()
    return np.abs(ours - theirs).max() / np.abs(theirs).max()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", type=pathlib.Path, default=ROOT / "build" / "tandem")
    parser.add_argument("--to", type=pathlib.Path, help="keeps the files")
    parser.add_argument("--only", action="append", choices=MODELS)
    options = parser.parse_args()
    torch.set_num_threads(1)
    bad = 0
    with tempfile.TemporaryDirectory() as temporary:
        for name in options.only or MODELS:
            for exporter in ("torchscript", "dynamo"):
                folder = (options.to or pathlib.Path(temporary)) / name / exporter
                folder.mkdir(parents=True, exist_ok=True)
                try:
                    apart = difference(options.tool.resolve(), name, exporter, folder)
                    good, text = apart <= BOUND, f"{apart:.1e}"
                except Exception as error:
                    good, text = False, f"{type(error).__name__}: {str(error)[:500]}"
                bad += not good
                print(f"{name} {exporter}: {'agrees' if good else 'FAILS'} {text}", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())

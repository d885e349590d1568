"""Loads adapters for the models of docs/hugging_face.md with PEFT: the model of transformers must give the logits of `tandem predict`.

    python tests/check_all/peft_models.py [--tool build/tandem] [--only NAME]… [--to FOLDER]

The models are small, have random weights, and are exported by both of PyTorch's exporters. Three steps train the adapters, and the last layer if the model
has one for its task. Needs peft and transformers.
"""

import argparse
import pathlib
import shutil
import sys
import tempfile
import warnings

import numpy as np
import torch

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "models" / "hugging_face"))
from check import BATCH, LENGTH, MODELS, call, make, quiet, write_data  # noqa: E402
from export import export, train_toml  # noqa: E402

# Weights with adapters, and what trains with them.
ADAPTED = {
    "bert": ("query,value", "classifier"),
    "bert_masked": ("query,dense", ""),
    "distilbert": ("q_lin,v_lin,lin1", "classifier"),
    "roberta": ("query,value", ""),
    "gpt2": ("c_attn,c_fc", ""),
    "llama": ("q_proj,v_proj", "norm"),
    "t5": ("q,v", ""),
    "vit": ("query,value,q_proj,v_proj", "classifier"),
}
BOUND = 1e-4


def settings(name):
    weights, saved = ADAPTED[name]
    keys = [f"parameters.lora=[{{at='model.**.{{{weights}}}:weight', rank=4, alpha=8}}]", "optimizer.groups=[]", "optimizer.lr=3e-2"]
    return [*keys, f"parameters.train=['model.**.{saved}']"] if saved else keys


def difference(tool, name, exporter, folder):
    """The differences of PEFT's logits from predict's, and of logits with adapters from those without, relative to the largest."""
    import peft

    task, model = make(name, seed=0)
    with quiet():
        module = export(model, task, folder / "model.onnx", exporter, LENGTH)
    inputs = write_data(model, task, module, folder)
    (folder / "train.toml").write_text(train_toml(module, task, LENGTH, free_length=False))
    shutil.rmtree(folder / "run", ignore_errors=True)
    keys = f"batch_size={BATCH}", "epochs=1", "threads=1", "optimizer.schedule={kind='constant'}", *settings(name)
    call(tool, "train", "train.toml", *keys, "--run-dir", "run", folder=folder)
    call(tool, "export", "run", "--to", "adapter", "--format", "peft", "--strip", "model.", folder=folder)
    call(tool, "predict", "run", "--data", "data.npz", "--output", "logits", "--as", "values", "--to", "out.npz", folder=folder)
    ours = np.load(folder / "out.npz")["logits"]
    named = dict(zip(module.names, inputs))
    base = make(name, seed=0)[1].eval()
    base.config.use_cache = False
    with torch.no_grad(), warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        plain = base(**named).logits.numpy()
        tuned = peft.PeftModel.from_pretrained(base, folder / "adapter").eval()(**named).logits.numpy()
    lost = [str(w.message)[:200] for w in said if "keys" in str(w.message)]
    if lost:
        raise RuntimeError(lost[0])
    most = np.abs(tuned).max()
    return np.abs(ours - tuned).max() / most, np.abs(plain - tuned).max() / most


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", type=pathlib.Path, default=ROOT / "build" / "tandem")
    parser.add_argument("--to", type=pathlib.Path, help="a folder that keeps the files")
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
                    apart, change = difference(options.tool.resolve(), name, exporter, folder)
                    good, text = apart <= BOUND and change > 10 * BOUND, f"{apart:.1e} (the adapters change {change:.1e})"
                except Exception as error:
                    good, text = False, f"{type(error).__name__}: {str(error)[:500]}"
                bad += not good
                print(f"{name} {exporter}: {'agrees' if good else 'FAILS'} {text}", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())

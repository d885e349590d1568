"""Compares exported adapters, as PEFT reads them, with the merged model.

    tandem train models/digits/train.toml "parameters.lora=[{at='{conv2,fc1,fc2}:weight', rank=4, alpha=8}]" run_dir=RUN
    tandem export RUN --to ADAPTER --format peft
    tandem export RUN --to MERGED.onnx
    python tests/scripts/peft_adapter.py ADAPTER MERGED.onnx

    models/lora/run.sh
    python tests/scripts/peft_adapter.py RUN/adapter RUN/lora.onnx --bert build/models/lora

--bert names the folder of models/lora. The base is then what transformers loads from FOLDER/bert, with the new last layer that the adapter
has. Needs PyTorch, onnx, onnxruntime and peft; with --bert transformers and tokenizers.
"""
import argparse
import json
import pathlib

import numpy
import onnx
import onnxruntime
import peft
import torch

DIGITS = pathlib.Path(__file__).resolve().parents[2] / "models" / "digits"


class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = torch.nn.Conv2d(1, 16, 3, padding=1), torch.nn.Conv2d(16, 32, 3, padding=1)
        self.fc1, self.fc2 = torch.nn.Linear(512, 64), torch.nn.Linear(64, 10)

    def forward(self, x):
        x = torch.relu(self.conv2(torch.relu(self.conv1(x))))
        x = torch.nn.functional.max_pool2d(x, 2).flatten(1)
        return self.fc2(torch.relu(self.fc1(x)))


class Logits(torch.nn.Module):
    """As models/lora/make_model.py exports it: its weights have the prefix `model.`."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, attention_mask):
        return self.model(input_ids=input_ids, attention_mask=attention_mask).logits


def digits():
    """The untrained network and its inputs by name."""
    base = Network()
    weights = onnx.load(DIGITS / "model.onnx").graph.initializer
    base.load_state_dict({t.name: torch.tensor(onnx.numpy_helper.to_array(t)) for t in weights})
    images = numpy.load(DIGITS / "digits_test.npz")["images"].astype(numpy.float32).reshape(-1, 1, 8, 8) / 16
    return base, {"image": images}


def bert(folder):
    import tokenizers
    import transformers

    config = transformers.AutoConfig.from_pretrained(folder / "bert", num_labels=6)
    base = transformers.AutoModelForSequenceClassification.from_pretrained(folder / "bert", config=config, ignore_mismatched_sizes=True)
    tokenizer = tokenizers.Tokenizer.from_file(str(folder / "bert" / "tokenizer.json"))
    texts = [json.loads(line)["text"] for line in (folder / "test.jsonl").read_text().splitlines()]
    encoded = tokenizer.encode_batch(texts)
    return Logits(base), {"input_ids": numpy.array([e.ids for e in encoded]), "attention_mask": numpy.array([e.attention_mask for e in encoded])}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("adapter")
    parser.add_argument("merged")
    parser.add_argument("--bert", type=pathlib.Path)
    parser.add_argument("--inner", action="store_true", help="the adapter is that of the model inside the wrapper: export --strip model.")
    options = parser.parse_args()
    base, inputs = bert(options.bert) if options.bert else digits()
    tensors = [torch.tensor(array) for array in inputs.values()]
    with torch.no_grad():
        plain = base.eval()(*tensors)
        if options.inner:
            base.model = peft.PeftModel.from_pretrained(base.model, options.adapter)
            adapted = base.eval()(*tensors)
        else:
            adapted = peft.PeftModel.from_pretrained(base, options.adapter).eval()(*tensors)
    (expected,) = onnxruntime.InferenceSession(options.merged).run(["logits"], inputs)
    assert (plain - adapted).abs().max() > 1e-3, "the adapter changes nothing"
    torch.testing.assert_close(adapted, torch.tensor(expected), rtol=1e-4, atol=1e-4)
    print("equal over", len(expected), "samples")


if __name__ == "__main__":
    main()

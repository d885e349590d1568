"""Writes tests/data/transformers/: small networks of transformers as files have them, with PyTorch's results.

    python tests/scripts/transformer_models.py

BERT and Llama (shared heads) with padding, by PyTorch's exporters, and BERT as onnxruntime's optimizer of transformers leaves it. transformers 5.24.0,
onnxruntime 1.32.0. NAME.json: `attention`, the number of Attention operators that the graph must have; inputs and the one output.
"""

import json
import pathlib

import onnx
import torch
from transformers import BertConfig, BertForSequenceClassification, LlamaConfig, LlamaForCausalLM

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "data" / "transformers"
SIZES = {"vocab_size": 16, "hidden_size": 8, "intermediate_size": 16, "num_hidden_layers": 1, "max_position_embeddings": 8}


class Logits(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, ids, mask):
        return self.model(input_ids=ids, attention_mask=mask)[0]


def entry(x):
    return {"shape": list(x.shape), "type": str(x.dtype).removeprefix("torch."), "values": x.flatten().tolist()}


def strip(path):
    """Leaves out where in Python a node was made, which is most of a file."""
    model = onnx.load(path)
    for node in model.graph.node:
        for i in reversed(range(len(node.metadata_props))):
            if "name_scopes" not in node.metadata_props[i].key:
                del node.metadata_props[i]
        node.ClearField("doc_string")
    onnx.save(model, path)


def write(name, model, dynamo, implementation="sdpa", optimised=False):
    torch.manual_seed(3)
    model = Logits(model(implementation).train())
    for parameter in model.parameters():  # numbers that a wrong form would change
        torch.nn.init.uniform_(parameter, -0.5, 0.5)
    ids = torch.randint(0, 16, (2, 6))
    mask = torch.tensor([[1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 0, 0]])
    path = FOLDER / f"{name}.onnx"
    names = {"input_names": ["ids", "mask"], "output_names": ["logits"]}
    if dynamo:
        torch.onnx.export(model, (ids, mask), str(path), dynamo=True, optimize=False, external_data=False, verbose=False, **names)
    else:
        torch.onnx.export(model, (ids, mask), str(path), dynamo=False, opset_version=17, do_constant_folding=False,
                          training=torch.onnx.TrainingMode.TRAINING, **names)
    if optimised:
        from onnxruntime.transformers import optimizer

        optimizer.optimize_model(str(path), model_type="bert", num_heads=2, hidden_size=8, opt_level=1).save_model_to_file(str(path))
    strip(path)
    with torch.no_grad():
        logits = model(ids, mask)
    content = {"attention": 1, "inputs": {"ids": entry(ids), "mask": entry(mask)}, "output": entry(logits)}
    (FOLDER / f"{name}.json").write_text(json.dumps(content) + "\n")
    print(name, path.stat().st_size, "bytes")


def bert(implementation):
    return BertForSequenceClassification(BertConfig(**SIZES, num_attention_heads=2, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
                                                    attn_implementation=implementation))


def llama(implementation):
    return LlamaForCausalLM(LlamaConfig(**SIZES, num_attention_heads=2, num_key_value_heads=1, use_cache=False,
                                        attn_implementation=implementation))


def main():
    FOLDER.mkdir(exist_ok=True)
    write("bert_dynamo", bert, True)
    write("bert_torchscript", bert, False)
    write("bert_eager", bert, False, "eager")
    write("llama_dynamo", llama, True)
    write("bert_onnxruntime", bert, False, "eager", True)


if __name__ == "__main__":
    main()

"""Writes tests/data/language_models/: small language models as optimum exports them, and the losses that transformers computes.

    python tests/scripts/language_models.py

Names of inputs, outputs and dimensions are optimum's. Weights are random. Each model gets the loss of transformers' own forward pass over the ids
that are stored next to it: of decoders over the next token, of T5 over its labels, of BERT over classes.
"""

import json
import pathlib

import torch
import transformers

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "data" / "language_models"
ROW = {0: "batch_size", 1: "sequence_length"}
SMALL = dict(vocab_size=40, attn_implementation="eager")


class Logits(torch.nn.Module):
    def __init__(self, model, names):
        super().__init__()
        self.model, self.names = model, names

    def forward(self, *tensors):
        return self.model(**dict(zip(self.names, tensors))).logits


def export(name, model, inputs, dims, output_dims):
    names = list(inputs)
    torch.onnx.export(
        Logits(model.eval(), names),
        tuple(inputs.values()),
        FOLDER / f"{name}.onnx",
        dynamo=False,
        opset_version=18,
        input_names=names,
        output_names=["logits"],
        dynamic_axes={**dims, "logits": output_dims},
    )
    model.eval()  # the exporter leaves the module in training form, with Dropout


def main():
    FOLDER.mkdir(exist_ok=True)
    torch.manual_seed(1)
    ids = torch.randint(3, 40, (8, 6))
    labels = torch.randint(3, 40, (8, 4))
    labels[1, 2:] = labels[5, 3:] = -100
    classes = torch.randint(0, 3, (8,))
    ones, positions = torch.ones_like(ids), torch.arange(6).repeat(8, 1)
    result = {"ids": ids.tolist(), "labels": labels.tolist(), "classes": classes.tolist(), "losses": {}}

    decoder = {"input_ids": ids, "attention_mask": ones, "position_ids": positions}
    rows = {name: ROW for name in decoder}
    llama = transformers.LlamaForCausalLM(
        transformers.LlamaConfig(
            **SMALL,
            hidden_size=16,
            intermediate_size=24,
            num_hidden_layers=1,
            num_attention_heads=2,
            num_key_value_heads=1,
            max_position_embeddings=32,
            use_cache=False,
        )
    )
    gpt2 = transformers.GPT2LMHeadModel(
        transformers.GPT2Config(
            **SMALL, n_embd=16, n_layer=1, n_head=2, n_positions=32, bos_token_id=1, eos_token_id=2, use_cache=False
        )
    )
    for name, model in (("llama", llama), ("gpt2", gpt2)):
        export(name, model, decoder, rows, ROW)
        with torch.no_grad():
            result["losses"][name] = model(**decoder, labels=ids).loss.item()

    settings = dict(hidden_size=16, intermediate_size=24, num_hidden_layers=1, num_attention_heads=2, max_position_embeddings=32)
    bert_inputs = {"input_ids": ids, "attention_mask": ones, "token_type_ids": torch.zeros_like(ids)}
    bert = transformers.BertForSequenceClassification(transformers.BertConfig(**SMALL, **settings, num_labels=3))
    export("bert", bert, bert_inputs, {name: ROW for name in bert_inputs}, {0: "batch_size"})
    with torch.no_grad():
        result["losses"]["bert"] = bert(**bert_inputs, labels=classes).loss.item()
    masked = transformers.BertForMaskedLM(transformers.BertConfig(**SMALL, **settings))
    export("bert_masked", masked, bert_inputs, {name: ROW for name in bert_inputs}, ROW)

    t5 = transformers.T5ForConditionalGeneration(
        transformers.T5Config(
            **SMALL, d_model=16, d_kv=8, d_ff=24, num_layers=1, num_heads=2, decoder_start_token_id=0, pad_token_id=0, use_cache=False
        )
    )
    written = {0: "batch_size", 1: "decoder_sequence_length"}
    export(
        "t5",
        t5,
        {"input_ids": ids, "attention_mask": ones, "decoder_input_ids": t5._shift_right(labels)},
        {"input_ids": ROW, "attention_mask": ROW, "decoder_input_ids": written},
        written,
    )
    with torch.no_grad():
        result["losses"]["t5"] = t5(input_ids=ids, attention_mask=ones, labels=labels).loss.item()
    result["made_by"] = {"torch": torch.__version__, "transformers": transformers.__version__}
    (FOLDER / "losses.json").write_text(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()

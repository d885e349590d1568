"""Writes tests/data/generate.json: what transformers' greedy `generate` writes with the weights of tests/data/language_models/.

    python tests/scripts/generate_expectations.py

The models are those of language_models.py with three changes, which tests/api/generate_test.cpp makes too: matrices are multiplied by SCALE, so that
attention is not nearly uniform; GPT-2 has POSITIONS rows of positions, row i those of row i modulo 32; Llama's are computed. onnxruntime first
confirms that the weights are put into the right places.
"""

import json
import pathlib

import numpy
import onnx
import onnxruntime
import torch
import transformers

DATA = pathlib.Path(__file__).resolve().parent.parent / "data"
SMALL = dict(vocab_size=40, attn_implementation="eager")
SCALE, POSITIONS, TOKENS = 12, 80, 64
PROMPTS = [[3, 17, 9], [21], [8, 8, 30, 12, 5, 39]]


def weights_of(path):
    """The values by the names that PyTorch's modules have: products of a module are named by their node."""
    graph = onnx.load(path).graph
    values = {t.name: torch.from_numpy(onnx.numpy_helper.to_array(t).copy()) for t in graph.initializer}
    named = {name.removeprefix("model."): value for name, value in values.items() if not name.startswith("onnx::")}
    for node in graph.node:
        if node.op_type == "MatMul" and node.input[1] in values and node.input[1].startswith("onnx::"):
            named[node.name.removeprefix("/model/").removesuffix("/MatMul").replace("/", ".") + ".weight"] = values[node.input[1]].T
    return named


def filled(model, path):
    """The model with the weights of the file, which onnxruntime confirms."""
    named = weights_of(path)
    with torch.no_grad():
        for name, value in model.named_parameters():
            if name in named:
                rows = torch.arange(len(value)) % len(named[name])  # positions come again
                value.copy_(named[name][rows])
            else:
                assert torch.all(value == value.flatten()[0]), f"{name} is in no initializer"  # ones and zeros became constants
        ids = torch.tensor([PROMPTS[2]])
        ours = model(ids).logits.numpy()
    positions = numpy.arange(ids.shape[1])[None]
    inputs = {"input_ids": ids.numpy(), "attention_mask": numpy.ones_like(ids.numpy()), "position_ids": positions}
    theirs = onnxruntime.InferenceSession(path).run(["logits"], inputs)[0]
    assert numpy.allclose(ours, theirs, atol=1e-5), numpy.abs(ours - theirs).max()
    return model


def scaled(model):
    with torch.no_grad():
        for value in {id(p): p for p in model.parameters()}.values():
            if value.dim() == 2:
                value.mul_(SCALE)
    return model


def written(model, prompt):
    """The ids, and the least distance of a chosen logit from the next one: far above rounding."""
    ids = torch.tensor([prompt])
    made = model.generate(
        ids,
        attention_mask=torch.ones_like(ids),
        do_sample=False,
        max_new_tokens=TOKENS,
        eos_token_id=None,
        pad_token_id=0,
        return_dict_in_generate=True,
        output_logits=True,
    )
    best = torch.cat(made.logits).topk(2).values
    assert (best[:, 0] - best[:, 1]).min() > 1e-3, "a choice is too close"
    return made.sequences[0, len(prompt) :].tolist()


def main():
    folder = DATA / "language_models"
    llama = transformers.LlamaForCausalLM(
        transformers.LlamaConfig(
            **SMALL,
            hidden_size=16,
            intermediate_size=24,
            num_hidden_layers=1,
            num_attention_heads=2,
            num_key_value_heads=1,
            max_position_embeddings=32,
        )
    )
    gpt2 = transformers.GPT2LMHeadModel(
        transformers.GPT2Config(**SMALL, n_embd=16, n_layer=1, n_head=2, n_positions=POSITIONS, bos_token_id=1, eos_token_id=2)
    )
    result = {"scale": SCALE, "positions": POSITIONS, "prompts": PROMPTS, "texts": {}}
    for name, model in (("llama", llama), ("gpt2", gpt2)):
        model = scaled(filled(model.eval(), folder / f"{name}.onnx"))
        result["texts"][name] = [written(model, prompt) for prompt in PROMPTS]
    result["made_by"] = {"torch": torch.__version__, "transformers": transformers.__version__}
    (DATA / "generate.json").write_text(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()

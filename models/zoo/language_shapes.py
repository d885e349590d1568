"""The six shapes of language models whose files language_files.py makes: configurations of transformers, two layers, random weights."""

import dataclasses
import pathlib
import random
import sys

import torch
import transformers as hf

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "scripts"))
from chat_expectations import TEMPLATES, WORDS  # noqa: E402

POSITIONS = 128
SIZES = dict(
    vocab_size=512,  # at least the ids of every tokenizer
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    intermediate_size=64,
    max_position_embeddings=POSITIONS,
    tie_word_embeddings=False,
    pad_token_id=None,
)
GPT2 = dict(vocab_size=512, n_embd=32, n_layer=2, n_head=4, n_positions=POSITIONS)


@dataclasses.dataclass(frozen=True)
class Shape:
    """A configuration, the chat template of its tokenizer, and the projections of its attention, which get adapters."""

    config: type
    settings: dict
    template: str
    projections: tuple

    def make(self):
        """The model, with norms that are not all ones: equal tensors become one in the file."""
        torch.manual_seed(1)
        config = self.config(**self.settings)
        for name, value in vars(config).items():
            if isinstance(value, float) and ("drop" in name or "pdrop" in name):
                setattr(config, name, 0.0)
        model = hf.AutoModelForCausalLM.from_config(config).eval()
        with torch.no_grad():
            for weight in model.parameters():
                if weight.dim() == 1:
                    weight.add_(0.1 * torch.randn_like(weight))
                else:
                    weight.mul_(3)  # the attention of untrained weights is nearly uniform
        return model


# As Phi-3.5 publishes it, with the marks around what an assistant writes.
PHI3_JINJA = """{%- for message in messages -%}
{%- if message['role'] == 'system' -%}{{- '<|system|>\\n' + message['content'] + '<|end|>\\n' -}}
{%- elif message['role'] == 'user' -%}{{- '<|user|>\\n' + message['content'] + '<|end|>\\n' -}}
{%- else -%}{{- '<|assistant|>\\n' -}}{%- generation -%}{{- message['content'] + '<|end|>' -}}{%- endgeneration -%}{{- '\\n' -}}{%- endif -%}
{%- endfor -%}{{- eos_token -}}"""
FOUR = ("q_proj", "k_proj", "v_proj", "o_proj")
SHAPES = {
    "Llama": Shape(hf.LlamaConfig, SIZES, "llama3", FOUR),
    "Qwen3": Shape(hf.Qwen3Config, {**SIZES, "head_dim": 8}, "chatml", FOUR),
    "Gemma": Shape(
        hf.GemmaConfig,
        {**SIZES, "num_key_value_heads": 1, "head_dim": 16, "tie_word_embeddings": True},
        "gemma",
        FOUR,
    ),
    "Phi-3": Shape(hf.Phi3Config, {**SIZES, "original_max_position_embeddings": POSITIONS}, "phi3", ("qkv_proj", "o_proj")),
    "Mistral": Shape(hf.MistralConfig, {**SIZES, "sliding_window": None}, "mistral_v3", FOUR),
    "GPT-2": Shape(hf.GPT2Config, GPT2, "chatml", ("c_attn",)),
}


def tokenizer_of(shape):
    made, jinja, begin, end = TEMPLATES[shape.template]
    jinja = PHI3_JINJA if shape.template == "phi3" else jinja
    return hf.PreTrainedTokenizerFast(tokenizer_object=made(), bos_token=begin, eos_token=end, chat_template=jinja)


def conversations(count=64):
    """Conversations of one or two questions, some of them after a system message."""
    chance = random.Random(7)
    words = lambda most: " ".join(chance.choice(WORDS) for _ in range(chance.randint(1, most)))
    made = []
    for number in range(count):
        messages = [{"role": "system", "content": words(3)}] if number % 4 == 0 else []
        for _ in range(chance.choice((1, 1, 2))):
            messages += [{"role": "user", "content": words(4)}, {"role": "assistant", "content": words(4)}]
        made.append({"messages": messages})
    return made

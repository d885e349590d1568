"""How networks of Hugging Face's transformers are made: random weights, two layers of width 32, as `AutoModel…` gives them."""

import dataclasses

import transformers as hf

from network import Network, mask, tokens

VOCABULARY, LENGTH = 99, 12
SIZES = dict(
    vocab_size=VOCABULARY,
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=48,
    max_position_embeddings=40,
    pad_token_id=0,
    bos_token_id=1,
    eos_token_id=2,
    tie_word_embeddings=False,
)
VISION = dict(
    image_size=32,
    patch_size=8,
    num_channels=3,
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=48,
    num_labels=10,
)


# Where the default of transformers does not export: attention in plain products, experts as batched products.
IMPLEMENTATIONS = ("attn_implementation", "experts_implementation")
EAGER = {"attn_implementation": "eager"}
BATCHED = {"experts_implementation": "batched_mm"}


def quiet(config):
    """Sets every probability of leaving something out to 0."""
    for name in list(vars(config)):
        value = getattr(config, name)
        if isinstance(value, float) and any(
            w in name for w in ("drop", "pdrop", "mask_time_prob", "mask_feature_prob")
        ):
            setattr(config, name, 0.0)
    return config


def logits(result):
    return result["logits"]


def hidden(result):
    return result["last_hidden_state"]


def build(model, config, settings):
    def make():
        made = quiet(config(**{k: v for k, v in settings.items() if k not in IMPLEMENTATIONS}))
        made.use_cache = False
        chosen = {k: v for k, v in settings.items() if k in IMPLEMENTATIONS}
        return model._from_config(made, **chosen)

    return make


def network(name, family, inputs, settings, model=None, config=None, pick=logits, **kwargs):
    """One network: NAMEConfig and NAME's model of `family` by default."""
    model = getattr(hf, model)
    config = getattr(hf, config) if config else model.config_class
    return Network(
        name.replace(" ", "_"),
        build(model, config, settings),
        inputs,
        pick=pick,
        family=family,
        **kwargs
    )


TEXT = {"input_ids": tokens(LENGTH, VOCABULARY, 3), "attention_mask": mask(LENGTH)}
IDS = {"input_ids": tokens(LENGTH, VOCABULARY, 3)}


def free_length(network, other_inputs):
    """The network as NAME_length, whose export leaves the length of its texts free; other_inputs are of another one.

    A decoder's inputs have a length of their own.
    """
    lengths = {n: "decoder_sequence" if n.startswith("decoder") else "sequence" for n in other_inputs}
    return dataclasses.replace(network, name=network.name + "_length", lengths=lengths, other_inputs=other_inputs)

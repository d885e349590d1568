"""Makes a folder in the layout of Hugging Face, with a small BERT that classifies four topics, and texts of six other topics.

    python models/lora/make_model.py FOLDER [--train 1500] [--test 600] [--steps 600]

Writes FOLDER/bert/: config.json, model.safetensors.index.json with the files it names, tokenizer.json (WordPiece); FOLDER/model.onnx, the network with
untrained weights, as `torch.onnx.export` writes it only from config.json; train.jsonl and test.jsonl, lines {"text", "topic"}. Words
are made of syllables, a topic prefers some words to others, and the six topics are mixtures of the four. Needs PyTorch, onnx and transformers.
"""

import argparse
import json
import pathlib
import sys

import numpy
import tokenizers
import torch
import transformers
from tokenizers import models, normalizers, pre_tokenizers, processors, trainers

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from export import export  # noqa: E402

WORDS, LENGTH, TOPICS = 400, 24, 4
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


class Logits(torch.nn.Module):
    """The model with tensors in and out, as docs/hugging_face.md has it."""

    def __init__(self, model, names):
        super().__init__()
        self.model, self.names = model, names

    def forward(self, *tensors):
        return self.model(**dict(zip(self.names, tensors))).logits


def words(random):
    syllables = [c + v for c in "bdfgklmnprstvz" for v in "aeiou"]
    made = {}
    while len(made) < WORDS:
        made["".join(random.choice(syllables, random.integers(2, 4)))] = None
    return list(made)


def texts(random, vocabulary, preferences, count):
    """`count` texts of 6 to 20 words, and the topic of each."""
    topics = random.integers(0, len(preferences), count)
    chances = numpy.exp(preferences) / numpy.exp(preferences).sum(1, keepdims=True)
    return [" ".join(random.choice(vocabulary, random.integers(6, 21), p=chances[topic])) for topic in topics], topics


def learn_tokenizer(lines):
    tokenizer = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.train_from_iterator(lines, trainers.WordPieceTrainer(vocab_size=600, special_tokens=SPECIAL, show_progress=False))
    tokenizer.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    tokenizer.enable_truncation(LENGTH)
    tokenizer.enable_padding(length=LENGTH, pad_id=0, pad_token="[PAD]")
    return tokenizer


def build(vocabulary):
    config = transformers.BertConfig(vocab_size=vocabulary, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128,
                                     max_position_embeddings=LENGTH, num_labels=TOPICS)
    return transformers.BertForSequenceClassification(config)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    for name, value in (("train", 1500), ("test", 600), ("steps", 600)):
        parser.add_argument(f"--{name}", type=int, default=value)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    random = numpy.random.default_rng(1)
    vocabulary = words(random)
    known = random.normal(0, 0.9, (TOPICS, WORDS))
    mixed = random.normal(0, 0.8, (6, TOPICS)) @ known + random.normal(0, 0.2, (6, WORDS))
    lines, topics = texts(random, vocabulary, known, 32 * options.steps)
    tokenizer = learn_tokenizer(lines)
    torch.manual_seed(0)
    model = build(tokenizer.get_vocab_size()).train()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    for step in range(options.steps):
        part = slice(32 * step, 32 * (step + 1))
        encoded = tokenizer.encode_batch(lines[part])
        ids, mask = (torch.tensor([getattr(e, name) for e in encoded]) for name in ("ids", "attention_mask"))
        optimizer.zero_grad()
        model(input_ids=ids, attention_mask=mask, labels=torch.tensor(topics[part])).loss.backward()
        optimizer.step()
    model.save_pretrained(options.folder / "bert", max_shard_size="200KB")
    tokenizer.save(str(options.folder / "bert" / "tokenizer.json"))
    for name, count in (("train", options.train), ("test", options.test)):
        pairs = zip(*texts(random, vocabulary, mixed, count))
        (options.folder / f"{name}.jsonl").write_text("".join(json.dumps(dict(text=t, topic=int(n))) + "\n" for t, n in pairs))
    names = ("input_ids", "attention_mask")
    example = (ids[:2], mask[:2])
    export(Logits(build(tokenizer.get_vocab_size()), names), example, options.folder / "model.onnx", "torchscript", names)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Writes tests/data/chat/*: the ids and labels that transformers gives to conversations, by template.

    tests/scripts/chat_expectations.py              writes the files that tests read
    tests/scripts/chat_expectations.py --out FOLDER --dialogs 1000
                                                    the same of more conversations, for a long comparison

dialogs.jsonl has the conversations, a line each. NAME.json has a small tokenizer in the form of tokenizer.json, and for each conversation the ids of
`apply_chat_template` and the runs of tokens that `return_assistant_tokens_mask` marks. The Jinja texts are written here after the published formats of
the models, with {% generation %} around what an assistant has to write. Needs transformers and tokenizers.
"""
import argparse
import json
import os
import random

import transformers
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from tokenizer_expectations import LLAMA3, ODD, QWEN, WORDS, training_text

FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "data", "chat")
ALPHABET = pre_tokenizers.ByteLevel.alphabet()
BYTES = [f"<0x{b:02X}>" for b in range(256)]
SPECIAL = dict(normalized=False, special=True)


def byte_level(pattern, specials, normalizer=None):
    made = Tokenizer(models.BPE())
    if normalizer:
        made.normalizer = normalizer
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(pattern), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    made.decoder = decoders.ByteLevel()
    made.train_from_iterator(training_text(), trainers.BpeTrainer(vocab_size=310, show_progress=False, initial_alphabet=ALPHABET))
    made.add_special_tokens([AddedToken(token, **SPECIAL) for token in specials])
    return made


def sentence_bpe(specials, normalizer=None, pre_tokenizer=None, rstrip=()):
    made = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    if normalizer:
        made.normalizer = normalizer
    if pre_tokenizer:
        made.pre_tokenizer = pre_tokenizer
    made.train_from_iterator(training_text(), trainers.BpeTrainer(
        vocab_size=420, show_progress=False, limit_alphabet=80, special_tokens=["<unk>", *specials[:2]] + BYTES))
    said = json.loads(made.to_str())
    said["added_tokens"] = [token for token in said["added_tokens"] if token["content"] not in BYTES]  # bytes are no words of a text
    made = Tokenizer.from_str(json.dumps(said))
    made.add_special_tokens([AddedToken(token, rstrip=token in rstrip, **SPECIAL) for token in specials])
    made.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    return made


SPACES = normalizers.Replace(" ", "▁")
PREPENDED = normalizers.Sequence([normalizers.Prepend("▁"), SPACES])

CHATML = """{%- for message in messages -%}
{{- '<|im_start|>' + message['role'] + '\n' -}}
{%- if message['role'] == 'assistant' -%}
{%- generation -%}{{- message['content'] + '<|im_end|>' -}}{%- endgeneration -%}
{%- else -%}{{- message['content'] + '<|im_end|>' -}}{%- endif -%}
{{- '\n' -}}
{%- endfor -%}"""
LLAMA = """{{- bos_token -}}
{%- for message in messages -%}
{{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n' -}}
{%- if message['role'] == 'assistant' -%}
{%- generation -%}{{- message['content'] | trim + '<|eot_id|>' -}}{%- endgeneration -%}
{%- else -%}{{- message['content'] | trim + '<|eot_id|>' -}}{%- endif -%}
{%- endfor -%}"""
GEMMA = """{{- bos_token -}}
{%- set prefix = messages[0]['content'] + '\n\n' if messages[0]['role'] == 'system' else '' -%}
{%- for message in (messages[1:] if messages[0]['role'] == 'system' else messages) -%}
{%- if message['role'] == 'assistant' -%}
{{- '<start_of_turn>model\n' -}}
{%- generation -%}{{- message['content'] | trim + '<end_of_turn>' -}}{%- endgeneration -%}
{%- else -%}
{{- '<start_of_turn>user\n' + (prefix if loop.first else '') + message['content'] | trim + '<end_of_turn>' -}}
{%- endif -%}
{{- '\n' -}}
{%- endfor -%}"""
PHI = """{%- for message in messages -%}
{{- '<|' + message['role'] + '|>\n' -}}
{%- if message['role'] == 'assistant' -%}
{%- generation -%}{{- message['content'] + '<|end|>' -}}{%- endgeneration -%}
{%- else -%}{{- message['content'] + '<|end|>' -}}{%- endif -%}
{{- '\n' -}}
{%- endfor -%}{{- eos_token -}}"""


def mistral(before, behind, lead, content, system):
    """`system`: whether the system message goes to the first or the last message of the user."""
    here = "loop.index0 == 0" if system == "first" else "loop.index0 == ns.last"
    return """{{- bos_token -}}
{%- set own = messages[1:] if messages[0]['role'] == 'system' else messages -%}
{%- set prefix = messages[0]['content'] + '\n\n' if messages[0]['role'] == 'system' else '' -%}
{%- set ns = namespace(last=0) -%}
{%- for message in own -%}{%- if message['role'] == 'user' -%}{%- set ns.last = loop.index0 -%}{%- endif -%}{%- endfor -%}
{%- for message in own -%}
{%- if message['role'] == 'user' -%}
{{- 'BEFORE' + (prefix if HERE else '') + message['content'] + 'BEHIND' -}}
{%- else -%}
{%- generation -%}{{- 'LEAD' + CONTENT + eos_token -}}{%- endgeneration -%}
{%- endif -%}
{%- endfor -%}""".replace("BEFORE", before).replace("BEHIND", behind).replace("LEAD", lead).replace("HERE", here).replace("CONTENT", content)


# Which `assistant` is learned from {content} on, to its end.
PATTERN = {"system": "{content}\n\n", "user": "### Question: {content}\n", "assistant": "### Answer: {content}<|end|>\n"}
PATTERN_JINJA = """{%- for message in messages -%}
{%- if message['role'] == 'system' -%}{{- message['content'] + '\n\n' -}}
{%- elif message['role'] == 'user' -%}{{- '### Question: ' + message['content'] + '\n' -}}
{%- else -%}{{- '### Answer: ' -}}{%- generation -%}{{- message['content'] + '<|end|>\n' -}}{%- endgeneration -%}{%- endif -%}
{%- endfor -%}"""
LLAMA_TOKENS = ["<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"]
PHI_TOKENS = ["<s>", "<|endoftext|>", "<|system|>", "<|user|>", "<|assistant|>", "<|end|>"]

TEMPLATES = {  # name: tokenizer, Jinja, bos, eos
    "chatml": (lambda: byte_level(QWEN, ["<|endoftext|>", "<|im_start|>", "<|im_end|>"], normalizers.NFC()), CHATML, None, "<|im_end|>"),
    "llama3": (lambda: byte_level(LLAMA3, LLAMA_TOKENS), LLAMA, "<|begin_of_text|>", "<|end_of_text|>"),
    "gemma": (lambda: sentence_bpe(["<bos>", "<eos>", "<start_of_turn>", "<end_of_turn>"], SPACES,
                                   pre_tokenizers.Split(" ", "merged_with_previous")), GEMMA, "<bos>", "<eos>"),
    "phi3": (lambda: sentence_bpe(PHI_TOKENS, PREPENDED, rstrip=PHI_TOKENS[2:]), PHI, "<s>", "<|endoftext|>"),
    "mistral": (lambda: sentence_bpe(["<s>", "</s>"], PREPENDED),
                mistral(" [INST] ", " [/INST]", " ", "message['content']", "first"), "<s>", "</s>"),
    "mistral_v3": (lambda: sentence_bpe(["<s>", "</s>", "[INST]", "[/INST]"], None,
                                        pre_tokenizers.Metaspace(prepend_scheme="first", split=False)),
                   mistral("[INST] ", "[/INST]", " ", "message['content'] | trim", "last"), "<s>", "</s>"),
    "mistral_tekken": (lambda: byte_level(LLAMA3, ["<s>", "</s>", "[INST]", "[/INST]"]),
                       mistral("[INST]", "[/INST]", "", "message['content']", "last"), "<s>", "</s>"),
    "pattern": (lambda: byte_level(LLAMA3, ["<|end|>"]), PATTERN_JINJA, None, "<|end|>"),
}


def text(random_, most):
    made = random_.choice(["", "", "", "", " ", "\n", "\n\n", "  ", "\t", "\u00a0"])
    for _ in range(random_.randint(1, most)):
        made += random_.choice(ODD if random_.random() < 0.1 else WORDS) + random_.choice([" ", " ", " ", " ", "\n", "  ", ", ", ""])
    return made + random_.choice(["", "", "", "\n", " ", ".", "\x1c"])


def dialogs(count):
    random_ = random.Random(52)
    markers = ["<|im_end|>", "<|eot_id|>", "<end_of_turn>", "</s>", "[/INST]", "<|end|>"]
    made = []
    while len(made) < count:
        if random_.random() < 0.2:
            answer = random_.choice(["completion", "answer", "response"])
            made.append({"prompt": text(random_, 8), answer: text(random_, 8)})
            if random_.random() < 0.3:
                made[-1]["system"] = text(random_, 4)
            continue
        messages = [{"role": "system", "content": text(random_, 6)}] if random_.random() < 0.4 else []
        for _ in range(random_.choice([1, 1, 1, 2, 3])):
            messages.append({"role": "user", "content": text(random_, 10)})
            messages.append({"role": "assistant", "content": text(random_, 12)})
        if random_.random() < 0.1:  # a question without an answer
            messages.append({"role": "user", "content": text(random_, 4)})
        if random_.random() < 0.1:
            random_.choice(messages)["content"] += random_.choice(markers) + " more"
        made.append({"messages": messages} if random_.random() < 0.7 else {"id": len(made), "messages": messages, "meta": {"a": [1, None]}})
    return made


def messages_of(dialog):
    if "messages" in dialog:
        return dialog["messages"]
    made = [{"role": "system", "content": dialog["system"]}] if "system" in dialog else []
    answer = next(dialog[key] for key in ("completion", "answer", "response") if key in dialog)
    return made + [{"role": "user", "content": dialog["prompt"]}, {"role": "assistant", "content": answer}]


def runs(mask):
    """[begin, end] of each run of ones."""
    found = []
    for i, one in enumerate(mask):
        if one and (i == 0 or not mask[i - 1]):
            found.append([i, i])
        if one:
            found[-1][1] = i + 1
    return found


def expectations(name, all_dialogs):
    make, jinja, bos, eos = TEMPLATES[name]
    made = make()
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=made, bos_token=bos, eos_token=eos)
    ids, answers = [], []
    for dialog in all_dialogs:
        encoded = tokenizer.apply_chat_template(messages_of(dialog), chat_template=jinja, tokenize=True, return_dict=True,
                                                return_assistant_tokens_mask=True)
        ids.append(list(encoded["input_ids"]))
        answers.append(runs(list(encoded["assistant_masks"])))
    return {"tokenizer": json.loads(made.to_str()), "ids": ids, "answers": answers}


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--out", default=FOLDER)
    options.add_argument("--dialogs", type=int, default=30)
    options = options.parse_args()
    os.makedirs(options.out, exist_ok=True)
    made = dialogs(options.dialogs)
    with open(os.path.join(options.out, "dialogs.jsonl"), "w") as file:
        for dialog in made:
            file.write(json.dumps(dialog, ensure_ascii=False) + "\n")
    for name in TEMPLATES:
        with open(os.path.join(options.out, name + ".json"), "w") as file:
            found = expectations(name, made)
            if name == "pattern":
                found["pattern"] = PATTERN
            json.dump(found, file, ensure_ascii=False, separators=(",", ":"))
            file.write("\n")


if __name__ == "__main__":
    main()

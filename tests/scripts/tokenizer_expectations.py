#!/usr/bin/env python3
"""Writes tests/data/tokenizers/*.json: the ids that Hugging Face's tokenizers give to texts.

    tests/scripts/tokenizer_expectations.py            writes the files that tests read
    tests/scripts/tokenizer_expectations.py --lines N  prints N lines with their ids, for a long comparison

parts.json has single normalizers, pre-tokenizers and decoders. NAME.json has a small tokenizer that is trained here, in the form of
tokenizer.json, and the ids of all lines of lines.json.
"""
import argparse
import json
import os
import random

from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors,
                        trainers)

FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "data", "tokenizers")
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|"
          r"\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")

WORDS = """the a of to and in is it that was for on are with as his they be at one have this from or had by not word but what some
we can out other were all there when up use your how said an each she which do their time if will way about many then them
write would like so these her long make thing see him two has look more day could go come did number sound no most people my
over know water than call first who may down side been now find tokenizer tokens training network gradient learning
Straße über schön Mädchen größer Vögel Übung façade élève garçon naïve été déjà où cœur hôtel señor mañana niño corazón
привет мир слово дерево человек большой красивый город время книга language models attention transformer embedding
人工 智能 学习 机器 語言 模型 日本語 です ます こんにちは カタカナ 한국어 안녕하세요 데이터 the-end un-able re-do x1 v2.0 3.14159 2024 1000000
def return import self.value = for(i=0;i<n;++i) { std::vector<int> } // comment #include <cstdio> https://example.com/a?b=c&d=e
user@example.com don't can't we'll I'm they've he'd it's O'Neill 'quoted' "double" (parens) [brackets] {braces} a/b c\\d e_f g-h
hello Hello HELLO hellooo Paris London Berlin Tokyo newspaper newspapers unhappiness happiness running runner runs""".split()
ODD = ["café", "cafe\u0301", "Å\u0301", "\u212b", "ﬁne", "ﬀ", "①②", "ＡＢＣ１２３", "İstanbul", "ıI", "ẞß", "ΣΟΦΟΣ", "ǅ", "\u1100\u1161\u11a8",
       "가각", "नमस्ते", "สวัสดี", "שָׁלוֹם", "مرحبا", "ไทย", "ქართული", "👍", "👍🏽", "👨‍👩‍👧", "🇩🇪", "❤️", "☃", "½", "²³", "Ⅷ", "٣٤٥", "१२३", "𝔘𝔫𝔦", "𠀀𠀁",
       "—", "…", "„so“", "«ça»", "、。", "¿qué?", "$5", "€7,50", "100%", "a+b=c", "^_^", "`code`", "~", "|x|", "<s>", "</s>", "[MASK]", "[CLS]",
       "<|end|>", "<|end|>x", "lowercased", "LOWERCASED", "\u00a0", "\u2028", "\u200b", "\u200d", "\ufeff", "\u00ad", "\u0085", "\x00", "\x07", "\x1b[0m",
       "\x7f", "\ufffd", "\u3000", "\u180e", "\ue000", "\u0378", "ⓐⓑ", "a\u0327\u0301b", "'S", "'LL", "'ſ", "ZZ", "zzz", "zz top", "▁", "▁▁a", "Ġ", "##ing", "<0x41>"]
SPACES = [" ", " ", " ", " ", " ", "  ", "   ", "\n", "\n\n", " \n ", "\t", "\r\n", "\t\t", "     ", ""]


def make_lines(count, seed=0):
    random_ = random.Random(seed)
    lines = ["", " ", "  ", "\n", "\n\n\n", " a", "a ", "  a  b  ", "a\n\nb", "\t\ta\t", "   \n   x", "x   \n   ", "...", "a.b.c", "don't", "DON'T"]
    lines += ODD
    while len(lines) < count:
        line = random_.choice(["", "", "", " ", "  ", "\n"])
        for _ in range(random_.randint(1, 5)):
            line += random_.choice(ODD if random_.random() < 0.25 else WORDS) + random_.choice(SPACES)
        lines.append(line)
    return lines[:count]


def training_text():
    random_ = random.Random(1)
    return [" ".join(random_.choices(WORDS, k=9)) + random_.choice([".", "!", " ...", "\n"]) for _ in range(3000)]


def byte_level():  # GPT-2
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.post_processor = processors.ByteLevel(trim_offsets=False)
    trainer = trainers.BpeTrainer(vocab_size=420, special_tokens=["<|end|>"], show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    made.train_from_iterator(training_text(), trainer)
    made.add_tokens([AddedToken("ZZ", single_word=True, normalized=True), AddedToken("lowercased", lstrip=True, rstrip=True)])
    return made


def llama3():
    made = Tokenizer(models.BPE(ignore_merges=True))
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(LLAMA3), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=400, special_tokens=["<s>", "</s>"], show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    made.train_from_iterator(training_text(), trainer)
    made.post_processor = processors.Sequence([
        processors.ByteLevel(), processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])])
    made.enable_padding(direction="left", pad_id=1, pad_token="</s>", length=16)
    made.enable_truncation(16, direction="left")
    return made


def qwen():
    made = Tokenizer(models.BPE())
    made.normalizer = normalizers.NFC()
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(QWEN), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=360, special_tokens=["<|end|>"], show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    made.train_from_iterator(training_text(), trainer)
    return made


def sentence_bpe():  # Llama 2, Mistral
    made = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    made.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    trainer = trainers.BpeTrainer(vocab_size=420, show_progress=False, limit_alphabet=100,
                                  special_tokens=["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)])
    made.train_from_iterator(training_text(), trainer)
    made.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
                                      decoders.Strip(" ", 1, 0)])
    made.post_processor = processors.TemplateProcessing(single="<s> $A </s>:1", special_tokens=[("<s>", 1), ("</s>", 2)])
    return made


def metaspace_bpe():  # an unknown token alone
    made = Tokenizer(models.BPE(unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    trainer = trainers.BpeTrainer(vocab_size=300, show_progress=False, limit_alphabet=80, special_tokens=["<unk>", "<s>", "</s>"])
    made.train_from_iterator(training_text(), trainer)
    made.decoder = decoders.Metaspace(prepend_scheme="first")
    made.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 1))
    return made


def word_piece():  # BERT
    made = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=12))
    made.normalizer = normalizers.BertNormalizer()
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(vocab_size=400, show_progress=False, limit_alphabet=150,
                                        special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])
    made.train_from_iterator(training_text(), trainer)
    made.decoder = decoders.WordPiece()
    made.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    made.add_special_tokens([AddedToken("[MASK]", lstrip=True)])
    made.enable_padding(length=16)
    made.enable_truncation(16)
    return made


def unigram():  # T5, without the table of characters that SentencePiece stores
    made = Tokenizer(models.Unigram())
    made.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " "), normalizers.Strip()])
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.UnigramTrainer(vocab_size=420, show_progress=False, unk_token="<unk>", special_tokens=["<pad>", "</s>", "<unk>"])
    made.train_from_iterator(training_text(), trainer)
    made.decoder = decoders.Metaspace()
    made.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    return made


def unigram_bytes():
    made = Tokenizer(models.Unigram(
        [("<unk>", 0.0)] + [(f"<0x{b:02X}>", -20.0) for b in range(256)]
        + [("▁", -2.0), ("a", -3.0), ("b", -3.1), ("ab", -5.5), ("abab", -9.0), ("▁ab", -6.0), ("ba", -5.9), ("é", -7.0), ("▁the", -2.5), ("e", -4.0)],
        0, True))
    made.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="never", split=False)
    made.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace(prepend_scheme="never")])
    return made


def word_level():
    made = Tokenizer(models.WordLevel({"[UNK]": 0, "the": 1, "a": 2, "hello": 3, "don": 4, "'": 5, "t": 6, "...": 7, "3": 8}, unk_token="[UNK]"))
    made.normalizer = normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents(), normalizers.Lowercase()])
    made.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Whitespace(), pre_tokenizers.Digits(True)])
    return made


TOKENIZERS = [byte_level, llama3, qwen, sentence_bpe, metaspace_bpe, word_piece, unigram, unigram_bytes, word_level]


def part(made):
    return json.loads(made.__getstate__())


def parts():
    N, P = normalizers, pre_tokenizers
    texts = ["", " ", "Hello, World!", "  a  b  ", "Éa\u0301 ÀÇ", "ﬁ①Ａ\u212b", "İ ΣΑΣ ǅ", "中文a日本", "a\x00b\x07\tc\u00a0d\u200be\ufffd",
             "don't 's 'LL  12 34x", "ab  cd\n\n e", "x_y-z/1½² ٣", "ⓐ\u200db \u0301c", "aab baa aaa", "\u3000 \u2028x\u0085y ", "▁a ▁ b", "नमस्ते 👍🏽."]
    norm = [N.NFC(), N.NFD(), N.NFKC(), N.NFKD(), N.Lowercase(), N.StripAccents(), N.Strip(), N.Strip(left=False), N.Strip(right=False),
            N.Replace("a", "xy"), N.Replace(Regex("a+"), "<>"), N.Replace(Regex(r"\s+"), " "), N.Prepend("▁"), N.BertNormalizer(),
            N.BertNormalizer(clean_text=False, handle_chinese_chars=False), N.BertNormalizer(strip_accents=False),
            N.BertNormalizer(lowercase=False), N.BertNormalizer(lowercase=False, strip_accents=True),
            N.Sequence([N.NFD(), N.StripAccents(), N.Lowercase(), N.NFC()])]
    pre = [P.Whitespace(), P.WhitespaceSplit(), P.BertPreTokenizer(), P.ByteLevel(), P.ByteLevel(add_prefix_space=False),
           P.ByteLevel(add_prefix_space=False, use_regex=False), P.Digits(), P.Digits(True), P.Metaspace(), P.Metaspace(prepend_scheme="first"),
           P.Metaspace("_", "never"), P.Metaspace(split=False), P.CharDelimiterSplit("a"), P.Split("a", "isolated", invert=True),
           P.Split(Regex(r"\p{L}+"), "removed", invert=True), P.Split(Regex(LLAMA3), "isolated"), P.Split(Regex(QWEN), "isolated"),
           P.Sequence([P.WhitespaceSplit(), P.Metaspace(prepend_scheme="first"), P.Punctuation()])]
    for behavior in ("removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous"):
        pre += [P.Split("a", behavior), P.Split(Regex(r"\s"), behavior), P.Punctuation(behavior)]
    D = decoders
    tokens = ["▁He", "llo", "▁▁wor", "##ld", "Ġx", "Ã©", "<0xC3>", "<0xA9>", "<0xff>", "a</w>", "b</w>", ".", "don", "'t", "##'s", "n't", "  y "]
    dec = [D.ByteLevel(), D.WordPiece(), D.WordPiece(cleanup=False), D.WordPiece("▁"), D.Metaspace(), D.Metaspace(prepend_scheme="never"),
           D.ByteFallback(), D.Fuse(), D.Strip(" ", 1, 0), D.Strip("b", 2, 1), D.Replace("▁", " "), D.BPEDecoder(),
           D.Sequence([D.ByteFallback(), D.Replace("▁", " "), D.Fuse(), D.Strip(" ", 2, 1)])]
    lists = [tokens[i:i + n] for i in range(len(tokens)) for n in (1, 3, 5)]
    return {
        "texts": texts,
        "normalizers": [{"part": part(n), "expected": [n.normalize_str(t) for t in texts]} for n in norm],
        "pre_tokenizers": [{"part": part(p), "expected": [[w for w, _ in p.pre_tokenize_str(t)] if t else [] for t in texts]} for p in pre],
        "lists": lists,
        "decoders": [{"part": part(d), "expected": [d.decode(list(one)) for one in lists]} for d in dec],
    }


def write(name, value):
    path = os.path.join(FOLDER, name + ".json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(value, file, ensure_ascii=True, separators=(",", ":"))
        file.write("\n")
    print(f"{path}: {os.path.getsize(path) >> 10} KiB")


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--lines", type=int, default=0)
    count = arguments.parse_args().lines
    lines = make_lines(count or 230, seed=5 if count else 0)
    os.makedirs(FOLDER, exist_ok=True)
    if not count:
        write("lines", lines)
        write("parts", parts())
    for make in TOKENIZERS:
        made = make()
        said = json.loads(made.to_str())
        padded = made.padding is not None
        made.no_padding(), made.no_truncation()
        case = {"tokenizer": said, "ids": [made.encode(line).ids for line in lines]}
        some = range(0, len(lines), 7)
        case["plain"] = [[i, made.encode(lines[i], add_special_tokens=False).ids] for i in some]
        case["decoded"] = [[i, made.decode(case["ids"][i])] for i in some]
        if padded:
            restored = Tokenizer.from_str(json.dumps(said))
            case["padded"] = [[i, e.ids, e.type_ids, e.attention_mask] for i in some for e in [restored.encode(lines[i])]]
        else:
            case["types"] = [[i, made.encode(lines[i]).type_ids] for i in some]
        if count:
            print(json.dumps({"name": make.__name__, "lines": lines, **case}))
        else:
            write(make.__name__, case)


if __name__ == "__main__":
    main()

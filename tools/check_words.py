#!/usr/bin/env python3
"""Checks plain English in comments and documents, as far as patterns can.

    tools/check_words.py      exit 1 and one line for each finding: file:line, what was found, what to write instead

Program texts (string literals) and generated pages are not checked. tools/check_tree.py says which files begin with a comment.
"""
import bisect
import os
import re
import sys

import check_tree

CODE = (".h", ".c", ".cpp", ".cu", ".cuh", ".inl")
GENERATED = {"docs/" + page + ".md" for page in
             ("operators", "train_toml", "policy_toml", "losses", "metrics",  # tools/make_docs.sh
              "zoo", "corpus")}  # models/zoo/run.py, tests/scripts/corpus_table.py
KEY_PAGES = ("docs/train_toml.md", "docs/policy_toml.md")
GLOSSARY = "docs/glossary.md"
LINE_LIMIT, CELL_LIMIT = 120, 200  # characters of prose, of a cell in a table

# Whole words, outside of `code` and "quotes": letters that each match has (patterns are slow), the pattern, what to write.
PHRASES = [
    ("beside", r"beside", '"next to", "in addition to" or "compared with"'),
    ("nobody", r"nobody", '"nothing", "no one" or what it is'),
    ("ever", r"who(?:m|so)?ever", "who or what it is"),
    ("so", r"so many(?!\s+\w+\s+that\b)", '"that many", "at most n" or the number'),
    ("so", r"so much(?! as\b)", '"that much" or the amount'),
    ("after", r"after so long", '"after this time"'),
    ("shar", r"shar(?:e|es|ed|ing) out", '"divide" or "distribute"'),
    ("told", r"(?:is|are|was|were|be|being) told(?! apart)", '"gets", "is reported to" or "is given"'),
    ("sa", r"(?:say|says|said) of", '"say about"'),
    ("tell", r"tells? of", '"describe" or "be about"'),
    ("card", r"(?<!geforce.)cards?", '"GPU"'),
    ("wish", r"wish(?:es|ed)?", '"want", "request" or "ask for"'),
    ("mend", r"mend(?:s|ed|ing)?", '"fix" or "correct"'),
    ("ever", r"as ever", '"as usual"'),
    ("put", r"put(?:s|ting)? up with", '"accept"'),
]
PHRASES = [(letters, re.compile(r"(?<![\w-])(?:" + pattern.replace(" ", r"\s+") + r")(?![\w-]|\.\w)"), instead)
           for letters, pattern, instead in PHRASES]

CODE_TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.S)
PYTHON_TOKEN = re.compile(r'#[^\n]*|("""|\'\'\').*?\1|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
SHELL_COMMENT = re.compile(r"(?:^|(?<=\s))#(?![!{])[^\n]*")
QUOTED = re.compile(r'`[^`]*`|"[^"\n]*"')
MARKS = re.compile(r"^[ \t]*(?:///?!?|/\*+|\*/?|#+!?)[ \t]?", re.M)


def blanked(text, pattern):
    """The text with what matches replaced by marks; line ends stay."""
    return pattern.sub(lambda match: re.sub(r"[^\n]", "·", match[0]), text)


class Comment:
    """Neighbouring lines of comment. `trailing`: it begins after code."""

    def __init__(self, line, column, trailing, text):
        self.line, self.column, self.trailing, self.text = line, column, trailing, text

    def words(self):
        text = self.text.strip("\"'") if self.text.startswith(('"""', "'''")) else MARKS.sub("", self.text)
        return blanked(text, QUOTED)


def tokens_of_comments(name, text):
    """Where comments and docstrings begin, and their texts."""
    if name.endswith(".sh"):
        for match in SHELL_COMMENT.finditer(text):
            before = text[text.rfind("\n", 0, match.start()) + 1 : match.start()]
            if before.count("'") % 2 == before.count('"') % 2 == 0:
                yield match.start(), match[0]
        return
    is_python = name.endswith(".py")
    for match in (PYTHON_TOKEN if is_python else CODE_TOKEN).finditer(text):
        if match[0].startswith(("#", "//", "/*")) and not match[0].startswith("#!"):
            yield match.start(), match[0]
        elif is_python and match[0].startswith(('"""', "'''")):
            above = text[: match.start()].rstrip()
            if not above or above.endswith(":") or above[above.rfind("\n") + 1 :].startswith("#"):
                yield match.start(), match[0]


def comments(name, text):
    ends = [match.start() for match in re.finditer("\n", text)]
    found = []
    for start, token in tokens_of_comments(name, text):
        line = bisect.bisect_left(ends, start)
        column = start - (ends[line - 1] + 1 if line else 0)
        trailing = bool(text[start - column : start].strip())
        last = found[-1] if found else None
        if last and not trailing and last.column == column and token.startswith(("//", "#")) and last.line + last.text.count("\n") == line:
            last.text += "\n" + token  # `line` counts from 0 here, `last.line` from 1
        else:
            found.append(Comment(line + 1, column, trailing, token))
    return found


def phrases(words):
    """Positions in a text and messages."""
    lower = words.lower()
    for letters, pattern, instead in PHRASES:
        for match in pattern.finditer(lower) if letters in lower else ():
            yield match.start(), f'"{" ".join(match[0].split())}": write {instead}'


def check_comments(name, text):
    for comment in comments(name, text):
        words = comment.words()
        begin = words.lstrip()
        if begin.startswith("Of ") or re.match(r"The same\b", begin):
            yield comment.line, f'a comment begins with "{begin.split()[0]}": begin with what it is about'
        if comment.trailing and begin.startswith("of "):
            yield comment.line, 'a comment after code begins with "of": say what the value is'
        for position, message in phrases(words):
            yield comment.line + words.count("\n", 0, position), message


def cells(line):
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def can_be_wrapped(line):
    """Whether the line has a place to break it, outside of `code` and links."""
    line = re.sub(r"`[^`]*`|\[[^\]]*\]\([^)]*\)", lambda match: match[0].replace(" ", "·"), line)
    return len(re.sub(r"^\s*(?:[-*+]|\d+\.)\s", "", line).split()) > 1


def check_page(name, text):
    fenced, prose = False, []
    for number, line in enumerate(text.splitlines(), 1):
        is_fence = line.lstrip().startswith("```")
        fenced ^= is_fence
        is_prose = not (fenced or is_fence or line.startswith("    "))
        prose.append(line if is_prose else "")
        if not is_prose:
            continue
        if line.lstrip().startswith("|"):
            longest = max((len(cell) for cell in cells(line)), default=0)
            if longest > CELL_LIMIT:
                yield number, f"a cell has {longest} characters, the limit is {CELL_LIMIT}: make it a paragraph or an example"
        elif len(line) > LINE_LIMIT and can_be_wrapped(line):
            yield number, f"the line has {len(line)} characters, the limit is {LINE_LIMIT}"
    words = blanked("\n".join(prose), QUOTED)
    for position, message in phrases(words):
        yield 1 + words.count("\n", 0, position), message


def known_keys(pages):
    """Paths without the marks of lists, as `optimizer.groups.lr`."""
    return {key.replace("[]", "") for page in pages for key in re.findall(r"(?m)^\| `([^`]+)` \|", page)}


def check_glossary(text, keys):
    for number, line in enumerate(text.splitlines(), 1):
        if not line.startswith("|"):
            continue
        named = re.findall(r"keys? (?:is |are )?`([\w.]+)`|\(`([a-z_]+)`\)|`([a-z_]+) = [^`]*`|`([a-z_]+(?:\.[a-z_]+)+)`", line)
        for key in ("".join(groups) for groups in named):
            is_file = key.endswith((".md", ".jsonl", ".json", ".toml", ".h", ".cpp"))
            if not is_file and not any(known == key or known.endswith("." + key) for known in keys):
                yield number, f"`{key}` is no key of train.toml or policy.toml: name one that {' or '.join(KEY_PAGES)} has"


def read(name):
    with open(os.path.join(check_tree.ROOT, name), encoding="utf-8", errors="replace") as file:
        return file.read()


def is_page(name):
    is_document = name in ("README.md", "CONTRIBUTING.md") or re.fullmatch(r"docs/(?:(?:guide|coming_from)/)?[^/]+\.md", name)
    return bool(is_document) and name not in GENERATED


def main():
    findings, checked = [], 0
    names = check_tree.files()
    for name in names:
        if name.endswith((*CODE, ".py", ".sh")):
            found = check_comments(name, read(name))
        elif is_page(name):
            found = check_page(name, read(name))
        else:
            continue
        checked += 1
        findings += [f"{name}:{line}: {message}" for line, message in sorted(found)]
    if GLOSSARY in names:
        keys = known_keys(read(page) for page in KEY_PAGES)
        findings += [f"{GLOSSARY}:{line}: {message}" for line, message in check_glossary(read(GLOSSARY), keys)]
    for finding in findings:
        print(finding)
    print(f"check_words: {checked} files, {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())

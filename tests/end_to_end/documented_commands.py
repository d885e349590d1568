"""Reads the commands of a document with what they print, and compares that with what a program printed."""
import re
import textwrap

PROMPT = "$ "
GAP = "…"  # alone or in a word: anything
# What depends on the machine, the moment or the rounding: in both texts the same word stands for it.
PLACEHOLDERS = [
    (r"\S+ (samples|rows)/s", r"RATE \1/s"),
    (r"left \d+:\d+", "left TIME"),
    (r"waits for data \d+ %", ""),
    (r"[-+]?\d[\d.]* (ms|s)\b", "TIME"),
    (r"\bstep-\d{8}\b", "step-N"),
    (r"\b(the checkpoint of|at) step \d+", r"\1 step N"),
    (r"\b\d+ (instructions|threads|placements compared)\b", r"N \1"),
    (r"\b(interrupted and saved after) \d+ steps: .*", r"\1 N steps"),
    (r"\([\d.]+ [KM]iB\)|[\d.]+ [KM]iB\)", "SIZE"),
]
NUMBER = re.compile(r"(\d+(?:\.\d+)?(?:e[-+]?\d+)?)")


class Command:
    def __init__(self, line, text, output):
        self.line, self.text, self.output = line, text, output


class File:
    """A file that a page shows."""

    def __init__(self, line, name, text):
        self.line, self.name, self.text = line, name, text


def blocks(text):
    """(number of the first line, heading, the paragraph above, lines) of indented and of fenced blocks."""
    heading, above, found, fence = "", "", [], None
    lines = text.split("\n")
    number = 0
    while number < len(lines):
        line = lines[number]
        if line.lstrip().startswith("```"):
            end = next(n for n in range(number + 1, len(lines)) if lines[n].lstrip().startswith("```"))
            found.append((number + 2, heading, above, textwrap.dedent("\n".join(lines[number + 1 : end])).split("\n")))
            number = end
        elif line.startswith("    ") and not above.lstrip().startswith(("- ", "1. ")):
            end = next((n for n in range(number, len(lines)) if lines[n].strip() and not lines[n].startswith("    ")), len(lines))
            found.append((number + 1, heading, above, "\n".join(each[4:] for each in lines[number:end]).rstrip().split("\n")))
            number = end - 1
        elif line.startswith("#"):
            heading, above = line.lstrip("# "), ""
        elif line.strip():
            above = line if not lines[number - 1].strip() else above + " " + line
        number += 1
    return found


def steps_of(text):
    """Files and commands of a page in their order, as (heading, step)."""
    for number, heading, above, lines in blocks(text):
        prompts = [n for n, line in enumerate(lines) if line.startswith(PROMPT)]
        before = "\n".join(lines[: prompts[0]] if prompts else lines).rstrip()
        name = re.search(r"`([\w.]+\.(?:toml|json|py))`[^`]*:$", above) or re.match(r"`([\w.]+\.toml)` ", above)
        if before and name:
            yield heading, File(number, name[1], before + "\n")
        for start, end in zip(prompts, prompts[1:] + [len(lines)]):
            words = lines[start][len(PROMPT) :]
            output = lines[start + 1 : end]
            while words.endswith("\\") and output:
                words = words[:-1] + output.pop(0).strip()
            while output and not output[-1].strip():
                output.pop()
            yield heading, Command(number + start, words, output)


# Comparing


def with_placeholders(text):
    for pattern, placeholder in PLACEHOLDERS:
        text = re.sub(pattern, placeholder, text)
    return text


def same_number(a, b):
    """Integers are exact. Numbers with a fraction are results or sizes, whose last digits depend on the machine."""
    if a == b:
        return True
    if not any(mark in a + b for mark in ".e"):
        return False
    x, y = float(a), float(b)
    return abs(x - y) <= 0.05 + 0.35 * max(abs(x), abs(y))


def same_word(expected, got):
    if GAP in expected:
        return re.fullmatch(".*".join(map(re.escape, expected.split(GAP))), got) is not None
    a, b = NUMBER.split(expected), NUMBER.split(got)
    return len(a) == len(b) and all(same_number(x, y) if i % 2 else x == y for i, (x, y) in enumerate(zip(a, b)))


def pieces(words):
    """Words between gaps: those without letters that have a gap, such as `…` and `(…)`, stand for any number of words."""
    found = [[]]
    for word in words:
        if GAP in word and not re.search(r"\w", word):
            found.append([])
        else:
            found[-1].append(word)
    return found


def find(piece, words, start):
    for at in range(start, len(words) - len(piece) + 1):
        if all(same_word(a, b) for a, b in zip(piece, words[at:])):
            return at
    return None


def difference(expected, got):
    """Why the printed text is not the expected one; "" where it is. Line breaks do not count: pages wrap long lines."""
    words = with_placeholders(got).split()
    parts = pieces(with_placeholders("\n".join(expected)).split())
    at = 0
    for number, part in enumerate(parts):
        is_first, is_last = number == 0, number == len(parts) - 1
        if is_last and number > 0 and part:
            at = max(at, len(words) - len(part))
        found = at if not part else find(part, words, at)
        if found is None or (is_first and found != 0):
            return "not printed here: " + nearest(part, words, at)
        at = found + len(part)
    if parts[-1] and at != len(words):
        return "also printed: " + " ".join(words[at:])
    return ""


def nearest(part, words, start):
    """The part up to the first word that is another one, at the place where most words are the same."""
    best, where = -1, start
    for at in range(start, len(words)):
        same = next((n for n, (a, b) in enumerate(zip(part, words[at:])) if not same_word(a, b)), min(len(part), len(words) - at))
        if same > best:
            best, where = same, at
    return f"{' '.join(part[max(0, best - 4):best + 1])!r}, but {' '.join(words[max(0, where + best - 4):where + best + 2])!r}"

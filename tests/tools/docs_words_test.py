"""Every key, flag, command and piece of code that the documents name exists: the program and the tree are asked.

    python3 tests/tools/docs_words_test.py build/tandem [--list]

Reads README.md, CONTRIBUTING.md, docs/*.md, docs/guide/*.md, docs/coming_from/*.md and docs/decisions/*.md: code spans, and blocks of TOML and of a shell. --list prints what was checked.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md",
             *(path for folder in ("docs", "docs/guide", "docs/coming_from", "docs/decisions") for path in sorted((ROOT / folder).glob("*.md")))]
# What the program itself has written, and pages in the notation of graphs.
LEFT_OUT = {"operators.md", "normal_form.md"}
# Words of other programs that the documents name.
# MindSpore's, PyTorch's, Keras's
OTHERS_WORDS = {"optimizer.target", "model.load_state_dict", "model.evaluate", "model.predict"}
HIDDEN = ("completion", "man")  # commands that --help does not list
FREE_WORDS = {"images"}  # names that users give: fields, arrays
OTHERS_FLAGS = set("""--gpus --signal --install --prefix --build --preset --target --gtest_filter --gtest_brief --partition --ntasks --ntasks-per-node --gpus-per-task
--cpus-per-task --bind-to --map-by --host --hostfile --oversubscribe --allow-run-as-root --logdir --upgrade --mca --nodes --mpi --time
--full --keep --keep-going --check --fix --only --parts --help --version --runs --steps --threads --size --peer --json --list""".split())


def ask(program, *arguments):
    result = subprocess.run([program, *arguments], capture_output=True, text=True, cwd=ROOT)
    return result.stdout + result.stderr


class Program:
    """The words that the program knows."""

    def __init__(self, program):
        self.program = program
        self.keys = {name: self.keys_of(*extra) for name, extra in (("train", ()), ("policy", ("--policy",)))}
        self.flags = {}  # by command, such as "policy plan"
        self.read_help(())
        for name in HIDDEN:
            self.read_help((name,))
        scripts = "\n".join(path.read_text(errors="replace") for path in self.scripts())
        product = "\n".join(path.read_text(errors="replace") for path in self.sources() if "tests" not in path.parts)
        self.literals = set(re.findall(r'"([\w.]+)"', product))  # names in JSON and in logs
        self.script_flags = set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*", scripts))
        code = "\n".join(path.read_text(errors="replace") for path in self.sources())
        self.code = code

    def keys_of(self, *extra):
        found = json.loads(ask(self.program, "config", "keys", "--json", *extra))
        rows = found if isinstance(found, list) else found["keys"]
        return {row.get("key") or row.get("path") for row in rows}

    def read_help(self, command):
        text = ask(self.program, *command, "--help")
        self.flags[" ".join(command)] = set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*", text))
        section = re.split(r"(?im)^(?:subcommands|commands):?\s*$", text)
        if len(section) < 2 or len(command) > 1:
            return
        for name in re.findall(r"(?m)^  ([a-z][a-z-]*)\b", section[1]):
            self.read_help((*command, name))

    @staticmethod
    def scripts():
        for folder in ("tools", "bench", "models", "packaging", "tests/check_all", "tests/scripts", "tests/tools"):
            yield from (path for path in sorted((ROOT / folder).rglob("*")) if path.suffix in (".sh", ".py"))

    @staticmethod
    def sources():
        for folder in ("engine", "kernels", "importer", "placement", "api", "tools", "include", "tests", "bench", "models"):
            for path in sorted((ROOT / folder).rglob("*")):
                if path.suffix in (".h", ".cpp", ".cu", ".inl", ".py", ".sh", ".txt", ".cmake", ".toml") and path.name != "docs_words_test.py":
                    yield path

    def all_flags(self):
        return set().union(*self.flags.values())


def normalised(key):
    """`[]` of lists and `*` of free names are not written by users."""
    return key.replace("[]", "")


def key_pattern(key):
    parts = [re.escape(part) if part != "*" else r"[^.]+" for part in normalised(key).split(".")]
    return re.compile(r"\.".join(parts))


class Keys:
    """The keys of one file, with the tables that they stand in."""

    def __init__(self, keys):
        wanted = set()
        for key in keys:
            parts = normalised(key).split(".")
            wanted.update(".".join(parts[: n + 1]) for n in range(len(parts)))
        self.patterns = [key_pattern(key) for key in wanted]
        self.wanted = wanted
        self.last = {key.split(".")[-1] for key in wanted}
        self.first = {key.split(".")[0] for key in wanted}

    def has(self, key):
        return any(pattern.fullmatch(key) for pattern in self.patterns)

    def ends_with(self, key):
        """A piece of a file, without the table that it stands in."""
        return any(known.endswith("." + key) for known in self.wanted)


def flat_keys(table, prefix=""):
    for name, value in table.items():
        key = f"{prefix}{name}"
        yield key
        values = value if isinstance(value, list) else [value]
        for each in values:
            if isinstance(each, dict):
                yield from flat_keys(each, key + ".")


class Check:
    def __init__(self, program):
        self.program = program
        self.train, self.policy = Keys(program.keys["train"]), Keys(program.keys["policy"])
        self.problems, self.checked = [], []

    def note(self, place, kind, word, good, why=""):
        self.checked.append((place, kind, word))
        if not good:
            self.problems.append(f"{place}: {kind} `{word}`{why or ' does not exist'}")

    def key_exists(self, key):
        return self.train.has(key) or self.policy.has(key)

    def document(self, path):
        name = path.relative_to(ROOT)
        text = path.read_text()
        fence, block, start = None, [], 0
        for number, line in enumerate(text.splitlines(), 1):
            opening = re.match(r"\s*```(\w*)", line)
            if fence is None and opening:
                fence, block, start = opening[1], [], number + 1
            elif fence is not None and opening:
                self.block(name, start, fence, block)
                fence = None
            elif fence is not None:
                block.append(line)
            elif line.startswith("    ") and not line.lstrip().startswith(("-", "|")):
                self.shell_line(f"{name}:{number}", line)
            else:
                self.spans(f"{name}:{number}", line)

    # Blocks

    def block(self, name, start, language, lines):
        if language == "toml":
            self.toml(f"{name}:{start}", lines)
        elif language in ("", "sh", "bash", "shell", "console", "yaml"):
            for number, line in enumerate(lines, start):
                self.shell_line(f"{name}:{number}", line)

    def toml(self, place, lines):
        text = "\n".join(line for line in lines if line.strip() not in ("…", "..."))
        try:
            table = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            self.note(place, "TOML", lines[0] if lines else "", False, f" cannot be read: {error}")
            return
        for key in flat_keys(table):
            self.note(place, "key", key, self.key_exists(key) or self.of_a_piece(key))

    def of_a_piece(self, key):
        """Without its table; or of an item of `metrics`, whose keys each metric has for itself."""
        if key.startswith(("metrics.", "eval.metrics.")):
            return key.split(".")[-1] in self.program.literals
        return self.train.ends_with(key) or self.policy.ends_with(key)

    def shell_line(self, place, line):
        line = line.split(" # ")[0]
        line = re.sub(r"\$\(.*?\)", "", line)
        for command in re.split(r"\s(?:&&|\|\||;)\s", line):
            words = command.split()
            starts = [n for n, word in enumerate(words) if word in ("tandem", "build/tandem", "$TANDEM", '"$TANDEM"')]
            if starts and (starts[0] == 0 or words[0] in ("mpirun", "srun", "numactl", "CUDA_VISIBLE_DEVICES=1", "docker", "$") or "=" in words[0]):
                self.tandem(place, words[starts[0] + 1 :])
            elif words and words[0].startswith(("tools/", "tests/", "bench/", "models/")) and re.fullmatch(r"[\w./-]+", words[0]):
                self.note(place, "file", words[0], (ROOT / words[0]).exists())

    def tandem(self, place, words):
        """A call of the program, as far as its words are plain."""
        known = self.program.flags
        if not words or not re.fullmatch(r"[a-z][a-z|-]*", words[0]):
            return
        for first in words[0].split("|"):
            self.note(place, "command", first, first in known)
        command = words[0].split("|")[0]
        rest = words[1:]
        if rest and any(name.startswith(command + " ") for name in known):
            for second in re.split(r"[|/]", rest[0].strip("[]")):
                if re.fullmatch(r"[a-z-]+", second):
                    self.note(place, "command", f"{command} {second}", f"{command} {second}" in known)
            inner = f"{command} " + re.split(r"[|/]", rest[0])[0]
            command = inner if inner in known else command
        if command == "launch" and "--" in rest:
            self.tandem(place, rest[rest.index("--") + 1 :])
            rest = rest[: rest.index("--")]
        flags = set().union(*(own for name, own in known.items() if name == command or name.startswith(command + " ")))
        for before, word in zip(["", *rest], rest):
            for flag in re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*", word):
                self.note(place, f"flag of tandem {command}", flag, flag in flags)
            override = re.fullmatch(r"['\"]?([a-z_]+(?:\.[A-Za-z_]\w*)*)=.*", word)
            if override and not before.startswith("--") and command != "doctor":
                self.note(place, "key", override[1], self.key_exists(override[1]) or self.is_place(override[1]))

    @staticmethod
    def is_place(word):
        return word in ("gpu", "cpu", "batch") or re.fullmatch(r"[A-Z_]+", word) is not None

    # Code spans

    def spans(self, place, line):
        for match in re.finditer(r"(`+)(.+?)\1", line):
            before = line[: match.start()]
            self.span(place, match[2].strip(), before)

    def span(self, place, text, before):
        words = text.split()
        if words[:1] in (["tandem"], ["build/tandem"]):
            self.tandem(place, words[1:])
            return
        for flag in re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*", text):
            good = flag in self.program.all_flags() | self.program.script_flags | OTHERS_FLAGS
            self.note(place, "flag", flag, good)
        said = re.search(r"\b[Kk]eys?(?: is| are)? $", before)
        if said and "formats.md" not in place and re.fullmatch(r"[a-z_]+(\.[a-z_*]+)*", text):
            self.note(place, "key", text, self.key_exists(text) or text.split(".")[-1] in self.train.last | self.policy.last)
        dotted = re.match(r"([a-z_]+(?:\.[a-z_]+)+)(?= ?=|$)", text)
        if dotted and dotted[1].split(".")[0] in self.train.first and not re.search(r"\.(toml|md|json|txt|bin|safetensors|npz|jsonl|csv|onnx|svg|h|cpp)\b", text):
            known = self.program.literals | OTHERS_WORDS
            self.note(place, "key", dotted[1], self.key_exists(dotted[1]) or dotted[1] in known)
        assigned = re.match(r"\{? ?([a-z][a-z_]+) = [\[\"{\d]", text)
        if assigned and "formats.md" not in place:  # which describes JSON
            name = assigned[1]
            self.note(place, "key", name, name in self.train.last | self.policy.last | FREE_WORDS)
        if re.search(r"\w->\w", text):
            for member in re.findall(r"\w+->\w+", text):
                self.note(place, "code", member, member in self.program.code, " is nowhere in the code")


def main():
    program = Program(os.path.abspath(sys.argv[1]))
    check = Check(program)
    for path in DOCUMENTS:
        if path.name not in LEFT_OUT:
            check.document(path)
    readme = (ROOT / "README.md").read_text()
    for name in program.flags:
        if name not in ("", "tandem", *HIDDEN) and " " not in name:
            check.note("README.md", "command", name, re.search(rf"`tandem {name}\b", readme), " is missing in the table of commands")
    if "--list" in sys.argv:
        for place, kind, word in check.checked:
            print(f"{place}: {kind} {word}")
    for problem in check.problems:
        print(problem)
    print(f"{len(check.checked)} words of {len(DOCUMENTS)} documents, {len(check.problems)} unknown")
    return 1 if check.problems or len(check.checked) < 300 else 0


if __name__ == "__main__":
    sys.exit(main())

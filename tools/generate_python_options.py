#!/usr/bin/env python3
"""Writes the Python files that have the keys of train.toml and policy.toml as arguments of functions.

    tools/generate_python_options.py PROGRAM            write them, from the tables of keys of that `tandem`
    tools/generate_python_options.py PROGRAM --check    exit 1 and print the files that differ
"""

import json
import pathlib
import re
import subprocess
import sys
import textwrap

PACKAGE = pathlib.Path(__file__).resolve().parents[1] / "python" / "src" / "tandem_train"
WIDTH = 120
LONG_LITERAL = 70  # characters of a list of words, from which on the type is str
NOTE = "Written by `make docs` from the table of keys; do not edit."

PLAIN = {
    "true or false": "bool", "integer": "int", "number": "float", "string": "str", "path": "Path", "selector": "str",
    "duration": "str", "table": "Mapping[str, Any]",
}  # fmt: skip
# What the package takes besides values of the table.
OTHER_FORMS = {
    "policy": "Mapping[str, Any] | Sequence[str | Mapping[str, Any]] | FoundPolicy", "loss": "Sequence[Mapping[str, Any]]",
}
NOT_KEYWORDS = {"data", "run_dir"}  # parameters of their own
TABLES = ["Group", "Metric", "Optimizer", "Rule", "Schedule", "Term"]  # classes of _table.py
SPELLINGS = {"sgd": "SGD", "rmsprop": "RMSprop", "adamw": "AdamW", "nadam": "NAdam", "radam": "RAdam"}


class Keys:
    """A table of keys, as `tandem config keys --json` prints it."""

    def __init__(self, text):
        self.rows = {}
        facts = json.loads(text)
        for row in facts["keys"]:
            self.rows.setdefault(row["key"], row)
        self.kinds = facts.get("kinds", {})

    def below(self, path):
        """The keys of a table by their names, without those inside of tables."""
        found = {}
        for key, row in self.rows.items():
            name = key.removeprefix(path + ".") if path else key
            if (not path or key.startswith(path + ".")) and "." not in name and "[" not in name:
                found[name] = row
        return found

    def of_kind(self, path, kind):
        """The keys that only some kinds have, as this one has them, each under one name."""
        found = {
            name: {"key": row["key"], **row["kinds"][kind]}
            for name, row in self.below(path).items()
            if kind in row.get("kinds", {})
        }
        return {name: row for name, row in found.items() if row["default"].strip("()") not in found}

    def of_all_kinds(self, path):
        return {name: row for name, row in self.below(path).items() if "kinds" not in row and name != "kind"}

    def type_of(self, row, of_schedule=False):
        """The annotation of a value."""
        types = []
        for word in row["type"].replace("true or false", "bool").split(" or "):
            if word == "list":
                types.append(f"Sequence[{self.item_type(row, of_schedule)}]")
            elif word == "string" and 0 < len(row["allowed"]) < LONG_LITERAL:
                choices = row["allowed"].split("|") + list(row.get("spellings", {}))
                words = ", ".join(json.dumps(choice) for choice in choices)
                types.append(f"Literal[{words}]")
            elif word == "duration" and of_schedule:
                types.append("Duration")
            else:
                types.append("bool" if word == "bool" else PLAIN[word])
        return " | ".join(dict.fromkeys(types))

    def is_duration(self, row):
        item = self.rows.get(row["key"] + "[]", row)
        return "duration" in (row["type"], item["type"])

    def item_type(self, row, of_schedule):
        item = self.rows.get(row["key"] + "[]")
        return self.type_of({**item, "allowed": ""}, of_schedule) if item else "Any"


def bracketed(before, parts, after, indent=""):
    """A line with a list in brackets, broken as formatters break it."""
    line = f"{indent}{before}{', '.join(parts)}{after}"
    if len(line) <= WIDTH:
        return [line]
    inner = f"{indent}    {', '.join(parts)}"
    if len(inner) <= WIDTH:
        return [indent + before, inner, indent + after]
    return [indent + before, *(f"{indent}    {part}," for part in parts if part), indent + after]


def wrapped(text, width, **indents):
    return textwrap.wrap(text, width, break_on_hyphens=False, **indents)


def default_text(row):
    text = row["default"]
    if text.startswith("(") and text.endswith(")"):
        text = text[1:-1]
    return {"": "", "required": "", "true": "True", "false": "False"}.get(text, text)


def sentence(text):
    return text if text.endswith(".") else text + "."


def beginning(text):
    """A sentence that begins with a capital letter, unless it begins with a formula."""
    return sentence(text[0].upper() + text[1:] if re.match("[a-z]+ [a-z]{2}", text) else text)


def described(name, row):
    text = f"{name}: {sentence(row['help'])}"
    return text + (f" Default: {default_text(row)}." if default_text(row) else "")


def commented(head, rows, indent):
    """A docstring."""
    body = wrapped(head, WIDTH - len(indent) - 6)
    arguments = []
    for name, row in rows.items():
        arguments += wrapped(described(name, row), WIDTH - len(indent), subsequent_indent="    ")
    lines = ['"""' + body[0], *body[1:], *([""] if arguments else []), *arguments]
    text = [(indent + line).rstrip().replace("\\", "\\\\") for line in lines]
    if len(text) == 1 and len(text[0]) + 3 <= WIDTH:
        return [text[0] + '"""']
    return [*text, indent + '"""']


def is_required(row):
    return row["default"] == "required"


class Module:
    """The text of one file."""

    def __init__(self, keys, title, of_schedule=False):
        self.keys, self.title, self.of_schedule = keys, title, of_schedule
        self.lines, self.imports = [], []

    def arguments(self, rows):
        """Required ones by place, others by name."""
        types = {name: f"{name}: {self.keys.type_of(row, self.of_schedule)}" for name, row in rows.items()}
        needed = [text for name, text in types.items() if is_required(rows[name])]
        others = [f"{text} | None = None" for name, text in types.items() if not is_required(rows[name])]
        return needed + (["*"] if others else []) + others

    def typed_dict(self, name, help_text, rows):
        self.lines += ["", "", f"class {name}(TypedDict, total=False):", f'    """{help_text}"""', ""]
        for key, row in rows.items():
            note = described(key, row).removeprefix(f"{key}: ")
            self.lines += wrapped(note, WIDTH, initial_indent="    # ", subsequent_indent="    # ")
            value = self.keys.type_of(row, self.of_schedule)
            if key in OTHER_FORMS:
                value += " | " + OTHER_FORMS[key]
            self.lines.append(f"    {key}: {value}")

    def function(self, name, kind, result, head, rows, common):
        """A function that makes a table; `common`: a TypedDict of the keys of all kinds."""
        arguments = self.arguments(rows) + ([f"**others: Unpack[{common}]"] if common else [])
        self.lines += ["", "", *bracketed(f"def {name}(", arguments, f") -> {result}:")]
        self.lines += commented(head, rows, "    ")
        more = ", _DURATIONS" if self.of_schedule else ""
        self.lines.append(f"    return {result}({kind}, locals(){more})")

    def optimizer(self, name, kind, head, rows):
        arguments = ["self", *self.arguments(rows), "**others: Unpack[OptimizerKeys]"]
        self.lines += ["", "", f"class {name}(Optimizer):"]
        self.lines += commented(head, rows, "    ")
        self.lines += ["", *bracketed("def __init__(", arguments, ") -> None:", "    ")]
        self.lines.append(f'        super().__init__("{kind}", locals())')

    def text(self):
        body = "\n".join(self.lines)
        lines = [f'"""{self.title}"""', "", f"# {NOTE}", "", "from __future__ import annotations", ""]
        abstract = [name for name in ("Mapping", "Sequence") if f"{name}[" in body]
        typing = [name for name in ("Any", "Literal", "TypedDict", "Unpack") if f"{name}" in body]
        lines += [f"from collections.abc import {', '.join(abstract)}"] * bool(abstract)
        lines += [f"from typing import {', '.join(typing)}"] * bool(typing) + [""]
        lines += ["from tandem_train._paths import Path"] * ("Path" in body)
        ours = [name for name in ("Duration", *TABLES) if re.search(rf"\b{name}\b(?!:)", body)]
        lines += sorted([*self.imports, *(f"from tandem_train._table import {name} as {name}" for name in ours)])
        lines += ["from tandem_train.report import FoundPolicy"] * ("FoundPolicy" in body)
        return "\n".join(lines).rstrip() + "\n" + body + "\n"


def class_name(kind):
    def spelled(word):
        known = next((name for name in SPELLINGS if word.startswith(name)), None)
        return SPELLINGS[known] + word[len(known):] if known else word.capitalize()

    return "".join(spelled(word) for word in kind.split("_"))


def optimizers(keys):
    module = Module(keys, "Optimizers: values of the key `optimizer`.")
    module.typed_dict("OptimizerKeys", "The keys of every optimizer.", keys.of_all_kinds("optimizer"))
    for kind in keys.rows["optimizer.kind"]["allowed"].split("|"):
        source = keys.kinds["optimizer.kind"][kind]["source"]
        module.optimizer(class_name(kind), kind, sentence(source), keys.of_kind("optimizer", kind))
    module.imports += ["from tandem_train._group import group as group", "from tandem_train._table import Group as Group"]
    return module.text()


def optimizer_groups(keys):
    module = Module(keys, "Items of an optimizer's key `groups`.")
    names = {name for kind in keys.kinds["optimizer.kind"] for name in keys.of_kind("optimizer", kind)}
    rows = {name: row for name, row in keys.below("optimizer.groups[]").items() if "kinds" not in row or name in names}
    head = "Other options for some parameters, an item of `groups`. What is left out is that of the optimizer."
    module.function("group", "None", "Group", head, rows, "")
    return module.text()


def losses(keys):
    module = Module(keys, "Terms of the loss: values of the key `loss`, alone or in a list.")
    module.typed_dict("TermKeys", "The keys of every term.", keys.of_all_kinds("loss.terms[]"))
    for kind in keys.rows["loss.terms[].kind"]["allowed"].split("|"):
        about = keys.kinds["loss.terms[].kind"][kind]
        head = beginning(about["help"]) + f" As {sentence(about['source'])}"
        module.function(kind, f'"{kind}"', "Term", head, keys.of_kind("loss.terms[]", kind), "TermKeys")
    return module.text()


def schedules(keys):
    module = Module(keys, "Schedules of the learning rate: values of an optimizer's key `schedule`.", of_schedule=True)
    path = "optimizer.schedule"
    common = keys.of_all_kinds(path)
    common.pop("parts")
    common |= {name: row for name, row in keys.of_all_kinds(path + ".parts[]").items() if name not in common}
    durations = [name for name, row in (keys.below(path) | common).items() if keys.is_duration(row)]
    module.lines += ["", *bracketed("_DURATIONS = (", [f'"{name}"' for name in durations], ")")]
    module.typed_dict("ScheduleKeys", "The keys of every schedule. `length` is for one of several in a list.", common)
    for kind in keys.rows[path + ".kind"]["allowed"].split("|"):
        words = kind.replace("_", " ")
        head = f"The shape {words} of docs/guide/optimizers.md. A number stands for steps where a duration is due."
        module.function(kind, f'"{kind}"', "Schedule", head, keys.of_kind(path, kind), "ScheduleKeys")
    return module.text()


def metrics(keys):
    module = Module(keys, "Metrics: items of the key `eval.metrics`.")
    module.typed_dict("MetricKeys", "The keys of every metric.", keys.of_all_kinds("eval.metrics[]"))
    for kind in keys.rows["eval.metrics[].kind"]["allowed"].split("|"):
        about = keys.kinds["eval.metrics[].kind"][kind]
        head = beginning(about["help"]) + f" As {sentence(about['source'])}"
        module.function(kind, f'"{kind}"', "Metric", head, keys.of_kind("eval.metrics[]", kind), "MetricKeys")
    return module.text()


def rules(keys):
    module = Module(keys, "Rules of a policy.")
    head = "A rule for `place`, or for the key `policy` as a list. What is left out is not decided by it."
    module.function("rule", "None", "Rule", head, keys.below("rules[]"), "")
    return module.text()


def settings(keys):
    module = Module(keys, "Keyword arguments that are keys of train.toml.")
    rows = {name: row for name, row in keys.below("").items() if name not in NOT_KEYWORDS}
    module.typed_dict("RunKeys", "Keys for a Trainer and for train.", rows)
    of_session = {name: row for name, row in rows.items() if row["session"] and name != "model"}
    module.typed_dict("SessionKeys", "Keys for a Session.", of_session)
    return module.text()


def written(program):
    def keys(*extra):
        command = [program, "config", "keys", "--json", *extra]
        return Keys(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

    train = keys()
    return {
        "optim.py": optimizers(train), "_group.py": optimizer_groups(train), "loss.py": losses(train), "schedule.py": schedules(train),
        "metric.py": metrics(train), "_keywords.py": settings(train), "_rule.py": rules(keys("--policy")),
    }  # fmt: skip


def main():
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 2
    stale = []
    for name, text in written(sys.argv[1]).items():
        path = PACKAGE / name
        if "--check" not in sys.argv:
            path.write_text(text, encoding="utf-8")
            print(path.relative_to(PACKAGE.parents[2]))
        elif not path.is_file() or path.read_text(encoding="utf-8") != text:
            stale.append(name)
    if stale:
        print(f"not as the table of keys says: {', '.join(stale)}: run `make docs`", file=sys.stderr)
    return bool(stale)


if __name__ == "__main__":
    sys.exit(main())

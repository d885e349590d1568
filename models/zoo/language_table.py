"""Writes the section on files of language models, which docs/zoo.md ends with."""

import re

TITLE = "## Files of language models, as hub tools write them"
INTRODUCTION = """\
Small models of transformers with random weights, written by optimum-onnx, by onnxruntime's converters and by the builder of
onnxruntime-genai. Each file gets a tokenizer and 64 conversations; `tandem init FILE --data chat.jsonl` and `tandem train` take it without an
edit, and five steps train adapters on the projections of the attention. A cell has the largest relative difference of these losses from
those of PyTorch with PEFT over the weights that the file holds; at most 1e-4 is agreement (fp16: 1e-3). A number in brackets is the message below
the table that stops the file. Written by `python models/zoo/language_files.py`."""


def without_place(message):
    """The message without the name of one operator, which differs between models that it stops in the same way."""
    return re.sub(r"(model\.onnx: )\S+\.\S+: (?=com\.|[A-Z])", r"\1", message).replace("|", "\\|")


def section(cells):
    """The lines of the section; cells by shape and form."""
    shapes = list(dict.fromkeys(shape for shape, _ in cells))
    forms = list(dict.fromkeys(form for _, form in cells))
    messages = []

    def text_of(cell):
        if "stopped" not in cell:
            word = "as PyTorch" if cell["agrees"] else "differs"
            return f"{word}, {cell['difference']:.1e}"
        message = without_place(cell["stopped"])
        if message not in messages:
            messages.append(message)
        return f"({messages.index(message) + 1})"

    rows = [[shape, *(text_of(cells[shape, form]) for form in forms)] for shape in shapes]
    lines = [TITLE, "", *INTRODUCTION.splitlines(), ""]
    lines += ["| " + " | ".join(["shape", *forms]) + " |", "|" + "---|" * (len(forms) + 1)]
    lines += ["| " + " | ".join(row) + " |" for row in rows] + [""]
    return lines + [f"{number}. {message}" for number, message in enumerate(messages, 1)]


def section_of(path):
    """The section that a page has, from its title on; "" where it has none."""
    text = path.read_text() if path.exists() else ""
    return text[text.index(TITLE) :] if TITLE in text else ""


def write_section(cells, path):
    """Replaces the section of a page, which the other lines stay in front of."""
    text = path.read_text() if path.exists() else ""
    before = text.removesuffix(section_of(path)).rstrip("\n")
    path.write_text((before + "\n\n" if before else "") + "\n".join(section(cells)) + "\n")

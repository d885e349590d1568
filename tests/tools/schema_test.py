"""Editors accept every train.toml and policy.toml of the tree, and refuse typical mistakes: schema_test.py [TANDEM].

Asks each validator that is there: taplo and tombi (programs of PyPI's packages of these names, in PATH or next to this
Python), and Python's package jsonschema. With the program, files that `tandem init` writes are asked about, too.
Exit code 77: no validator is there.
"""
import importlib.util
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCHEMAS = ROOT / "docs" / "schema"
PROGRAM = None  # the command line's
SKIPPED = 77

TRAIN = """\
model = "model.onnx"
batch_size = 32
epochs = 2
[loss]
terms = [ { kind = "softmax_cross_entropy", logits = "logits", labels = "labels" } ]
[optimizer]
kind = "adam"
lr = 1e-3
schedule = { kind = "cosine", warmup = "50 steps" }
[data]
kind = "npz"
[data.train]
files = [ "train.npz" ]
[data.fields]
image = { from = "images", as = [ "scale(1/16)" ] }
labels = "labels"
[eval]
every = "1 epoch"
metrics = [ "accuracy", { kind = "top_k", k = 3 } ]
[checkpoint]
every = "30 min"
"""
TRAIN_MISTAKES = {  # what is replaced: by what
    "an unknown key": ("batch_size =", "batch_sise ="),
    "an unknown section": ("[optimizer]", "[optimiser]"),
    "a key of another program": ("lr = 1e-3", "learning_rate = 1e-3"),
    "a text in place of a number": ("epochs = 2", 'epochs = "2"'),
    "a number with a fraction": ("batch_size = 32", "batch_size = 32.5"),
    "an unknown optimizer": ('kind = "adam"', 'kind = "adamm"'),
    "an unknown metric": ('"accuracy"', '"acuracy"'),
    "a duration without a unit": ('every = "30 min"', 'every = "30"'),
    "a duration of an unknown unit": ('every = "1 epoch"', 'every = "1 round"'),
    "a number in place of a duration": ('warmup = "50 steps"', "warmup = 50"),
    "a term of the loss without its kind": ('kind = "softmax_cross_entropy", ', ""),
    "a number out of range": ("k = 3", "k = 0"),
    "a text in place of a list": ('[ "scale(1/16)" ]', '"scale(1/16)"'),
    "no model": ('model = "model.onnx"\n', ""),
}
POLICY = """\
policy = 1
devices = { gpu = { use = "emulated:0", memory = "2GiB" } }
rules = [
  { at = "**", on = "gpu" },
  { at = "deep.**", on = "cpu", ship = "auto", lookahead = 2, optional = true, why = "large" },
]
"""
POLICY_MISTAKES = {
    "a key of another program": ("on = \"gpu\"", "device = \"gpu\""),
    "a rule without a selector": ('at = "**", ', ""),
    "a version that is a text": ("policy = 1", 'policy = "1"'),
    "no version": ("policy = 1\n", ""),
    "a text in place of a number": ("lookahead = 2", 'lookahead = "2"'),
    "a number out of range": ("lookahead = 2", "lookahead = -1"),
    "an unknown word": ('ship = "auto"', 'ship = "row"'),
    "a number in place of true": ("optional = true", "optional = 1"),
    "an unknown key of a device": ("memory =", "size ="),
    "a number in place of a size": ('memory = "2GiB"', "memory = 2"),
    "an unknown table": ("rules = [", "rule = ["),
}


def program_named(name):
    own = shutil.which(name, path=str(pathlib.Path(sys.executable).parent))
    return shutil.which(name) or own


class Lint:
    """A program that finds the schema by the first line of a file."""

    def __init__(self, name, *options):
        self.name, self.options, self.program = name, options, program_named(name)

    def accepts(self, path):
        quiet = {**os.environ, "NO_COLOR": "1", "TOMBI_OFFLINE": "true"}
        ended = subprocess.run([self.program, "lint", *self.options, path], capture_output=True, text=True, env=quiet, cwd=path.parent)
        self.said = ended.stdout + ended.stderr
        return ended.returncode == 0


class JsonSchema:
    """Python's package, which gets the schema that the first line names."""

    name = "jsonschema"
    program = importlib.util.find_spec("jsonschema")

    def accepts(self, path):
        import jsonschema

        text = path.read_text()
        schema = json.loads((path.parent / re.match(r"#:schema (\S+)\n", text)[1]).read_text())
        errors = list(jsonschema.Draft7Validator(schema).iter_errors(tomllib.loads(text)))
        self.said = "\n".join(error.message for error in errors)
        return not errors


ALL = [Lint("taplo", "--no-auto-config"), Lint("tombi", "--offline", "--quiet"), JsonSchema()]
VALIDATORS = [validator for validator in ALL if validator.program]


class Schemas(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def written(self, kind, text):
        path = self.folder / f"{kind}.toml"
        shutil.copy(SCHEMAS / f"{kind}.schema.json", self.folder)
        path.write_text(f"#:schema ./{kind}.schema.json\n{text}")
        return path

    def accepted(self, path):
        for validator in VALIDATORS:
            self.assertTrue(validator.accepts(path), f"{validator.name}: {path}\n{validator.said}")

    def refused(self, path, why):
        for validator in VALIDATORS:
            self.assertFalse(validator.accepts(path), f"{validator.name} accepts {why}:\n{path.read_text()}")

    def check_mistakes(self, kind, good, mistakes):
        self.accepted(self.written(kind, good))
        for why, (before, after) in mistakes.items():
            self.assertEqual(good.count(before), 1, why)
            self.refused(self.written(kind, good.replace(before, after)), why)

    def test_they_are_draft_7(self):
        for kind in ("train", "policy"):
            schema = json.loads((SCHEMAS / f"{kind}.schema.json").read_text())
            self.assertEqual((schema["$schema"], schema["title"]), ("http://json-schema.org/draft-07/schema#", f"{kind}.toml"))

    def test_examples_are_accepted(self):
        examples = [*ROOT.glob("models/*/*.toml"), *ROOT.glob("bench/workloads/*.toml")]
        self.assertGreater(len(examples), 35)
        for path in sorted(examples):
            kind = "policy" if path.stem == "policy" else "train"
            self.assertEqual(path.read_text().split("\n")[0], f"#:schema ../../docs/schema/{kind}.schema.json", path)
            self.accepted(path)

    def test_mistakes_in_a_training_are_refused(self):
        self.check_mistakes("train", TRAIN, TRAIN_MISTAKES)

    def test_mistakes_in_a_policy_are_refused(self):
        self.check_mistakes("policy", POLICY, POLICY_MISTAKES)

    def tandem(self, *words):
        return subprocess.run([PROGRAM, *words], cwd=self.folder, capture_output=True, text=True, check=True).stdout

    def test_files_of_init_are_accepted(self):
        if PROGRAM is None:
            self.skipTest("no program was named")
        for name in ("model.onnx", "digits_train.npz"):
            shutil.copy(ROOT / "models" / "digits" / name, self.folder)
        self.tandem("init", "model.onnx", "--data", ".")
        for kind in ("train", "policy"):
            path = self.folder / f"{kind}.toml"
            text = path.read_text()
            self.assertTrue(text.startswith(f"#:schema ./.tandem/{kind}.schema.json\n"), text[:80])
            self.accepted(path)
            path.write_text(text + "\n[sise]\n")
            self.refused(path, "an unknown table")
            path.write_text(text)
        # Editors complete the model's names; other selectors stay allowed.
        selector = json.loads((self.folder / ".tandem/policy.schema.json").read_text())["properties"]["rules"]["items"]["properties"]["at"]
        named = selector["anyOf"][0]["enum"]
        self.assertTrue({"**", "conv1.**", "conv1.Conv", "fc1:weight"} <= set(named), named)
        self.assertEqual(selector["anyOf"][1], {"type": "string"})
        printed = json.loads(self.tandem("policy", "names", "--config", "train.toml", "--schema"))
        self.assertLessEqual(set(named), set(printed["properties"]["rules"]["items"]["properties"]["at"]["anyOf"][0]["enum"]))

    def test_installed_schemas_are_those_of_the_tree(self):
        if PROGRAM is None:
            self.skipTest("no program was named")
        self.tandem("config", "schema", "--install", ".")
        for kind in ("train", "policy"):
            self.assertEqual((self.folder / f".tandem/{kind}.schema.json").read_text(), (SCHEMAS / f"{kind}.schema.json").read_text())


if __name__ == "__main__":
    if len(sys.argv) > 1 and not sys.argv[1].startswith("-"):
        PROGRAM = os.path.abspath(sys.argv.pop(1))
    for validator in ALL:
        if validator not in VALIDATORS:
            print(f"skipped: {validator.name} is not installed")
    if not VALIDATORS:
        sys.exit(SKIPPED)
    unittest.main()

"""The commands of README.md and of the guides print what the pages show: documented_commands_test.py TANDEM.

All commands of a page run in one shell, in a temporary copy. Blocks that begin with a `$` are commands with their
output; `…` stands for anything, and what depends on the machine is compared loosely (documented_commands.py).
"""
import os
import pathlib
import random
import shutil
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import documented_commands as documented  # noqa: E402
from documented_pages import ROOT, Page  # noqa: E402

PROGRAM = None  # the command line's


def flowers(folder):
    """The table of README.md: three species whose measurements overlap, and a network of scikit-learn's."""
    shutil.copy(ROOT / "tests/data/sklearn/mlp_tanh.onnx", folder / "model.onnx")
    means = {"setosa": (5.0, 3.4, 1.5, 0.25), "versicolor": (5.9, 2.8, 4.3, 1.3), "virginica": (6.6, 3.0, 5.5, 2.0)}
    names, draw = list(means), random.Random(1)
    head = "sepal_length,sepal_width,petal_length,petal_width"
    rows = [",".join(f"{draw.gauss(mean, 0.1 * mean):.1f}" for mean in means[names[i % 3]]) + "," + names[i % 3] for i in range(1500)]
    (folder / "rows.csv").write_text(head + ",species\n" + "\n".join(rows) + "\n")
    (folder / "new.csv").write_text(head + "\n7.2,3.1,6.3,2.4\n4.9,3.5,1.3,0.2\n5.8,2.8,4.2,1.3\n")


def a_book(folder):
    shared = pathlib.Path(os.environ.get("TANDEM_SHARED", ROOT.parent / "shared"))
    text = shared / "data/text/tinyshakespeare_input.txt"
    if not text.is_file():
        return f"{text} is not there"
    shutil.copy(ROOT / "tests/data/language_models/gpt2.onnx", folder)
    (folder / "book.txt").write_text(text.read_text().lower())


def needs(what):
    return lambda folder: what


# What a reader brings to the commands below a heading, or what is missing for them here.
BRINGS = {
    ("README.md", "A table"): ("table", flowers),
    ("README.md", "A language model"): ("language", a_book),
    ("README.md", "Embedding tables with a policy"): (".", needs("8,000 steps of data by models/wide_deep/make_data.py")),
    ("docs/guide/configuration.md", "In an editor"): ("first", lambda folder: shutil.copytree(ROOT / "models/digits", folder, dirs_exist_ok=True) and None),
}


class DocumentedCommands(unittest.TestCase):
    def run_page(self, name, at_least):
        with tempfile.TemporaryDirectory() as folder:
            page = Page(name, pathlib.Path(folder), PROGRAM, BRINGS)
            page.run()
        for line in page.left_out:
            print(f"skipped: {line}")
        if page.problems:
            self.fail("\n" + "\n".join(page.problems))
        self.assertGreaterEqual(page.commands, at_least)

    def test_readme(self):
        self.run_page("README.md", 3)

    def test_guide(self):
        self.run_page("docs/guide.md", 13)

    def test_placement(self):
        self.run_page("docs/placement.md", 18)

    def test_editors(self):
        self.run_page("docs/guide/configuration.md", 2)


class Comparing(unittest.TestCase):
    def same(self, expected, got):
        self.assertEqual(documented.difference(expected.split("\n"), got), "")

    def other(self, expected, got):
        self.assertNotEqual(documented.difference(expected.split("\n"), got), "")

    def test_words_and_whole_numbers_are_exact(self):
        self.same("a 3\n  b", "a 3 b\n")
        self.other("a 3", "a 4")
        self.other("a", "b")
        self.other("a", "a b")
        self.other("a b", "a")
        self.other("step 90", "step 91")

    def test_results_sizes_and_times_are_loose(self):
        self.same("loss 0.1027  3.1 KiB  0.3 s ago", "loss 0.09  2.9 KiB  12.5 s ago")
        self.other("loss 0.1027", "loss 0.3")
        self.other("loss 0.1", "accuracy 0.1")
        self.same("left 0:05  2858 samples/s", "left 1:05  1 samples/s")
        self.same("checkpoint step-00000630 (best)", "checkpoint step-00000540 (best)")

    def test_gaps(self):
        self.same("a\n…\nd", "a b c d")
        self.same("a (…) d", "a (b, c) d")
        self.same("a\n…", "a b c")
        self.same("…\nc", "a b c")
        self.same("x (…)", "x (y)")
        self.other("a\n…\nd", "a b c")
        self.other("…\nb", "a b c")
        self.other("a\n…\nc\n…\nb\n…", "a b c")

    def test_commands_are_found(self):
        page = "# A\n\n`f.toml` has:\n\n    a = 1\n\n## B\n\ntext\n\n    $ one \\\n        two\n    out\n    $ three\n\n```console\n$ four\n```\n\n```toml\nb = 1\n```\n"
        found = [(heading, vars(step)) for heading, step in documented.steps_of(page)]
        self.assertEqual(found, [("A", {"line": 5, "name": "f.toml", "text": "a = 1\n"}),
                                 ("B", {"line": 11, "text": "one two", "output": ["out"]}),
                                 ("B", {"line": 14, "text": "three", "output": []}),
                                 ("B", {"line": 17, "text": "four", "output": []})])


if __name__ == "__main__":
    PROGRAM = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()

"""What the zoo and the corpus's table make of names, errors and counts; no network is trained.

    python3 tests/tools/zoo_test.py
"""
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "models" / "zoo"), str(ROOT / "tests" / "scripts")]
import calls  # noqa: E402
import corpus_table  # noqa: E402
import language_table  # noqa: E402
import split_policy  # noqa: E402

# Two operators of an embedding, two blocks of four, one operator behind them.
PATHS = ["emb.Gather", "emb.Add"]
PATHS += [f"blocks.{block}.{name}" for block in "01" for name in ("norm.Div", "fc.MatMul", "fc.Add", "Relu")]
PATHS += ["MatMul"]


class Modules(unittest.TestCase):
    def test_whole_modules_stay_together(self):
        self.assertEqual(split_policy.modules_of(PATHS, 4), [("emb.**", 2), ("blocks.0.**", 4), ("blocks.1.**", 4), ("MatMul", 1)])

    def test_large_ones_are_divided(self):
        found = split_policy.modules_of(PATHS, 2)
        self.assertEqual(found[:5], [("emb.**", 2), ("blocks.0.norm.**", 1), ("blocks.0.fc.**", 2), ("blocks.0.Relu", 1), ("blocks.1.norm.**", 1)])

    def test_each_operator_is_counted_once(self):
        for most in range(1, 12):
            self.assertEqual(sum(count for _, count in split_policy.modules_of(PATHS, most)), len(PATHS), most)

    def test_an_operator_may_be_called_as_a_module(self):
        self.assertEqual(split_policy.modules_of(["a.b", "a.b.c", "a.b.d"], 2), [("a.b", 1), ("a.b.c", 1), ("a.b.d", 1)])


class Rules(unittest.TestCase):
    def test_half_is_placed_and_a_quarter_made_again(self):
        rules = split_policy.split_policy(PATHS)
        self.assertEqual(rules[0], '{ at = "emb.Gather", on = "gpu0", acts = "recompute" }')
        self.assertEqual(len(rules), 6)  # for eleven operators, one by one
        self.assertEqual(sum("recompute" in rule for rule in rules), 3)

    def test_letters_of_a_pattern_are_not_written(self):
        self.assertIsNone(split_policy.split_policy(["a[0].Add", "b"]))

    def test_parameters_of_two_devices_are_found(self):
        error = "tandem: /x/split.toml:17:32: layer:bias: this parameter is read on two devices, and no rule says where it lives: got a\n"
        error += "/x/split.toml:18:1: other:w: this parameter is read on two devices, and no rule says where it lives\n"
        self.assertEqual(split_policy.homeless_parameters(error), ["layer:bias", "other:w"])
        self.assertEqual(split_policy.homeless_parameters("split.toml:3:1: no operator has this path"), [])


class LanguageFiles(unittest.TestCase):
    CELLS = {
        ("Llama", "fp32"): {"agrees": True, "difference": 1.5e-7},
        ("Llama", "int4"): {"stopped": "init: model.onnx: model.layers.0.q_proj.MatMul_Q4: com.microsoft::MatMulNBits: no"},
        ("GPT-2", "fp32"): {"agrees": False, "difference": 2e-2},
        ("GPT-2", "int4"): {"stopped": "init: model.onnx: transformer.h.0.c_attn.MatMul_Q4: com.microsoft::MatMulNBits: no"},
    }

    def test_one_message_for_what_stops_in_the_same_way(self):
        lines = language_table.section(self.CELLS)
        self.assertIn("| Llama | as PyTorch, 1.5e-07 | (1) |", lines)
        self.assertIn("| GPT-2 | differs, 2.0e-02 | (1) |", lines)
        self.assertEqual(lines[-1], "1. init: model.onnx: com.microsoft::MatMulNBits: no")

    def test_the_section_is_replaced_and_the_rest_stays(self):
        with tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(folder) / "zoo.md"
            page.write_text("# The zoo\n\nrows\n")
            language_table.write_section(self.CELLS, page)
            once = page.read_text()
            language_table.write_section(self.CELLS, page)
            self.assertEqual(page.read_text(), once)
            self.assertTrue(once.startswith("# The zoo\n\nrows\n\n" + language_table.TITLE))


class Words(unittest.TestCase):
    def test_an_error_without_folders(self):
        error = "warning    something\ntandem: /a/b/model.onnx: Loop is not supported\nmore"
        self.assertEqual(calls.first_words(error), "model.onnx: Loop is not supported")

    def test_nothing_is_said(self):
        self.assertEqual(calls.first_words(""), "no message")


class Corpus(unittest.TestCase):
    def test_counts_and_reasons(self):
        states = {
            "a/node/x/model.onnx": (corpus_table.TRAINS, []),
            "a/node/y/model.onnx": (corpus_table.REFUSED, ["no such operator", "no such type"]),
            "b.onnx": (corpus_table.REFUSED, ["no such operator"]),
        }
        page = corpus_table.page(states)
        self.assertIn("3 ONNX files of other projects: 1 trains, 0 no weights, 0 open size, 2 refused, 0 not a model.", page)
        self.assertIn("| a/node | 2 | 1 |  |  | 1 |  |", page)
        self.assertIn("| no such operator | 2 | a/node/y/model.onnx |\n| no such type | 1 | a/node/y/model.onnx |", page)

    def test_reasons_of_files_are_one(self):
        self.assertEqual(corpus_table.shortened("axis 1 of 'x' is free"), corpus_table.shortened("axis 1 of 'other' is free"))


if __name__ == "__main__":
    unittest.main()

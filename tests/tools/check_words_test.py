"""tools/check_words.py finds each kind of finding, at its line, and nothing in program texts and in code."""
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools"))
import check_words  # noqa: E402

KEYS = {"optimizer.lr", "policy.rules.acts", "parameters.head"}


class CheckWords(unittest.TestCase):
    def found(self, check, *arguments):
        return [(line, message.split(":")[0]) for line, message in sorted(check(*arguments))]

    def in_code(self, name, text, *expected):
        self.assertEqual(self.found(check_words.check_comments, name, text), list(expected))

    def in_page(self, text, *expected):
        self.assertEqual(self.found(check_words.check_page, "docs/x.md", text), list(expected))

    def test_begin_of_comments(self):
        self.in_code("x.h", "// Of a list.\nint x;\n", (1, 'a comment begins with "Of"'))
        self.in_code("x.h", "/// The same for y.\n", (1, 'a comment begins with "The"'))
        self.in_code("x.h", "// The samer.\n// A part\n// of it.\n// The same line again.\n")
        self.in_code("x.h", "int x;  // of a list\n", (1, 'a comment after code begins with "of"'))
        self.in_code("x.h", "int x;  // a place\n        // of a list\n")
        self.in_code("x.py", '"""Of a file."""\nx = 1  # of it\n', (1, 'a comment begins with "Of"'), (2, 'a comment after code begins with "of"'))
        self.in_code("x.sh", "#!/bin/sh\n# Of a file.\n", (2, 'a comment begins with "Of"'))

    def test_phrases(self):
        self.in_code("x.cpp", "// For so\n// many rows.\n", (1, '"so many"'))
        self.in_code("x.cpp", "/* One.\n * Nobody reads it. */\n", (2, '"nobody"'))
        self.in_code("x.py", 'def f():\n    """A file.\n\n    It lies beside it."""\n', (4, '"beside"'))
        self.in_code("x.sh", "echo 'a card'  # a card\n", (1, '"card"'))
        self.in_page("Text.\n\nIt says of\nit.\n", (3, '"says of"'))

    def test_ordinary_english(self):
        self.in_code("x.cpp", "// So many ids that they cross; besides, cards.h, a GeForce card, told apart, so much as a bit.\n")
        self.in_code("x.cpp", '// `nobody` and "so many" are quoted.\n')

    def test_program_texts_are_not_checked(self):
        self.in_code("x.cpp", 'auto a = "nobody // beside"; auto b = R"(// nobody\n)"; char c = \'"\';  // a text\n')
        self.in_code("x.py", 'print("""nobody""", "# beside")\nx = f("a",\n      \'\'\'so many\'\'\')\n')
        self.in_page("    nobody\n\n```\nnobody\n```\n`nobody`\n")

    def test_lines_and_cells(self):
        self.in_page("word " * 24 + "\n")
        self.in_page("word " * 25 + "\n", (1, "the line has 125 characters, the limit is 120"))
        self.in_page("- `" + "word " * 30 + "`\n")  # has no place to break it
        self.in_page("```\n" + "word " * 30 + "\n```\n")
        self.in_page("| a | " + "c" * 200 + " |\n")
        self.in_page("| a | " + "c" * 201 + " |\n", (1, "a cell has 201 characters, the limit is 200"))
        self.in_page("| a | " + "c" * 150 + r"\|" + "c" * 60 + " |\n", (1, "a cell has 212 characters, the limit is 200"))

    def test_glossary(self):
        def check(row, *unknown):
            self.assertEqual(self.found(check_words.check_glossary, row, KEYS), [(1, f"`{key}` is no key of train.toml or policy.toml") for key in unknown])

        check("| word | a choice; the key is `acts`, `parameters.head`, `lr = 1`, a file `x.jsonl`, an operator `Gather` |")
        check("| word | a choice; the key is `act`, `parameters.heads`, `rate = 1` (`axts`) |", "act", "axts", "parameters.heads", "rate")

    def test_known_keys(self):
        self.assertEqual(check_words.known_keys(["# Keys\n\n| key | type |\n|---|---|\n| `a.b[].c` | list |\n"]), {"a.b.c"})

    def test_pages(self):
        self.assertTrue(check_words.is_page("docs/guide/export.md"))
        for name in ("docs/train_toml.md", "docs/decisions/data.md", "docs/gpu/STATUS.md", "models/README.md"):
            self.assertFalse(check_words.is_page(name), name)


if __name__ == "__main__":
    unittest.main()

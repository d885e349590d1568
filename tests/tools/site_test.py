"""tools/site: the copies of documents for the site, its menu, and the check that pages take nothing from elsewhere.

The documents' own links are checked here with GitHub's names of headings, so that no site has to be made for that.
"""
import os
import pathlib
import re
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "site"))
import check_site  # noqa: E402
import pages  # noqa: E402


def anchors_of(text):
    """The names that GitHub gives to headings: lower case, spaces become hyphens, other marks are left out."""
    found, fenced = set(), False
    for line in text.split("\n"):
        fenced ^= line.lstrip().startswith("```")
        if not fenced and (match := re.match(r"#+ (.*)", line)):
            words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", match[1]).strip().lower()
            name = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
            number = 0
            while f"{name}-{number}" in found or (number == 0 and name in found):
                number += 1
            found.add(f"{name}-{number}" if number else name)
    return found


def broken_links(page, text, texts):
    prose = "\n".join(line for line, is_prose in pages.outside_of_blocks(text) if is_prose)
    for match in pages.LINK.finditer(pages.CODE.sub("", prose)):
        path, _, anchor = match[2].partition("#")
        if re.match(r"[a-z]+:", match[2]):
            continue
        target = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
        if not (ROOT / target).exists():
            yield f"{page}: {match[2]}: there is no such file"
        elif anchor and target in texts and anchor not in anchors_of(texts[target]):
            yield f"{page}: {match[2]}: there is no such heading"


class Copies(unittest.TestCase):
    def copied(self, text, expected, page="docs/README.md", folders=()):
        self.assertEqual(pages.for_the_site(page, text, set(folders)), expected)

    def test_nested_lists_get_four_spaces(self):
        self.copied("- a\n  b\n  - c\n    d\n  - e\n", "- a\n    b\n\n    - c\n        d\n    - e\n")
        self.copied("1. a\n   b\n\n   c\n2. d\n", "1. a\n    b\n\n    c\n\n2. d\n")

    def test_blocks_stay(self):
        for text in ("    $ tandem train\n      - x | `a\\|b`\n", "```\n  - x\n[a](b/)\n```\n", "a\n\n    [a](guide/)\n"):
            self.copied(text, text, folders=("docs/guide",))

    def test_code_in_cells_shows_a_bar(self):
        self.copied("| `a\\|<b>` | `c` |", "| <code>a&#124;&lt;b&gt;</code> | `c` |")
        self.copied("outside `a\\|b`", "outside `a\\|b`")

    def test_links_to_folders_become_links_to_their_pages(self):
        self.copied("[guide/](guide/) and `[x](guide/)`", "[guide/](guide/README.md) and `[x](guide/)`", folders=("docs/guide",))
        self.copied("onnx::Gather[axis=0](%84, %86)", "onnx::Gather[axis=0\\](%84, %86)")


class Documents(unittest.TestCase):
    def test_the_menu_has_each_once(self):
        names = pages.documents()
        listed = re.findall(r": '([^']*\.md)'", str(pages.navigation(names, [])))
        self.assertEqual(sorted(listed), sorted(names))
        self.assertGreater(len(names), 80)

    def test_the_menu_has_lists_of_the_pages_of_folders(self):
        menu = pages.navigation(pages.documents(), ["docs/guide/README.md", "a/b/README.md"])
        self.assertEqual(menu[-1], {"a/b": "a/b/README.md"})
        self.assertEqual(next(item for item in menu if "The pages behind the guide" in item)["The pages behind the guide"][0], "docs/guide/README.md")

    def test_the_menu_has_the_order_of_docs_readme(self):
        names = pages.documents()
        titles = [next(iter(item)) for item in pages.navigation(names, [])]
        self.assertEqual(titles[:3], ["Tandem", "All pages", pages.title_of("docs/guide.md")])
        self.assertLess(titles.index(pages.title_of("docs/placement.md")), titles.index(pages.title_of("docs/operators.md")))

    def test_links_lead_somewhere(self):
        texts = {name: (ROOT / name).read_text() for name in pages.documents()}
        self.assertEqual([problem for name, text in texts.items() for problem in broken_links(name, text, texts)], [])

    def test_broken_links_are_found(self):
        texts = {"docs/guide.md": (ROOT / "docs/guide.md").read_text()}
        text = "[a](guide.md#no-such-heading)\n[b](none.md)\n[c](guide.md#1-look-into-the-file)\n`[d](none.md)`\n"
        self.assertEqual(list(broken_links("docs/README.md", text, texts)),
                         ["docs/README.md: guide.md#no-such-heading: there is no such heading", "docs/README.md: none.md: there is no such file"])


class FromElsewhere(unittest.TestCase):
    def findings(self, name, text):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / name
            path.write_text(text)
            return check_site.findings(path)

    def test_scripts_fonts_and_pictures_are_found(self):
        for text in ('<script src="https://a.org/x.js"></script>', '<link rel="stylesheet" href="//a.org/x.css">',
                     '<img src="https://a.org/x.png">', "<style>@import 'https://a.org/x.css'</style>"):
            self.assertEqual(len(self.findings("x.html", text)), 1, text)
        self.assertEqual(len(self.findings("x.css", "a { background: url(https://a.org/x.png) }")), 1)

    def test_links_and_own_files_are_not(self):
        for text in ('<a href="https://a.org">a</a>', '<script src="../x.js"></script>', '<link rel="canonical" href="https://a.org">'):
            self.assertEqual(self.findings("x.html", text), [], text)


if __name__ == "__main__":
    unittest.main()

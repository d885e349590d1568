"""tandem report on made-up runs, read by Python's parser of HTML: every element closed, no hostile name an element, nothing loaded.

    python3 tests/tools/report_page_test.py build/tandem
"""
import html.parser
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

TANDEM = sys.argv.pop(1)
VOID = {"meta", "input", "br"}
KNOWN = VOID | set("html head title style script body header main footer section nav a h1 h2 h3 p div span dl dt dd small b i ul li figure figcaption "
                   "svg path table caption thead tbody tr th td details summary code pre label".split())


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.elements, self.attributes, self.texts, self.scripts = [], [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.elements.append(tag)
        self.attributes += [(tag, name, value) for name, value in attributes]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.elements.append(tag)
        self.attributes += [(tag, name, value) for name, value in attributes]

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, f"</{tag}> closes {self.open[-1:]}"
        self.open.pop()

    def handle_data(self, data):
        (self.scripts if self.open[-1:] == ["script"] else self.texts).append(data)


def lines(*rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


class ReportPage(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.runs = []

    def tearDown(self):
        self.folder.cleanup()

    def run_of(self, name, metrics, **files):
        path = pathlib.Path(self.folder.name) / name
        path.mkdir()
        (path / "metrics.jsonl").write_text(metrics)
        for file, content in {"train.resolved.toml": 'model = "m.onnx"\n', **files}.items():
            (path / file).write_text(content)
        self.runs.append(str(path))

    def page(self):
        to = self.folder.name + "/report.html"
        subprocess.run([TANDEM, "report", *self.runs, "--to", to], check=True, stdout=subprocess.DEVNULL)
        page = Page(pathlib.Path(to).read_text(encoding="utf-8", errors="strict"))
        self.assertEqual(page.open, [])
        self.assertLessEqual(set(page.elements), KNOWN)
        for tag, name, value in page.attributes:
            self.assertFalse(name.startswith("on"), f"{tag} {name}")
            self.assertNotIn(name, ("src", "xlink:href"))
            self.assertTrue(name != "href" or value.startswith("#"), value)
        ids = [value for _, name, value in page.attributes if name == "id"]
        self.assertEqual(len(ids), len(set(ids)))
        for _, name, value in page.attributes:
            if name == "aria-labelledby":
                self.assertIn(value, ids)
        self.assertEqual(sum(tag == "h1" for tag in page.elements), 1)
        for script in page.scripts[:-1]:  # the last one is the page's own
            data = json.loads(script)
            for line in data["lines"]:
                self.assertEqual(len(line["x"]), len(line["y"]))
        return page

    def test_several_runs(self):
        for run in range(3):
            rows = [{"step": s, "loss": 2 / (s + run), "lr": 0.01, "samples_per_second": 900 + s, "data.wait": 0.1} for s in range(1, 900)]
            self.run_of(f"run-{run}", lines(*rows, {"phase": "eval", "step": 899, "loss": 0.1, "confusion": [[5, 1], [2, 7]]}))
        page = self.page()
        text = " ".join(page.texts)
        for part in ("3 runs", "run-2", "Loss", "Learning rate", "Samples", "Waiting for data", "confusion"):
            self.assertIn(part, text)
        labels = [value for _, name, value in page.attributes if name == "aria-label"]
        self.assertTrue(any(label.startswith("Loss by step; run-0, training:") for label in labels))

    def test_hostile_names(self):
        evil = '"><script>alert(1)</script><img src=x onerror=alert(1)>'
        self.run_of("<b>&'\" onclick=x", lines({"step": 1, "loss": 1, evil: 2, "norm.update." + evil: 1},
                                               {"phase": "eval", "step": 1, "f1": {evil: 0.5, "ok": "nan"}}),
                    **{"operators.json": json.dumps({"step": 1, "operators": [{"path": evil, "op": evil, "ms": 1}]}),
                       "placement.json": json.dumps({"devices": [evil], "nodes": [], "uses": {evil: evil}})})
        self.run_of("other", "")
        page = self.page()
        self.assertIn(evil, " ".join(page.texts))

    def test_empty_and_torn(self):
        self.run_of("empty", "")
        self.run_of("torn", lines({"step": 1, "loss": "nan"}, {"step": 2, "loss": "inf"}) + '{"step": 3, "lo')
        self.assertIn("cannot be read", " ".join(self.page().texts))
        self.runs = self.runs[1:]
        self.assertIn("No loss and no metric that was logged is finite.", " ".join(self.page().texts))


if __name__ == "__main__":
    unittest.main()

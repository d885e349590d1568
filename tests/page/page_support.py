"""What the tests of the page share: the program that serves it, a headless browser, the parts of the page.

    python3 tests/page/NAME_test.py TANDEM      exit code 77 where playwright, numpy or a browser is missing

TANDEM_BROWSER_PYTHON names a Python that has playwright, for ctest.
"""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import urllib.error
import urllib.request

BROWSERS = ["chromium", "chromium-browser", "google-chrome", "chrome"]


def skip(reason):
    print(f"skipped: {pathlib.Path(sys.argv[0]).name}: {reason}")
    sys.exit(77)


BROWSER = next((path for path in map(shutil.which, BROWSERS) if path), None)
if BROWSER is None:
    skip(f"there is none of {', '.join(BROWSERS)}")
try:
    from playwright.sync_api import expect, sync_playwright

    from nested_model import nested_network
except ImportError as error:
    skip(str(error))

PROGRAM = sys.argv[1] if len(sys.argv) > 1 else ""
expect.set_options(timeout=20000)


class Server:
    """`tandem policy page` on policy.toml of a folder."""

    def __init__(self, folder, *more):
        self.folder = folder
        command = [PROGRAM, "policy", "page", "policy.toml", "--config", "train.toml", *more]
        self.process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        found = re.match(r"page: (http://\S+)$", self.process.stdout.readline())
        assert found, self.process.stderr.read()
        self.url = found.group(1)
        self.root, self.token = re.match(r"(http://[^/]+)/#token=(\w+)", self.url).groups()

    def get(self, path):
        asked = urllib.request.Request(f"{self.root}/api/{path}", headers={"X-Tandem-Token": self.token})
        with urllib.request.urlopen(asked, timeout=30) as answer:
            return answer.read()

    def state(self):
        return json.loads(self.get("state"))

    def stop(self):
        self.process.terminate()
        self.process.communicate(timeout=20)


class PageTest(unittest.TestCase):
    """Gives each test a folder with a small network, a server, and a page that shows it."""

    more = ()  # arguments of the server
    scheme = "light"

    @classmethod
    def setUpClass(cls):
        cls.playwright = sync_playwright().start()
        cls.browser = cls.playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.playwright.stop()

    def make_files(self, folder):
        nested_network(folder)

    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.temporary.name).resolve()
        self.make_files(self.folder)
        self.policy = self.folder / "policy.toml"
        self.first_text = self.policy.read_text()
        self.server = Server(self.folder, *self.more)
        self.complaints = []
        self.page = self.open_page()

    def tearDown(self):
        for context in self.browser.contexts:
            context.close()
        self.server.stop()
        self.temporary.cleanup()
        self.assertEqual([], self.complaints)

    def open_page(self, **options):
        context = self.browser.new_context(viewport={"width": 1360, "height": 860}, color_scheme=self.scheme, **options)
        page = context.new_page()
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("console", lambda message: self.note(message))
        page.on("dialog", self.accept)
        page.goto(self.server.url)
        page.wait_for_selector("body[data-ready]")
        return page

    def accept(self, dialog):
        if dialog.type != "beforeunload":
            self.complaints.append(f"{dialog.type}: {dialog.message}")
        dialog.accept()

    def note(self, message):
        # An answer of 4xx, which tests ask for, is written to the console, too.
        if message.type == "error" and "Failed to load resource" not in message.text:
            self.complaints.append(message.text)

    # -- parts of the page

    def row(self, name, page=None):
        """The row of this name in the table."""
        return (page or self.page).locator("#view .row[data-item]").filter(
            has=(page or self.page).locator(".label", has_text=re.compile(f"^{re.escape(name)}$")))

    def select(self, *names):
        """Unfolds the table down to a row and selects it."""
        for name in names[:-1]:
            if self.row(name).first.get_attribute("aria-expanded") == "false":
                self.row(name).first.locator(".twist").click()
        self.row(names[-1]).first.click()

    def choice(self, key, value):
        return self.page.locator(f"#inspector [data-key='{key}-{value}']")

    def place(self, key, value):
        """Clicks a choice of the inspector, and waits for the plan."""
        before = self.server.state()["revision"]
        self.choice(key, value).click()
        self.wait_for_revision(before)

    def wait_for_revision(self, before):
        self.page.wait_for_function("() => !document.body.hasAttribute('aria-busy')")
        self.assertNotEqual(before, self.server.state()["revision"])

    def tab(self, name):
        self.page.locator("#tabs").get_by_role("tab", name=re.compile(f"^{name}")).click()

    def rules(self):
        """The rules of the current text, as the file has them."""
        return [rule["text"] for rule in self.server.state()["rules"] if rule["list"] == "rules"]

    def assert_file_is_as_at_first(self):
        self.assertEqual(self.first_text, self.policy.read_text())


def main():
    if not PROGRAM:
        sys.exit(__doc__)
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])

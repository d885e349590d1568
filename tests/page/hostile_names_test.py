"""Names that are scripts stay text, wherever they are shown: hostile_names_test.py TANDEM."""

import re

from page_support import PageTest, expect, main  # skips where numpy is missing, too
from nested_model import nested_network

NAME = "<img src=x onerror=alert(1)>"


class HostileNames(PageTest):
    def make_files(self, folder):
        nested_network(folder, blocks=2, width=16, module=NAME)
        policy = folder / "policy.toml"
        text = policy.read_text().replace("  # all of it", ' # "><script>alert(1)</script>')
        policy.write_text(text.replace('on = "gpu" }', f'on = "gpu", why = "{NAME}" }}'))

    def test_nothing_runs_and_nothing_is_markup(self):
        page = self.page
        self.select(NAME, "1")
        self.place("on", "cpu")
        self.row("1").click(button="right")
        page.keyboard.press("Escape")
        page.get_by_role("button", name="Unfold all").click()
        page.locator("#search").fill(NAME)
        expect(page.locator("#match")).to_contain_text("8 operators")
        for tab in ("Step", "Copies", "Advice", "Search", "Rules"):
            self.tab(tab)
        page.locator("#new-rule").fill(f'{{ at = "**", on = "{NAME}" }}')
        page.get_by_role("button", name="Add", exact=True).click()
        expect(page.locator("#notice")).to_contain_text(NAME)
        for view in ("Tree", "Graph", "Table"):
            page.get_by_role("button", name=view, exact=True).click()
        page.keyboard.press("e")
        page.get_by_role("button", name="Save…").click()
        expect(page.locator("#review .moves")).to_contain_text(NAME)
        self.assertEqual(0, page.locator("img").count())
        self.assertEqual(1, page.locator("script").count())

    def test_no_markup_can_be_set_from_script(self):
        refused = self.page.evaluate("() => { try { document.body.innerHTML = '<b>x</b>'; return ''; } catch (error) { return error.name; } }")
        self.assertEqual("TypeError", refused)
        self.complaints.clear()

    def test_the_token_does_not_stay_in_the_address(self):
        self.assertIsNone(re.search(r"token|#", self.page.url))
        self.page.reload()
        self.page.wait_for_selector("body[data-ready]")


if __name__ == "__main__":
    main()

"""The page without a mouse: keys, order of the tab key, names for screen readers, focus: keyboard_test.py TANDEM."""

import re

from page_support import PageTest, expect, main

FOCUS = """() => {
  const at = document.activeElement;
  return [at.id || at.dataset.key || at.className || at.tagName, at.getAttribute("aria-label") || at.textContent.trim().slice(0, 40)];
}"""
# Every control has a role and a name.
UNNAMED = """() => [...document.querySelectorAll("button, input, select, summary, [tabindex='0'], [role=tab], [role=meter]")]
  .filter(one => one.offsetParent !== null)
  .filter(one => !(one.getAttribute("aria-label") || one.getAttribute("aria-labelledby") || one.textContent.trim()
    || (one.labels && one.labels.length)))
  .map(one => one.outerHTML.slice(0, 100))"""
BROKEN_REFERENCES = """() => [...document.querySelectorAll("[aria-labelledby], [aria-describedby], [aria-controls], [aria-activedescendant], label[for]")]
  .flatMap(one => ["aria-labelledby", "aria-describedby", "aria-controls", "aria-activedescendant", "for"].map(name => one.getAttribute(name)))
  .filter(id => id && !document.getElementById(id))"""
DOUBLE_IDS = "() => [...document.querySelectorAll('[id]')].map(one => one.id).filter((id, i, all) => all.indexOf(id) !== i)"


class Keyboard(PageTest):
    def press(self, *keys):
        for key in keys:
            self.page.keyboard.press(key)

    def test_a_module_is_placed_saved_and_undone_by_keys_alone(self):
        self.press("t", "Home", "ArrowDown", "ArrowRight", "ArrowDown", "ArrowDown")
        expect(self.page.locator("#inspector h2")).to_have_text("blocks.1")
        before = self.server.state()["revision"]
        self.press("1")
        self.wait_for_revision(before)
        self.assertEqual('{ at = "blocks.1.**", on = "cpu" }', self.rules()[-1])
        expect(self.page.locator("#view .grid")).to_be_focused()
        self.press("Enter")
        expect(self.page.locator("#menu [role=menuitemradio]").first).to_be_focused()
        expect(self.page.locator("#menu [role=menuitemradio]").first).to_have_attribute("aria-checked", "true")
        self.press("ArrowDown", "ArrowDown", "Escape")
        expect(self.page.locator("#view .grid")).to_be_focused()
        self.press("Control+s")
        expect(self.page.locator("#review [data-key=confirm]")).to_be_focused()
        self.press("Escape")
        self.assert_file_is_as_at_first()
        self.press("Control+s")
        expect(self.page.locator("#review [data-key=confirm]")).to_be_focused()
        self.press("Enter")
        expect(self.page.locator("#file-status")).to_have_text("saved")
        self.assertIn("blocks.1.**", self.policy.read_text())
        before = self.server.state()["revision"]
        self.press("Control+z")
        self.wait_for_revision(before)
        self.assertEqual(1, len(self.rules()))

    def test_the_first_link_leads_to_the_selected_row(self):
        self.page.evaluate("() => document.activeElement.blur()")
        self.press("Tab", "Enter")
        expect(self.page.locator("#view .grid")).to_be_focused()
        self.press("ArrowDown")
        expect(self.page.locator("#inspector h2")).to_have_text("blocks")

    def test_escape_ends_the_search_there_and_in_the_table(self):
        for keys in (["Escape"], ["Enter", "Escape"]):
            self.press("/")
            self.page.keyboard.type("fc2")
            self.press(*keys[:-1])
            if keys[:-1]:
                expect(self.row("fc2").first).to_have_attribute("aria-selected", "true")
            self.press(keys[-1])
            expect(self.page.locator("#view .grid")).to_be_focused()
            expect(self.page.locator("#search")).to_have_value("")
            expect(self.page.locator("#match")).to_be_empty()

    def test_delete_takes_the_own_rule_away(self):
        self.select("head")
        self.place("on", "cpu")
        self.page.locator("#view .grid").focus()
        before = self.server.state()["revision"]
        self.press("Delete")
        self.wait_for_revision(before)
        self.assertEqual(self.first_text, self.server.state()["text"])

    def test_search_tree_and_graph_by_keys(self):
        self.press("/")
        expect(self.page.locator("#search")).to_be_focused()
        self.page.keyboard.type("blocks.3.**")
        expect(self.page.locator("#match")).to_contain_text("4 operators")
        self.press("Enter")
        expect(self.page.locator("#view .grid")).to_be_focused()
        self.press("r")
        expect(self.page.locator("#view .blocks")).to_be_focused()
        self.press("Home", "ArrowDown", "ArrowDown", "ArrowRight")
        expect(self.page.locator("#inspector h2")).to_have_text("blocks.1")
        self.press("g")
        expect(self.page.locator("#view .graph")).to_be_focused()
        self.press("Home", "ArrowDown")
        expect(self.page.locator("#view .box.is-selected")).to_have_count(1)
        self.press("?")
        expect(self.page.locator("#help")).to_be_visible()

    def test_the_tab_key_goes_from_the_file_to_the_plan_and_is_never_caught(self):
        self.page.evaluate("() => document.activeElement.blur()")
        seen = []
        for _ in range(60):
            self.press("Tab")
            where, name = self.page.evaluate(FOCUS)
            if where == "BODY":
                break
            seen.append(where)
            self.assertTrue(name, f"{where} has no name")
        order = [next((i for i, where in enumerate(seen) if re.search(part, where)), None)
                 for part in ("^skip$", "^Keys$", "^Table$", "^search$", "^view$", "^on-cpu$", "^tab-step$", "^panel$", "^step-chart$")]
        self.assertNotIn(None, order, seen)
        self.assertEqual(order, sorted(order), seen)

    def test_everything_has_a_name_and_ids_are_unique(self):
        for tab in ("Step", "Copies", "Advice", "Search", "Rules"):
            self.tab(tab)
            for view in "trg":
                self.page.locator("#tabs").press(view)
                self.page.wait_for_timeout(50)
                for check in (UNNAMED, BROKEN_REFERENCES, DOUBLE_IDS):
                    self.assertEqual([], self.page.evaluate(check), (tab, view))

    def test_a_click_keeps_the_focus_while_the_plan_changes(self):
        self.select("blocks")
        self.choice("state", "cpu").focus()
        before = self.server.state()["revision"]
        self.press("Enter")
        self.wait_for_revision(before)
        expect(self.choice("state", "cpu")).to_be_focused()
        expect(self.page.locator("#announcer")).to_contain_text("peak")


if __name__ == "__main__":
    main()

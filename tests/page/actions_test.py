"""Everything that a person does on the page with the mouse: actions_test.py TANDEM."""

import re

from page_support import PageTest, expect, main


class Edits(PageTest):
    def test_a_click_places_a_module_and_writes_no_file(self):
        self.select("blocks", "2")
        self.place("on", "cpu")
        self.assertEqual(['{ at = "**", on = "gpu" }', '{ at = "blocks.2.**", on = "cpu" }'], self.rules())
        expect(self.choice("on", "cpu")).to_have_attribute("aria-pressed", "true")
        expect(self.row("2").locator(".run")).to_have_text("cpu")
        expect(self.page.locator("#file-status")).to_contain_text("not saved")
        self.assert_file_is_as_at_first()

    def test_parts_of_a_placement_are_chosen_apart(self):
        self.select("head")
        self.place("state", "cpu")
        self.assertIn('{ at = "head.**", state = "cpu" }', self.rules())
        self.select("blocks", "0")
        self.place("acts", "recompute")
        self.assertEqual('{ at = "blocks.0.**", acts = "recompute" }', self.rules()[-1])

    def test_siblings_become_one_rule(self):
        for block in "01":
            self.select("blocks", block)
            self.place("on", "cpu")
        self.assertEqual(2, len(self.rules()), self.rules())

    def test_the_menu_places(self):
        self.row("head").click(button="right")
        menu = self.page.locator("#menu")
        expect(menu.get_by_role("menuitemradio").first).to_be_focused()
        expect(menu.get_by_role("menuitemradio", name="Optimizer state on gpu")).to_have_attribute("aria-checked", "true")
        before = self.server.state()["revision"]
        menu.get_by_role("menuitemradio", name="Optimizer state on cpu").click()
        self.wait_for_revision(before)
        self.assertIn('{ at = "head.**", state = "cpu" }', self.rules())

    def test_dragging_to_a_device_places(self):
        before = self.server.state()["revision"]
        self.drag("head", "cpu", "on")
        self.wait_for_revision(before)
        self.assertIn('{ at = "head.**", on = "cpu" }', self.rules())
        before = self.server.state()["revision"]
        self.drag("blocks", "cpu", "state")
        self.wait_for_revision(before)
        self.assertIn('{ at = "blocks.**", state = "cpu" }', self.rules())

    def drag(self, name, device, zone):
        start = self.row(name).bounding_box()
        self.page.mouse.move(start["x"] + 60, start["y"] + 12)
        self.page.mouse.down()
        self.page.mouse.move(start["x"] + 90, start["y"] - 10, steps=4)
        target = self.page.locator(f"[data-device={device}] [data-zone={zone}]")
        expect(target).to_be_visible()
        goal = target.bounding_box()
        self.page.mouse.move(goal["x"] + goal["width"] / 2, goal["y"] + goal["height"] / 2, steps=6)
        self.page.mouse.up()

    def test_undo_and_redo(self):
        texts = [self.server.state()["text"]]
        for block in "013":
            self.select("blocks", block)
            self.place("run", "cpu")
            texts.append(self.server.state()["text"])
        for text in reversed(texts[:-1]):
            before = self.server.state()["revision"]
            self.page.get_by_role("button", name="Undo").click()
            self.wait_for_revision(before)
            self.assertEqual(text, self.server.state()["text"])
        expect(self.page.locator("#file-status")).to_have_text("saved")
        for text in texts[1:]:
            before = self.server.state()["revision"]
            self.page.get_by_role("button", name="Redo").click()
            self.wait_for_revision(before)
            self.assertEqual(text, self.server.state()["text"])
        self.assert_file_is_as_at_first()

    def test_what_a_rule_refuses_is_told(self):
        self.tab("Rules")
        self.page.locator("#new-rule").fill('{ at = "haed.**", on = "cpu" }')
        self.page.get_by_role("button", name="Add", exact=True).click()
        expect(self.page.locator("#notice")).to_contain_text('did you mean "head.**"?')
        self.page.locator("#new-rule").fill('{ at = "**", on = "gpu" }')
        self.page.get_by_role("button", name="Add", exact=True).click()
        expect(self.page.locator("#status-line")).to_contain_text("Nothing to change")
        expect(self.page.locator("#notice")).to_be_empty()
        self.page.locator("#new-rule").fill('{ at = "head.**", on = "gup" }')
        self.page.get_by_role("button", name="Add", exact=True).click()
        expect(self.page.locator("#status-line")).to_be_empty()
        expect(self.page.locator("#notice")).to_contain_text("unknown device")
        self.assertEqual(1, len(self.rules()))

    def test_what_is_told_about_an_action_does_not_move_the_page(self):
        top = self.page.locator("main").bounding_box()["y"]
        self.tab("Rules")
        for rule, place in (('{ at = "**", on = "gpu" }', "#status-line"), ('{ at = "haed.**", on = "cpu" }', "#notice")):
            self.page.locator("#new-rule").fill(rule)
            self.page.get_by_role("button", name="Add", exact=True).click()
            expect(self.page.locator(place)).not_to_be_empty()
            self.assertEqual(top, self.page.locator("main").bounding_box()["y"])
        self.select("head")
        self.place("on", "cpu")
        expect(self.page.locator("#notice")).to_be_empty()


class Search(PageTest):
    def test_highlights_while_typing_and_places_what_is_found(self):
        self.page.locator("#search").fill("blocks.{1..2}.**")
        expect(self.page.locator("#match")).to_contain_text("8 operators")
        self.row("blocks").locator(".twist").click()
        expect(self.page.locator("#view .row.is-match")).to_have_count(2)
        before = self.server.state()["revision"]
        self.page.locator("#match").get_by_role("button", name="cpu").click()
        self.wait_for_revision(before)
        self.assertEqual('{ at = "blocks.{1..2}.**", on = "cpu" }', self.rules()[-1])

    def test_a_word_finds_paths_that_have_it(self):
        self.page.locator("#search").fill("fc2")
        expect(self.page.locator("#match")).to_contain_text("4 operators")
        self.page.locator("#search").press("Enter")
        expect(self.row("fc2").first).to_have_attribute("aria-selected", "true")

    def test_filters(self):
        self.page.get_by_text("Filters").click()
        self.page.locator("#filter-op").fill("Relu")
        expect(self.page.locator("#match")).to_contain_text("4 operators")

    def test_nothing_found_names_the_nearest(self):
        self.page.locator("#search").fill("haed.**")
        expect(self.page.locator("#match")).to_contain_text("matches nothing")
        self.page.locator("#match").get_by_role("button", name="search head.**").click()
        expect(self.page.locator("#match")).to_contain_text("1 operator, 2 parameters")

    def test_a_rule_shows_what_it_matches(self):
        self.select("blocks", "2")
        self.place("on", "cpu")
        self.tab("Rules")
        self.page.locator(".rule-text").nth(1).click()
        expect(self.page.locator("#view .row.is-match")).to_have_count(1)
        expect(self.page.locator(".text-line.is-shown")).to_contain_text("blocks.2.**")


class Views(PageTest):
    def test_table_unfolds_to_operators_and_parameters(self):
        self.page.get_by_role("button", name="Unfold all").click()
        expect(self.row("fc1")).to_have_count(4)
        self.row("fc1").first.locator(".twist").click()
        expect(self.row("weight")).to_have_count(1)

    def test_tree_and_graph_show_the_selection_and_open_modules(self):
        self.page.get_by_role("button", name="Tree", exact=True).click()
        self.page.locator("#view .block", has_text=re.compile("^2 ")).first.dblclick()
        expect(self.page.locator("#blocks-path")).to_contain_text("2")
        self.page.get_by_role("button", name="Graph", exact=True).click()
        expect(self.page.locator("#view .box", has_text="fc1")).to_have_count(1)
        expect(self.page.locator("#view .edge")).not_to_have_count(0)
        self.page.locator("#view .box", has_text="fc1").click()
        expect(self.page.locator("#inspector h2")).to_have_text("blocks.2.fc1")

    def test_copies_cross_edges_and_rows(self):
        self.select("blocks", "2")
        self.place("on", "cpu")
        expect(self.row("2")).to_have_class(re.compile("is-boundary"))
        self.page.get_by_role("button", name="Graph", exact=True).click()
        self.page.locator("#graph-path").get_by_role("button", name="blocks").click()
        expect(self.page.locator("#view .edge.copied")).to_have_count(2)
        expect(self.page.locator("#view .copy-label").first).to_contain_text("KiB")

    def test_nothing_is_cut_off_in_a_narrow_window(self):
        self.select("blocks", "2")
        self.place("on", "cpu")
        for width in (1100, 800, 620):
            self.page.set_viewport_size({"width": width, "height": 860})
            self.assertEqual(width, self.page.evaluate("() => document.documentElement.scrollWidth"))
            if width == 620:
                continue  # the table scrolls in its place
            inside = "() => { const view = document.getElementById('view'); return view.scrollWidth <= view.clientWidth; }"
            self.page.wait_for_function(inside)
            for tile in self.page.locator("#summary .tile").all():
                self.assertLessEqual(tile.evaluate("one => one.scrollWidth - one.clientWidth"), 0)

    def test_sizes_follow_what_they_stand_for(self):
        self.page.get_by_role("button", name="Tree", exact=True).click()
        self.page.locator("#measure").select_option("parameters")
        expect(self.page.locator("#view .block").first).to_contain_text("132.5 KiB")


if __name__ == "__main__":
    main()

"""What happens to the file: saved after a difference, changed or deleted under the page: files_test.py TANDEM."""

import re

from page_support import PageTest, expect, main


class File(PageTest):
    def edit(self):
        self.select("head")
        self.place("on", "cpu")

    def save(self):
        self.page.get_by_role("button", name="Save…").click()
        review = self.page.locator("#review")
        expect(review).to_be_visible()
        return review

    def test_the_difference_comes_before_saving(self):
        self.edit()
        review = self.save()
        expect(review.locator(".added")).to_contain_text('{ at = "head.**", on = "cpu" },')
        expect(review.locator(".moves")).to_contain_text("head.**")
        review.get_by_role("button", name="Go on editing").click()
        self.assert_file_is_as_at_first()
        self.save().get_by_role("button", name="Save", exact=True).click()
        expect(self.page.locator("#file-status")).to_have_text("saved")
        lines = self.first_text.splitlines()
        lines.insert(len(lines) - 1, '  { at = "head.**", on = "cpu" },')
        self.assertEqual(lines, self.policy.read_text().splitlines())
        self.assertEqual(["data.npz", "model.onnx", "policy.toml", "train.toml"], sorted(path.name for path in self.folder.iterdir()))

    def test_a_changed_rule_may_have_an_old_reason(self):
        text = self.first_text.replace('on = "gpu" }', 'on = "gpu", why = "a GPU was found" }')
        self.policy.write_text(text)
        self.page.get_by_role("button", name="Take its text").click()
        expect(self.page.locator("#file-status")).to_have_text("saved")
        self.page.locator("#view .row[data-item='0']").click()
        self.place("on", "cpu")
        expect(self.page.locator("#file-status")).to_have_text("1 line not saved")
        self.page.locator("#file-status button").click()
        expect(self.page.locator("#review")).to_be_visible()
        self.page.keyboard.press("Escape")
        review = self.save()
        expect(review.locator(".reason")).to_contain_text('The reason "a GPU was found" of a rule that you changed may no longer hold')
        expect(review.locator(".moves")).to_contain_text(re.compile("compute gpu → cpu; parameters gpu → cpu"))

    def test_a_file_that_changed_is_noticed_and_kept(self):
        self.edit()
        other = self.first_text.replace("# all of it", "# somebody else's words")
        self.policy.write_text(other)
        expect(self.page.locator("#notice")).to_contain_text("changed outside of this page")
        expect(self.page.locator("#file-status")).to_have_text("changed on disk")
        review = self.save()
        review.get_by_role("button", name="Save", exact=True).click()
        expect(self.page.locator("#review-title")).to_contain_text("changed by somebody else")
        self.assertEqual(other, self.policy.read_text())
        expect(review.locator(".removed")).to_contain_text("somebody else's words")
        review.get_by_role("button", name="Take the file's text").click()
        expect(self.page.locator("#file-status")).to_have_text("saved")
        self.assertEqual(other, self.server.state()["text"])
        before = self.server.state()["revision"]
        self.page.get_by_role("button", name="Undo").click()
        self.wait_for_revision(before)
        self.assertIn('{ at = "head.**", on = "cpu" }', self.rules())

    def test_writing_over_is_said(self):
        self.edit()
        self.policy.write_text("policy = 1\n")
        self.save().get_by_role("button", name="Save", exact=True).click()
        expect(self.page.locator("#review [data-key=cancel]")).to_be_focused()
        self.page.keyboard.press("Enter")
        expect(self.page.locator("#review")).to_be_hidden()
        self.assertEqual("policy = 1\n", self.policy.read_text())
        self.save().get_by_role("button", name="Save", exact=True).click()
        self.page.get_by_role("button", name="Write over it").click()
        expect(self.page.locator("#file-status")).to_have_text("saved")
        self.assertEqual(self.server.state()["text"], self.policy.read_text())

    def test_a_deleted_file_is_written_again_only_by_save(self):
        self.edit()
        self.policy.unlink()
        expect(self.page.locator("#notice")).to_contain_text("no longer on disk")
        self.select("blocks")
        self.place("state", "cpu")
        self.assertFalse(self.policy.exists())
        self.save().get_by_role("button", name="Save", exact=True).click()
        self.page.get_by_role("button", name="Write it again").click()
        expect(self.page.locator("#file-status")).to_have_text("saved")
        self.assertEqual(self.server.state()["text"], self.policy.read_text())

    def test_a_broken_file_is_shown_with_its_lines(self):
        self.policy.write_text(self.first_text.replace('on = "gpu"', 'on = "gup"'))
        self.page.get_by_role("button", name="Take its text").click()
        expect(self.page.locator("#view")).to_contain_text("unknown device")
        self.tab("Rules")
        expect(self.page.locator(".text-line.problem")).to_contain_text("unknown device")
        before = self.server.state()["revision"]
        self.page.get_by_role("button", name="Undo").click()
        self.wait_for_revision(before)
        expect(self.row("blocks")).to_be_visible()

    def test_two_pages_see_the_same_text(self):
        second = self.open_page()
        self.edit()
        expect(self.row("head", second).locator(".run")).to_have_text("cpu")
        before = self.server.state()["revision"]
        second.get_by_role("button", name="Undo").click()
        second.wait_for_function("() => !document.body.hasAttribute('aria-busy')")
        self.assertNotEqual(before, self.server.state()["revision"])
        expect(self.row("head").locator(".run")).to_have_text("gpu")

    def test_two_programs_on_one_file_lose_nothing(self):
        first = self.server
        self.edit()
        self.server = type(first)(self.folder)
        try:
            other = self.open_page()
            other.locator("#view .row", has_text="blocks").first.click()
            other.locator("#inspector [data-key=state-cpu]").click()
            other.wait_for_function("() => !document.body.hasAttribute('aria-busy')")
            other.get_by_role("button", name="Save…").click()
            other.get_by_role("button", name="Save", exact=True).click()
            expect(other.locator("#file-status")).to_have_text("saved")
            text = self.policy.read_text()
        finally:
            self.server.stop()
            self.server = first
        self.save().get_by_role("button", name="Save", exact=True).click()
        expect(self.page.locator("#review-title")).to_contain_text("changed by somebody else")
        self.assertEqual(text, self.policy.read_text())


if __name__ == "__main__":
    main()

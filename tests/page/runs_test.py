"""Measured next to predicted times, and the curves of a run: runs_test.py TANDEM."""

import subprocess

import page_support
from page_support import PageTest, expect, main


class FinishedRun(PageTest):
    more = ("--run", "run")

    def make_files(self, folder):
        super().make_files(folder)
        command = [page_support.PROGRAM, "train", "train.toml", "--log-operators", "--run-dir", "run"]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)

    def test_measured_times_stand_next_to_predicted_ones(self):
        self.tab("Measured")
        row = self.page.locator("#panel tbody tr", has_text="blocks")
        expect(row.locator("td").nth(1)).to_contain_text("ms")
        expect(row.locator("td").nth(2)).to_contain_text("×")
        self.row("blocks").click()
        expect(self.page.locator("#inspector .figures")).to_contain_text("Measured")

    def test_curves(self):
        self.tab("Curves")
        expect(self.page.locator("#panel")).to_contain_text("finished")
        loss = self.page.locator(".curve", has_text="loss").first
        expect(loss.locator(".curve-line")).to_have_count(1)
        expect(loss.locator(".step-axis")).to_contain_text("step 1")
        expect(self.page.locator(".curve", has_text="samples_per_second")).to_contain_text("samples/s")

    def test_a_single_number_is_a_dot(self):
        lines = (self.folder / "run" / "metrics.jsonl").read_text().splitlines()
        (self.folder / "run" / "metrics.jsonl").write_text(lines[0] + "\n")
        self.tab("Curves")
        dot = self.page.locator(".curve", has_text="loss").first.locator(".curve-dots")
        expect(dot).to_have_attribute("d", "M500.0 60.00h0.01")


class ReadOnly(FinishedRun):
    more = ("--run", "run", "--read-only")

    def test_nothing_can_be_edited(self):
        expect(self.page.locator("#file-status")).to_have_text("read only")
        expect(self.page.locator("#tab-live")).to_have_attribute("aria-selected", "true")
        self.row("head").click()
        expect(self.choice("on", "cpu")).to_be_disabled()
        self.page.keyboard.press("1")
        self.page.keyboard.press("Control+s")
        self.row("head").click(button="right")
        expect(self.page.locator("#menu [role=menuitem]")).to_have_count(2)
        self.page.keyboard.press("Escape")
        expect(self.page.locator("#review")).to_be_hidden()
        expect(self.page.locator("#notice")).to_be_empty()


if __name__ == "__main__":
    main()

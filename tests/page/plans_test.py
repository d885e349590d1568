"""After each of 200 random edits the page's plan is that of `tandem policy plan`, byte for byte: plans_test.py TANDEM."""

import json
import random
import subprocess

import page_support
from page_support import PageTest, main

EDITS = 200


class RandomEdits(PageTest):
    def plan_of_program(self, text):
        other = self.folder / "other"
        other.mkdir(exist_ok=True)
        (other / "policy.toml").write_text(text)
        command = [page_support.PROGRAM, "policy", "plan", str(other / "policy.toml"), "--config", "train.toml", "--json"]
        return subprocess.run(command, cwd=self.folder, capture_output=True).stdout.replace(b"/other/policy.toml", b"/policy.toml")

    def test_plans_are_equal_to_the_byte(self):
        draw = random.Random(7)
        self.page.get_by_role("button", name="Unfold all").click()
        rows = self.page.locator("#view .row[data-item]")
        made = 0
        while made < EDITS:
            if draw.random() < 0.12:
                before = self.server.state()["revision"]
                undo = self.page.get_by_role("button", name="Undo")
                if undo.is_disabled():
                    continue
                undo.click()
                self.wait_for_revision(before)
            else:
                rows.nth(draw.randrange(rows.count())).click(position={"x": 200, "y": 12})
                choices = self.page.locator("#inspector .choices button")
                if choices.count() == 0:
                    continue
                choices.nth(draw.randrange(choices.count())).click()
                self.page.wait_for_function("() => !document.body.hasAttribute('aria-busy')")
            made += 1
            state = self.server.state()
            self.assertTrue(state["ok"], state["problems"])
            self.assertEqual(self.plan_of_program(state["text"]), self.server.get("plan"), state["text"])
            shown = self.page.locator("[data-device=gpu] [role=meter]").get_attribute("aria-valuenow")
            self.assertEqual(str(json.loads(self.server.get("plan"))["devices"].get("gpu", {"peak": 0})["peak"]), shown)
        self.assert_file_is_as_at_first()


if __name__ == "__main__":
    main()

"""What the page tells about a plan: memory, queues, copies, remedies, reasons, searches: consequences_test.py TANDEM."""

import json
import math
import re

from page_support import PageTest, expect, main

# A GPU that is faster than the host, so that the search uses it.
FAST_GPU = """{ "tandem_device_profile": 1, "devices": {
  "cpu": { "flops_per_second": 2e10, "bytes_per_second": 4e9 },
  "gpu": { "flops_per_second": 4e12, "bytes_per_second": 5e11, "kernel_overhead_seconds": 1e-6,
           "link_bytes_per_second": 2.5e10, "link_latency_seconds": 1e-6, "memory_bytes": 17179869184 } } }"""


class Plan(PageTest):
    def test_tiles_compare_with_the_saved_file(self):
        self.select("blocks", "0")
        self.place("on", "cpu")
        plan = self.server.state()["plan"]
        gpu = self.page.locator("[data-device=gpu]")
        expect(gpu.locator(".line b")).to_have_text(kibibytes(plan["devices"]["gpu"]["peak"]))
        expect(gpu.locator(".delta.good")).to_have_count(1)
        expect(gpu.get_by_role("meter")).to_have_attribute("aria-valuenow", str(plan["devices"]["gpu"]["peak"]))

    def test_memory_and_queues_share_a_cursor(self):
        chart = self.page.locator("#step-chart")
        expect(chart.locator(".queue")).not_to_have_count(0)
        expect(chart.locator("figure.memory")).to_have_count(2)
        chart.focus()
        chart.press("Home")
        chart.press("ArrowRight")
        expect(self.page.locator("#readout")).to_contain_text("KiB")
        self.page.mouse.move(0, 0)
        chart.press("Enter")
        expect(self.page.locator("#inspector h2")).not_to_have_text("model")

    def test_the_table_counts_all_copies_of_the_plan(self):
        for part, key in (("0", "param"), ("1", "state"), ("2", "run")):
            self.select("blocks", part)
            self.place(key, "cpu")
            plan = self.server.state()["plan"]
            root = self.page.locator("#view .row[data-item='0'] .number").last
            expect(root).to_contain_text(kibibytes(plan["traffic"]["bytes"]) + ",")
            expect(self.page.locator("#summary .tile", has_text="Copies a step")).to_contain_text(kibibytes(plan["traffic"]["bytes"]))

    def test_the_chart_shows_the_peak(self):
        self.select("blocks", "0")
        self.place("state", "cpu")
        for device in ("cpu", "gpu"):
            peak = kibibytes(self.server.state()["plan"]["devices"][device]["peak"])
            expect(self.page.locator("figure.memory", has_text=device).locator("figcaption")).to_contain_text(f"peak {peak}")

    def test_shares_are_those_of_all_work(self):
        self.select("blocks", "1")
        self.place("on", "cpu")
        self.page.locator("#view .row[data-item='0']").click()
        expect(self.page.locator("#inspector .figures")).to_contain_text("100 % of all work")

    def test_a_hint_says_what_it_changes_and_is_said_once(self):
        self.select("blocks")
        self.place("state", "cpu")
        self.tab("Advice")
        expect(self.page.locator("#panel .hints li")).to_have_count(1)
        expect(self.page.locator("#panel .hints")).to_contain_text(re.compile("Computing (waits .* for|hides) these copies"))
        expect(self.page.locator("#tab-advice .count")).to_have_text("1")

    def test_copies_are_listed_and_lead_to_operators(self):
        self.select("blocks", "2")
        self.place("on", "cpu")
        self.tab("Copies")
        crossing = self.page.locator("#panel tbody tr").filter(has_text="blocks.1.Add")
        expect(crossing.first).to_contain_text("8.0 KiB")
        crossing.first.get_by_role("button", name="blocks.1.Add").first.click()
        expect(self.page.locator("#inspector h2")).to_have_text("blocks.1.Add")

    def test_explains_which_line_decided(self):
        self.select("head")
        self.place("state", "cpu")
        expect(self.page.locator("#inspector .decided").first).to_contain_text("line 5")
        self.page.locator("#inspector .decided").get_by_role("button", name="line 6").click()
        expect(self.page.locator(".text-line.is-shown")).to_contain_text('at = "head.**", state = "cpu"')
        self.page.locator("#view .grid").focus()
        self.page.keyboard.press("e")
        expect(self.page.locator(".nodes tbody tr").first).to_contain_text("head.Gemm")


def shrink_the_device(folder):
    policy = folder / "policy.toml"
    policy.write_text(policy.read_text().replace("2MiB", "400KiB"))


class TooSmall(PageTest):
    def make_files(self, folder):
        super().make_files(folder)
        shrink_the_device(folder)

    def test_a_remedy_makes_it_fit(self):
        expect(self.page.locator(".verdict")).to_contain_text("Does not fit")
        expect(self.page.locator("[data-device=gpu]")).to_have_class(re.compile("is-over"))
        self.tab("Advice")
        remedy = self.page.locator(".offer", has_text="fits").first
        before = self.server.state()["revision"]
        remedy.get_by_role("button").click()
        self.wait_for_revision(before)
        expect(self.page.locator(".verdict")).to_contain_text("Fits")
        self.assert_file_is_as_at_first()


class Proposals(PageTest):
    more = ("--profile", "gpu.json")

    def make_files(self, folder):
        super().make_files(folder)
        shrink_the_device(folder)
        policy = folder / "policy.toml"
        policy.write_text(policy.read_text().replace('  { at = "**", on = "gpu" },  # all of it\n', ""))
        (folder / "gpu.json").write_text(FAST_GPU)

    def search(self):
        self.tab("Search")
        self.page.get_by_role("button", name="Search", exact=True).click()
        offers = self.page.locator("#panel .offer")
        expect(offers.first).to_be_visible(timeout=120000)
        return offers

    def test_the_search_proposes_rules_to_take_over(self):
        offers = self.search()
        before, count = self.server.state()["revision"], offers.count()
        rule = offers.first.locator("code").inner_text()
        offers.first.get_by_role("button").click()
        self.wait_for_revision(before)
        self.assertIn(rule, [taken["text"] for taken in self.server.state()["rules"] if taken["list"] == "auto"])
        expect(offers).to_have_count(count - 1)
        self.assert_file_is_as_at_first()

    def test_a_search_with_nothing_left_to_place_says_so_and_goes_on(self):
        self.page.locator("#view .row[data-item='0']").click()
        self.place("on", "gpu")
        self.tab("Search")
        self.page.get_by_role("button", name="Search", exact=True).click()
        expect(self.page.locator("#panel")).to_contain_text("Your rules place everything")
        expect(self.page.locator("#panel .bad")).to_have_count(0)
        self.page.get_by_role("button", name="Search without my rules").click()
        expect(self.page.locator("#panel")).to_contain_text(re.compile("Everything runs on|cpu runs"), timeout=120000)
        expect(self.page.locator("#panel")).to_contain_text("For comparison: all on cpu")
        expect(self.page.get_by_label("keep my rules")).not_to_be_checked()

    def test_a_budget_that_is_no_size_is_refused_in_plain_words(self):
        self.tab("Search")
        self.page.get_by_label("gpu at most").fill("abc")
        self.page.get_by_role("button", name="Search", exact=True).click()
        expect(self.page.locator("#panel .bad")).to_contain_text('"abc" for gpu is no size: write a number with a unit')

    def test_a_search_without_my_rules_removes_them(self):
        self.select("head")
        self.place("acts", "recompute")  # which no search proposes for a head alone
        rule = '{ at = "head.**", acts = "recompute" }'
        self.assertIn(rule, self.rules())
        self.tab("Search")
        self.page.get_by_label("keep my rules").uncheck()
        offers = self.search()
        expect(offers.filter(has_text='acts = "recompute"').locator(".sign")).to_have_text(["−"])
        before = self.server.state()["revision"]
        self.page.get_by_role("button", name="Take over all").click()
        self.wait_for_revision(before)
        self.assertNotIn(rule, self.rules())
        expect(offers).to_have_count(0)
        self.page.get_by_role("button", name="Undo").click()
        expect(offers).not_to_have_count(0)
        self.assert_file_is_as_at_first()


class Ranks(PageTest):
    more = ("--ranks", "2")

    def test_collectives_are_listed(self):
        self.tab("Ranks")
        plan = json.loads(self.server.get("plan"))
        expect(self.page.locator("#panel tbody tr")).to_have_count(len(plan["exchange"]["exchanges"]))
        expect(self.page.locator("#summary")).to_contain_text("Ranks")


def kibibytes(count):
    """As the page writes them: a half is rounded up."""
    value, unit = (count / 1024, "KiB") if count < 1 << 20 else (count / (1 << 20), "MiB")
    return f"{math.floor(10 * value + 0.5) / 10:.1f} {unit}"


if __name__ == "__main__":
    main()

"""`tandem policy page`: what edits write, that plans are those of `policy plan`, and that nothing but the policy is written, never by surprise.

    python3 tests/end_to_end/policy_page_test.py build/tandem
"""

import hashlib
import json
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from policy_page import MODEL, ROOT, Page, Refused, write_project


class Project(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.folder = pathlib.Path(place.name)
        self.text = write_project(self.folder)
        self.policy = self.folder / "policy.toml"
        self.page = self.open()

    def open(self, *words):
        page = Page(PROGRAM, self.folder, *words)
        self.addCleanup(page.end)
        model = page.get("/api/model")
        self.items = {(item["kind"], item["path"]): index for index, item in enumerate(model["items"])}
        return page

    def rules(self, state):
        """The lines of the list `rules`."""
        inside = state["text"].split("rules = [\n")[1].split("]\n")[0]
        return [line.strip() for line in inside.splitlines()]

    def place(self, before, *paths, kind="module", **values):
        return self.page.place(before, [self.items[kind, path] for path in paths], **values)


class Edits(Project):
    def test_each_edit_is_the_smallest_rule(self):
        state = self.page.get("/api/state")
        first, small = '{ at = "**", on = "gpu" },', '{ at = "token.**", on = "cpu" },   # small'
        steps = [
            (("blocks.0.mlp",), {"on": "cpu"}, [first, small, '{ at = "blocks.0.mlp.**", on = "cpu" },']),
            (("blocks.1.mlp",), {"on": "cpu"}, [first, small, '{ at = "blocks.{0,1}.mlp.**", on = "cpu" },']),
            (("blocks.0.mlp",), {"on": "gpu"}, [first, small, '{ at = "blocks.1.mlp.**", on = "cpu" },']),
            (("blocks.1.mlp",), {"on": "gpu"}, [first, small]),
            (("token",), {"on": "gpu"}, [first, '{ at = "token.**", on = "gpu" },   # small']),
            (("",), {"state": "cpu"}, [first, '{ at = "token.**", on = "gpu" },   # small', '{ at = "**", state = "cpu" },']),
            (("",), {"state": None}, [first, '{ at = "token.**", on = "gpu" },   # small']),
            (("blocks.0.mlp", "blocks.1.mlp"), {"acts": "recompute"},
             [first, '{ at = "token.**", on = "gpu" },   # small', '{ at = "blocks.{0,1}.mlp.**", acts = "recompute" },']),
            (("blocks.0.mlp", "blocks.1.mlp"), {"acts": None}, [first, '{ at = "token.**", on = "gpu" },   # small']),
        ]
        for paths, values, rules in steps:
            state = self.place(state, *paths, **values)
            self.assertEqual(self.rules(state), rules, (paths, values))
        self.assertEqual(self.policy.read_text(), self.text, "nothing is written without Save")

    def test_operators_and_parameters_move_too(self):
        state = self.page.get("/api/state")
        state = self.place(state, "blocks.0.mlp.0:weight", kind="parameter", state="cpu")
        self.assertIn('{ at = "blocks.0.mlp.0:weight", state = "cpu" },', self.rules(state))
        at = self.items["parameter", "blocks.0.mlp.0:weight"]
        self.assertEqual((state["placement"][at]["param"], state["placement"][at]["state"]), ("gpu", "cpu"))
        state = self.place(state, "blocks.1.mlp.1.Gelu", kind="operator", run="cpu")
        self.assertEqual(state["placement"][self.items["operator", "blocks.1.mlp.1.Gelu"]]["run"], "cpu")
        self.assertEqual(state["placement"][self.items["operator", "blocks.0.mlp.1.Gelu"]]["run"], "gpu")

    def test_undo_and_redo_go_over_all_edits(self):
        state, texts = self.page.get("/api/state"), []
        for step in range(1000):
            texts.append(state["text"])
            state = self.page.post("/api/edit", revision=state["revision"], rule={"at": "blocks.0.**", "set": {"lookahead": step % 60}})
        self.assertEqual(state["undo"], 1000)
        for text in texts[:-30:-1]:
            state = self.page.post("/api/undo", revision=state["revision"])
            self.assertEqual(state["text"], text)
        state = self.page.post("/api/redo", revision=state["revision"])
        self.assertEqual(state["text"], texts[-28])

    def test_there_is_a_first_and_a_last_step(self):
        for step in ("undo", "redo"):
            with self.assertRaises(Refused) as refused:
                self.page.post(f"/api/{step}", revision=1)
            self.assertEqual(refused.exception.code, "refused")

    def test_refused_edits_change_nothing(self):
        before = self.page.get("/api/state")
        for body in ({"rule": {"at": "nothing.**", "set": {"run": "cpu"}}}, {"rule": {"at": "blocks.0.**", "set": {"run": "tpu"}}},
                     {"rule": {"at": "blocks.{0", "set": {"run": "cpu"}}}, {"rule": {"at": "blocks.0.**", "set": {"speed": "9"}}},
                     {"place": {"items": [1], "set": {"run": "moon"}}}, {"add": "{ at = 3 }"}, {"add": "}"}, {"add": '{ at = "**" }, { at = "**" }'}):
            with self.assertRaises(Refused, msg=body) as refused:
                self.page.post("/api/edit", revision=before["revision"], **body)
            self.assertEqual((refused.exception.status, refused.exception.code), (422, "refused"), body)
            self.assertTrue(refused.exception.body["error"]["message"])
        for body in ({}, {"place": {"items": [10 ** 9], "set": {"run": "cpu"}}}, {"place": {"items": [-1], "set": {"run": "cpu"}}},
                     {"place": {"items": [], "set": {"run": "cpu"}}}, {"place": {"items": [1], "set": {}}}, {"text": "policy = 1"},
                     {"add": "{}", "rule": {}}, {"place": {"items": "x", "set": {"run": "cpu"}}}):
            with self.assertRaises(Refused, msg=body) as refused:
                self.page.post("/api/edit", revision=before["revision"], **body)
            self.assertEqual(refused.exception.status, 400, body)
        self.assertEqual(self.page.get("/api/state"), before)

    def test_a_new_rule_that_means_nothing_is_refused_with_the_nearest_name(self):
        before = self.page.get("/api/state")
        for rule, words in (('{ at = "block.0.**", on = "cpu" }', 'did you mean "blocks.0.**"?'),
                            ('{ at = "**", op = "Gellu", on = "cpu" }', 'did you mean "Gelu"?'),
                            ('{ at = "blocks.0.mlp.0:weight", acts = "offload" }', "`acts` applies to operators")):
            with self.assertRaises(Refused, msg=rule) as refused:
                self.page.post("/api/edit", revision=before["revision"], add=rule)
            self.assertEqual((refused.exception.status, refused.exception.code), (422, "refused"), rule)
            self.assertIn(words, refused.exception.body["error"]["message"])
        self.assertEqual(self.page.get("/api/state"), before)
        # One that may match nothing, and one that holds already, change nothing.
        for rule in ('{ at = "block.0.**", on = "cpu", optional = true }', '{ at = "token.**", on = "cpu" }'):
            self.assertEqual(self.rules(self.page.post("/api/edit", revision=before["revision"], add=rule)), self.rules(before))

    def test_remedies_can_be_taken_over(self):
        state = self.page.get("/api/state")
        state = self.page.post("/api/edit", revision=state["revision"], add='{ at = "**", state = "cpu" }')
        self.assertEqual(self.rules(state)[0], '{ at = "**", on = "gpu", state = "cpu" },')

    def test_matching_and_explaining(self):
        gelus = [index for (kind, path), index in self.items.items() if kind == "operator" and path.endswith("Gelu")]
        self.assertEqual(self.page.post("/api/match", at="**", op="Gelu")["operators"], gelus)
        self.assertEqual(self.page.post("/api/match", at="block.0.**")["nearest"], "blocks.0.**")
        explained = self.page.request("POST", "/api/explain", {"name": "blocks.0.mlp.1.Gelu"})[2].decode()
        printed = subprocess.run([PROGRAM, "policy", "explain", "policy.toml", "blocks.0.mlp.1.Gelu", *MODEL, "--json"], cwd=self.folder,
                                 capture_output=True, text=True, timeout=60).stdout
        self.assertEqual(explained, printed)
        self.assertEqual(self.page.post("/api/explain", item=self.items["operator", "blocks.0.mlp.1.Gelu"])["path"], "blocks.0.mlp.1.Gelu")


class Searches(Project):
    """What a search proposes is a difference from the present text, to be taken over change by change."""

    words = {"tries": 30, "budgets": {"gpu": "1MiB"}}
    # A GPU that is faster than the host, so that the search uses it.
    profile = {"tandem_device_profile": 1, "devices": {
        "cpu": {"flops_per_second": 2e10, "bytes_per_second": 4e9},
        "gpu": {"flops_per_second": 4e12, "bytes_per_second": 5e11, "kernel_overhead_seconds": 1e-6, "link_bytes_per_second": 2.5e10,
                "link_latency_seconds": 1e-6, "memory_bytes": 1 << 34}}}

    def setUp(self):
        super().setUp()
        (self.folder / "gpu.json").write_text(json.dumps(self.profile))
        self.page = self.open("--profile", "gpu.json")

    def search(self, keep_rules):
        found = self.page.post("/api/auto", keep_rules=keep_rules, **self.words)
        while found["state"] == "running":
            time.sleep(0.1)
            found = self.page.get("/api/auto")
        self.assertEqual(found["state"], "done", found)
        self.assertLessEqual(found["plans"], 30)
        return found["result"]

    def take(self, state, *indices):
        return self.page.post("/api/edit", revision=state["revision"], proposed=list(indices))

    def changes(self):
        return self.page.get("/api/auto")["result"]["changes"]

    def test_a_search_that_keeps_my_rules_gives_the_text_of_the_command(self):
        state = self.page.get("/api/state")
        self.policy.write_text(self.text.replace('  { at = "**", on = "gpu" },\n', ""))
        state = self.page.post("/api/reload", revision=state["revision"])
        result = self.search(True)
        self.assertEqual({(change["kind"], change["list"]) for change in result["changes"]}, {("add", "auto")})
        state = self.take(state, *range(len(result["changes"])))
        done = subprocess.run([PROGRAM, "policy", "auto", "policy.toml", *MODEL, "--budget", "gpu=1MiB", "--tries", "30", "--profile", "gpu.json",
                               "--to", "searched.toml"], cwd=self.folder, capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(state["text"], (self.folder / "searched.toml").read_text())
        self.assertEqual(self.changes(), [])
        # My own rules win over those of the list.
        token = self.items["operator", next(path for kind, path in self.items if kind == "operator" and path.startswith("token"))]
        self.assertEqual(state["placement"][token]["run"], "cpu")

    def test_a_search_without_my_rules_removes_them(self):
        before = self.page.get("/api/state")
        result = self.search(False)
        removed = [change for change in result["changes"] if change["kind"] == "remove"]
        self.assertIn(('{ at = "token.**", on = "cpu" }', "rules", 6), [(change["rule"], change["list"], change["line"]) for change in removed])
        at_once = self.take(before, *range(len(result["changes"])))
        self.assertEqual(self.changes(), [])
        self.assertAlmostEqual(at_once["plan"]["time"]["step_ms"], result["step_ms"], places=6)
        self.assertEqual(at_once["plan"]["fits"], result["fits"])
        self.assertIn("# Two blocks on an accelerator.", at_once["text"])
        # One by one, in any order, leads to the same rules.
        state, chance = self.page.post("/api/undo", revision=at_once["revision"]), random.Random(3)
        while changes := self.changes():
            state = self.take(state, chance.randrange(len(changes)))
        self.assertEqual([rule["text"] for rule in state["rules"]], [rule["text"] for rule in at_once["rules"]])

    def test_a_search_with_nothing_left_to_place_does_not_start(self):
        for body, code in (({"keep_rules": True}, "all_placed"), ({"keep_rules": False, "budgets": {"gpu": "abc"}}, "bad_size")):
            with self.assertRaises(Refused) as refused:
                self.page.post("/api/auto", **body)
            self.assertEqual((refused.exception.status, refused.exception.code), (422, code))
        self.assertEqual(self.page.get("/api/auto")["state"], "idle")

    def test_a_result_says_what_runs_where(self):
        result = self.search(False)
        operators = sum(kind == "operator" for kind, _ in self.items)
        self.assertEqual(sum(device["operators"] for device in result["devices"]), operators)
        self.assertEqual([one["name"] for one in result["compared"]][:2], ["all on cpu", "all on gpu"])
        self.assertTrue(all(one["step_ms"] > 0 for one in result["compared"] if one["possible"]))

    def test_changes_that_are_not_there_are_refused(self):
        state = self.page.get("/api/state")
        for indices in ([0], [], [-1], ["0"]):
            with self.assertRaises(Refused, msg=indices) as refused:
                self.page.post("/api/edit", revision=state["revision"], proposed=indices)
            self.assertEqual(refused.exception.status, 400, indices)


class Plans(Project):
    def plan_of_command(self, text):
        """What `policy plan` prints for a policy of this text."""
        self.policy.write_text(text)
        return subprocess.run([PROGRAM, "policy", "plan", "policy.toml", *MODEL, "--json"], cwd=self.folder, capture_output=True, timeout=60).stdout

    def test_plans_of_random_edits_are_those_of_the_command(self):
        chance = random.Random(5)
        items = [index for (kind, _), index in self.items.items() if kind != "added"]
        parameters = {index for (kind, _), index in self.items.items() if kind == "parameter"}
        state, texts = self.page.get("/api/state"), {}
        for _ in range(200):
            item = chance.choice(items)
            key = chance.choice(("on", "param", "state") if item in parameters else ("on", "run", "state", "acts"))
            value = chance.choice(("keep", "offload", "recompute") if key == "acts" else ("cpu", "gpu"))
            try:
                state = self.page.place(state, [item], **{key: value})
            except Refused as refused:
                self.assertEqual(refused.status, 422)
            self.check_memory(state)
            texts[state["text"]] = self.page.request("GET", "/api/plan")[2]
        self.assertGreater(len(texts), 100)
        for text, plan in texts.items():
            self.assertEqual(plan, self.plan_of_command(text), text)

    def check_memory(self, state):
        """The highest point of each curve is the peak of its device, which is that of the plan."""
        self.assertEqual({device["device"] for device in state["memory"] if device["peak"]},
                         {name for name, device in state["plan"]["devices"].items() if device["peak"]})
        for device in state["memory"]:
            held = sum(device["persistent"].values())
            most = max(sum(point) for point in zip(device["gradients"], device["activations"], device["workspace"]))
            self.assertEqual(held + most, device["peak"])
            if device["peak"]:
                self.assertEqual(device["peak"], state["plan"]["devices"][device["device"]]["peak"])
            self.assertEqual((device["at_ms"][0], device["at_ms"]), (0, sorted(device["at_ms"])))
            self.assertTrue(all(low >= 0 for low in device["persistent"].values()))

    def test_memory_follows_the_queues(self):
        """A gradient lies in the memory of the host from its copy to the update that reads it."""
        state = self.place(self.page.get("/api/state"), "", on="gpu")
        state = self.place(state, "", state="cpu")
        timeline = self.page.get("/api/timeline")
        cpu = next(device for device in state["memory"] if device["device"] == "cpu")
        copied = max(next(queue for queue in timeline["queues"] if queue["role"] == "copy_out")["bytes"])
        most = max(map(sum, zip(cpu["gradients"], cpu["activations"], cpu["workspace"])))
        self.assertGreaterEqual(most, copied)
        self.assertLessEqual(cpu["at_ms"][-1], timeline["step_ms"])

    def test_the_state_says_what_the_plan_says(self):
        state = self.page.get("/api/state")
        state = self.place(state, "blocks.0", on="cpu")
        plan = json.loads(self.page.request("GET", "/api/plan")[2])
        self.assertEqual({**state["plan"], "remedies": []}, {**plan, "remedies": []})
        self.check_memory(state)
        timeline = self.page.get("/api/timeline")
        self.assertEqual(timeline["revision"], state["revision"])
        kernels = sum(end - start for queue in timeline["queues"] if queue["role"] == "compute" for start, end in zip(queue["start_ms"], queue["end_ms"]))
        shared = sum(entry.get(key, 0) for entry in state["placement"] if entry for key in ("forward_ms", "backward_ms", "update_ms"))
        self.assertLessEqual(shared, kernels * 1.000001)
        self.assertGreater(shared, kernels / 2)
        self.assertEqual(state["compared"]["time"]["step_ms"]["b"], plan["time"]["step_ms"])


class File(Project):
    def digest(self):
        return hashlib.sha256(self.policy.read_bytes()).hexdigest()

    def test_save_writes_the_policy_and_nothing_else(self):
        self.policy.chmod(0o640)
        state = self.place(self.page.get("/api/state"), "blocks.0", on="cpu")
        self.assertFalse(state["file"]["saved"])
        self.assertEqual([line["text"] for line in state["difference"] if line["kind"] == "added"], ['  { at = "blocks.0.**", on = "cpu" },'])
        saved = self.page.post("/api/save", revision=state["revision"])
        self.assertTrue(saved["file"]["saved"])
        self.assertEqual(saved["difference"], [])
        self.assertEqual(self.policy.read_text(), state["text"])
        self.assertEqual(stat.S_IMODE(self.policy.stat().st_mode), 0o640)
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["gpt.onnx", "policy.toml"])

    def test_a_link_stays_a_link(self):
        real = self.folder / "real.toml"
        self.policy.rename(real)
        self.policy.symlink_to("real.toml")
        state = self.place(self.page.get("/api/state"), "blocks.0", on="cpu")
        self.page.post("/api/save", revision=state["revision"])
        self.assertTrue(self.policy.is_symlink())
        self.assertEqual(real.read_text(), state["text"])

    def test_another_version_is_not_overwritten(self):
        state = self.place(self.page.get("/api/state"), "blocks.0", on="cpu")
        theirs = self.text + "# theirs\n"
        self.policy.write_text(theirs)
        self.assertTrue(self.page.get("/api/file")["changed_on_disk"])
        with self.assertRaises(Refused) as refused:
            self.page.post("/api/save", revision=state["revision"])
        self.assertEqual(refused.exception.code, "file_changed")
        disk = refused.exception.body["disk"]
        self.assertEqual((disk["text"], disk["sha256"]), (theirs, self.digest()))
        self.assertIn("# theirs", [line["text"] for line in disk["difference"] if line["kind"] == "removed"])
        with self.assertRaises(Refused):
            self.page.post("/api/save", revision=state["revision"], over="0" * 64)
        self.assertEqual(self.policy.read_text(), theirs)
        self.page.post("/api/save", revision=state["revision"], over=disk["sha256"])
        self.assertEqual(self.policy.read_text(), state["text"])

    def test_reload_takes_their_version_and_can_be_undone(self):
        state = self.place(self.page.get("/api/state"), "blocks.0", on="cpu")
        mine, theirs = state["text"], self.text + "# theirs\n"
        self.policy.write_text(theirs)
        state = self.page.post("/api/reload", revision=state["revision"])
        self.assertEqual((state["text"], state["file"]["saved"], state["file"]["changed_on_disk"]), (theirs, True, False))
        state = self.page.post("/api/undo", revision=state["revision"])
        self.assertEqual(state["text"], mine)
        self.page.post("/api/save", revision=state["revision"])
        self.assertEqual(self.policy.read_text(), mine)

    def test_a_file_that_is_deleted_under_the_page(self):
        state = self.place(self.page.get("/api/state"), "blocks.0", on="cpu")
        self.policy.unlink()
        file = self.page.get("/api/file")
        self.assertEqual((file["exists"], file["sha256"], file["changed_on_disk"]), (False, "", True))
        self.assertEqual(file["revision"], self.page.get("/api/state")["revision"])
        with self.assertRaises(Refused) as refused:
            self.page.post("/api/save", revision=state["revision"])
        self.assertEqual(refused.exception.code, "file_changed")
        self.assertFalse(self.policy.exists())
        self.assertEqual(self.page.get("/api/state")["text"], state["text"])
        self.page.post("/api/save", revision=state["revision"], over="")
        self.assertEqual(self.policy.read_text(), state["text"])

    def test_a_broken_file_is_shown_with_its_lines(self):
        state = self.page.get("/api/state")
        self.policy.write_text(self.text.replace('"gpu" }', '"gpu }'))
        state = self.page.post("/api/reload", revision=state["revision"])
        self.assertFalse(state["ok"])
        self.assertEqual(state["problems"][0]["line"], 5)
        self.assertIsNone(state["plan"])
        with self.assertRaises(Refused):
            self.place(state, "blocks.0", on="cpu")
        self.assertTrue(self.page.post("/api/undo", revision=state["revision"])["ok"])
        self.assertFalse(self.open().get("/api/state")["ok"])

    def test_a_new_policy_begins_empty(self):
        self.policy.unlink()
        page = self.open("--device", "gpu=emulated:0,memory=1GiB")
        state = page.get("/api/state")
        self.assertEqual((state["file"]["exists"], state["undo"]), (False, 0))
        self.assertFalse(self.policy.exists())
        state = page.place(state, [0], on="gpu")
        page.post("/api/save", revision=state["revision"])
        self.assertEqual(self.rules(state), ['{ at = "**", on = "gpu" },'])
        self.assertEqual(self.policy.read_text(), state["text"])

    def test_two_pages_on_one_file_lose_nothing(self):
        other = self.open()
        mine = self.place(self.page.get("/api/state"), "blocks.0", on="cpu")
        theirs = other.place(other.get("/api/state"), [self.items["module", "blocks.1"]], on="cpu")
        self.page.post("/api/save", revision=mine["revision"])
        with self.assertRaises(Refused) as refused:
            other.post("/api/save", revision=theirs["revision"])
        self.assertEqual(refused.exception.code, "file_changed")
        self.assertEqual(self.policy.read_text(), mine["text"])
        self.assertEqual(other.get("/api/state")["text"], theirs["text"])

    def test_two_tabs_of_one_page_see_each_other(self):
        first = self.page.get("/api/state")
        self.place(first, "blocks.0", on="cpu")
        with self.assertRaises(Refused) as refused:
            self.place(first, "blocks.1", on="cpu")
        self.assertEqual((refused.exception.status, refused.exception.code), (409, "stale"))

    def test_edits_at_the_same_time_are_one_after_the_other(self):
        def edit(block, done):
            for _ in range(20):
                state = self.page.get("/api/state")
                try:
                    self.page.place(state, [self.items["module", block]], on="cpu")
                    done.append(block)
                    return
                except Refused as refused:
                    self.assertEqual(refused.code, "stale")
        done = []
        threads = [threading.Thread(target=edit, args=(block, done)) for block in ("blocks.0", "blocks.1", "position", "norm")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sorted(done), ["blocks.0", "blocks.1", "norm", "position"])
        self.assertEqual(self.page.get("/api/state")["undo"], 4)


class Runs(unittest.TestCase):
    """Pages of runs of models/digits."""

    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.folder = pathlib.Path(place.name) / "digits"
        shutil.copytree(ROOT / "models" / "digits", self.folder)

    def test_a_run_that_trains_can_be_looked_at_but_not_changed(self):
        words = ["--page", "--run-dir", "run", "epochs=2000", "log.every=5 steps", "--device", "gpu=emulated:0", "--place", '{ at = "fc1", on = "cpu" }']
        training = subprocess.Popen([PROGRAM, "train", "train.toml", *words], cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        try:
            page = next(filter(None, (re.search(r"page: http://127.0.0.1:(\d+)/#token=([0-9a-f]{32})", line) for line in training.stderr)))
            with Page.at(int(page[1]), page[2]) as page:
                model, state = page.get("/api/model"), page.get("/api/state")
                self.assertTrue(model["read_only"] and state["ok"], state["problems"])
                self.assertEqual(state["rules"][-1]["list"], "place")
                live = page.get("/api/live")
                self.assertEqual(live["state"], "running")
                self.assertIn("loss", [series["name"] for series in live["series"]])
                for path in ("edit", "undo", "redo", "save", "reload", "auto", "auto/stop"):
                    with self.assertRaises(Refused, msg=path) as refused:
                        page.post(f"/api/{path}", revision=state["revision"])
                    self.assertEqual(refused.exception.code, "read_only")
                before = live["step"]
                while page.get("/api/live")["step"] == before:
                    time.sleep(0.1)
        finally:
            training.send_signal(signal.SIGKILL)  # the page ends with it, whatever ends it
            training.stderr.close()
            training.wait()
        for _ in range(100):
            try:
                socket.create_connection(("127.0.0.1", page.port), timeout=1).close()
                time.sleep(0.1)
            except OSError:
                return
        self.fail("the page goes on without its training")

    def test_measured_times_stand_next_to_predicted_ones(self):
        run = [PROGRAM, "train", "train.toml", "--run-dir", "run", "steps=6", "--log-operators", "--trace", "trace.json"]
        self.assertEqual(subprocess.run(run, cwd=self.folder, capture_output=True, timeout=120).returncode, 0)
        with Page(PROGRAM, self.folder, "--run", "run", "--trace", "trace.json", model=["--config", "train.toml"]) as page:
            measured, state = page.get("/api/measured"), page.get("/api/state")
            recorded = json.loads((self.folder / "run" / "operators.json").read_text())["operators"]
            self.assertEqual(measured["operators"], recorded)
            forward = sum(row["ms"] for row in recorded if row["phase"] == "forward" and not row["path"].startswith("loss"))
            shown = sum(times["forward_ms"] for item, times in measured["by_item"].items() if state["placement"][int(item)].get("run"))
            self.assertGreater(shown, forward / 2)
            self.assertLessEqual(shown, forward * 1.5)
            queue = measured["timeline"]["queues"][0]
            self.assertEqual((queue["role"], len(queue["start_ms"])), ("compute", len(queue["path"])))
            self.assertLessEqual(max(queue["end_ms"]), measured["timeline"]["step_ms"] * 1.01)
            self.assertEqual(page.get("/api/live")["state"], "finished")


if __name__ == "__main__":
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    unittest.main()

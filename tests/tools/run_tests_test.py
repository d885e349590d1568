"""tools/run_tests.py over a program that lists and runs tests as GoogleTest does: one result for each test, whatever becomes of its process."""
import json
import os
import pathlib
import stat
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]

# What each test does is its name.
PROGRAM = r'''#!/usr/bin/env python3
import os, sys, time
names = ["Passes", "Fails", "Skips", "Dies", "Exits", "Hangs", "AlsoPasses", "LongPasses", "Prints"]
names = names if not os.environ.get("ONLY") else os.environ["ONLY"].split(",")
if sys.argv[1] == "--gtest_list_tests":
    print("Running main() from a file\nSuite.\n  " + "\n  ".join(names) + "  # GetParam() = 3")
    sys.exit()
flags = open(sys.argv[1].removeprefix("--gtest_flagfile=")).read().strip()
asked = flags.removeprefix("--gtest_filter=").split(":")
with open(os.environ["STARTS"], "a") as starts:
    starts.write("+".join(asked) + "\n")
failed = False
for name in names:
    if "Suite." + name not in asked:
        continue
    print(f"[ RUN      ] Suite.{name}", flush=True)
    print(f"the words of {name}, files in {os.environ.get('TMPDIR', 'the usual folder')}", flush=True)
    if name == "Dies": os.abort()
    if name == "Exits": sys.exit(0)
    if name == "Hangs": time.sleep(600)
    if name == "Prints": print("no newline", end="")
    if name == "Fails":
        failed = True
        print(f"[  FAILED  ] Suite.{name}, where GetParam() = 3 (7 ms)", flush=True)
    elif name == "Skips":
        print(f"a_test.cpp:3: Skipped\nthere is no GPU\n\n[  SKIPPED ] Suite.{name} (0 ms)", flush=True)
    else:
        print(f"[       OK ] Suite.{name} (1500 ms)", flush=True)
sys.exit(int(os.environ.get("STATUS", failed)))
'''


class RunTests(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.program = self.folder / "test_area"
        self.program.write_text(PROGRAM)
        self.program.chmod(self.program.stat().st_mode | stat.S_IXUSR)

    def run_tests(self, *arguments, **environment):
        """(exit status, output, {test: result}, the tests of each process)"""
        times, starts = self.folder / "times" / "a.json", self.folder / "starts"
        starts.write_text("")
        ended = subprocess.run(
            [sys.executable, ROOT / "tools" / "run_tests.py", self.program, "--times", times, *arguments],
            env={**os.environ, "STARTS": str(starts), "TANDEM_TEST_ONLY": "", "TANDEM_TEST_EACH": "", **environment},
            capture_output=True, text=True, timeout=60)
        self.assertEqual(ended.stderr, "")
        self.tests = json.loads(times.read_text())["tests"]
        return (ended.returncode, ended.stdout, {test["name"].removeprefix("Suite."): test["result"] for test in self.tests},
                [line.replace("Suite.", "") for line in starts.read_text().split()])

    def test_temporary_files(self):
        def folder_of(output):
            return output.split("files in ")[1].splitlines()[0]

        without = {"TMPDIR": str(self.folder), "ONLY": "Fails"}
        self.assertEqual(folder_of(self.run_tests(**without)[1]), str(self.folder))  # as the user says
        saved = os.environ.pop("TMPDIR", None)
        try:
            folder = folder_of(self.run_tests(ONLY="Fails")[1])
        finally:
            if saved is not None:
                os.environ["TMPDIR"] = saved
        if folder != "the usual folder":  # there is room in memory
            self.assertTrue(folder.startswith("/dev/shm/"), folder)
            self.assertFalse(os.path.exists(folder))

    def test_every_quick_test_has_one_result(self):
        status, output, results, _ = self.run_tests("--timeout", "2")
        self.assertEqual(status, 1)
        self.assertEqual(results, {"Passes": "passed", "Fails": "failed", "Skips": "skipped", "Dies": "failed", "Exits": "failed",
                                   "Hangs": "failed", "AlsoPasses": "passed", "Prints": "passed"})
        self.assertEqual(len(self.tests), len(results))
        self.assertIn("the words of Fails", output)
        self.assertIn("skipped: Suite.Skips: there is no GPU", output)
        self.assertIn("Suite.Dies: was ended by SIGABRT", output)
        self.assertIn("Suite.Exits: ended with exit status 0", output)
        self.assertIn("Suite.Hangs: took more than 2 s", output)
        self.assertIn("3 passed, 1 skipped, 4 failed", output)
        self.assertNotIn("the words of Passes", output)

    def test_one_process_as_long_as_none_is_lost(self):
        status, _, results, starts = self.run_tests(ONLY="Passes,Skips,AlsoPasses")
        self.assertEqual((status, starts), (0, ["Passes+Skips+AlsoPasses"]))
        self.assertEqual(list(results), ["Passes", "Skips", "AlsoPasses"])
        self.assertEqual(self.tests[0]["seconds"], 1.5)

    def test_a_lost_process_goes_on_behind_the_test(self):
        _, _, _, starts = self.run_tests(ONLY="Passes,Dies,AlsoPasses")
        self.assertEqual(starts, ["Passes+Dies+AlsoPasses", "AlsoPasses"])

    def test_each_in_its_own_process(self):
        for asked in ({"TANDEM_TEST_EACH": "1"}, {}):
            _, _, _, starts = self.run_tests(*([] if asked else ["--each"]), ONLY="Passes,AlsoPasses", **asked)
            self.assertEqual(starts, ["Passes", "AlsoPasses"])

    def test_shares_are_all_tests_once(self):
        names = []
        for index in range(3):
            _, _, results, _ = self.run_tests("--share", f"{index}/3", ONLY="A,B,C,D,E,F,G")
            names += results
        self.assertEqual(sorted(names), list("ABCDEFG"))

    def test_choices_by_name(self):
        everything = "Passes,AlsoPasses,LongPasses,Skips"
        for arguments, environment, expected in (
                (["--only", "Passes$"], {}, ["Passes", "AlsoPasses"]),
                (["--without", "Passes$"], {}, ["Skips"]),
                (["--long"], {}, ["LongPasses"]),
                ([], {"TANDEM_TEST_ONLY": "Also"}, ["AlsoPasses"]),
                ([], {"TANDEM_TEST_ONLY": "nothing"}, [])):
            status, _, results, _ = self.run_tests(*arguments, ONLY=everything, **environment)
            self.assertEqual((status, list(results)), (0 if expected else 77, expected))

    def test_a_bad_end_behind_the_last_test_fails(self):
        status, output, results, _ = self.run_tests(ONLY="Passes", STATUS="23")
        self.assertEqual((status, results), (1, {"Passes": "failed"}))
        self.assertIn("test_area ended with exit status 23 after this test, its last", output)

    def test_a_failure_outside_of_tests_fails(self):
        status, _, _, _ = self.run_tests(ONLY="Passes", STATUS="1")
        self.assertEqual(status, 1)


if __name__ == "__main__":
    unittest.main()

"""tools/gpu_run.sh: its arguments, a machine without a GPU, stages that pass, fail, skip, crash, stop and hang, archives, going on."""
import contextlib
import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import time
import unittest
import unittest.mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from gpu_run_support import ROOT, GpuRunTest, gpu_run, gpu_run_parts  # noqa: E402

import gpu_run_card  # noqa: E402


class NoCard(GpuRunTest):
    def test_with_a_broken_driver(self):
        for part in ("1", "2", "3", "4", "check", "times"):
            begun = time.monotonic()
            ended = self.run_script(part, "--out", self.out, env=self.broken_driver())
            self.assertEqual(ended.returncode, 3)
            self.assertEqual(ended.stdout, "")
            self.assertRegex(
                ended.stderr,
                r"^gpu_run: no card can be checked: the NVIDIA driver's library \(libcuda.so.1\) cannot be used: .*libcuda.so.1: .*\.\n$",
            )
            self.assertFalse(self.out.exists())
            self.assertLess(time.monotonic() - begun, gpu_run_card.PROBE_LIMIT)  # nothing is unpacked, nothing waited for

    def test_without_a_driver(self):
        class Absent:
            def __init__(self, name):
                raise OSError(f"{name}: cannot open shared object file: No such file or directory")

        def ask(command, **settings):  # in this process, where no driver can be made to be found
            said = io.StringIO()
            with contextlib.redirect_stdout(said), unittest.mock.patch("ctypes.CDLL", Absent):
                gpu_run_card.probe()
            return subprocess.CompletedProcess(command, 0, said.getvalue(), "")

        with unittest.mock.patch.object(subprocess, "run", ask):
            self.assertEqual(gpu_run_card.missing_card(), "this machine has no NVIDIA driver (libcuda.so.1).")

    def test_drivers_that_are_no_libraries(self):
        library = self.folder / "driver" / "libcuda.so.1"
        library.parent.mkdir()
        source = self.folder / "driver.c"
        source.write_text("int nothing;\n")
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
        whole = library.read_bytes()

        def why():
            with unittest.mock.patch.dict(os.environ, {"LD_LIBRARY_PATH": str(library.parent)}):
                return gpu_run_card.missing_card()

        broken = "the NVIDIA driver's library (libcuda.so.1) cannot be used: "
        self.assertTrue(why().startswith(broken) and "cuInit" in why(), why())
        for size in (0, 20, 5000):  # at 5000 bytes the loader is ended by a signal
            library.write_bytes(whole[:size])
            self.assertTrue(why().startswith(broken), why())
        library.unlink()
        library.mkdir()
        self.assertTrue(why().startswith(broken), why())
        library.rmdir()
        os.mkfifo(library)
        with unittest.mock.patch.object(gpu_run_card, "PROBE_LIMIT", 2):
            self.assertEqual(why(), broken + "it does not answer within 2 s.")

    def test_without_a_card(self):
        for settings in ({"init": 100, "cards": 0}, {"init": 0, "cards": 0}):
            ended = self.run_script("1", "--out", self.out, env=self.driver(**settings))
            self.assertEqual(ended.returncode, 3)
            self.assertIn("the NVIDIA driver sees no card.", ended.stderr)
        ended = self.run_script("1", env=self.driver(init=999, cards=1))
        self.assertEqual(ended.returncode, 3)
        self.assertIn("error 999", ended.stderr)


class Usage(GpuRunTest):
    def test_arguments(self):
        for arguments, part in (
            ([], "part"),
            (["5"], "there is no part 5: 1 check"),
            (["1", "--binary", self.folder], "there is no program gpu_check"),
            (["1", "--fast"], "--fast"),
            (["1", "something"], "unexpected: something"),
            (["1", "--minutes", "0"], "--minutes: expected 1 or more, got 0"),
            (["1", "--minutes", "-1"], "--minutes: expected 1 or more, got -1"),
            (["1", "--minutes", "nan"], "--minutes: expected 1 or more, got nan"),
            (["1", "--minutes", "inf"], "--minutes: expected 1 or more, got inf"),
            (["1", "--out", "/dev/null"], "--out: /dev/null is no folder"),
            (["1", "--out", "/dev/null/results"], "because of /dev/null"),
        ):
            ended = self.run_script(*arguments, env=self.broken_driver())
            self.assertEqual(ended.returncode, 2, arguments)
            self.assertIn(part, ended.stderr)

    def test_out_of_the_environment(self):
        with unittest.mock.patch.dict(os.environ, {"OUT": str(self.folder / "of_environment")}):
            self.assertEqual(gpu_run.parse(["1"]).out, self.folder / "of_environment")
        with unittest.mock.patch.dict(os.environ):
            os.environ.pop("OUT", None)
            self.assertEqual(gpu_run.parse(["1"]).out, gpu_run.HOME / "results")
        self.assertEqual(gpu_run.parse(["1"]).minutes, 4)

    def test_a_pack_has_to_be_there(self):
        ended = self.run_script("1", "--out", self.out, "--pack", self.folder / "none.tar.xz", env=self.driver(init=0, cards=1))
        self.assertEqual(ended.returncode, 2)
        self.assertIn("tools/gpu_pack.sh makes it", ended.stderr)

    def test_workloads_are_those_of_the_program(self):
        code, _, _ = self.call("2", "--workload", "three")
        self.assertEqual(code, 2)
        self.assertIn("there is no three: one, two, mlp_b32", self.errors.getvalue())

    def test_operators_that_are_sanitized_exist(self):
        page = (ROOT / "docs" / "operators.md").read_text()
        for name in [name for group in gpu_run_parts.SHARED_MEMORY.values() for name in group]:
            self.assertIn(f"\n| {name} | ", page)


class Stages(GpuRunTest):
    def stages(self, *names, limits=()):
        """Those of part 1 alone."""
        with unittest.mock.patch.object(gpu_run_parts, "CHECK", {n: dict(limits).get(n, gpu_run_parts.CHECK.get(n, 30)) for n in names}):
            return self.call("1")

    def test_whole_part(self):
        code, verdicts, _ = self.stages("env", "smoke")
        self.assertEqual(code, 1)
        with tarfile.open(self.out / "part1.tar.gz") as tar:
            lines = [json.loads(line) for line in tar.extractfile("part1/results.jsonl")]
            report = tar.extractfile("part1/report.md").read().decode()
            self.assertIn("part1/smoke.log", tar.getnames())
        self.assertEqual([line["verdict"] for line in lines if "verdict" in line], ["noted", "passed", "failed"])
        self.assertIn("| env | copies | 55.5 | GB/s |", report)
        self.assertIn("| smoke | b | broken |", report)
        self.assertIn(", NVIDIA Card 1. Written by", report)
        self.assertIn("| smoke | failed |", self.said.getvalue())
        self.assertEqual(self.stages("env")[0], 0)

    def test_an_error_of_the_card_costs_one_check(self):
        _, verdicts, results = self.stages("smoke")
        said = [(line["check"], line["ok"]) for line in results.lines if "ok" in line]
        self.assertEqual(said, [("a", True), ("b", False), ("c", False), ("d", True)])
        self.assertEqual(verdicts["smoke"]["verdict"], "failed")
        self.assertEqual(verdicts["smoke"]["why"], "errors of the card at b, c")
        self.assertEqual((verdicts["smoke"]["failed"]), 2)

    def test_nothing_that_passed_is_no_success(self):
        self.assertEqual(self.stages("nccl")[0], 1)
        self.assertIn("no stage has passed", self.errors.getvalue())
        self.assertEqual(self.stages("env", "nccl")[0], 0)

    def test_crash_costs_one_stage(self):
        _, verdicts, results = self.stages("parity", "gradients")
        self.assertEqual(verdicts["parity"]["verdict"], "failed")
        self.assertIn("signal 11", verdicts["parity"]["why"])
        self.assertEqual(verdicts["gradients"]["verdict"], "passed")
        self.assertTrue(any(line.get("check") == "a" for line in results.lines), "lines before the crash are kept")
        self.assertIn("## gradients: nearest to their limits", gpu_run.gpu_run_report.report([results.lines]))

    def test_hang_is_ended(self):
        code, verdicts, _ = self.stages("graphs", limits={"graphs": 1})
        self.assertEqual(code, 1)
        self.assertEqual(verdicts["graphs"]["verdict"], "failed")
        self.assertIn("not done within 1 s", verdicts["graphs"]["why"])

    def test_skipped_is_no_failure(self):
        _, verdicts, results = self.stages("nccl")
        self.assertEqual(verdicts["nccl"]["verdict"], "skipped")
        self.assertFalse(results.has("failed"))
        self.assertIn("| nccl | NCCL | it cannot be used |", gpu_run.gpu_run_report.report([results.lines]))

    def test_silence_and_contradiction_fail(self):
        _, verdicts, _ = self.stages("overlap", "partitions")
        self.assertEqual(verdicts["overlap"]["verdict"], "failed")
        self.assertEqual(verdicts["partitions"]["verdict"], "failed")


class GoingOn(GpuRunTest):
    def test_out_of_time_and_on(self):
        """graphs hangs until the part ends; the next call does it and what follows, and nothing twice."""
        stages = {"env": 40, "graphs": 60, "nccl": 60}
        with unittest.mock.patch.object(gpu_run_parts, "CHECK", stages):
            left = unittest.mock.patch.object(gpu_run.Run, "left", lambda run: 2 if (run.folder / "env.log").exists() else 60)
            with left, unittest.mock.patch.object(gpu_run, "LEAST_SECONDS", 1):
                code, verdicts, results = self.call("1")
            self.assertEqual(code, 4)
            self.assertEqual(
                {label: verdict["verdict"] for label, verdict in verdicts.items()},
                {"machine": "noted", "env": "passed", "graphs": "unfinished", "nccl": "skipped"},
            )
            self.assertIn("--resume goes on", self.errors.getvalue())
            # As after a call on another machine: only the archive is left, where OUT was.
            self.out.rename(self.folder / "came_back")
            shutil.rmtree(gpu_run.HOME)
            archive = self.folder / "came_back" / "part1.tar.gz"
            with unittest.mock.patch.object(gpu_run.Run, "prepare", self.with_go(gpu_run.Run.prepare)):
                code, verdicts, results = self.call("1", "--resume", archive)
        self.assertEqual(code, 0, self.errors.getvalue())
        self.assertEqual(verdicts["graphs"]["verdict"], "passed")
        self.assertEqual(sum(line.get("value") == "copies" for line in results.lines), 1)
        self.assertEqual(sum(line.get("value") == "begun" for line in results.lines), 1, "lines of the unfinished run are dropped")
        self.assertIn("before", self.said.getvalue())

    @staticmethod
    def with_go(prepare):
        def prepared(run):
            prepare(run)
            (run.folder / "go").write_text("")

        return prepared

    def test_no_time_at_all(self):
        with unittest.mock.patch.object(gpu_run, "LEAST_SECONDS", 1000):
            code, verdicts, _ = self.call("1")
        self.assertEqual(code, 4)
        self.assertEqual(verdicts["env"]["why"], "the time is up")

    def test_nothing_to_go_on_from(self):
        self.assertEqual(self.call("1", "--resume")[0], 2)
        self.assertIn("there is no part1.tar.gz", self.errors.getvalue())
        with unittest.mock.patch.object(gpu_run_parts, "CHECK", {"env": 40}):
            self.call("1")
        self.assertEqual(self.call("3", "--resume", self.out / "part1.tar.gz")[0], 2)
        self.assertIn("is not of part3, but of part1", self.errors.getvalue())

    def test_the_archive_is_there_after_each_stage(self):
        seen = []
        whole = gpu_run.Run.archive

        def archive(run, results):
            whole(run, results)
            seen.append((self.out / "part1.tar.gz").exists())

        with unittest.mock.patch.object(gpu_run_parts, "CHECK", {"env": 40, "nccl": 40}), unittest.mock.patch.object(
            gpu_run.Run, "archive", archive
        ):
            self.call("1")
        self.assertEqual(seen, [True] * 3)


if __name__ == "__main__":
    unittest.main()

"""tools/gpu_check.sh: its arguments, a machine without a card, and stages that pass, fail, skip, crash and hang."""
import contextlib
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import textwrap
import unittest
import unittest.mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import gpu_check  # noqa: E402

DRIVER = "int cuInit(unsigned flags) {{ return {init}; }} int cuDeviceGetCount(int* n) {{ *n = {cards}; return 0; }}\n"

# A stage program: what each stage does.
PROGRAM = """\
    #!/usr/bin/env python3
    import json, os, signal, sys, time
    stage = sys.argv[1]
    def say(**line): print(json.dumps({"stage": stage, **line}), flush=True)
    if stage == "list": print("one two"); sys.exit()
    if stage == "env": say(value="copies", number=55.5, unit="GB/s"); say(verdict="passed", checks=0, failed=0)
    if stage == "smoke": say(check="a", ok=True); say(check="b", ok=False, why="broken"); say(verdict="failed", checks=2, failed=1, why="b: broken"); sys.exit(1)
    if stage == "parity": say(check="a", ok=True, error=1e-7, limit=1e-5); os.kill(os.getpid(), signal.SIGSEGV)
    if stage == "parity16": say(verdict="passed", checks=1, failed=0, worst=[{"check": "a", "error": 1e-3, "limit": 2e-3}])
    if stage == "nccl": say(check="NCCL", skipped="it cannot be used"); say(verdict="skipped", checks=0, failed=0, why="NCCL"); sys.exit(77)
    if stage == "graphs": time.sleep(60)
    if stage == "overlap": say(verdict="passed", checks=1, failed=0); sys.exit(1)
    if stage == "partitions": sys.exit(0)
    if stage == "times": say(value="step", number=1.25, unit="ms"); say(verdict="passed", checks=1, failed=0)
"""


class GpuCheck(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def driver(self, **settings):
        """Environment in which the driver is a library of two functions."""
        source, library = self.folder / "driver.c", self.folder / "driver" / "libcuda.so.1"
        library.parent.mkdir(exist_ok=True)
        source.write_text(DRIVER.format(**settings))
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
        return {"LD_LIBRARY_PATH": str(library.parent)}

    def broken_driver(self):
        """Environment in which a driver of this machine is not found: a file that is no library comes first."""
        library = self.folder / "no_driver" / "libcuda.so.1"
        library.parent.mkdir(exist_ok=True)
        library.write_text("no library")
        return {"LD_LIBRARY_PATH": str(library.parent)}

    def run_script(self, *arguments, env):
        return subprocess.run(
            [ROOT / "tools" / "gpu_check.sh", *map(str, arguments)],
            capture_output=True,
            text=True,
            env={**os.environ, **env},
            timeout=120,
        )

    def program(self):
        path = self.folder / "build" / "gpu_check"
        path.parent.mkdir(exist_ok=True)
        path.write_text(textwrap.dedent(PROGRAM))
        path.chmod(0o755)
        return path.parent

    def check(self, *stages, limits=()):
        """Runs those stages of the program; the verdicts by label, and the results."""
        options = gpu_check.parse(
            ["--binary", str(self.program()), "--out", str(self.folder / "out"), "--stages", ",".join(stages)]
        )
        results = gpu_check.Results(options.out)
        self.addCleanup(results.file.close)
        check = gpu_check.Check(options, results)
        before = dict(gpu_check.LIMITS)
        gpu_check.LIMITS.update(limits)
        try:
            with open(os.devnull, "w") as nothing, unittest.mock.patch("sys.stdout", nothing):
                for stage in stages:
                    check.run(stage)
        finally:
            gpu_check.LIMITS.update(before)
        return {v.get("label", v["stage"]): v for v in results.verdicts}, results

    def test_with_a_broken_driver(self):
        ended = self.run_script("--out", self.folder / "out", env=self.broken_driver())
        self.assertEqual(ended.returncode, 3)
        self.assertEqual(ended.stdout, "")
        self.assertRegex(
            ended.stderr,
            r"^gpu_check: no card can be checked: the NVIDIA driver's library \(libcuda.so.1\) cannot be used: .*libcuda.so.1: .*\.\n$",
        )
        self.assertFalse((self.folder / "out").exists())

    def test_without_a_driver(self):
        class Absent:
            def __init__(self, name):
                raise OSError(f"{name}: cannot open shared object file: No such file or directory")

        def ask(command, **settings):  # in this process, where no driver can be made to be found
            said = io.StringIO()
            with contextlib.redirect_stdout(said), unittest.mock.patch("ctypes.CDLL", Absent):
                gpu_check.probe()
            return subprocess.CompletedProcess(command, 0, said.getvalue(), "")

        with unittest.mock.patch.object(subprocess, "run", ask):
            self.assertEqual(gpu_check.missing_card(), "this machine has no NVIDIA driver (libcuda.so.1).")

    def test_drivers_that_are_no_libraries(self):
        library = self.folder / "driver" / "libcuda.so.1"
        library.parent.mkdir()
        source = self.folder / "driver.c"
        source.write_text("int nothing;\n")
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
        whole = library.read_bytes()

        def why():
            with unittest.mock.patch.dict(os.environ, {"LD_LIBRARY_PATH": str(library.parent)}):
                return gpu_check.missing_card()

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
        with unittest.mock.patch.object(gpu_check, "PROBE_LIMIT", 2):
            self.assertEqual(why(), broken + "it does not answer within 2 s.")

    def test_without_a_card(self):
        for settings in ({"init": 100, "cards": 0}, {"init": 0, "cards": 0}):
            ended = self.run_script("--out", self.folder / "out", env=self.driver(**settings))
            self.assertEqual(ended.returncode, 3)
            self.assertIn("the NVIDIA driver sees no card.", ended.stderr)
        ended = self.run_script(env=self.driver(init=999, cards=1))
        self.assertEqual(ended.returncode, 3)
        self.assertIn("error 999", ended.stderr)

    def test_arguments(self):
        for arguments, part in (
            (["--stages", "smoke,speed"], "there is no stage speed"),
            (["--binary", self.folder], "there is no program gpu_check"),
            (["--binary", self.program(), "--torch", self.folder / "python"], "there is no program"),
            (["--stages", ""], "no stages"),
            (["--fast"], "--fast"),
            (["--minutes", "0"], "--minutes: expected 1 or more, got 0"),
            (["--minutes", "-1"], "--minutes: expected 1 or more, got -1"),
            (["--minutes", "0.05"], "--minutes: expected 1 or more, got 0.05"),
            (["--minutes", "nan"], "--minutes: expected 1 or more, got nan"),
            (["--minutes", "inf"], "--minutes: expected 1 or more, got inf"),
            (["--out", "/dev/null"], "--out: /dev/null is no folder"),
            (["--out", "/dev/null/results"], "because of /dev/null"),
        ):
            ended = self.run_script(*arguments, env=self.broken_driver())
            self.assertEqual(ended.returncode, 2, arguments)
            self.assertIn(part, ended.stderr)

    def test_out_of_the_environment(self):
        with unittest.mock.patch.dict(os.environ, {"OUT": str(self.folder / "of_environment")}):
            self.assertEqual(gpu_check.parse([]).out, self.folder / "of_environment")
        with unittest.mock.patch.dict(os.environ):
            os.environ.pop("OUT", None)
            self.assertEqual(gpu_check.parse([]).out, ROOT / "build-cuda" / "gpu_check_results")
        self.assertEqual(gpu_check.parse([]).minutes, 10)

    def test_whole_run(self):
        ended = self.run_script(
            "--binary", self.program(), "--out", self.folder / "out", "--stages", "env,smoke", env=self.driver(init=0, cards=1)
        )
        self.assertEqual(ended.returncode, 1, ended.stderr)
        lines = [json.loads(line) for line in (self.folder / "out" / "results.jsonl").read_text().splitlines()]
        self.assertEqual([line["stage"] for line in lines], ["env", "env", "smoke", "smoke", "smoke"])
        text = (self.folder / "out" / "summary.md").read_text()
        self.assertIn("| smoke | failed | 2 | 1 |", text)
        self.assertIn("| env | copies | 55.5 | GB/s |", text)
        self.assertIn("b: broken", ended.stdout)
        ended = self.run_script(
            "--binary", self.program(), "--out", self.folder / "out", "--stages", "env", env=self.driver(init=0, cards=1)
        )
        self.assertEqual(ended.returncode, 0, ended.stderr)

    def test_nothing_that_passed_is_no_success(self):
        env = self.driver(init=0, cards=1)
        command = ["--binary", self.program(), "--out", self.folder / "out", "--stages"]
        ended = self.run_script(*command, "nccl", env=env)
        self.assertEqual(ended.returncode, 1)
        self.assertIn("no stage has passed", ended.stderr)
        self.assertEqual(self.run_script(*command, "env,nccl", env=env).returncode, 0)

    def test_time_that_is_up_is_no_success(self):
        with open(os.devnull, "w") as nothing, unittest.mock.patch("sys.stdout", nothing), unittest.mock.patch(
            "sys.stderr", nothing
        ), unittest.mock.patch.multiple(gpu_check, missing_card=lambda: None), unittest.mock.patch.object(
            gpu_check.Check, "limit", lambda self, seconds: 0
        ):
            code = gpu_check.main(["--binary", str(self.program()), "--out", str(self.folder / "out"), "--stages", "env,parity16"])
        self.assertEqual(code, 1)
        self.assertIn("the time is up", (self.folder / "out" / "summary.md").read_text())

    def test_without_options_results_lie_beside_the_program(self):
        def build():
            (self.folder / "build").rename(self.folder / "build-cuda")
            return self.folder / "build-cuda"

        self.program()
        with open(os.devnull, "w") as nothing, unittest.mock.patch("sys.stdout", nothing), unittest.mock.patch.multiple(
            gpu_check, ROOT=self.folder, build=build, missing_card=lambda: None
        ), unittest.mock.patch.dict(os.environ):
            os.environ.pop("OUT", None)
            self.assertEqual(gpu_check.main(["--stages", "env"]), 0)
        self.assertIn("copies", (self.folder / "build-cuda" / "gpu_check_results" / "summary.md").read_text())

    def test_crash_costs_one_stage(self):
        verdicts, results = self.check("parity", "parity16")
        self.assertEqual(verdicts["parity"]["verdict"], "failed")
        self.assertIn("signal 11", verdicts["parity"]["why"])
        self.assertEqual(verdicts["parity16"]["verdict"], "passed")
        self.assertTrue(any(line.get("check") == "a" for line in results.lines), "lines before the crash are kept")
        self.assertIn("## parity16: nearest to their limits", gpu_check.summary(results))
        self.assertTrue(results.failed)

    def test_hang_is_ended(self):
        verdicts, _ = self.check("graphs", limits={"graphs": 1})
        self.assertEqual(verdicts["graphs"]["verdict"], "failed")
        self.assertIn("not done within 1 s", verdicts["graphs"]["why"])

    def test_skipped_is_no_failure(self):
        verdicts, results = self.check("nccl")
        self.assertEqual(verdicts["nccl"]["verdict"], "skipped")
        self.assertFalse(results.failed)
        self.assertTrue(re.search(r"\| nccl \| NCCL \| it cannot be used \|", gpu_check.summary(results)))

    def test_silence_and_contradiction_fail(self):
        verdicts, _ = self.check("overlap", "partitions")
        self.assertEqual(verdicts["overlap"]["verdict"], "failed")
        self.assertEqual(verdicts["partitions"]["verdict"], "failed")

    def test_each_workload_is_a_process(self):
        verdicts, results = self.check("times")
        self.assertEqual(set(verdicts), {"one", "two"})
        self.assertEqual(sum("value" in line for line in results.lines), 2)

    def test_tf32_is_asked_of_both_sides(self):
        for more in ([], ["--tf32"]):
            out = self.folder / ("out" + "".join(more))
            options = gpu_check.parse(["--binary", str(self.program()), "--out", str(out), "--torch", sys.executable, *more])
            results = gpu_check.Results(options.out)
            self.addCleanup(results.file.close)
            check = gpu_check.Check(options, results)
            with open(os.devnull, "w") as nothing, unittest.mock.patch("sys.stdout", nothing):
                check.one_time("one", "")
                check.torch_time("mlp_b32", "eager")
            for label in ("one", "mlp_b32_torch_eager"):
                command = (out / (label + ".log")).read_text().splitlines()[0]
                self.assertEqual("--tf32" in command, bool(more), command)


if __name__ == "__main__":
    unittest.main()

"""tools/gpu_run.sh: what its parts run in addition to gpu_check (sanitizers, PyTorch, profiles), and the report of all parts."""
import contextlib
import io
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from gpu_run_support import ROOT, GpuRunTest, gpu_run, gpu_run_parts  # noqa: E402


class Parts(GpuRunTest):
    def test_every_stage_ends_in_a_part_that_does_nothing_else(self):
        seconds = 60 * gpu_run.parse(["1"]).minutes
        self.assertEqual(seconds, 240)
        run = gpu_run.Run(gpu_run.parse(["1", "--binary", str(self.program())]))
        for part in gpu_run_parts.PARTS:
            with unittest.mock.patch.object(gpu_run_parts, "find_tool", lambda name: "/" + name):
                stages = gpu_run_parts.Parts(run).stages(part)
            self.assertTrue(stages)
            for stage in stages:
                self.assertLessEqual(stage.limit + 30, seconds, stage.label)  # to unpack and to archive

    def test_what_tells_most_comes_first(self):
        run = gpu_run.Run(gpu_run.parse(["1", "--binary", str(self.program())]))
        first = [stage.label for stage in gpu_run_parts.Parts(run).stages("1")]
        self.assertEqual(first[:4], ["smoke", "parity", "gradients", "graphs"])
        self.assertEqual(gpu_run_parts.PARTS["2"], "times")

    def test_times_beside_every_variant_in_both_ways_of_feeding(self):
        code, verdicts, results = self.call("times")
        self.assertEqual(code, 0, self.errors.getvalue())
        torch = [f"mlp_b32 torch {variant}" for variant in ("eager", "graphs", "compile")]
        self.assertEqual(list(verdicts), ["machine", "export mlp_b32", "mlp_b32", *torch[:2], "mlp_b32, again", torch[2]])
        report = (self.folder / "home" / "run" / "part2-mlp_b32" / "report.md").read_text()
        self.assertEqual(report.count("| mlp_b32 | Tandem |  | loader | 0.5 | 0.4 | 0.6 |"), 2)
        self.assertIn("| mlp_b32 | PyTorch 2.x | graphs | the card | 1 |  |  | 0.5 | 1.00 |", report)
        self.assertIn("| mlp_b32 | PyTorch 2.x | eager | loader | 2 |  |  | 1 | 2.00 |", report)
        self.assertTrue((self.out / "part2-mlp_b32.tar.gz").exists())

    def test_tf32_is_asked_of_both_sides(self):
        for more in ([], ["--tf32"]):
            self.call("times", *more)
            for label in ("mlp_b32", "mlp_b32__again", "mlp_b32_torch_eager"):
                log = self.folder / "home" / "run" / "part2-mlp_b32" / (label + ".log")
                self.assertEqual("--tf32" in log.read_text().splitlines()[0], bool(more), label)

    def test_tools_that_are_missing_are_skipped(self):
        with unittest.mock.patch.object(gpu_run_parts, "find_tool", lambda name: None), unittest.mock.patch.object(
            gpu_run_parts, "BEFORE_SANITIZERS", {"parity16": 20}
        ):
            _, verdicts, _ = self.call("3")
            self.assertEqual(verdicts["racecheck rows"]["verdict"], "skipped")
            self.assertEqual(verdicts["memcheck networks"]["why"], "compute-sanitizer is not in PATH")
            _, verdicts, _ = self.call("4")
            self.assertEqual(verdicts["profile mlp_b32"]["why"], "ncu is not in PATH")

    def test_what_the_sanitizer_finds_is_a_failure(self):
        """The stage below it passes; the sanitizer's exit code and its file say otherwise."""
        tool = self.executable(
            self.folder / "compute-sanitizer",
            """\
            #!/usr/bin/env python3
            import subprocess, sys
            a = sys.argv
            race, rows = a[a.index("--tool") + 1] == "racecheck", "UniqueIndices/" in a[-1]
            found = int(race and rows)
            text = "========= Error: Race reported between Write access at store and Read access at load\\n" if found else ""
            text += f"========= RACECHECK SUMMARY: {found} hazard displayed ({found} error, 0 warnings)\\n" if race else "========= ERROR SUMMARY: 0 errors\\n"
            open(a[a.index("--log-file") + 1], "w").write(text)
            print('{"stage": "smoke", "check": "x", "ok": true}\\n{"stage": "smoke", "verdict": "passed", "checks": 1, "failed": 0}')
            sys.exit(9 if found else 0)
            """,
        )
        with unittest.mock.patch.object(gpu_run_parts, "find_tool", lambda name: str(tool)), unittest.mock.patch.object(
            gpu_run_parts, "BEFORE_SANITIZERS", {}
        ):
            code, verdicts, results = self.call("3")
        self.assertEqual(code, 1)
        bad = [label for label, verdict in verdicts.items() if verdict["verdict"] == "failed"]
        self.assertEqual(bad, ["racecheck rows"])
        whys = [line["why"] for line in results.lines if line.get("ok") is False]
        self.assertEqual(whys, ["RACECHECK SUMMARY: 1 hazards; Error: Race reported between Write access at store and Read access at load"])

    def test_profiles_of_the_worst_kernels(self):
        ncu = self.executable(
            self.folder / "ncu",
            """\
            #!/usr/bin/env python3
            import sys
            a = sys.argv
            out = open(a[a.index("--log-file") + 1], "w")
            print("==PROF== Connected to process 1", file=out)
            head = '"ID","Process ID","Kernel Name","Section Name","Metric Name","Metric Unit","Metric Value"'
            print(head, file=out)
            if "--metrics" not in a: assert "demangled" in a and a[a.index("--kernel-name") + 1] in ("gemm(int)", "void tandem::cuda::run<A>(A)")
            if "--metrics" in a:
                for i, (name, ns) in enumerate((("void tandem::cuda::run<A>(A)", "1,000"), ("gemm(int)", "5,500"), ("void tandem::cuda::run<A>(A)", "3,500"))):
                    print(f'"{i}","1","{name}","Command line profiler metrics","gpu__time_duration.sum","ns","{ns}"', file=out)
            else:
                print(f'"0","1","k","GPU Speed Of Light Throughput","DRAM Throughput","%","81.5"', file=out)
            """,
        )
        with unittest.mock.patch.object(gpu_run_parts, "find_tool", lambda name: str(ncu)):
            code, _, _ = self.call("profile")
        self.assertEqual(code, 0, self.said.getvalue())
        report = (self.folder / "home" / "run" / "part4-mlp_b32" / "report.md").read_text()
        self.assertIn("| gemm(int) | 1 | 5.5 | 55.0 % | DRAM throughput 81.5 % |", report)
        self.assertIn("| void tandem::cuda::run<A>(A) | 2 | 4.5 | 45.0 % |", report)


class Peer(unittest.TestCase):
    def test_without_pytorch_it_is_skipped_by_name(self):
        """find_spec answers as in an environment that has nothing."""
        bare = "import importlib.util, runpy, sys; importlib.util.find_spec = lambda name: None; sys.argv = sys.argv[1:]; "
        bare += "sys.path.insert(0, sys.argv[0].rpartition('/')[0]); runpy.run_path(sys.argv[0], run_name='__main__')"
        with tempfile.TemporaryDirectory() as folder:
            for script, more, why in (("gpu_torch.py", [], "has no torch"), ("gpu_export.py", ["--to", folder], "has no torch, numpy, onnx")):
                ended = subprocess.run(
                    [sys.executable, "-c", bare, str(ROOT / "bench" / "peers" / script), "mlp_b32", *more], capture_output=True, text=True
                )
                verdict = json.loads(ended.stdout.splitlines()[-1])
                self.assertEqual((ended.returncode, verdict["verdict"]), (77, "skipped"), ended.stderr)
                self.assertIn(why, verdict["why"])

    def test_what_there_is_not_is_skipped_with_the_reason(self):
        for workload, variant in (("wide_deep_host_tables", "compile"), ("resnet50_b256_float16", "graphs")):
            script = ROOT / "bench" / "peers" / "gpu_torch.py"
            ended = subprocess.run([sys.executable, script, workload, "--variant", variant], capture_output=True, text=True)
            self.assertEqual(ended.returncode, 77)
            self.assertIn('"skipped"', ended.stdout)


class Report(GpuRunTest):
    def test_one_page_of_all_parts(self):
        with unittest.mock.patch.object(gpu_run_parts, "CHECK", {"env": 40}):
            self.call("1")
        self.call("2")
        for archives in ([], [self.out / "part1.tar.gz", self.out / "part2-mlp_b32.tar.gz"]):
            path = self.folder / "page.md"
            with contextlib.redirect_stdout(io.StringIO()):
                self.assertEqual(gpu_run.main(["report", *map(str, archives), "--to", str(path)]), 0)
            text = path.read_text()
            for part in ("| env | passed |", "| mlp_b32 torch eager | passed |", "## Step times", "| pack |"):
                self.assertIn(part, text)

    def test_its_name_is_of_date_and_card(self):
        lines = [
            {"stage": "machine", "note": "date", "content": "2030-01-02T03:04:05+00:00"},
            {"stage": "env", "note": "card 0", "content": {"name": "NVIDIA H100 80GB HBM3"}},
        ]
        self.assertEqual(gpu_run.gpu_run_report.name_of([lines]), "2030-01-02-nvidia-h100-80gb-hbm3")

    def test_without_archives(self):
        with contextlib.redirect_stderr(io.StringIO()) as said:
            self.assertEqual(gpu_run.main(["report"]), 2)
        self.assertIn("there are no archives", said.getvalue())


if __name__ == "__main__":
    unittest.main()

"""For the tests of tools/gpu_run.sh: drivers that are no drivers, and a program whose stages pass, fail, skip, crash, stop and hang."""
import contextlib
import io
import os
import pathlib
import subprocess
import sys
import tempfile
import textwrap
import unittest
import unittest.mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "gpu"))
import gpu_run  # noqa: E402
import gpu_run_parts  # noqa: E402

DRIVER = "int cuInit(unsigned flags) {{ return {init}; }} int cuDeviceGetCount(int* n) {{ *n = {cards}; return 0; }}\n"

# What each stage does. "graphs" hangs while there is no file `go` in its output folder.
PROGRAM = """\
    #!/usr/bin/env python3
    import json, os, signal, sys, time
    stage, arguments = sys.argv[1], sys.argv[2:]
    def say(**line): print(json.dumps({"stage": stage, **line}), flush=True)
    def value_of(option): return arguments[arguments.index(option) + 1] if option in arguments else None
    if stage == "list": print("one two mlp_b32"); sys.exit()
    if stage == "env":
        say(note="card 0", content={"name": "NVIDIA Card 1"}); say(value="copies", number=55.5, unit="GB/s"); say(verdict="passed", checks=0, failed=0)
    if stage == "smoke":
        checks = ["a", "b", "c", "d"]
        for check in checks[checks.index(value_of("--after")) + 1:] if value_of("--after") else checks:
            say(check=check, ok=check not in "bc", **({"why": "broken"} if check in "bc" else {}))
            if check in "bc": say(verdict="failed", checks=checks.index(check) + 1, failed=1, why=check + ": broken", stopped_at=check); sys.exit(4)
        say(verdict="passed", checks=1, failed=0)
    if stage == "parity": say(check="a", ok=True, error=1e-7, limit=1e-5); os.kill(os.getpid(), signal.SIGSEGV)
    if stage == "gradients": say(verdict="passed", checks=1, failed=0, worst=[{"check": "a", "error": 1e-3, "limit": 2e-3}])
    if stage == "nccl": say(check="NCCL", skipped="it cannot be used"); say(verdict="skipped", checks=0, failed=0, why="NCCL"); sys.exit(77)
    if stage == "graphs":
        say(value="begun", number=1, unit="")
        if not os.path.exists(value_of("--out") + "/go"): time.sleep(60)
        say(check="x", ok=True); say(verdict="passed", checks=1, failed=0)
    if stage == "overlap": say(verdict="passed", checks=1, failed=0); sys.exit(1)
    if stage == "partitions": sys.exit(0)
    if stage == "times":
        name = value_of("--only")
        say(note=name, content={"step_ms": 0.5, "step_ms_p10": 0.4, "step_ms_p90": 0.6}); say(verdict="passed", checks=1, failed=0)
"""
# An interpreter with PyTorch: it answers for the scripts of the peer.
PYTHON = """\
    #!/usr/bin/env python3
    import json, sys
    def say(**line): print(json.dumps(line), flush=True)
    if sys.argv[1].endswith("gpu_export.py"): say(verdict="passed", checks=1, failed=0)
    if sys.argv[1].endswith("gpu_torch.py"):
        name, variant = sys.argv[2], sys.argv[4]
        for feed, ms in (("the card", 1.0), ("loader", 2.0)):
            say(note=name + variant + feed, content={"workload": name, "variant": variant, "feed": feed, "step_ms": ms, "streamed_ms": ms / 2, "torch": "2.x"})
        say(verdict="passed", checks=2, failed=0)
"""


class GpuRunTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.out = self.folder / "out"
        home = unittest.mock.patch.object(gpu_run, "HOME", self.folder / "home")
        home.start()
        self.addCleanup(home.stop)

    def executable(self, path, text):
        path.parent.mkdir(exist_ok=True)
        path.write_text(textwrap.dedent(text))
        path.chmod(0o755)
        return path

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
            [ROOT / "tools" / "gpu_run.sh", *map(str, arguments)],
            capture_output=True,
            text=True,
            env={**os.environ, **env},
            timeout=120,
        )

    def program(self):
        return self.executable(self.folder / "build" / "gpu_check", PROGRAM).parent

    def call(self, part, *arguments, limits=()):
        """The part in this process, on a machine that has a GPU: exit code, verdicts by label, results."""
        given = [part, "--binary", self.program(), "--out", self.out, "--python", self.executable(self.folder / "python", PYTHON)]
        kept, real = [], gpu_run.Results
        results = unittest.mock.patch.object(gpu_run, "Results", lambda *a: kept.append(real(*a)) or kept[-1])
        card = unittest.mock.patch.object(gpu_run.gpu_run_card, "missing_card", lambda: None)
        self.said, self.errors = io.StringIO(), io.StringIO()
        with contextlib.ExitStack() as stack:
            for patch in (results, card, unittest.mock.patch.dict(gpu_run_parts.CHECK, dict(limits))):
                stack.enter_context(patch)
            stack.enter_context(contextlib.redirect_stdout(self.said))
            stack.enter_context(contextlib.redirect_stderr(self.errors))
            code = gpu_run.main([str(argument) for argument in (*given, *arguments)])
        return code, {v["label"]: v for v in kept[-1].verdicts} if kept else {}, kept[-1] if kept else None

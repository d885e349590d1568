"""tools/setup.sh: cuobjdump is installed where there is nvcc 13 without it, and nowhere else; the Python of the package's
tests where it is missing. Nothing is downloaded here."""
import hashlib
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
VERSION = re.search(r"^cuobjdump_version=(.*)$", (ROOT / "tools" / "setup.sh").read_text(), re.M)[1]


class Installed(unittest.TestCase):
    """A copy of the script for a machine where everything is installed; its toolkits are in a folder of the test."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.deps, self.bin, self.wheels = (self.folder / name for name in ("deps", "bin", "wheels"))
        self.wheels.mkdir()
        self.wheel = self.wheels / f"nvidia_cuda_cuobjdump-{VERSION}-py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.whl"
        with zipfile.ZipFile(self.wheel, "w") as archive:
            archive.writestr("nvidia/cu13/bin/cuobjdump", "#!/bin/sh\necho it runs\n")
        for path in ("tools/setup.sh", "cmake/onnx/CMakeLists.txt", "tests/python/requirements.txt"):
            (self.folder / path).parent.mkdir(parents=True)
            shutil.copy(ROOT / path, self.folder / path)
        text = (self.folder / "tools/setup.sh").read_text()
        hashed = f"cuobjdump_hash={hashlib.sha256(self.wheel.read_bytes()).hexdigest()}"
        text, found = re.subn(r"^cuobjdump_hash=[0-9a-f]{64}$", hashed, text, flags=re.M)
        self.assertEqual(found, 1)
        (self.folder / "tools/setup.sh").write_text(text.replace("/usr/local/cuda", str(self.folder / "cuda")))
        self.program("bin/dpkg-query", "printf installed")
        # pip has no network: its calls are kept.
        calls = self.folder / "calls"
        program = f'[ "$2" = pip ] || [ "$2" = venv ] || exec {sys.executable} "$@"\necho "$@" >>{calls}\nexit 1'
        self.program("bin/python3", program)
        for line in self.setup("--prefixes").stdout.splitlines():
            path = line.partition("=")[2]
            if path != "system":
                pathlib.Path(path).mkdir(parents=True)

    def program(self, path, text):
        path = self.folder / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)

    def nvcc(self, release="13.0", folder="cuda/bin"):
        self.program(f"{folder}/nvcc", f"echo 'Cuda compilation tools, release {release}, V{release}.48'")

    def setup(self, *arguments, **more):
        env = {k: v for k, v in os.environ.items() if k not in ("CUDA_HOME", "XDG_CACHE_HOME")}
        # Toolkits of this machine are out of sight.
        folders = [f for f in env["PATH"].split(":") if not os.path.exists(os.path.join(f, "nvcc"))]
        env |= {"PATH": ":".join([str(self.bin), *folders]), "TANDEM_DEPS": str(self.deps), "TANDEM_WHEELS": str(self.wheels)} | more
        ended = subprocess.run([self.folder / "tools/setup.sh", *arguments], capture_output=True, text=True, env=env, timeout=60)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        return ended

    def installed(self):
        """What the installed tool prints; None: there is none."""
        tool = self.deps / f"cuobjdump-{VERSION}" / "bin" / "cuobjdump"
        return subprocess.run([tool], capture_output=True, text=True, check=True).stdout if tool.exists() else None

    def calls(self):
        path = self.folder / "calls"
        return path.read_text() if path.exists() else ""

    def prefix(self, name):
        """What --prefixes says."""
        return pathlib.Path(re.search(f"^{name}=(.*)$", self.setup("--prefixes").stdout, re.M)[1])


class Python(Installed):
    def test_without_a_network_setup_goes_on(self):
        shutil.rmtree(self.prefix("python"))
        self.assertIn("the Python package is not built", self.setup().stderr)
        self.assertIn("-m venv", self.calls())
        self.assertFalse(self.prefix("python").exists())
        self.assertEqual(sorted(p.name for p in self.deps.glob(".work*")), [])

    def test_the_program_needs_none(self):
        shutil.rmtree(self.prefix("python"))
        self.assertEqual(self.setup("--program").stderr, "")
        self.assertEqual(self.calls(), "")

    def test_another_list_of_packages_is_another_folder(self):
        before = self.prefix("python")
        with (self.folder / "tests/python/requirements.txt").open("a") as file:
            file.write("more==1\n")
        self.assertNotEqual(self.prefix("python"), before)

    def test_it_is_installed_once(self):
        program = self.folder / "bin" / "python3"
        program.write_text(
            f'#!/bin/sh\n[ "$2" = venv ] || exec {sys.executable} "$@"\n'
            'mkdir -p "$3/bin"\nprintf "#!/bin/sh\\necho installed\\n" >"$3/bin/python3"\nchmod +x "$3/bin/python3"\n'
        )
        shutil.rmtree(self.prefix("python"))
        self.assertIn("the Python with nanobind is in", self.setup().stderr)
        self.assertTrue((self.prefix("python") / "bin" / "python3").exists())
        self.assertEqual(self.setup().stderr, "", "a second run does nothing")


@unittest.skipUnless(platform.machine() == "x86_64", "the package is for x86-64")
class Cuobjdump(Installed):
    def test_a_toolkit_without_it(self):
        self.nvcc()
        self.assertIn(f"cuobjdump {VERSION} is in", self.setup().stderr)
        self.assertEqual(self.installed(), "it runs\n")
        self.wheel.unlink()
        self.assertEqual(self.setup().stderr, "", "a second run does nothing")
        self.assertEqual(self.calls(), "")
        self.assertEqual(sorted(p.name for p in self.deps.glob(".work*")), [])

    def test_where_nvcc_may_be(self):
        for folder, more in (("bin", {}), ("cuda-13.1/bin", {}), ("home/bin", {"CUDA_HOME": str(self.folder / "home")})):
            shutil.rmtree(self.deps / f"cuobjdump-{VERSION}", ignore_errors=True)
            self.nvcc(folder=folder)
            self.setup(**more)
            self.assertEqual(self.installed(), "it runs\n", folder)
            (self.folder / folder / "nvcc").unlink()

    def test_without_a_toolkit_nothing_is_downloaded(self):
        self.wheel.unlink()
        self.assertEqual(self.setup().stderr, "")
        self.assertEqual(self.setup("--check").stderr, "")
        self.assertEqual(self.calls(), "")

    def test_another_toolkit(self):
        self.nvcc(release="12.8")
        self.assertEqual(self.setup().stderr, "")
        self.assertIsNone(self.installed())

    def test_a_toolkit_that_has_it(self):
        self.nvcc()
        self.program("cuda/bin/cuobjdump", "")
        self.assertEqual(self.setup().stderr, "")
        self.assertIsNone(self.installed())

    def test_without_a_network_setup_goes_on(self):
        self.nvcc()
        self.wheel.unlink()
        self.assertIn("no cuobjdump: the test kernel_resources will be skipped", self.setup().stderr)
        self.assertIn(f"nvidia-cuda-cuobjdump=={VERSION}", self.calls())
        self.assertIsNone(self.installed())

    def test_another_file_is_refused(self):
        self.nvcc()
        with zipfile.ZipFile(self.wheel, "a") as archive:
            archive.writestr("more", "")
        self.assertIn("is not the file this project was built with", self.setup().stderr)
        self.assertIsNone(self.installed())


if __name__ == "__main__":
    unittest.main()

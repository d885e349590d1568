"""tools/gpu_pack.sh on the programs of a build: python3 gpu_pack_test.py BUILD. Exit code 77: that build has none with CUDA.

The pack is carried to an empty folder and used there with an empty environment.
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACK = ROOT / "tools" / "gpu_pack.sh"
BUILD = None  # the command line's
# Ubuntu 24.04: glibc 2.39, libstdc++ and libgcc of GCC 14.
NEWEST = {"GLIBC": (2, 39), "GLIBCXX": (3, 4, 33), "CXXABI": (1, 3, 15), "GCC": (14, 0, 0)}
OF_THE_SYSTEM = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "libstdc++.so.6", "libgcc_s.so.1"}
SKIPPED = 77


def run(*command, **more):
    """In an empty environment."""
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, env={}, timeout=300, **more)


class GpuPack(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.temporary.cleanup)
        folder = pathlib.Path(cls.temporary.name)
        cls.packed = subprocess.run([PACK, "--build", BUILD, "--to", folder / "packed"], capture_output=True, text=True)
        if cls.packed.returncode != 0:
            raise AssertionError(cls.packed.stderr)
        cls.archive = folder / "packed" / "tandem-gpu.tar.xz"
        with tarfile.open(cls.archive) as tar:
            tar.extractall(folder / "elsewhere")
        cls.pack = folder / "elsewhere" / "tandem-gpu"

    def objects(self):
        return [self.pack / "gpu_check", self.pack / "tandem", *sorted((self.pack / "lib").iterdir())]

    def test_one_small_archive_is_all_that_is_left(self):
        self.assertEqual([path.name for path in self.archive.parent.iterdir()], [self.archive.name])
        self.assertLessEqual(self.archive.stat().st_size, 40 << 20)

    def test_libraries_come_from_the_pack_or_from_every_system(self):
        for program in ("gpu_check", "tandem"):
            for line in run(shutil.which("ldd"), self.pack / program).stdout.splitlines():
                name, _, rest = line.strip().partition(" => ")
                if not rest:
                    self.assertRegex(name, r"^(linux-vdso|/lib64/ld-linux)")
                elif name not in OF_THE_SYSTEM:
                    self.assertTrue(rest.startswith(str(self.pack / "lib" / name)), line)

    def test_symbol_versions_are_old_enough(self):
        for file in self.objects():
            text = run(shutil.which("readelf"), "--version-info", "--wide", file).stdout
            needs = text[text.find("Version needs section") :] if "Version needs section" in text else ""
            found = re.findall(r"Name: ([A-Z]+)_([0-9.]+)", needs)
            self.assertTrue(found, file)
            for family, version in found:
                if family in NEWEST:
                    self.assertLessEqual(tuple(map(int, version.split("."))), NEWEST[family], f"{file.name}: {family}_{version}")

    def test_programs_are_stripped_and_know_no_folder_of_this_machine(self):
        for program in ("gpu_check", "tandem"):
            dynamic = run(shutil.which("readelf"), "--dynamic", "--wide", self.pack / program).stdout
            self.assertEqual(re.findall(r"runpath: \[(.*)\]", dynamic), ["$ORIGIN/lib"])
            self.assertNotIn(".symtab", run(shutil.which("readelf"), "--sections", "--wide", self.pack / program).stdout)

    def test_doctor_runs(self):
        ended = run(self.pack / "tandem", "doctor")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertRegex(ended.stdout, r"(?m)^cuda +(built with 13\.|no card|\S)")

    def test_the_check_lists_its_workloads(self):
        ended = run(self.pack / "gpu_check", "list")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        peer = subprocess.run([sys.executable, ROOT / "bench" / "peers" / "gpu_torch.py", "--list"], capture_output=True, text=True)
        self.assertEqual(ended.stdout.split(), peer.stdout.split(), "the peer's")
        self.assertIn("mlp_b32", ended.stdout.split())

    def test_fixtures_are_found_beside_the_check_and_nowhere_else(self):
        ended = run(self.pack / "gpu_check", "fixtures", cwd="/")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        paths = [line.rpartition(": ")[2] for line in ended.stdout.splitlines()]
        self.assertEqual(len(paths), 6)
        for path in paths:
            self.assertTrue(path.startswith(str(self.pack / "fixtures")), path)
            self.assertFalse(pathlib.Path(path).is_symlink())
        (self.pack / "fixtures").rename(self.pack / "away")
        try:
            ended = run(self.pack / "gpu_check", "fixtures", cwd="/")
        finally:
            (self.pack / "away").rename(self.pack / "fixtures")
        self.assertEqual(ended.returncode, 1)
        self.assertIn(f"no fixtures in {self.pack}/fixtures", ended.stderr)

    def test_it_tells_what_it_is(self):
        self.assertRegex((self.pack / "pack.json").read_text(), r'"commit": "([0-9a-f]{40}|unknown)".*"architectures": ".+", "nvcc": "13\.')


class Usage(unittest.TestCase):
    def test_arguments(self):
        with tempfile.TemporaryDirectory() as empty:
            for arguments, code, part in (
                (["--fast"], 2, "unknown option --fast"),
                (["--to"], 2, "--to needs a value"),
                (["--measure", "/nowhere"], 2, "there is no /nowhere"),
                (["--build", empty, "--to", empty], SKIPPED, "there is no program tandem"),
            ):
                ended = subprocess.run([PACK, *arguments], capture_output=True, text=True)
                self.assertEqual(ended.returncode, code)
                self.assertIn(part, ended.stderr)


if __name__ == "__main__":
    BUILD = pathlib.Path(sys.argv.pop(1)).resolve()
    missing = [name for name in ("tandem", "gpu_check") if not (BUILD / name).exists()]
    missing += [name for name in ("ldd", "readelf", "strip", "xz") if shutil.which(name) is None]
    if missing:
        print(f"skipped: {', '.join(missing)} not there: no build with CUDA, not finished, or no binutils and xz")
        sys.exit(SKIPPED)
    unittest.main()

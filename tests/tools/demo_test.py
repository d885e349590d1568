"""What tools/demo.sh builds is all that `cmake --install` and `tandem launch` take: python3 demo_test.py BUILD.

Exit code 77: that build is not ninja's.
"""
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = None  # the command line's
SKIPPED = 77


def installed_files():
    """Files of the build folder that its install scripts copy."""
    found = set()
    for script in BUILD.rglob("cmake_install.cmake"):
        if script.parent == BUILD / "python":  # a part that only a wheel takes
            continue
        for name in re.findall(f'"({re.escape(str(BUILD))}/[^"]+)"', script.read_text(encoding="utf-8")):
            if re.search(r"\.so(\.|$)|/tandem$", name):
                found.add(pathlib.Path(name))
    return found


def plain(path):
    """Without the version: libtandem.so.0 is a link to libtandem.so.0.1.0, which is made with it."""
    return path.parent / path.name.partition(".so")[0]


def not_made_by(target, files):
    """Those of the files that the build does not make for a target."""
    listed = subprocess.run(["ninja", "-C", BUILD, "-t", "commands", target], capture_output=True, text=True, check=True)
    made = {plain(BUILD / name) for name in re.findall(r" -o (\S+)", listed.stdout)}
    return [path for path in files if plain(path) not in made]


class Demo(unittest.TestCase):
    def test_it_builds_what_is_installed(self):
        script = (ROOT / "tools" / "demo.sh").read_text(encoding="utf-8")
        targets = re.findall(r"cmake --build --preset cpu --target (\w+)", script)
        self.assertEqual(len(targets), 1)
        files = installed_files()
        self.assertTrue(any(path.name.startswith("libtandem.so") for path in files), files)
        self.assertIn(BUILD / "tandem", files)
        self.assertEqual(not_made_by(targets[0], files), [])

    def test_the_program_comes_with_what_it_opens(self):
        plugin = [path for path in installed_files() if "tandem_mpi" in path.name]  # none where there is no MPI
        self.assertEqual(not_made_by("tandem_tool", plugin), [])


if __name__ == "__main__":
    BUILD = pathlib.Path(sys.argv.pop(1)).resolve()
    if shutil.which("ninja") is None or not (BUILD / "build.ninja").exists():
        print("skipped: not a build of ninja's")
        sys.exit(SKIPPED)
    unittest.main()

"""What tools/demo.sh builds is all that `cmake --install` and `tandem launch` take: python3 demo_test.py BUILD.

Exit code 77: that build is not ninja's.
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = None  # the command line's
SKIPPED = 77


def installed_files(build):
    """Files of the build folder that `cmake --install` copies; not those of a part that has to be named, as that of wheels."""
    found, scripts = set(), [build / "cmake_install.cmake"]
    for script in scripts:
        text = script.read_text(encoding="utf-8")
        text = re.sub(r'^if\(CMAKE_INSTALL_COMPONENT STREQUAL "\w+"\)$.*?^endif\(\)$', "", text, flags=re.MULTILINE | re.DOTALL)
        scripts += map(pathlib.Path, re.findall(r'^ *include\("([^"]+)"\)$', text, flags=re.MULTILINE))
        for name in re.findall(f'"({re.escape(str(build))}/[^"]+)"', text):
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


class InstalledFiles(unittest.TestCase):
    def test_scripts_that_nothing_includes_and_parts_that_have_to_be_named_are_left_out(self):
        with tempfile.TemporaryDirectory() as folder:
            build = pathlib.Path(folder)
            for part in ("api", "wheel", "old/python"):
                (build / part).mkdir(parents=True)
                whole = ' OR NOT CMAKE_INSTALL_COMPONENT' if part == "api" else ""
                (build / part / "cmake_install.cmake").write_text(
                    f'if(CMAKE_INSTALL_COMPONENT STREQUAL "{part[:3]}"{whole})\n'
                    f'  file(INSTALL DESTINATION "lib" FILES "{build}/{part}/lib.so")\n  if(A)\n  endif()\nendif()\n', encoding="utf-8")
            (build / "cmake_install.cmake").write_text(
                "".join(f'if(NOT CMAKE_INSTALL_LOCAL_ONLY)\n  include("{build}/{part}/cmake_install.cmake")\nendif()\n' for part in ("api", "wheel")),
                encoding="utf-8")
            self.assertEqual(installed_files(build), {build / "api" / "lib.so"})


class Demo(unittest.TestCase):
    def test_it_builds_what_is_installed(self):
        script = (ROOT / "tools" / "demo.sh").read_text(encoding="utf-8")
        targets = re.findall(r"cmake --build --preset cpu --target (\w+)", script)
        self.assertEqual(len(targets), 1)
        files = installed_files(BUILD)
        self.assertTrue(any(path.name.startswith("libtandem.so") for path in files), files)
        self.assertIn(BUILD / "tandem", files)
        self.assertEqual(not_made_by(targets[0], files), [])

    def test_the_program_comes_with_what_it_opens(self):
        plugin = [path for path in installed_files(BUILD) if "tandem_mpi" in path.name]  # none where there is no MPI
        self.assertEqual(not_made_by("tandem_tool", plugin), [])


if __name__ == "__main__":
    BUILD = pathlib.Path(sys.argv.pop(1)).resolve()
    if shutil.which("ninja") is None or not (BUILD / "build.ninja").exists():
        print("skipped: not a build of ninja's")
        sys.exit(SKIPPED)
    unittest.main()

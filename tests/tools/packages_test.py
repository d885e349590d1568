"""What packages take besides the program: completions, manual pages, the list of parts: python3 packages_test.py PROGRAM.

The expected words come from `--help`, which CLI11 writes.
"""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "packaging"))
sys.path.insert(0, str(ROOT / "tools"))
import check_tree  # noqa: E402
import parts  # noqa: E402

PROGRAM = None  # the command line's


def tandem(*arguments):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True)


def help_of(command):
    """Options and subcommands that `--help` shows."""
    text = tandem(*command, "--help").stdout
    options = set(re.findall(r"(?m)^  (?:-\w,)?(--[a-z][a-z0-9-]*)", text))
    section = re.split(r"(?m)^Subcommands:$", text)
    return options, re.findall(r"(?m)^  ([a-z]+)\b", section[1].partition("\n\n")[0]) if len(section) > 1 else []


def all_commands():
    yield ()
    for name in help_of(())[1]:
        yield (name,)
        for sub in help_of((name,))[1]:
            yield (name, sub)


def completed(*words):
    """What bash offers for the last word."""
    script = 'source <("$0" completion bash); COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _tandem; printf "%s\\n" "${COMPREPLY[@]}"'
    answer = subprocess.run(["bash", "-c", script, PROGRAM, "tandem", *words], capture_output=True, text=True)
    assert not answer.stderr, answer.stderr
    return set(answer.stdout.split())


class Completions(unittest.TestCase):
    def test_bash_offers_what_help_shows(self):
        commands = list(all_commands())
        self.assertGreater(len(commands), 20)
        for command in commands:
            options, subcommands = help_of(command)
            self.assertTrue(options, command)
            self.assertLessEqual(options, completed(*command, "--"), command)
            if command != ("launch",):
                self.assertEqual(completed(*command, ""), set(subcommands), command)

    def test_bash_knows_where_it_is(self):
        self.assertEqual(completed("policy", "pl"), {"plan"})
        self.assertEqual(completed("inspect", "m.onnx", "--stage", "pl"), {"placement", "plan"})
        self.assertEqual(completed("inspect", "--stage", "=", "lo"), {"lowered"})
        self.assertEqual(completed("train", "--data", "--"), set())  # a file
        self.assertIn("--resume", completed("launch", "-n", "2", "--", "train", "--re"))
        self.assertEqual(completed("launch", "-n", "2", "--", "ev"), {"eval"})
        self.assertEqual(completed("compl"), set())  # hidden

    def test_other_shells_read_their_scripts(self):
        for shell, options in (("zsh", ["-n"]), ("fish", ["--no-execute"])):
            script = tandem("completion", shell)
            self.assertEqual(script.returncode, 0)
            for command in all_commands():
                for option in help_of(command)[0]:
                    self.assertIn(option if shell == "zsh" else "-l " + option[2:], script.stdout)
            if shutil.which(shell):
                with tempfile.NamedTemporaryFile("w", suffix="." + shell) as file:
                    file.write(script.stdout)
                    file.flush()
                    answer = subprocess.run([shell, *options, file.name], capture_output=True, text=True)
                self.assertEqual((answer.returncode, answer.stderr), (0, ""))

    @unittest.skipUnless(shutil.which("fish"), "no fish")
    def test_fish_knows_where_it_is(self):
        script = tandem("completion", "fish").stdout

        def offered(line):
            command = script + f"\ncomplete -C '{line}'"
            answer = subprocess.run(["fish", "--no-config", "-c", command], capture_output=True, text=True)
            return {entry.split("\t")[0] for entry in answer.stdout.splitlines()}

        self.assertEqual(offered("tandem policy pl"), {"plan"})
        self.assertEqual(offered("tandem inspect --stage lo"), {"lowered"})
        self.assertEqual(offered("tandem launch -n 2 train --resu"), {"--resume"})

    def test_another_shell_is_refused(self):
        answer = tandem("completion", "csh")
        self.assertEqual(answer.returncode, 2)
        self.assertIn("csh", answer.stderr)


class ManualPages(unittest.TestCase):
    def test_one_page_for_each_command_with_its_options(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(tandem("man", "--to", folder).returncode, 0)
            pages = {path.stem: path.read_text() for path in pathlib.Path(folder).iterdir()}
        commands = list(all_commands())
        self.assertEqual(set(pages), {"-".join(("tandem", *command)) for command in commands if len(command) < 2})
        for command in commands:
            page = pages["-".join(("tandem", *command[:1]))]
            for option in help_of(command)[0]:
                self.assertIn(option.replace("-", "\\-"), page, command)
        self.assertEqual(tandem("man").stdout, pages["tandem"])
        self.assertEqual(tandem("man", "policy").stdout, pages["tandem-policy"])
        self.assertEqual(tandem("man", "nothing").returncode, 2)

    @unittest.skipUnless(shutil.which("groff"), "no groff")
    def test_groff_has_nothing_to_say(self):
        with tempfile.TemporaryDirectory() as folder:
            tandem("man", "--to", folder)
            for path in sorted(pathlib.Path(folder).iterdir()):
                answer = subprocess.run(["groff", "-Kutf8", "-man", "-Tutf8", "-ww", "-rLL=200n", path], capture_output=True, text=True)
                self.assertEqual(answer.stderr, "", path.name)


class Parts(unittest.TestCase):
    def test_every_library_of_the_program_belongs_to_a_part(self):
        needed = parts.needed(PROGRAM)
        self.assertTrue(needed)
        if any(name.startswith(("libasan", "libubsan", "libtsan")) for name in needed):
            self.skipTest("a program with sanitizers is never packed")
        self.assertEqual(parts.unknown_libraries(parts.parts_of([]), [PROGRAM]), [])
        without = [part for part in parts.parts_of([]) if part["name"] != "Protocol Buffers"]
        self.assertEqual(len(parts.unknown_libraries(without, [PROGRAM])), 1)

    def test_static_libraries_of_wheels_are_parts_whose_licences_go_along(self):
        linked = re.search(r"IN ITEMS (.*)\)", (ROOT / "packaging/wheel/portable.cmake").read_text())[1].split()
        inside = [start for part in parts.parts_of(["python"]) if part.get("in_wheel") for start in part["libraries"]]
        self.assertEqual({f"lib{name}.so" for name in linked} - set(inside), set())
        with tempfile.TemporaryDirectory() as folder:
            made = {"version": "1", "how": "loaded", "debian": "libc6", "in_wheel": True}
            parts.write_notices([made, {**made, "debian": "none", "in_wheel": False}], {}, pathlib.Path(folder), True)
            self.assertEqual([path.name for path in pathlib.Path(folder).iterdir()], ["libc6.copyright"])

    def test_every_third_party_of_the_product_is_a_part(self):
        of_tests = {"GoogleTest", "Google Benchmark"}
        names = {"ONNX and protobuf": "ONNX", "libjpeg": "libjpeg-turbo", "CUDA": "CUDA runtime", "MPI": "Open MPI",
                 "OpenMP": "GCC's run-time libraries", "Python's C API": "nanobind"}
        known = {part["name"] for part in parts.parts_of(["cuda", "python"])}
        for party, _, _ in check_tree.THIRD_PARTIES:
            if party not in of_tests:
                self.assertIn(names.get(party, party), known)

    def test_the_list_names_tandem_and_its_parts(self):
        document = json.loads(parts.sbom(parts.parts_of([])))
        names = [package["name"] for package in document["packages"]]
        self.assertEqual(len(names), len(set(names)))
        self.assertIn("oneDNN", names)
        self.assertNotIn("nanobind", names)
        self.assertEqual(len(document["relationships"]), len(names))
        ids = {package["SPDXID"] for package in document["packages"]}
        self.assertTrue(all(relation["relatedSpdxElement"] in ids for relation in document["relationships"]))

    def test_the_copyright_file_has_the_text_of_every_licence_inside(self):
        text = parts.copyright_file(parts.parts_of([]))
        used = set(re.findall(r"(?m)^License: (.+)$", text.partition("\n\nLicense:")[0]))
        texts = dict(re.findall(r"(?ms)^License: ([^\n]+)\n (.*?)(?:\n\n|\Z)", text[text.index("\n\nLicense:"):]))
        self.assertEqual(used, set(texts))
        self.assertTrue(all("comes with the part" not in body for body in texts.values()))


class Recipes(unittest.TestCase):
    def test_all_have_the_version_of_the_project(self):
        version = parts.version_of_tandem()
        found = {
            "conda": re.search(r'(?m)^  version: "(.*)"', (ROOT / "packaging/conda/recipe.yaml").read_text())[1],
            "conan": re.search(r'(?m)^    version = "(.*)"', (ROOT / "packaging/conan/conanfile.py").read_text())[1],
            "vcpkg": json.loads((ROOT / "packaging/vcpkg/vcpkg.json").read_text())["version"],
            "python": tomllib.loads((ROOT / "python/pyproject.toml").read_text())["project"]["version"],
        }
        self.assertEqual(found, dict.fromkeys(found, version))


if __name__ == "__main__":
    PROGRAM = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main()

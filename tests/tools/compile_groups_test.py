"""tools/compile_groups.py puts no two files in one group whose names could meet, and keeps groups as they are."""
import os
import subprocess
import sys
import tempfile
import unittest

TOOLS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools")


def anonymous(*lines):
    return "namespace tandem {\nnamespace {\n" + "\n".join(lines) + "\n}  // namespace\n}  // namespace tandem\n"


class CompileGroups(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = folder.name
        os.makedirs(os.path.join(self.root, "tools"))
        os.makedirs(os.path.join(self.root, "lists"))
        with open(os.path.join(TOOLS, "compile_groups.py")) as script:
            self.write("tools/compile_groups.py", script.read())

    def write(self, name, text):
        path = os.path.join(self.root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(text)
        return path

    def groups(self, files, most=1, edited=""):
        """Which files are compiled at once, as sets of their names."""
        paths = [self.write(name, text) for name, text in files.items() if name.endswith(".cpp")]
        for name, text in files.items():
            self.write(name, text)
        self.write("lists/library", "\n".join(paths) + "\n")
        done = subprocess.run(
            [sys.executable, os.path.join(self.root, "tools/compile_groups.py"), "--most", str(most),
             "--edited", self.write("edited.txt", edited), os.path.join(self.root, "lists")],
            check=True, capture_output=True, text=True)
        found = {}
        for line in done.stdout.splitlines():
            target, group, path = line.split("\t")
            self.assertEqual(target, "library")
            found.setdefault(group, []).append(os.path.relpath(path, self.root))
        return sorted(found.values())

    def test_names_that_are_not_unique(self):
        for one, other, together in [
                ("int size();", "int count();", True),
                ("int size();", "long size(int x) {", False),
                ("struct Size {", "enum class Size {", False),
                ("const std::vector<int> sizes = {", "int sizes[] = {", False),
                ("using Json = nlohmann::json;", "using Json = nlohmann::json;", True),
                ("using Json = nlohmann::json;", "using Json = nlohmann::ordered_json;", False),
                ("using ::testing::Each;", "using ::testing::Each;", True),
                ("using ::testing::Each;", "void Each();", False),
                ("void PrintTo(const A& a) {", "void PrintTo(const B& b) {", True)]:
            found = self.groups({"a/one.cpp": anonymous(one), "a/other.cpp": anonymous(other)})
            self.assertEqual(len(found), 1 if together else 2, (one, other))

    def test_names_of_headers(self):
        own = anonymous("int packed(int x) {")
        files = {"a/own.cpp": own, "a/user.cpp": '#include "a/far.h"\n', "a/far.h": '#include "near.h"\n'}
        self.assertEqual(len(self.groups({**files, "a/near.h": "inline int packed(long x);\n"})), 2)
        self.assertEqual(len(self.groups({**files, "a/near.h": "  int packed(long x);\n"})), 1)  # a member

    def test_a_pragma_would_hold_for_the_next_file(self):
        files = {"a/one.cpp": "\n", "a/two.cpp": '#pragma GCC target("avx2")\n', "a/three.cpp": "\n"}
        self.assertEqual(self.groups(files), [["a/one.cpp", "a/three.cpp"]])

    def test_size_and_folders(self):
        half = " " * 500
        files = {f"a/{i}.cpp": half for i in range(4)}
        self.assertEqual(self.groups(files), [["a/0.cpp", "a/1.cpp"], ["a/2.cpp", "a/3.cpp"]])
        # A group that is half full ends with its folder; one that is not takes in the next.
        self.assertEqual(self.groups({"a/0.cpp": " " * 600, "b/0.cpp": " "}), [["a/0.cpp"], ["b/0.cpp"]])
        self.assertEqual(self.groups({"a/0.cpp": " ", "b/0.cpp": " "}), [["a/0.cpp", "b/0.cpp"]])

    def test_edited_files_are_alone_and_leave_the_others_as_they_are(self):
        files = {f"a/{i}.cpp": " " * 500 for i in range(4)}
        self.assertEqual(self.groups(files, edited="a/1.cpp\n"), [["a/0.cpp"], ["a/2.cpp", "a/3.cpp"]])
        files = {"a/0.cpp": " " * 500, "a/00.cpp": " " * 500, **files}
        self.assertEqual(self.groups(files, edited="+a/00.cpp\n"), [["a/0.cpp", "a/1.cpp"], ["a/2.cpp", "a/3.cpp"]])


if __name__ == "__main__":
    unittest.main()

"""tools/gpu_pack.sh --measure: whether a pack and the tree fit together into what a visit to a GPU may take along."""
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACK = ROOT / "tools" / "gpu_pack.sh"


class Visit(unittest.TestCase):
    """--measure, in trees that are made for it: a pack and files of these many MiB."""

    def measured(self, pack, files, with_git=True):
        with tempfile.TemporaryDirectory() as name:
            tree = pathlib.Path(name) / "tree"
            (tree / "tools").mkdir(parents=True)
            shutil.copy(PACK, tree / "tools")
            for file, size in files.items():
                (tree / file).parent.mkdir(parents=True, exist_ok=True)
                with open(tree / file, "wb") as out:
                    out.truncate(size << 20)  # a hole: no bytes on the disk
            (tree / "pack").touch()
            if with_git:
                (tree / ".gitignore").write_text("build*\npack\nignored\n")
                subprocess.run(["git", "init", "-q", tree], check=True)
            with open(tree / "pack", "wb") as out:
                out.truncate(pack << 20)
            where = tree / "pack"
            if not with_git:
                where = where.rename(tree.parent / "pack")
            return subprocess.run([tree / "tools" / "gpu_pack.sh", "--measure", where], capture_output=True, text=True)

    def test_pack_and_tree_together(self):
        for with_git in (True, False):
            ended = self.measured(38, {"a": 25, "build-cuda/program": 90}, with_git)
            self.assertEqual(ended.returncode, 0, ended.stderr)
            self.assertRegex(ended.stdout, r"pack and tree together: 645\d\d KiB of 65536")
            ended = self.measured(38, {"a": 10, "data/large": 17}, with_git)
            self.assertEqual(ended.returncode, 1)
            self.assertIn("more than the 65536 KiB of a visit", ended.stderr)
            self.assertRegex(ended.stderr, r"17408 KiB  (\./)?data/large")

    def test_what_git_ignores_stays_at_home(self):
        self.assertEqual(self.measured(38, {"a": 25, "ignored": 50}).returncode, 0)


if __name__ == "__main__":
    unittest.main()

"""Runs the commands of one document in a shell, in a temporary copy of what the document starts from."""
import os
import pathlib
import subprocess
import tomllib

import documented_commands as documented

ROOT = pathlib.Path(__file__).resolve().parents[2]
END = "--- ended with "
EXPECTED_FAILURES = ("fits: no", "tandem: ", "interrupted and saved")


class Shell:
    def __init__(self, folder):
        self.process = subprocess.Popen(["bash", "--noprofile", "--norc"], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True, env={**os.environ, "OMP_NUM_THREADS": "2", "TMPDIR": str(folder)})

    def run(self, command):
        """(exit code, output)"""
        self.process.stdin.write(f"{command}\ncode=$?; echo; echo '{END}'$code\n")
        self.process.stdin.flush()
        lines = []
        for line in self.process.stdout:
            if line.startswith(END):
                return int(line[len(END) :]), "".join(lines)
            lines.append(line)
        return -1, "".join(lines) + "the shell ended"

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def is_toml(text):
    try:
        return tomllib.loads(text) is not None
    except tomllib.TOMLDecodeError:
        return False


class Page:
    """Runs the commands of a page; `problems` says where it is not right."""

    def __init__(self, name, folder, program, brings=None, before=()):
        self.name, self.folder, self.brings = name, folder, brings or {}
        self.problems, self.commands, self.left_out, self.printed = [], 0, [], []
        for part in ("models", "tests"):
            (folder / part).symlink_to(ROOT / part)
        (folder / "build").symlink_to(program.parent)
        self.shell = Shell(folder)
        for command in ('PATH="$PWD/build:$PATH"', *before):
            self.shell.run(command)

    def run(self):
        heading, skipped = None, None
        for where, step in documented.steps_of((ROOT / self.name).read_text()):
            if where != heading:
                heading, skipped = where, self.prepared(where)
            if skipped:
                continue
            if isinstance(step, documented.File):
                self.write(step)
            else:
                self.check(step)
        self.shell.close()

    def prepared(self, heading):
        inside, bring = self.brings.get((self.name, heading), (None, None))
        if bring is None:
            return None
        folder = self.folder / inside
        folder.mkdir(exist_ok=True)
        missing = bring(folder)
        if missing:
            self.left_out.append(f"{self.name}, {heading}: needs {missing}")
        self.shell.run(f"cd '{folder}'")
        return missing

    def here(self):
        return pathlib.Path(self.shell.run("pwd")[1].strip())

    def write(self, step):
        text = step.text
        if step.name.endswith(".toml") and not is_toml(text):  # rules of a policy
            text = f"policy = 1\nrules = [\n{text}]\n"
        (self.here() / step.name).write_text(text)

    def check(self, step):
        command = step.text.replace("/tmp/", f"{self.folder}/")
        shown = [line.replace("/tmp/", f"{self.folder}/") for line in step.output]
        words = command.split()
        if words[0] == "cat" and len(words) == 2 and not (self.here() / words[1]).exists():  # the page shows a file
            (self.here() / words[1]).write_text("\n".join(shown) + "\n")
        if any("interrupted and saved" in line for line in shown):
            command = f"timeout --foreground --signal=INT 10 {command}"
        code, printed = self.shell.run(command)
        self.commands += 1
        self.printed.append(printed)
        if code != 0 and not any(mark in line for line in shown for mark in EXPECTED_FAILURES):
            self.tell(step, f"exit code {code}", printed)
        elif shown and (why := documented.difference(shown, printed)):
            self.tell(step, why, printed)

    def tell(self, step, why, printed):
        lines = printed.rstrip().split("\n")
        shown = lines if len(lines) <= 40 else [*lines[:20], f"({len(lines) - 40} lines)", *lines[-20:]]
        self.problems.append("\n    ".join([f"{self.name}:{step.line}: {step.text}\n  {why}", *shown]))

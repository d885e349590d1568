#!/usr/bin/env python3
"""Runs the steps of the Dockerfile in a chroot, where there is no builder of images.

    packaging/docker/prove.py --target cpu --root ROOT [--have build-cpu=FOLDER] [--run COMMAND…]

ROOT is a root made by debootstrap, the base of every stage. --have takes what a stage leaves in /packages from a folder
instead of running that stage. Afterwards `tandem` runs as the image's user, with the arguments after --run (default:
those of CMD), in the image's folder. Needs root.
"""
import argparse
import json
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile

FILE = pathlib.Path(__file__).with_name("Dockerfile")
TREE = FILE.parents[2]


def instructions(text):
    """(word, rest) of every instruction; comments and empty lines are left out."""
    lines = (line for line in text.replace("\\\n", " ").splitlines() if line.strip() and not line.startswith("#"))
    return [tuple(line.split(None, 1)) for line in lines]


def stages(text):
    """Each stage by its name: its instructions after FROM."""
    found, name = {}, None
    for word, rest in instructions(text):
        if word == "FROM":
            name = rest.split(" AS ")[1]
            found[name] = []
        elif name is not None:
            found[name].append((word, rest))
    return found


class Stage:
    def __init__(self, work, base, name):
        self.root = work / name
        self.folder, self.user, self.entry, self.command = "/", "root", [], []
        subprocess.run(["cp", "-a", base, self.root], check=True)
        shutil.copy("/etc/resolv.conf", self.root / "etc/resolv.conf")

    def run(self, arguments, user="root"):
        proc = self.root / "proc"
        subprocess.run(["mount", "-t", "proc", "proc", proc], check=True)
        try:
            command = ["chroot", f"--userspec={user}", self.root, "/usr/bin/env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin",
                       "HOME=/root" if user == "root" else "HOME=/", "sh", "-ec", f'cd {shlex.quote(self.folder)}; exec "$@"', "sh"]
            return subprocess.run([*command, *arguments]).returncode
        finally:
            subprocess.run(["umount", proc], check=True)

    def inside(self, path):
        """A path of the image, absolute or below its folder, on this machine."""
        return self.root / (path if path.startswith("/") else f"{self.folder}/{path}").lstrip("/")

    def copy(self, sources, target):
        to = self.inside(target)
        into = target.endswith("/") or target == "."
        for source in sources:
            if source.is_dir():
                shutil.copytree(source, to, symlinks=True, dirs_exist_ok=True,
                                ignore=shutil.ignore_patterns("build", "build-*", ".git", "runs"))
            else:
                place = to / source.name if into else to
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, place)

    def do(self, word, rest, others):
        if word == "WORKDIR":
            self.folder = rest
            self.inside(rest).mkdir(parents=True, exist_ok=True)
        elif word == "COPY":
            words = rest.split()
            owner = words.pop(0).removeprefix("--from=") if words[0].startswith("--from=") else None
            self.copy([others[owner] / path.lstrip("/") if owner else TREE / path for path in words[:-1]], words[-1])
        elif word == "RUN":
            if self.run(["sh", "-c", rest]) != 0:
                sys.exit(f"prove: RUN {rest}: failed")
        elif word == "USER":
            self.user = rest
        elif word in ("ENTRYPOINT", "CMD"):
            setattr(self, "entry" if word == "ENTRYPOINT" else "command", json.loads(rest))
        else:
            sys.exit(f"prove: {word} is not known here")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", required=True)
    parser.add_argument("--root", type=pathlib.Path, required=True)
    parser.add_argument("--have", action="append", default=[], metavar="STAGE=FOLDER")
    parser.add_argument("--run", nargs=argparse.REMAINDER)
    arguments = parser.parse_args()
    all_stages = stages(FILE.read_text())
    work = pathlib.Path(tempfile.mkdtemp(prefix="prove-"))
    try:
        others = {}
        for have in arguments.have:
            name, folder = have.split("=", 1)
            others[name] = work / f"have-{name}"
            shutil.copytree(folder, others[name] / "packages")

        def made(name):
            stage = Stage(work, arguments.root, name)
            for word, rest in all_stages[name]:
                for owner in (w.removeprefix("--from=") for w in rest.split() if w.startswith("--from=")):
                    if owner not in others:
                        others[owner] = made(owner).root
                print(f"{name}: {word} {rest}", flush=True)
                stage.do(word, rest, others)
            return stage

        stage = made(arguments.target)
        size = subprocess.run(["du", "-sm", stage.root], capture_output=True, text=True, check=True).stdout.split()[0]
        print(f"{arguments.target}: {size} MB, without the base image's own slimming", flush=True)
        return stage.run(stage.entry + (arguments.run or stage.command), stage.user)
    finally:
        shutil.rmtree(work)


if __name__ == "__main__":
    sys.exit(main())

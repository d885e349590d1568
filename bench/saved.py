"""The measurements of bench/run.py in their file, and what they were measured on."""

import hashlib
import json
import os
import pathlib
import platform
import resource
import subprocess
import sys
import time

import report


def cpu_name():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor() or "unknown"


def build_of(binary):
    """What identifies a build: the commit and the hash of the binary."""
    described = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=report.ROOT, capture_output=True, text=True
    ).stdout.strip()
    digest = hashlib.sha256(pathlib.Path(binary).read_bytes()).hexdigest()[:8]
    return {"commit": described or "no commit", "binary": digest}


class CpuUse:
    """Cores that other programs, and other guests of the host, take while this run measures."""

    def __init__(self):
        self.start, self.at = time.monotonic(), self.counters()

    @staticmethod
    def counters():
        fields = [int(x) for x in pathlib.Path("/proc/stat").read_text().split("\n")[0].split()[1:]]
        tick = os.sysconf("SC_CLK_TCK")
        own = resource.getrusage(resource.RUSAGE_CHILDREN)
        busy = sum(fields[:3]) + sum(fields[5:7])  # user, nice, system, interrupts
        return busy / tick - own.ru_utime - own.ru_stime, fields[7] / tick

    def so_far(self):
        elapsed = max(time.monotonic() - self.start, 0.1)
        others, stolen = (max(b - a, 0) / elapsed for a, b in zip(self.at, self.counters()))
        return {"others": round(others, 3), "stolen": round(stolen, 3)}


class Results:
    """Everything measured so far, in one JSON file that is replaced as a whole."""

    def __init__(self, path, machine, keep_rows):
        self.path = path
        fresh = {"format": 1, "machine": machine, "variants": {}, "rows": {}, "failed": {}}
        self.content = json.loads(path.read_text()) if path.exists() else fresh
        if machine is None:
            return
        if self.content.get("machine") != machine:
            if keep_rows and path.exists():
                sys.exit(
                    f"{path} holds measurements of another machine or PyTorch ({self.content.get('machine')}, here {machine}): "
                    "name another file with --results"
                )
            self.content = fresh
        elif not keep_rows:
            self.content.update(rows={}, failed={})
            self.content.pop(report.ALSO, None)

    def __getitem__(self, key):
        return self.content[key]

    def save(self):
        self.path.parent.mkdir(parents=True, exist_ok=True)
        beside = self.path.with_suffix(".new")
        beside.write_text(json.dumps(self.content, indent=1) + "\n")
        beside.replace(self.path)

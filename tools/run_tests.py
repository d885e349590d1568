#!/usr/bin/env python3
"""Runs tests of a GoogleTest program in as few processes as possible, each with a time limit.

    tools/run_tests.py build/tests/test_api                             all quick tests, one process
    tools/run_tests.py build/tests/test_api --share 2/9                 a ninth of them: the tests 2, 11, 20, … (counted from 0)
    tools/run_tests.py build/tests/test_api --only REGEX --each         only tests whose names match, each in a process of its own

Starting a process takes 50 to 200 ms, a small test only a few. ctest runs the shares of a program in parallel. A test fails if it
ends its process or takes longer than --timeout; a new process then continues with the next test. The script prints the output of
failing tests, the reasons of skipped ones, and one line of counts. A test whose name matches a line of tests/apart.txt gets a
process of its own. With --each, or with TANDEM_TEST_EACH=1 in the environment, every test does. TANDEM_TEST_ONLY=REGEX in the
environment runs only tests whose names match.

Temporary files of quick tests are in memory (/dev/shm) if there is room; TMPDIR names another folder.
"""
import argparse
import contextlib
import json
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LONG = re.compile(r"(^|/)Long|\.Long")  # the suite, its instantiation or the test
BEGINS = re.compile(rb"\[ RUN      \] (\S+)")
ENDS = re.compile(rb"\[ *(OK|FAILED|SKIPPED) *\] ([^\s,]+).*\((\d+) ms\)")
NO_TEST = 77  # the exit status where no test was asked for: ctest says that it was skipped
RESULTS = {b"OK": "passed", b"FAILED": "failed", b"SKIPPED": "skipped"}
SKIPPED_BECAUSE = re.compile(rb": Skipped\n(.*)")


def names_of_tests(program):
    listed = subprocess.run([program, "--gtest_list_tests"], capture_output=True, text=True, timeout=120)
    if listed.returncode:
        raise SystemExit(f"{program} --gtest_list_tests: exit {listed.returncode}\n{listed.stdout}{listed.stderr}")
    names, suite = [], ""
    for line in listed.stdout.splitlines():
        line = line.split("  # ")[0].rstrip()
        if line.startswith("  "):
            names.append(suite + line.strip())
        elif line.endswith("."):
            suite = line
    return [name for name in names if "DISABLED_" not in name]


def patterns_in(path):
    """The first word of each line; what follows is the reason."""
    with open(path) as file:
        words = [line.split() for line in file]
    return [re.compile(line[0]) for line in words if line and not line[0].startswith("#")]


def folder_in_memory(least=4 << 30):
    """A folder in memory for temporary files of tests, which are faster there than on a disk, or None where it would not do."""
    try:
        room = os.statvfs("/dev/shm")
        is_enough = room.f_bavail * room.f_frsize >= least
        may_execute = not room.f_flag & os.ST_NOEXEC  # some tests load libraries that they have built
        return "/dev/shm" if is_enough and may_execute and os.access("/dev/shm", os.W_OK) else None
    except OSError:
        return None


class Run:
    """Runs tests in processes and keeps what became of each."""

    def __init__(self, program, timeout, verbose):
        self.program, self.timeout, self.verbose = program, timeout, verbose
        self.tests = []  # name, result, seconds
        self.failures = []  # names

    def note(self, name, result, seconds, lines):
        output = b"\n".join(lines)
        self.tests = [test for test in self.tests if test["name"] != name]  # it may have passed before its process ended badly
        self.tests.append({"name": name, "result": result, "seconds": seconds})
        if result == "failed":
            self.failures.append(name)
        text = output.decode(errors="replace").strip("\n")
        if result == "failed" or self.verbose:
            print(text, flush=True)
        elif result == "skipped":
            reason = SKIPPED_BECAUSE.search(output)
            print(f"skipped: {name}: {reason[1].decode(errors='replace') if reason else ''}", flush=True)

    def all_of(self, names):
        """Runs the tests in one process, and in a new one after each test that ends it."""
        while names:
            done = self.one_process(names)
            names = [name for name in names if name not in done]

    def one_process(self, names):
        """The names of the tests that it got to."""
        with tempfile.NamedTemporaryFile("w", suffix=".flags") as flags:
            flags.write("--gtest_filter=" + ":".join(names) + "\n")
            flags.flush()
            # A group of its own, so that what a test has started can be ended with it.
            process = subprocess.Popen(
                [self.program, f"--gtest_flagfile={flags.name}", "--gtest_color=no"],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
            try:
                return self.follow(process, names)
            finally:
                try:
                    os.killpg(process.pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
                process.wait()
                process.stdout.close()

    def follow(self, process, names):
        done, current, begun = set(), None, time.monotonic()
        unread, output, late = b"", [], False
        pipe = process.stdout.fileno()
        while True:
            is_running = process.poll() is None  # asked before reading: what it wrote is all there then
            piece = os.read(pipe, 1 << 20) if select.select([pipe], [], [], 0.2 if is_running else 0)[0] else None
            *lines, unread = (unread + (piece or b"")).split(b"\n")
            for line in lines:
                output.append(line)
                begins, ends = BEGINS.search(line), ENDS.search(line)
                if begins and not current:
                    current, begun, output = begins[1].decode(), time.monotonic(), [line]
                elif ends and ends[2].decode() == current:
                    self.note(current, RESULTS[ends[1]], int(ends[3]) / 1e3, output)
                    done.add(current)
                    current, begun, output = None, time.monotonic(), []
            if not piece and not is_running:  # whatever a grandchild may still write
                break
            if is_running and piece == b"":  # it has closed its output, and ends
                time.sleep(0.01)
            if is_running and time.monotonic() - begun > self.timeout:
                late = True
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        how = f"took more than {self.timeout:g} s" if late else said(process.returncode)
        left = [name for name in names if name not in done]
        blamed = current or (left[0] if left else names[-1])
        if not current:
            how = f"{os.path.basename(self.program)} {how} " + ("before this test" if left else "after this test, its last")
        ended_well = process.returncode in (0, 1) and not late
        has_failed = any(test["result"] == "failed" for test in self.tests if test["name"] in done)
        if left or not ended_well or (process.returncode == 1) != has_failed:
            self.note(blamed, "failed", time.monotonic() - begun, [*output, unread, f"{blamed}: {how}".encode()])
            done.add(blamed)
        return done


def said(returncode):
    if returncode < 0:
        return f"was ended by {signal.Signals(-returncode).name}"
    return f"ended with exit status {returncode}"


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("program")
    arguments.add_argument("--share", default="0/1", metavar="I/N", help="only the tests I, I + N, I + 2 N … (0/1: all)")
    arguments.add_argument("--only", type=re.compile, metavar="REGEX", help="only tests whose names match")
    arguments.add_argument("--without", type=re.compile, metavar="REGEX", help="only tests whose names do not match")
    arguments.add_argument("--long", action="store_true", help="the long tests instead of the quick ones, each in its own process")
    arguments.add_argument("--each", action="store_true", help="a process for each test")
    arguments.add_argument("--timeout", type=float, default=600, metavar="S", help="the number of seconds after which a test fails (600)")
    arguments.add_argument("--times", metavar="FILE", help="write names, results and seconds of the tests to this file, as JSON")
    arguments.add_argument("--verbose", action="store_true", help="print the output of passing tests, too")
    asked = arguments.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the program is ended, too

    names = [name for name in names_of_tests(asked.program)
             if bool(LONG.search(name)) == asked.long
             and re.search(os.environ.get("TANDEM_TEST_ONLY", ""), name)
             and (not asked.only or asked.only.search(name)) and (not asked.without or not asked.without.search(name))]
    index, count = map(int, asked.share.split("/"))
    names = names[index::count]
    each = asked.each or asked.long or os.environ.get("TANDEM_TEST_EACH", "0") not in ("", "0")
    apart = patterns_in(os.path.join(ROOT, "tests", "apart.txt"))
    alone = [name for name in names if each or any(pattern.search(name) for pattern in apart)]

    started = time.monotonic()
    run = Run(asked.program, asked.timeout, asked.verbose)
    with contextlib.ExitStack() as stack:
        if not asked.long and "TMPDIR" not in os.environ and (memory := folder_in_memory()):
            os.environ["TMPDIR"] = stack.enter_context(tempfile.TemporaryDirectory(dir=memory, prefix="tandem_tests_"))
        run.all_of([name for name in names if name not in alone])
        for name in alone:
            run.all_of([name])

    results = [test["result"] for test in run.tests]
    counts = ", ".join(f"{results.count(result)} {result}" for result in ("passed", "skipped", "failed") if result in results)
    print(f"{os.path.basename(asked.program)} {asked.share}: {counts or 'no test'}, {time.monotonic() - started:.1f} s")
    for name in run.failures:
        print(f"failed: {name}")
    if asked.times:
        os.makedirs(os.path.dirname(asked.times), exist_ok=True)
        with open(asked.times, "w") as file:
            json.dump({"program": os.path.basename(asked.program), "tests": run.tests}, file, indent=0)
    return 1 if run.failures else 0 if names else NO_TEST


if __name__ == "__main__":
    sys.exit(main())

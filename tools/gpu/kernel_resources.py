#!/usr/bin/env python3
"""Registers, local and shared memory of the kernels in a built program, per architecture, and what that admits on a GPU. Needs none.

    tools/gpu/kernel_resources.py build-cuda/tandem                                     a line for each kernel
    tools/gpu/kernel_resources.py build-cuda/tandem --check tests/cuda/kernel_resources.txt   1 where a kernel takes more than that file admits
    tools/gpu/kernel_resources.py build-cuda/tandem --check LIST --markdown docs/gpu/kernel_resources.md --json FILE

It reads what NVIDIA's cuobjdump prints of the program: tools/setup.sh installs it, where the toolkit has none.
Exit codes: 0 within the bounds, 1 over them, 2 usage, 77 there is no cuobjdump.
"""

import argparse
import collections
import dataclasses
import glob
import json
import os
import re
import shutil
import subprocess
import sys

from kernel_occupancy import CARDS, MOST_THREADS, resident_threads

SKIPPED = 77
ENTRY = re.compile(r"void tandem::cuda::(?:gpu|bounded)_entry<(.*)>\(")


@dataclasses.dataclass
class Kernel:
    architecture: str  # "sm_90"
    file: str  # "rows/marks.cu", in kernels/cuda; "" where the program does not say
    symbol: str
    registers: int  # per thread
    stack: int  # bytes of local memory of a thread: spilled registers, and arrays that are not in registers
    shared: int  # bytes of a block, static ones; for 9.0 and newer the driver's own 1 KiB is in it
    bound: int = 0  # the most threads of a block that it is compiled for; 0: any number
    body: str = ""  # "ForwardBody<float>"
    launch: int = 0  # threads of a block that the bounds are about
    resident: int = 0  # threads that a multiprocessor holds then

    @property
    def name(self):
        return f"{self.file}: {self.body}"


class Mistake(Exception):
    """An error in the list or on the command line."""


def find_tool():
    """cuobjdump's path; None where there is none."""
    folders = [os.path.join(os.environ[v], "bin") for v in ("CUDA_HOME",) if os.environ.get(v)]
    folders += ["/usr/local/cuda/bin", *sorted(glob.glob("/usr/local/cuda-*/bin"), reverse=True)]
    packages = [*sys.path, *glob.glob(os.environ.get("VIRTUAL_ENV", "/nowhere") + "/lib/python3*/site-packages")]
    folders += [os.path.join(p, "nvidia", "cu13", "bin") for p in packages]
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    deps = os.environ.get("TANDEM_DEPS") or os.path.join(cache, "tandem", "deps")  # the folder of tools/setup.sh
    folders += sorted(glob.glob(os.path.join(glob.escape(deps), "cuobjdump-*", "bin")), reverse=True)
    return shutil.which("cuobjdump") or next(filter(None, (shutil.which("cuobjdump", path=f) for f in folders)), None)


def read_resources(lines):
    """Reads `cuobjdump --dump-resource-usage`: kernels without their bounds."""
    kernels, architecture, file, symbol = [], "", "", ""
    for line in lines:
        if line.startswith("Fatbin"):
            architecture = file = ""
        elif line.startswith("arch = "):
            architecture = line.split()[-1]
        elif line.startswith("identifier = "):
            file = line.split(" = ", 1)[1].strip().rsplit("kernels/cuda/", 1)[-1]
        elif found := re.match(r"\s*Function (\S+):", line):
            symbol = found[1]
        elif symbol and line.lstrip().startswith("REG:"):
            numbers = dict(re.findall(r"([A-Z]+)(?:\[\d+\])?:(\d+)", line))
            kernels.append(
                Kernel(
                    architecture,
                    file,
                    symbol,
                    int(numbers["REG"]),
                    max(int(numbers["STACK"]), int(numbers["LOCAL"])),
                    int(numbers["SHARED"]),
                )
            )
            symbol = ""
    return kernels


def read_bounds(lines):
    """Reads `cuobjdump -elf`: {(architecture, symbol): the most threads that a kernel is compiled for}."""
    bounds, architecture, symbol, wanted = {}, "", "", False
    for line in lines:
        if line.startswith("arch = "):
            architecture = line.split()[-1]
        elif line.startswith("."):  # a section begins
            symbol, wanted = line.strip()[9:] if line.startswith(".nv.info.") else "", False
        elif "EIATTR_MAX_THREADS" in line:
            wanted = bool(symbol)
        elif wanted and "Value:" in line:
            x, y, z = (int(part, 16) for part in line.split()[1:4])
            bounds[architecture, symbol], wanted = x * y * z, False
    return bounds


def demangled(symbols):
    """Their names; the symbols themselves where there is no c++filt."""
    tool = shutil.which("c++filt") or shutil.which("cu++filt")
    if tool is None or not symbols:
        return list(symbols)
    return subprocess.run([tool], input="\n".join(symbols), capture_output=True, text=True, check=True).stdout.splitlines()


def body_of(name):
    """`ForwardBody<float>` of an entry that is made for it; another kernel's own name."""
    found = ENTRY.match(name)
    name = found[1] if found else name
    for scope in ("tandem::cuda::", "(anonymous namespace)::", "reductions::"):
        name = name.replace(scope, "")
    return name.strip()


def kernels_of(resources, elf):
    """Sorted by name; what several objects have in common once."""
    kernels, bounds = read_resources(resources), read_bounds(elf)
    for kernel, name in zip(kernels, demangled([k.symbol for k in kernels])):
        kernel.bound = bounds.get((kernel.architecture, kernel.symbol), 0)
        kernel.body = body_of(name)
    once = {(k.architecture, k.file, k.symbol): k for k in kernels}
    return sorted(once.values(), key=lambda k: (k.architecture, k.name, k.symbol))


@dataclasses.dataclass
class Exemption:
    pattern: str  # for a kernel's name, * for anything
    what: str  # "launch", "stack" or "threads"
    number: int
    reason: str
    place: str
    used: bool = False

    def fits(self, kernel, what):
        pattern = ".*".join(map(re.escape, self.pattern.split("*")))
        if self.what != what or not re.fullmatch(pattern, kernel.name):
            return False
        self.used = True
        return True


def read_list(path):
    """{"stack": bytes, "threads": threads}, and the exceptions."""
    limits, exemptions = {}, []
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            place, line = f"{path}:{number}", line.strip()
            if not line or line.startswith("#"):
                continue
            parts = [part.strip() for part in line.split("|")]
            try:
                if len(parts) == 2 and parts[0] in ("stack", "threads"):
                    limits[parts[0]] = int(parts[1])
                    continue
                pattern, what, amount, reason = parts
                if what not in ("launch", "stack", "threads") or not reason:
                    raise ValueError
                exemptions.append(Exemption(pattern, what, int(amount), reason, place))
            except ValueError:
                raise Mistake(
                    f"{place}: expected `stack | BYTES`, `threads | NUMBER` or `KERNEL | launch, stack or threads | NUMBER | REASON`, got `{line}`"
                ) from None
    for what in ("stack", "threads"):
        if what not in limits:
            raise Mistake(f"{path}: there is no line `{what} | NUMBER`")
    return limits, exemptions


def judge(kernels, limits, exemptions):
    """What is over the bounds, a sentence each. Fills in how kernels are launched and what a multiprocessor holds of them."""
    problems = []
    if not kernels:
        problems.append("the program has no kernels")
    for kernel in kernels:
        if kernel.architecture not in CARDS:
            problems.append(f"{kernel.architecture} is not among the architectures of kernel_occupancy.py")
            continue
        allowed = {what: next((e.number for e in exemptions if e.fits(kernel, what)), None) for what in ("launch", "stack", "threads")}
        kernel.launch = kernel.bound or allowed["launch"] or MOST_THREADS
        kernel.resident = resident_threads(kernel.architecture, kernel.registers, kernel.shared, kernel.launch)
        where = f"{kernel.architecture} {kernel.name}"
        most = limits["stack"] if allowed["stack"] is None else allowed["stack"]
        if kernel.stack > most:
            problems.append(f"{where}: {kernel.stack} bytes of local memory a thread: expected at most {most}")
        least = limits["threads"] if allowed["threads"] is None else allowed["threads"]
        if kernel.resident == 0 and not kernel.bound:
            problems.append(
                f"{where}: {kernel.registers} registers a thread do not go with {kernel.launch} threads a block: "
                "give the body `block_threads`, or say in the list with how many it is launched"
            )
        elif kernel.resident < least:
            problems.append(
                f"{where}: {kernel.registers} registers and {kernel.shared} bytes of shared memory let a multiprocessor hold "
                f"{kernel.resident} threads, in blocks of {kernel.launch}: expected at least {least}"
            )
    problems += [f"{e.place}: no kernel is called {e.pattern}, or an earlier line has it" for e in exemptions if not e.used]
    return problems


def text_of(kernels):
    lines = [f"{'arch':7} {'registers':>9} {'stack':>6} {'shared':>7} {'launch':>7} {'resident':>8}  kernel"]
    lines += [
        f"{k.architecture:7} {k.registers:9} {k.stack:6} {k.shared:7} {k.launch:7} {k.resident:8}  {k.name}" for k in kernels
    ]
    return "\n".join(lines)


def markdown_of(kernels, limits, exemptions):
    """A summary: by folder, the kernels of most registers, and the exceptions."""
    out = [
        "# What the kernels take",
        "",
        "Written by `tools/gpu/kernel_resources.py build-cuda/tandem --check tests/cuda/kernel_resources.txt --markdown docs/gpu/kernel_resources.md`,",
        "which reads the compiler's own numbers out of the program. The test `kernel_resources` of ctest holds them to these bounds:",
        f"at most {limits['stack']} bytes of local memory a thread (spilled registers, arrays that are not in registers), and at least {limits['threads']} threads",
        "of the kernel on a multiprocessor at once, by registers, static shared memory and the size of its blocks. Dynamic shared memory (at most 48 KiB a",
        "block) is not counted; for 9.0 and newer the static bytes have 1 KiB of the driver's with them. A kernel without `block_threads` counts as",
        f"launched with {MOST_THREADS} threads a block unless the list says otherwise. Kernels that NVRTC compiles at run time are not among them. What this",
        "means for speed, only a GPU can tell.",
    ]
    for architecture in sorted({k.architecture for k in kernels}):
        here = [k for k in kernels if k.architecture == architecture]
        out += ["", f"## {architecture}", ""]
        out += ["| folder | kernels | most registers | most local memory | most static shared memory | fewest threads at once |", "|---|---|---|---|---|---|"]
        folders = collections.defaultdict(list)
        for kernel in here:
            folders[kernel.file.split("/")[0]].append(kernel)
        for folder, those in [*sorted(folders.items()), ("all", here)]:
            numbers = [max(getattr(k, what) for k in those) for what in ("registers", "stack", "shared")]
            out.append(f"| {folder} | {len(those)} | {numbers[0]} | {numbers[1]} B | {numbers[2]} B | {min(k.resident for k in those)} |")
        out += ["", "| most registers | registers | threads a block | threads at once |", "|---|---|---|---|"]
        for kernel in sorted(here, key=lambda k: (-k.registers, k.name))[:12]:
            out.append(f"| `{kernel.name}` | {kernel.registers} | {kernel.launch} | {kernel.resident} |")
    out += ["", "## Exceptions", "", "| kernel | what | number | reason |", "|---|---|---|---|"]
    out += [f"| `{e.pattern}` | {e.what} | {e.number} | {e.reason} |" for e in exemptions]
    return "\n".join(out) + "\n"


def lines_of(command):
    """The command's output, line by line. Throws Mistake where it fails."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace") as process:
        yield from process.stdout
        why = process.stderr.read()
    if process.returncode:
        raise Mistake(f"{' '.join(command)} failed: {why.strip() or process.returncode}")


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--check", metavar="LIST")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--markdown", metavar="FILE")
    parser.add_argument("--cuobjdump", default=find_tool())
    options = parser.parse_args(arguments)
    if options.cuobjdump is None:
        print("kernel_resources: there is no cuobjdump: tools/setup.sh installs it beside nvcc 13 (or: pip install nvidia-cuda-cuobjdump); or add the toolkit's folder bin to PATH", file=sys.stderr)
        return SKIPPED
    try:
        limits, exemptions = read_list(options.check) if options.check else ({"stack": 0, "threads": 0}, [])
        kernels = kernels_of(
            lines_of([options.cuobjdump, "--dump-resource-usage", options.program]),
            lines_of([options.cuobjdump, "-elf", options.program]),
        )
    except (Mistake, OSError) as mistake:
        print(f"kernel_resources: {mistake}", file=sys.stderr)
        return 2
    problems = judge(kernels, limits, exemptions)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump([{**dataclasses.asdict(k), "name": k.name} for k in kernels], file, indent=1)
    if options.markdown:
        with open(options.markdown, "w", encoding="utf-8") as file:
            file.write(markdown_of(kernels, limits, exemptions))
    if not options.check:
        print(text_of(kernels))
        return 0
    for problem in problems:
        print(problem)
    print(f"{len(kernels)} kernels, {len(problems)} problems, {sum(e.used for e in exemptions)} exceptions")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

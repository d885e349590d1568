#!/usr/bin/env python3
"""Checks what the compiler cannot: include borders, file sizes, fixtures, machine paths.

    tools/check_tree.py                 exit 1 and one line for each violation; long files only get a notice
    tools/check_tree.py --list-sources  the C++ and C files that clang-format formats, separated by NUL
"""
import collections
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SOURCE = (".h", ".c", ".cpp", ".cu", ".cuh")
SCRIPT = (".py", ".sh", ".cmake")

LINES_NOTICE, LINES_LIMIT = 300, 600
FOLDER_LIMIT = 40  # files of product code in a folder of its own
OF_ONE_KIND = ["engine/operators", "kernels/reference", "importer/operators"]  # may have more
PRODUCT = ["api", "engine", "importer", "kernels", "placement", "python", "tools", "include"]
# The public library: the lines of all its headers but those for C, and the namespace that each opens.
PUBLIC, PUBLIC_LIMIT = "include/tandem", 1200
PUBLIC_C = ["include/tandem/c.h", "include/tandem/c_values.h"]
PUBLIC_NAMESPACE = re.compile(r"namespace tandem(::api)?::inline v1 \{")
FIXTURE_LIMIT, FIXTURES_LIMIT = 200 << 10, 10 << 20  # bytes each, bytes together

# The engine's phases: folders that may include each other and those of the phases above. engine/CMakeLists.txt
# makes a library of each.
PHASES = [
    ["engine/graph", "engine/operators", "engine/optimizers", "engine/formats"],
    ["engine/device", "engine/ranks"],
    ["engine/gradient", "engine/passes"],
    ["engine/lower", "engine/plan"],
    ["engine/runtime"],
    ["engine/losses", "engine/metrics", "engine/schedules", "engine/config", "engine/data", "engine/logs"],
    ["engine/train"],
]
# Which of our own folders a folder may include. The longest matching folder decides.
BORDERS = {
    "engine": [],  # every folder of it belongs to a phase
    "importer": ["engine", "importer"],
    "placement": ["engine", "placement", "include/tandem/plan.h", "include/tandem/policy.h"],
    "kernels": [*PHASES[0], *PHASES[1], "kernels"],
    "kernels/reference": [*PHASES[0], *PHASES[1], "kernels/reference", "kernels/shared"],
    "kernels/shared": ["engine/graph", "kernels/shared"],
    "kernels/cpu": [*PHASES[0], *PHASES[1], "kernels/cpu", "kernels/shared", "kernels/reference"],
    # Its memory and order are its own, its arithmetic is not.
    "kernels/emulated": [*PHASES[0], *PHASES[1], "kernels/emulated", "kernels/device_backend.h", "kernels/cpu"],
    "kernels/cuda": [*PHASES[0], *PHASES[1], "kernels/cuda", "kernels/device_backend.h", "kernels/shared", "kernels/reference"],
    "kernels/mpi": [*PHASES[0], *PHASES[1], "kernels/mpi"],
    "api": ["engine", "importer", "placement", "kernels", "api", "include"],
    "include": ["include"],
    "tools": ["include", "tools", "api/program"],  # what only the program and the Python package offer is no public library
    "python": ["include", "python", "api/program"],
    "tests": ["engine", "importer", "placement", "kernels", "api", "include", "tests"],
    "bench": ["engine", "importer", "placement", "kernels", "api", "include", "bench"],
}
for number, folders in enumerate(PHASES):
    above = [folder for phase in PHASES[: number + 1] for folder in phase]
    BORDERS.update({folder: [*above, "include/tandem/dtype.h", "include/tandem/error.h"] for folder in folders})

# Folders that are not in every build, and who may include them all the same.
OPTIONAL = {"kernels/cuda": (["kernels/cuda", "tests/cuda"], "kernels/device_backend.h")}

# Third parties that only some folders may see.
THIRD_PARTIES = [
    ("ONNX and protobuf", r"onnx/|onnx\.pb\.h|onnx-ml\.pb\.h|google/protobuf/", ["importer", "tests/importer"]),
    ("oneDNN", r"(oneapi/dnnl/)?dnnl", ["kernels/cpu"]),
    ("CUDA", r"cuda|cudnn|cublas|nccl|nvrtc|nvtx3/|curand|cub/|thrust/|cooperative_groups|mma\.h",
     ["kernels/cuda", "tests/cuda"]),
    ("MPI", r"mpi\.h", ["kernels/mpi/plugin", "examples"]),
    ("DLPack", r"dlpack/", ["api/c", "api/train", "tests/api"]),
    ("libjpeg", r"jpeglib\.h|jerror\.h|turbojpeg\.h", ["engine/formats/images"]),
    ("libpng", r"png\.h|pngconf\.h|libpng", ["engine/formats/images"]),
    ("PCRE2", r"pcre2", ["engine/formats/tokenizer"]),
    ("utf8proc", r"utf8proc\.h", ["engine/formats/tokenizer"]),
    ("OpenMP", r"omp\.h", ["kernels", "bench", "tests"]),
    ("toml++", r"toml\+\+/", ["engine", "placement", "api", "tests"]),
    ("CLI11", r"CLI/", ["tools"]),
    ("cpp-httplib", r"httplib\.h", ["api/commands/page"]),
    ("nanobind", r"nanobind/", ["python"]),
    ("Python's C API", r"Python\.h", ["python"]),
    ("GoogleTest", r"(gtest|gmock)/", ["tests"]),
    ("Google Benchmark", r"benchmark/", ["bench"]),
]
# Headers that many files include stay cheap to compile, and the public ones free of third parties.
SLOW_IN_HEADERS = r"fmt/|iostream$|regex$|nlohmann/|toml\+\+/|(gtest|gmock)/"
LEAN_HEADERS = ["engine", "include"]

INCLUDE = re.compile(r'\s*#\s*include\s*([<"])([^>"]+)[>"]')
DEVICE_CONDITION = re.compile(r"\s*#\s*(if|ifdef|ifndef|elif)\b.*(CUDA|CUDNN|NCCL|ONEDNN|DNNL)")
UNSAFE_FLAG = re.compile(r"-ffast-math|-Ofast|-march=|-mavx|-mfma|-mamx")
MACHINE_PATH = re.compile(r"(?<![\w.$}/])/(work|root|home|Users)/\w")


def files():
    """All files that git tracks or would track; without git, all that are not build products."""
    try:
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT, check=True, capture_output=True).stdout.decode()
        names = [name for name in listed.split("\0") if name]
    except (OSError, subprocess.CalledProcessError):
        names = []
        for folder, subfolders, here in os.walk(ROOT):
            subfolders[:] = [s for s in subfolders if not re.match(r"\.git$|build|runs$|\.venv$|__pycache__$", s)]
            names += [os.path.relpath(os.path.join(folder, name), ROOT) for name in here]
    return sorted(name for name in set(names) if os.path.isfile(os.path.join(ROOT, name)))


TYPE = re.compile(r"(?:struct|class|enum class|enum) (\w+)(?: final)?(?: :| ?\{)")


def inside(name, folders):
    return any(name == folder or name.startswith(folder + "/") for folder in folders)


def our_path(name, included):
    """The path in this repository that `included` in file `name` means, or None if it is not ours."""
    for candidate in (included, "include/" + included, os.path.normpath(os.path.join(os.path.dirname(name), included))):
        if candidate.split("/")[0] in BORDERS and os.path.isfile(os.path.join(ROOT, candidate)):
            return candidate
    return included if included.split("/")[0] in BORDERS else None


def check_include(name, quote, included):
    owner = max((folder for folder in BORDERS if inside(name, [folder])), key=len, default=None)
    ours = our_path(name, included) if quote == '"' else None
    if ours is None and quote == "<" and included.startswith("tandem/"):
        ours = "include/" + included
    if ours and owner:
        if not inside(ours, BORDERS[owner]):
            yield f"{owner}/ must not include {ours}"
        for folder, (users, instead) in OPTIONAL.items():
            if inside(ours, [folder]) and not inside(name, users):
                yield f"{ours} is not in every build: include {instead}"
        return
    for party, pattern, allowed in THIRD_PARTIES:
        if re.match(pattern, included) and not inside(name, allowed):
            yield f"{party} may be included in {', '.join(allowed)} only"
    if name.endswith(".h") and inside(name, LEAN_HEADERS) and re.match(SLOW_IN_HEADERS, included):
        yield f"<{included}> does not belong in this header: use it in a .cpp file"


def check_source(name, lines):
    stem, ending = os.path.splitext(name)
    explained_by_header = ending in (".cpp", ".cu") and os.path.isfile(os.path.join(ROOT, stem + ".h"))
    if not explained_by_header and not (lines and re.match(r"//|/\*", lines[0])):
        yield 1, "the first line says in a comment what the file is for"
    if name.endswith((".h", ".cuh")) and "#pragma once" not in lines:
        yield 1, "#pragma once is missing"
    for number, line in enumerate(lines, 1):
        match = INCLUDE.match(line)
        if match:
            for message in check_include(name, *match.groups()):
                yield number, message
        if DEVICE_CONDITION.match(line) and not inside(name, ["kernels/shared", "kernels/cuda", "engine/optimizers/formula.h", "engine/graph/host_device.h",
                                                              "engine/graph/dtype_dispatch.h"]):
            yield number, "devices are chosen in CMake, by file, not by #if"


def check_text(name, lines):
    if os.path.basename(name) == "CMakeLists.txt" or name.endswith((".cmake", ".json")):
        for number, line in enumerate(lines, 1):
            if UNSAFE_FLAG.search(line.split("#")[0]):
                yield number, "the build is for baseline x86-64: instruction sets belong in #pragma GCC target"
    for number, line in enumerate(lines, 1):
        if MACHINE_PATH.search(line):
            yield number, "a path of one machine"


def check_types(sources):
    """Two types of one name in a namespace are one type to the linker, which keeps whose functions it likes."""
    owners = collections.defaultdict(set)
    for name in sources:
        spaces = []
        with open(os.path.join(ROOT, name), encoding="utf-8") as file:
            for line in file if inside(name, PRODUCT) else []:
                if match := re.match(r"(inline )?namespace (?:([\w:]+?)(?:::inline \w+)? )?\{", line):
                    spaces.append("" if match.group(1) else match.group(2))
                elif line.startswith("}  // namespace"):
                    spaces.pop()
                elif None not in spaces and (match := TYPE.match(line)):
                    owners["::".join(filter(None, [*spaces, match.group(1)]))].add(name)
    for type_name, names in sorted(owners.items()):
        if len(names) > 1:
            yield f"{type_name} is defined in {' and '.join(sorted(names))}"


def check_public(headers):
    """Every declaration is in the namespace of its version, and the headers stay few enough to be read."""
    count = 0
    for name, lines in headers:
        count += len(lines)
        outside = [line for line in lines if line.startswith("namespace ") and not PUBLIC_NAMESPACE.fullmatch(line)]
        if outside or not any(PUBLIC_NAMESPACE.fullmatch(line) for line in lines):
            yield f"{name}: all that is public is in `namespace tandem::api::inline v1 {{`"
    if count > PUBLIC_LIMIT:
        yield f"{PUBLIC}/: {count} lines of C++ headers, the limit is {PUBLIC_LIMIT}: " \
              "what only the program needs belongs in api/program"


def main():
    names = files()
    sources = [name for name in names if name.endswith(SOURCE)]
    if sys.argv[1:] == ["--list-sources"]:
        sys.stdout.write("".join(name + "\0" for name in sources))
        return 0

    violations, long_files, public, fixture_bytes = [], [], [], 0
    for name in names:
        with open(os.path.join(ROOT, name), "rb") as file:
            content = file.read()
        is_code = name.endswith(SOURCE + SCRIPT) or os.path.basename(name) in ("CMakeLists.txt", "run")
        if not is_code and inside(name, ["tests", "models", "bench"]) and not name.endswith(".md"):
            fixture_bytes += len(content)
            if len(content) > FIXTURE_LIMIT:
                violations.append(f"{name}: {len(content) >> 10} KiB, fixtures may have {FIXTURE_LIMIT >> 10}")
        if b"\0" in content:
            continue
        lines = content.decode("utf-8", "replace").splitlines()
        found = list(check_text(name, lines))
        if name.endswith(SOURCE):
            found += check_source(name, lines)
        if name.endswith(".h") and inside(name, [PUBLIC]) and name not in PUBLIC_C:
            public.append((name, lines))
        violations += [f"{name}:{number}: {message}" for number, message in found]
        if is_code:
            if len(lines) > LINES_LIMIT:
                violations.append(f"{name}: {len(lines)} lines, the limit is {LINES_LIMIT}")
            elif len(lines) > LINES_NOTICE:
                long_files.append(f"{name}: {len(lines)} lines (aim: {LINES_NOTICE})")
    folders = collections.Counter(os.path.dirname(name) for name in sources if inside(name, PRODUCT))
    violations += [f"{folder}/: {count} files, a folder may have {FOLDER_LIMIT}" for folder, count in sorted(folders.items())
                   if count > FOLDER_LIMIT and folder not in OF_ONE_KIND]
    violations += check_types(sources)
    violations += check_public(public)
    if fixture_bytes > FIXTURES_LIMIT:
        violations.append(f"fixtures: {fixture_bytes >> 10} KiB together, the limit is {FIXTURES_LIMIT >> 10}")

    for line in long_files:
        print(f"notice: {line}")
    for line in violations:
        print(line)
    print(f"check_tree: {len(names)} files, {len(sources)} C++, {fixture_bytes >> 10} KiB of fixtures, "
          f"{len(violations)} violations")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())

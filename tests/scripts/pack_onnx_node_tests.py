"""Packs ONNX's node tests of imported operators into tests/data/onnx_node/NN.tar.gz, each below 200 KiB.

    python tests/scripts/pack_onnx_node_tests.py [--to FOLDER]

A case is packed if import has every operator of its graph, and its files have less than 100 KB together. count.txt has the number of
cases, left_out.txt those that are too large; dump_onnx_node_tests.py writes all. `cmake -E tar xzf NN.tar.gz` unpacks an archive to
CASE/{model.onnx, test_data_set_0/…}.
"""

import argparse
import gzip
import io
import pathlib
import re
import tarfile

from dump_onnx_node_tests import case_files, cases

ROOT = pathlib.Path(__file__).resolve().parents[2]


def operators():
    """What import reads, by its list and the rows of scalar functions, without those that no case can prove (without_case() of the test)."""
    lists = [ROOT / "importer/operators" / name for name in ("all.inl", "training/list.inl")]
    listed = [op for file in lists for op in re.findall(r"^TANDEM_IMPORT\((\w+)", file.read_text(), re.M)]
    rows = (ROOT / "engine/operators/scalar_functions.inl").read_text()
    functions = re.findall(r'^TANDEM_(?:FUNCTION|PREDICATE)\(\w+,\s*"?(\w+)|^TANDEM_COMPOSED\("?(\w+)', rows, re.M)
    test = (ROOT / "tests/importer/node_tests_test.cpp").read_text()
    exceptions = test[test.index("without_case() {") : test.index("return operators;")]
    return set(listed).union(*functions) - {""} - set(re.findall(r'^ *\{"(\w+)"', exceptions, re.M))


LARGEST_CASE, LARGEST_FILE = 100_000, 200 * 1024


def pack(entries):
    """A reproducible tar.gz of [(name, bytes)]."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, data in entries:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return gzip.compress(raw.getvalue(), 9, mtime=0)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--to",
        type=pathlib.Path,
        default=ROOT / "tests/data/onnx_node",
    )
    folder = parser.parse_args().to
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.tar.gz"):
        old.unlink()
    chosen, left_out, wanted = [], [], operators()
    # Cases of one operator side by side compress best.
    for case in sorted(cases(), key=lambda c: c.name):
        if {n.op_type for n in case.model.graph.node} <= wanted:
            files = [(f"{case.name}/{name}", data) for name, data in case_files(case)]
            size = sum(len(data) for _, data in files)
            (chosen if size < LARGEST_CASE else left_out).append((case.name, size, files))
    archives, start = [], 0
    while start < len(chosen):
        count, step = 0, 64
        while step:
            if start + count + step <= len(chosen):
                data = pack([f for c in chosen[start : start + count + step] for f in c[2]])
                if len(data) <= LARGEST_FILE:
                    count += step
                    best = data
                    continue
            step //= 2
        archives.append(best)
        start += count
    for i, data in enumerate(archives):
        (folder / f"{i:02d}.tar.gz").write_bytes(data)
    (folder / "count.txt").write_text(f"{len(chosen)}\n")
    (folder / "left_out.txt").write_text("".join(f"{name} {size}\n" for name, size, _ in left_out))
    print(
        f"{len(chosen)} cases in {len(archives)} files, {sum(map(len, archives))} bytes; {len(left_out)} left out for their size"
    )


if __name__ == "__main__":
    main()

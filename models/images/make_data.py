"""Writes MNIST as folders of PNG files: FOLDER/train/0/00000.png, ..., FOLDER/test/9/09999.png.

    python models/images/make_data.py FOLDER [--mnist FOLDER-OF-IDX-FILES] [--most N]

`--most` is the largest number of pictures in each split. Needs only the Python standard library: a PNG is a header and packed rows.
"""

import argparse
import gzip
import os
import pathlib
import struct
import zlib

SHARED = os.environ.get("TANDEM_SHARED", str(pathlib.Path(__file__).resolve().parents[3] / "shared"))


def idx(path):
    """The extents and the bytes of an IDX file."""
    content = gzip.open(path).read()
    axes = content[3]
    return struct.unpack(f">{axes}I", content[4 : 4 + 4 * axes]), content[4 + 4 * axes :]


def png(pixels, height, width):
    def chunk(name, content):
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))

    rows = b"".join(b"\0" + pixels[y * width : (y + 1) * width] for y in range(height))
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--mnist", type=pathlib.Path, default=pathlib.Path(SHARED) / "data" / "mnist")
    parser.add_argument("--most", type=int, default=60000)
    options = parser.parse_args()
    for split, name in (("train", "train"), ("test", "t10k")):
        (count, height, width), pixels = idx(options.mnist / f"{name}-images-idx3-ubyte.gz")
        _, labels = idx(options.mnist / f"{name}-labels-idx1-ubyte.gz")
        for digit in range(10):
            (options.folder / split / str(digit)).mkdir(parents=True, exist_ok=True)
        each = height * width
        for i in range(min(count, options.most)):
            path = options.folder / split / str(labels[i]) / f"{i:05d}.png"
            path.write_bytes(png(pixels[i * each : (i + 1) * each], height, width))


if __name__ == "__main__":
    main()

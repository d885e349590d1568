"""Writes tests/data/images/: small pictures, and what PIL and torchvision make of them.

    python tests/scripts/image_expectations.py

`expected.json`: `files`: name, height, width, `rgb` and `grey` (Image.open, convert), `close` where another version of the same library may differ by
a level; `refused`: files that are not read, with words of the message. `resized`: of `large.png`, `key` as TOML; `cropped`: torchvision's resized_crop of
windows [top, left, height, width]; `scaled`: of `photo.jpg` at 1/2, 1/4 and 1/8 by PIL's draft. `operations` on `small.png`: name, number, pixels.
`folders`: `paths` of a tree, `classes` and `samples` as torchvision's ImageFolder has them. Pixels are planes of bytes as hexadecimal digits.
PNG files of kinds that PIL does not write (interlaced, grey of 2, 4 and 16 bits) are made by `png` below.
"""

import io
import json
import pathlib
import struct
import tempfile
import zlib

import numpy as np
from PIL import Image
from torchvision import datasets
from torchvision.transforms import InterpolationMode
from torchvision.transforms import functional as F

HERE = pathlib.Path(__file__).resolve().parent.parent / "data" / "images"
RANDOM = np.random.default_rng(7)
HEIGHT, WIDTH = 13, 19
ADAM7 = [(0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1)]  # row, column, steps


def picture(height, width, channels=3):
    """Smooth with some noise, so that no part of it looks like another."""
    y, x = np.mgrid[0:height, 0:width]
    planes = [127 + 90 * np.sin(x / (2.0 + c) + c) * np.cos(y / (3.0 + c)) for c in range(channels)]
    noisy = np.stack(planes, -1) + RANDOM.normal(0, 12, (height, width, channels))
    return np.clip(noisy, 0, 255).astype(np.uint8)


def chunk(name, content):
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))


def packed_rows(values, depth):
    """values [height, width, channels]: rows of a PNG without a filter."""
    rows = b""
    for row in values:
        flat = row.reshape(-1)
        if depth == 16:
            content = flat.astype(">u2").tobytes()
        else:
            bits = np.unpackbits(flat.astype(np.uint8)[:, None], axis=1)[:, 8 - depth :].reshape(-1)
            content = np.packbits(bits).tobytes()
        rows += b"\0" + content
    return rows


def png(values, colour_type, depth, interlaced=False, more=b""):
    height, width = values.shape[:2]
    values = values.reshape(height, width, -1)
    head = struct.pack(">IIBBBBB", width, height, depth, colour_type, 0, 0, int(interlaced))
    if interlaced:
        parts = [values[r::dy, c::dx] for r, c, dy, dx in ADAM7]
        rows = b"".join(packed_rows(part, depth) for part in parts if part.size)
    else:
        rows = packed_rows(values, depth)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + more + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def saved(image, kind, **options):
    to = io.BytesIO()
    image.save(to, kind, **options)
    return to.getvalue()


def planes(image):
    array = np.asarray(image)
    array = array[:, :, None] if array.ndim == 2 else array
    return np.ascontiguousarray(array.transpose(2, 0, 1)).tobytes().hex()


def readable():
    colours, grey = picture(HEIGHT, WIDTH), picture(HEIGHT, WIDTH, 1)[:, :, 0]
    rgb, alpha = Image.fromarray(colours), picture(HEIGHT, WIDTH, 4)
    palette = rgb.quantize(11)
    wide = RANDOM.integers(0, 65536, (HEIGHT, WIDTH, 3))
    exif = Image.Exif()
    exif[0x0112] = 6  # turned by a quarter
    yield "rgb.png", saved(rgb, "png")
    yield "rgba.png", saved(Image.fromarray(alpha, "RGBA"), "png")
    yield "grey.png", saved(Image.fromarray(grey), "png")
    yield "grey_alpha.png", saved(Image.fromarray(alpha[:, :, :2].copy(), "LA"), "png")
    yield "palette.png", saved(palette, "png", bits=4)
    yield "palette_alpha.png", saved(palette, "png", transparency=3)
    yield "black_white.png", saved(Image.fromarray(grey).convert("1"), "png")
    yield "grey2.png", png(grey >> 6, 0, 2)
    yield "grey4.png", png(grey >> 4, 0, 4)
    yield "rgb16.png", png(wide, 2, 16)
    yield "interlaced.png", png(colours, 2, 8, interlaced=True)
    yield "interlaced_grey4.png", png(grey >> 4, 0, 4, interlaced=True)
    yield "texts.png", png(colours, 2, 8, more=chunk(b"zTXt", b"a\0\0" + zlib.compress(bytes(100000))) + chunk(b"gAMA", struct.pack(">I", 100000)))
    for name, sampling in (("444", 0), ("422", 1), ("420", 2)):
        yield f"jpeg_{name}.jpg", saved(rgb, "jpeg", quality=90, subsampling=sampling)
    yield "jpeg_grey.jpg", saved(Image.fromarray(grey), "jpeg", quality=90)
    yield "progressive.jpg", saved(rgb, "jpeg", quality=85, progressive=True)
    yield "turned.jpeg", saved(rgb, "jpeg", quality=90, exif=exif)
    yield "restarts.jpg", saved(rgb, "jpeg", quality=90, restart_marker_blocks=1)
    yield "jpeg_called.png", saved(rgb, "jpeg", quality=90)


def refused():
    colours = picture(HEIGHT, WIDTH)
    cmyk = Image.fromarray(picture(HEIGHT, WIDTH, 4), "CMYK")
    whole = saved(Image.fromarray(colours), "png")
    def sized(width, height):
        head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
        return whole[:8] + chunk(b"IHDR", head) + whole[33:]
    jpeg = saved(Image.fromarray(colours), "jpeg")
    frame = jpeg.index(b"\xff\xc0")
    yield "cmyk.jpg", saved(cmyk, "jpeg"), "CMYK"
    yield "no_width.png", sized(0, 5), "without pixels"
    yield "bomb.png", sized(1 << 31, 1 << 31), "too large"
    yield "hollow.png", sized(12000, 12000), "so few bytes"
    yield "hollow.jpg", jpeg[: frame + 5] + b"\x2e\xe0\x2e\xe0" + jpeg[frame + 9 :], "so few bytes"
    yield "wide_bomb.png", sized(178956971, 1), "too large"
    yield "no_height.jpg", jpeg[: frame + 5] + b"\0\0" + jpeg[frame + 7 :], "without pixels"
    yield "bomb.jpg", jpeg[: frame + 5] + b"\xff\xff\xff\xff" + jpeg[frame + 9 :], "too large"
    yield "twelve_bits.jpg", jpeg[: frame + 4] + b"\x0c" + jpeg[frame + 5 :], "8 bits"
    yield "lossless.jpg", jpeg[: frame + 1] + b"\xc3" + jpeg[frame + 2 :], "without loss"
    yield "wrong_sum.png", whole[:45] + bytes([whole[45] ^ 1]) + whole[46:], "damaged PNG"
    yield "text.png", b"this is text\n", "neither a JPEG nor a PNG"
    yield "empty.jpg", b"", "empty"


def files():
    rows = []
    for name, content in readable():
        (HERE / name).write_bytes(content)
        image = Image.open(io.BytesIO(content))
        rows.append({"name": name, "height": image.height, "width": image.width, "rgb": planes(image.convert("RGB")),
                     "grey": planes(image.convert("L")), "close": image.format == "JPEG"})
    # PIL cuts grey of 16 bits at 255, which is nothing that a picture shows: its upper 8 bits are meant.
    wide = RANDOM.integers(0, 65536, (HEIGHT, WIDTH))
    (HERE / "grey16.png").write_bytes(png(wide, 0, 16))
    upper = (wide >> 8).astype(np.uint8)
    rows.append({"name": "grey16.png", "height": HEIGHT, "width": WIDTH, "rgb": planes(np.stack([upper] * 3, -1)), "grey": planes(upper), "close": False})
    return rows


def resizes():
    large = Image.fromarray(picture(40, 30))
    (HERE / "large.png").write_bytes(saved(large, "png"))
    rows = []
    def add(key, image):
        rows.append({"key": key, "height": image.height, "width": image.width, "pixels": planes(image)})
    for height, width in ((13, 17), (51, 33), (40, 7), (5, 30), (1, 1)):
        add(f"resize = [{height}, {width}]", F.resize(large, [height, width], InterpolationMode.BILINEAR, antialias=True))
    add("resize_short = 11", F.resize(large, 11))
    for short, crop in ((20, 16), (21, 18), (31, 31)):
        add(f"resize_short = {short}, center_crop = {crop}", F.center_crop(F.resize(large, short), crop))
    add("center_crop = 29", F.center_crop(large, 29))
    windows = [(0, 0, 40, 30), (3, 5, 20, 21), (38, 27, 2, 3), (7, 0, 9, 30)]
    cropped = [{"window": window, "pixels": planes(F.resized_crop(large, *window, [12, 10]))} for window in windows]
    return rows, cropped


def scaled():
    photo = Image.fromarray(picture(64, 48))
    content = saved(photo, "jpeg", quality=90, subsampling=0)
    (HERE / "photo.jpg").write_bytes(content)
    rows = []
    for part in (2, 4, 8):
        image = Image.open(io.BytesIO(content))
        image.draft("RGB", (48 // part, 64 // part))
        rows.append({"part": part, "height": image.height, "width": image.width, "pixels": planes(image)})
    return rows


def operations():
    small = Image.fromarray(picture(12, 16))
    (HERE / "small.png").write_bytes(saved(small, "png"))
    rows = []
    def add(name, number, image):
        rows.append({"name": name, "number": number, "pixels": planes(image)})
    for factor in (0.0, 0.4, 1.7):
        add("brightness", factor, F.adjust_brightness(small, factor))
        add("contrast", factor, F.adjust_contrast(small, factor))
        add("saturation", factor, F.adjust_saturation(small, factor))
        add("sharpness", factor, F.adjust_sharpness(small, factor))
    for turn in (-0.5, -0.1, 0.3):
        add("hue", turn, F.adjust_hue(small, turn))
    for bits in (4, 7):
        add("posterize", bits, F.posterize(small, bits))
    for threshold in (0.0, 130.9, 255.0):
        add("solarize", threshold, F.solarize(small, threshold))
    add("autocontrast", 0, F.autocontrast(small))
    add("equalize", 0, F.equalize(small))
    for shear in (-0.3, 0.17):
        add("shear_x", shear, F.affine(small, 0.0, [0, 0], 1.0, [np.degrees(np.arctan(shear)), 0.0], center=[0, 0]))
        add("shear_y", shear, F.affine(small, 0.0, [0, 0], 1.0, [0.0, np.degrees(np.arctan(shear))], center=[0, 0]))
    for pixels in (-5, 3):
        add("translate_x", pixels, F.affine(small, 0.0, [pixels, 0], 1.0, [0.0, 0.0]))
        add("translate_y", pixels, F.affine(small, 0.0, [0, pixels], 1.0, [0.0, 0.0]))
    for degrees in (-30.0, 9.0, 90.0):
        add("rotate", degrees, F.rotate(small, degrees))
    return rows


def folders():
    paths = ["b/2.png", "b/10.png", "a/z/1.png", "a/y.png", "a/b/1.PNG", "Z/x.png", "10/x.jpg.png", "9/x.png", "é/x.png"]
    content = (HERE / "small.png").read_bytes()
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for path in paths:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(content)
        data = datasets.ImageFolder(folder)
        samples = [[str(pathlib.Path(path).relative_to(root)), label] for path, label in data.samples]
    return {"paths": paths, "classes": data.classes, "samples": samples}


def main():
    HERE.mkdir(parents=True, exist_ok=True)
    expected = {"files": files(), "refused": []}
    for name, content, words in refused():
        (HERE / name).write_bytes(content)
        expected["refused"].append({"name": name, "words": words})
    expected["resized"], expected["cropped"] = resizes()
    expected["scaled"] = scaled()
    expected["operations"] = operations()
    expected["folders"] = folders()
    lines = ",\n".join(f"{json.dumps(key)}: " + (json.dumps(value) if isinstance(value, dict) else
                       "[\n" + ",\n".join(json.dumps(row) for row in value) + "\n]") for key, value in expected.items())
    (HERE / "expected.json").write_text("{\n" + lines + "\n}\n")


if __name__ == "__main__":
    main()

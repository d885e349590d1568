"""Writes first inputs for the fuzz targets, one folder a target: small models, data files of every format, settings, policies.

    python3 tests/fuzz/make_seeds.py FOLDER

The first byte of an input of fuzz_data picks the reader, that of fuzz_settings the kind of file (see their sources).
"""

import gzip
import json
import pathlib
import struct
import sys
import zlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
MOST_BYTES = 16384
IDX, CIFAR, NPY, NPZ, TSV, CSV, SAFETENSORS, JSON, TORCH, IMAGE, TOKENIZER, JSON_LINES, CHAT = range(13)
TRAIN, POLICY = range(2)
TOKENIZERS = [
    b'{"normalizer":{"type":"BertNormalizer"},"pre_tokenizer":{"type":"BertPreTokenizer"},"model":{"type":"WordPiece","vocab":{"[UNK]":0,"he":1,"##llo":2,",":3},'
    b'"unk_token":"[UNK]"},"added_tokens":[{"id":4,"content":"[S]","special":true}],"post_processor":{"type":"BertProcessing","sep":["[S]",4],"cls":["[S]",4]},'
    b'"decoder":{"type":"WordPiece"},"padding":{"direction":"Left","pad_id":0,"pad_type_id":0},"truncation":{"direction":"Left"}}',
    b'{"pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":"\\\\p{L}+|\\\\s+(?!\\\\S)"},"behavior":"MergedWithNext"},'
    b'{"type":"ByteLevel"}]},"model":{"type":"BPE","vocab":{"H":0,"e":1,"He":2},"merges":["H e"]},"decoder":{"type":"ByteLevel"}}',
]


def npy(dtype, shape, data):
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data


def npz(members):
    """A zip file, every second member deflated."""
    body, directory = b"", b""
    for i, (name, content) in enumerate(members.items()):
        packer = zlib.compressobj(9, zlib.DEFLATED, -15)
        packed = packer.compress(content) + packer.flush() if i % 2 else content
        fields = struct.pack("<HHHHHIIIHH", 20, 0, 8 * (i % 2), 0, 0, zlib.crc32(content), len(packed), len(content), len(name), 0)
        directory += b"PK\x01\x02" + struct.pack("<H", 20) + fields + struct.pack("<HHHII", 0, 0, 0, 0, len(body)) + name.encode()
        body += b"PK\x03\x04" + fields + name.encode() + packed
    end = struct.pack("<HHHHIIH", 0, 0, len(members), len(members), len(directory), len(body), 0)
    return body + directory + b"PK\x05\x06" + end


def safetensors(header, data):
    return struct.pack("<Q", len(header)) + header + data


def data_files():
    idx = struct.pack(">BBBBII", 0, 0, 8, 2, 2, 3) + bytes(range(6))
    floats = struct.pack("<6f", *range(6))
    yield IDX, idx
    yield IDX, gzip.compress(idx)
    yield IDX, struct.pack(">BBBBI", 0, 0, 0x0D, 1, 2) + struct.pack(">2f", 1, 2)
    yield CIFAR, bytes([3]) + bytes(3072)
    yield CIFAR, gzip.compress(bytes([3, 77]) + bytes(3072))
    yield NPY, npy("<f4", (2, 3), floats)
    yield NPY, npy(">i8", (2,), struct.pack(">2q", 5, -6))
    yield NPZ, npz({"x.npy": npy("<f4", (2, 3), floats), "y.npy": npy("|u1", (2,), b"\1\2")})
    yield TSV, b"1\t2.5\tabc\n0\t\tdef\r\n"
    yield TSV, gzip.compress(b"label\tx\n1\t2\n")
    yield CSV, b'label,text\n1,"a ""b"", c"\n0,"two\nlines"\n'
    yield SAFETENSORS, safetensors(b'{"w":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}}', floats)
    for name in ("rgb.png", "interlaced.png", "palette_alpha.png", "rgb16.png", "jpeg_420.jpg", "progressive.jpg", "restarts.jpg", "jpeg_grey.jpg"):
        yield IMAGE, (ROOT / "tests/data/images" / name).read_bytes()
    yield JSON, b'{"step": 7, "names": ["a", "b"], "best": {"auc": 0.5, "step": null}}'
    for name in ("word_level", "unigram_bytes", "metaspace_bpe"):
        said = json.loads((ROOT / f"tests/data/tokenizers/{name}.json").read_text())["tokenizer"]
        yield TOKENIZER, json.dumps(said).encode()
    for content in TOKENIZERS:
        yield TOKENIZER, content
    yield JSON_LINES, b'{"a": [1, 2.5, null], "text": "x\\u00e4", "": true, "other": {"b": [[]]}}\n\n[1]\n'
    yield CHAT, (b'{"messages": [{"role": "system", "content": "a"}, {"role": "user", "content": "b"}, {"role": "assistant", "content": "c<|im_end|>"}]}\n'
                 b'{"prompt": "a", "completion": "b", "system": null}\n{"prompt": "a"}\n')
    for content in files("tests/data/torch_weights/*.pt"):
        yield TORCH, content


def files(pattern):
    for path in sorted(ROOT.glob(pattern)):
        if path.stat().st_size <= MOST_BYTES:
            yield path.read_bytes()


def main():
    seeds = {
        "fuzz_onnx": [content for folder in ("models", "tests/data") for content in files(f"{folder}/**/*.onnx")],
        "fuzz_checkpoint": [bytes(range(16))],
        "fuzz_data": [bytes([reader]) + content for reader, content in data_files()],
        "fuzz_settings": [bytes([TRAIN]) + text for folder in ("models", "bench", "tests/data") for text in files(f"{folder}/**/*train*.toml")]
        + [bytes([TRAIN]) + text for text in files("bench/workloads/*.toml")]
        + [bytes([POLICY]) + text for text in files("models/**/*policy*.toml")],
    }
    for target, inputs in seeds.items():
        folder = pathlib.Path(sys.argv[1]) / target
        folder.mkdir(parents=True, exist_ok=True)
        for i, content in enumerate(inputs):
            (folder / f"seed_{i:03}").write_bytes(content)


if __name__ == "__main__":
    main()

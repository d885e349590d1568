"""tools/check_tree.py finds each kind of violation, and nothing in a clean tree."""
import contextlib
import io
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools"))
import check_tree  # noqa: E402

CLEAN = {
    "engine/graph/graph.h": "// Graph.\n#pragma once\n#include <vector>\n",
    "kernels/shared/scalar.h": "// Scalars.\n#pragma once\n#ifdef __CUDACC__\n#endif\n",
    "kernels/device_backend.h": "// Cards.\n#pragma once\n",
    "kernels/cuda/add.h": '// Add.\n#pragma once\n#include <cuda_runtime_api.h>\n#include "kernels/device_backend.h"\n',
    "kernels/cuda/add.cu": '#include "kernels/cuda/add.h"\n#include <cublasLt.h>\n#include "kernels/shared/scalar.h"\n',
    "tests/cuda/add_test.cu": '// Add.\n#include <nccl.h>\n#include "kernels/cuda/add.h"\n',
    "api/commands/doctor.cpp": '// Doctor.\n#include "kernels/device_backend.h"\n',
    "kernels/cpu/device.h": "// The processor.\n#pragma once\n",
    "kernels/emulated/device.cpp": '// Emulated.\n#include "kernels/cpu/device.h"\n',
    "kernels/cpu/conv.cpp": '// Conv.\n#include <dnnl.hpp>\n#include "engine/graph/graph.h"\n#include "kernels/shared/scalar.h"\n',
    "importer/open.cpp": '// Open.\n#include <onnx/checker.h>\n#include "engine/graph/graph.h"\n',
    "include/tandem/tandem.h": "// Public.\n#pragma once\n#include <string>\nnamespace tandem::api::inline v1 {\n}  // namespace tandem::api::inline v1\n",
    "include/tandem/c.h": "// For C.\n#pragma once\n",
    "api/program/keys.h": "// Keys.\n#pragma once\n",
    "python/binding/x.h": "// Binding.\n#pragma once\n#include <nanobind/nanobind.h>\n",
    "tools/main.cpp": '// Main.\n#include <CLI/CLI.hpp>\n#include "api/program/keys.h"\n#include "tandem/tandem.h"\n',
}


class CheckTree(unittest.TestCase):
    def check(self, **changed):
        """The printed violations of the clean tree with one file more."""
        with tempfile.TemporaryDirectory() as root:
            for name, text in {**CLEAN, **changed}.items():
                path = os.path.join(root, name)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "w") as file:
                    file.write(text)
            check_tree.ROOT, sys.argv = root, ["check_tree.py"]
            with contextlib.redirect_stdout(io.StringIO()) as output:
                status = check_tree.main()
        lines = output.getvalue().splitlines()[:-1]
        self.assertEqual(status, 1 if any(not line.startswith("notice") for line in lines) else 0)
        return lines

    def expect(self, name, text, part):
        found = self.check(**{name: text})
        self.assertEqual(len(found), 1, found)
        self.assertIn(part, found[0])

    def test_clean(self):
        self.assertEqual(self.check(), [])

    def test_own_borders(self):
        for name, included in [("engine/x.cpp", "importer/open.h"), ("importer/x.cpp", "kernels/cpu/cpu.h"),
                               ("placement/x.cpp", "importer/open.h"), ("kernels/cuda/x.cu", "kernels/cpu/cpu.h"),
                               ("tools/x.cpp", "engine/graph/graph.h"), ("kernels/reference/x.cpp", "kernels/cpu/cpu.h"),
                               ("python/binding/x.cpp", "api/train/session/session_impl.h"), ("kernels/emulated/x.cpp", "kernels/shared/scalar.h"), ("kernels/cpu/x.cpp", "kernels/emulated/x.h")]:
            self.expect(name, f'// x\n#include "{included}"\n', "must not include " + included)

    def test_third_parties(self):
        for name, included in [("engine/x.cpp", "onnx/onnx_pb.h"), ("tests/engine/x.cpp", "onnx/checker.h"),
                               ("engine/x.cpp", "dnnl.hpp"), ("kernels/reference/x.cpp", "oneapi/dnnl/dnnl.hpp"),
                               ("kernels/cpu/x.cpp", "cuda_runtime.h"), ("engine/x.cpp", "gtest/gtest.h"),
                               ("kernels/x.cu", "cuda_fp16.h"), ("api/x.cpp", "cudnn.h"),
                               ("tests/kernels/x.cpp", "cublasLt.h"), ("engine/x.cpp", "nccl.h"),
                               ("tests/api/x.cpp", "nvrtc.h"), ("api/x.cpp", "nanobind/nanobind.h"), ("kernels/cuda/x.cu", "dnnl.hpp")]:
            self.expect(name, f"// x\n#include <{included}>\n", "only")

    def test_optional_folders(self):
        for name in ["api/x.cpp", "kernels/x.cpp", "tests/api/x.cpp", "bench/x.cpp"]:
            self.expect(name, '// x\n#include "kernels/cuda/add.h"\n', "include kernels/device_backend.h")

    def test_lean_headers(self):
        for included in ["fmt/core.h", "iostream", "regex", "nlohmann/json.hpp", "toml++/toml.h"]:
            self.expect("engine/x.h", f"// x\n#pragma once\n#include <{included}>\n", "does not belong")

    def test_public_headers(self):
        opened = "// x\n#pragma once\nnamespace tandem::api::inline v1 {\n%s}  // namespace tandem::api::inline v1\n"
        self.assertEqual(self.check(**{"include/tandem/x.h": opened % "struct X {};\n"}), [])
        self.expect("include/tandem/x.h", "// x\n#pragma once\nnamespace tandem::api {\n}  // namespace tandem::api\n", "inline v1")
        self.expect("include/tandem/x.h", "// x\n#pragma once\nstruct X {};\n", "inline v1")
        many = {f"include/tandem/x{i}.h": opened % ("\n" * 200) for i in range(6)}
        self.assertEqual(len([line for line in self.check(**many) if "the limit is 1200" in line]), 1)
        self.expect("tools/x.cpp", '// x\n#include "api/train/session/session_impl.h"\n', "must not include api/train/session/session_impl.h")

    def test_text(self):
        self.expect("engine/x.cpp", "// x\n" + "\n" * 600, "the limit is 600")
        self.expect("engine/x.cpp", "// x\n" + "\n" * 300, "notice")
        self.expect("engine/x.cpp", "int x;\n", "what the file is for")
        self.expect("engine/x.h", "// x\n", "#pragma once")
        self.expect("kernels/cuda/x.cu", "int x;\n", "what the file is for")
        self.expect("kernels/cuda/x.cu", "// x\n" + "\n" * 600, "the limit is 600")
        self.expect("engine/x.cpp", "// x\n#ifdef TANDEM_CUDA\n#endif\n", "CMake")
        self.expect("engine/x.cpp", '// x\nauto p = "/' + 'home/someone";\n', "one machine")
        self.expect("kernels/CMakeLists.txt", "add_compile_options(-mavx2)\n", "baseline")
        self.expect("tests/engine/x.bin", "0" * (201 << 10), "200")


if __name__ == "__main__":
    unittest.main()

"""Builds the project of tests/api/consumer with the package and trains with it."""
import os
import pathlib

from conan import ConanFile
from conan.tools.build import can_run
from conan.tools.cmake import CMake, cmake_layout

TREE = pathlib.Path(__file__).resolve().parents[3]


class TandemTest(ConanFile):
    settings = "os", "arch", "compiler", "build_type"
    generators = "CMakeDeps", "CMakeToolchain"

    def requirements(self):
        self.requires(self.tested_reference_str)

    def layout(self):
        cmake_layout(self)

    def build(self):
        cmake = CMake(self)
        cmake.configure(build_script_folder=str(TREE / "tests/api/consumer"))
        cmake.build()

    def test(self):
        if can_run(self):
            model = TREE / "models/digits/model.onnx"
            self.run(f"{os.path.join(self.cpp.build.bindir, 'consumer')} {model} trained.onnx", env="conanrun")

"""The package tandem for Conan 2: `conan create packaging/conan --build=missing`."""
import os
import pathlib

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy


class Tandem(ConanFile):
    name = "tandem"
    version = "0.1.0"
    license = "Apache-2.0"
    description = "Trains ONNX models on hosts and accelerators, placed by a policy file"
    topics = ("onnx", "training", "machine-learning")
    package_type = "shared-library"
    settings = "os", "arch", "compiler", "build_type"

    def export_sources(self):
        tree = pathlib.Path(self.recipe_folder).parents[1]
        for name in ("CMakeLists.txt", "LICENSE"):
            copy(self, name, tree, self.export_sources_folder)
        for folder in ("api", "cmake", "engine", "importer", "include", "kernels", "models/digits", "packaging", "placement", "tools"):
            copy(self, "*", tree / folder, os.path.join(self.export_sources_folder, folder))

    def layout(self):
        cmake_layout(self)

    def requirements(self):
        for name in ("cli11/[>=2.1 <3]", "dlpack/[>=0.6]", "fmt/[>=9 <12]", "libjpeg-turbo/[>=2.1 <4]", "libpng/[>=1.6 <2]",
                     "nlohmann_json/[>=3.11 <4]", "onednn/[>=3.2 <4]", "pcre2/[>=10.40 <11]", "protobuf/[>=3.21 <4]", "tomlplusplus/[>=3.3 <4]",
                     "utf8proc/[>=2.8 <3]", "zlib/[>=1.2 <2]"):
            self.requires(name)

    def build_requirements(self):
        self.tool_requires("cmake/[>=3.25]")
        self.tool_requires("ninja/[>=1.11]")
        self.tool_requires("protobuf/<host_version>")

    def validate(self):
        check_min_cppstd(self, 20)
        if self.settings.os != "Linux" or self.settings.arch != "x86_64":
            raise ConanInvalidConfiguration("Tandem runs on Linux on x86-64")

    def generate(self):
        toolchain = CMakeToolchain(self, generator="Ninja")
        toolchain.cache_variables.update(
            {"TANDEM_DEPS": self.deps_folder, "TANDEM_ONEDNN": "system", "TANDEM_TESTS": False, "TANDEM_BENCH": False, "TANDEM_CUDA": "OFF"})
        toolchain.generate()
        CMakeDeps(self).generate()

    @property
    def deps_folder(self):
        return os.path.join(self.build_folder, "deps")

    def build(self):
        self.run(f"TANDEM_DEPS={self.deps_folder} {self.source_folder}/tools/setup.sh --onnx")
        cmake = CMake(self)
        cmake.configure()
        cmake.build(target="tandem_installed")

    def package(self):
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        CMake(self).install()

    def package_info(self):
        self.cpp_info.libs = ["tandem"]
        self.cpp_info.set_property("cmake_file_name", "Tandem")
        self.cpp_info.set_property("cmake_target_name", "Tandem::tandem")
        self.cpp_info.set_property("pkg_config_name", "tandem")
        self.cpp_info.requires = []

// Which of several files of one library is used: versions in file names keep one that is too old
// from hiding one that fits, and no library is loaded for that.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "kernels/cuda/libraries/file_version.h"
#include "tests/cuda/support/small_libraries.h"
#include "tests/cuda/support/versioned_libraries.h"

namespace tandem::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

std::string dotted(int major, int minor, int patch = 1) {
  return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(patch);
}

class LibrarySearch : public SmallLibraries {
 protected:
  /// Adds a library that logs when it is loaded; its name is a link, as in toolkits.
  void add_linked(const std::string& folder, const std::string& file, const std::string& rest,
                  const std::string& code) {
    add_library(file + "." + rest, code + noting(folder), folder);
    fs::create_symlink(file + "." + rest, folder_ / folder + "/" + file);
  }
  /// Adds a library in a folder like those of Python's packages.
  void add_wheel(const std::string& packages, const std::string& part, const std::string& file,
                 const std::string& package, const std::string& code) {
    const std::string inside = "nvidia/" + part + "/lib/";
    add_library(file, code + noting(packages), packages + "/" + inside);
    add_record(packages, package, inside + file);
  }
  void add_record(const std::string& packages, const std::string& package,
                  const std::string& file) {
    const std::string folder = add(packages + "/" + package + ".dist-info");
    std::ofstream(folder + "/RECORD", std::ios::app) << file << ",sha256=abc,123\n"
                                                     << file << ".other,,\n";
  }
  std::string noting(const std::string& name) {
    return "\n#include <stdio.h>\n__attribute__((constructor)) static void opened(void) {\n  FILE* "
           "f "
           "= fopen(\"" +
           (folder_ / "notes") + "\", \"a\");\n  fputs(\"" + name + "\\n\", f);\n  fclose(f);\n}\n";
  }
  std::vector<std::string> loaded() {
    std::ifstream file(folder_ / "notes");
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    return lines;
  }
};

TEST_F(LibrarySearch, AnOldOneIsPassedOverWithoutLoadingIt) {
  add_linked("a", nccl_file(), std::to_string(NCCL_MINOR - 1) + ".7",
             nccl(NCCL_MAJOR, NCCL_MINOR - 1));
  add_linked("b", nccl_file(), std::to_string(NCCL_MINOR) + ".3", nccl(NCCL_MAJOR, NCCL_MINOR));
  const auto libraries = open({"a", "b"});
  ASSERT_NE(libraries->nccl(), nullptr);
  EXPECT_THAT(loaded(), ElementsAre("b"));
  const FoundLibrary report = report_of("NCCL", *libraries);
  EXPECT_EQ(report.path, folder_ / "b/" + nccl_file());
  EXPECT_EQ(report.problem, "");
  EXPECT_EQ(report.fix, "");
  EXPECT_THAT(report.passed_over,
              ElementsAre((folder_ / "a/") + nccl_file() + ": version " +
                          dotted(NCCL_MAJOR, NCCL_MINOR - 1, 7) + " is older than " +
                          std::to_string(NCCL_MAJOR) + "." + std::to_string(NCCL_MINOR) +
                          ", which this build was made with"));
}

TEST_F(LibrarySearch, WhereNoneFitsAllAreNamed) {
  add_linked("a", nccl_file(), "0.1", nccl(NCCL_MAJOR, 0));
  add("b");
  const auto libraries = open({"a", "b"});
  EXPECT_EQ(libraries->nccl(), nullptr);
  EXPECT_THAT(loaded(), IsEmpty());
  const FoundLibrary report = report_of("NCCL", *libraries);
  EXPECT_THAT(report.problem, AllOf(StartsWith((folder_ / "a/") + nccl_file() + ": version "),
                                    HasSubstr(" is older than "),
                                    EndsWith(nccl_file() + " is not in " + (folder_ / "b"))));
  EXPECT_THAT(report.fix, StartsWith("pip install "));
}

TEST_F(LibrarySearch, AnOldOneOfTheVariableIsRefused) {
  add_linked("a", nccl_file(), "0.1", nccl(NCCL_MAJOR, 0));
  add_linked("b", nccl_file(), std::to_string(NCCL_MINOR) + ".3", nccl(NCCL_MAJOR, NCCL_MINOR));
  const auto libraries = cuda::make_libraries({{add("a")}, false, {add("b")}});
  EXPECT_EQ(libraries->nccl(), nullptr);
  EXPECT_THAT(report_of("NCCL", *libraries).problem, HasSubstr(" is older than "));
  EXPECT_THAT(report_of("NCCL", *libraries).fix,
              StartsWith("try the other one: TANDEM_CUDA_LIBRARIES=" + (folder_ / "b")));
}

TEST_F(LibrarySearch, AWheelBehindAnOldToolkitIsFoundWithItsParts) {
  const std::string graph = "libcudnn_graph.so." + std::to_string(CUDNN_MAJOR);
  add_linked("toolkit", cudnn_file(), std::to_string(CUDNN_MINOR - 1) + ".0",
             cudnn(CUDNN_MAJOR, CUDNN_MINOR - 1));
  add_library(graph, "int part;" + noting("toolkit's part"), "toolkit");
  const std::string cu = "_cu" + series, version = "-" + dotted(CUDNN_MAJOR, CUDNN_MINOR, 0);
  // cuDNN from the packages for another CUDA.
  add_wheel("other", "cudnn", cudnn_file(), "nvidia_cudnn_cu12" + version + ".56",
            cudnn(CUDNN_MAJOR, CUDNN_MINOR, 12080));
  add_library(graph, "int part;" + noting("other's part"), "other/nvidia/cudnn/lib");
  add_wheel("packages", "cudnn", cudnn_file(), "nvidia_cudnn" + cu + version + ".56",
            cudnn(CUDNN_MAJOR, CUDNN_MINOR));
  add_library(graph, "int part;" + noting("packages' part"), "packages/nvidia/cudnn/lib");
  const auto libraries = open({"toolkit", "other/nvidia/cudnn/lib", "packages/nvidia/cudnn/lib"});
  ASSERT_NE(libraries->cudnn(), nullptr);
  EXPECT_THAT(loaded(), ElementsAre("packages", "packages' part"));
  EXPECT_THAT(report_of("cuDNN", *libraries).passed_over,
              ElementsAre(HasSubstr(" is older than "),
                          EndsWith("it is made for CUDA 12, this build for CUDA " + series)));
}

TEST_F(LibrarySearch, ACudnnWithoutItsPartBesideItIsPassedOver) {
  add_library(cudnn_file(), cudnn(CUDNN_MAJOR, CUDNN_MINOR) + noting("a"), "a");
  add_library(cudnn_file(), cudnn(CUDNN_MAJOR, CUDNN_MINOR) + noting("b"), "b");
  add_library("libcudnn_graph.so." + std::to_string(CUDNN_MAJOR), "int part;", "b");
  const auto libraries = open({"a", "b"});
  ASSERT_NE(libraries->cudnn(), nullptr);
  EXPECT_THAT(loaded(), ElementsAre("b"));
  EXPECT_THAT(report_of("cuDNN", *libraries).passed_over,
              ElementsAre(EndsWith("is not in the same folder")));
}

// A library under the short name, without a package: its version is known only after it is loaded,
// and then no other can be.
TEST_F(LibrarySearch, AnUnknownVersionIsLoaded) {
  add_library(nccl_file(), nccl(NCCL_MAJOR, NCCL_MINOR - 1) + noting("a"), "a");
  add_library(nccl_file(), nccl(NCCL_MAJOR, NCCL_MINOR) + noting("b"), "b");
  const auto libraries = open({"a", "b"});
  EXPECT_EQ(libraries->nccl(), nullptr);
  EXPECT_THAT(loaded(), ElementsAre("a"));
  EXPECT_THAT(report_of("NCCL", *libraries).fix, StartsWith("try the other one: "));
}

TEST_F(LibrarySearch, WhatNamesTellOfVersions) {
  const auto version = [&](const std::string& path) {
    const auto found = cuda::version_of_file(folder_ / path);
    return found ? found->text() + "/" + std::to_string(found->cuda) : "";
  };
  const auto touch = [&](const std::string& path) {
    add(fs::path(path).parent_path());
    std::ofstream(folder_ / path) << "any";
  };
  touch("a/libnvrtc.so.13.0.88");
  fs::create_symlink("libnvrtc.so.13.0.88", folder_ / "a/libnvrtc.so.13");
  EXPECT_EQ(version("a/libnvrtc.so.13"), "13.0.88/0");
  touch("a/libnccl.so.2");
  EXPECT_EQ(version("a/libnccl.so.2"), "");
  touch("a/libnccl.so.2.x");
  EXPECT_EQ(version("a/libnccl.so.2.x"), "");
  EXPECT_EQ(version("a/none"), "");
  const std::string file = "nvidia/cu13/lib/libcublasLt.so.13";
  touch("p/" + file);
  EXPECT_EQ(version("p/" + file), "") << "of no package";
  add_record("p", "nvidia_cuda_nvrtc-13.0.88", "nvidia/cu13/lib/libnvrtc.so.13");
  add_record("p", "nvidia_cublas-13.1.0.3", file);
  EXPECT_EQ(version("p/" + file), "13.1.0.3/0");
  add_record("p", "nvidia_cublas_cu13-13.0.0.1", file);
  EXPECT_EQ(version("p/" + file), "") << "of one of two packages";
}

}  // namespace
}  // namespace tandem::testing

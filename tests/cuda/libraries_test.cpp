// Libraries that are opened at run time: where they are searched, which one is used, and what makes
// one unfit. Small libraries replace the real ones, which are tried if this machine has them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cublas_api.h>
#include <cuda_runtime_api.h>

#include <filesystem>
#include <map>
#include <thread>

#include "kernels/cuda/libraries/real_libraries.h"
#include "tests/cuda/support/versioned_libraries.h"

namespace tandem::testing {
namespace {

namespace fs = std::filesystem;
using cuda::LibraryPlaces;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

cuda::Environment environment(std::map<std::string, std::string> variables) {
  return [variables = std::move(variables)](const char* variable) {
    const auto place = variables.find(variable);
    return place == variables.end() ? "" : place->second;
  };
}

using Places = Folders;

TEST_F(Places, InTheOrderOfTheDocumentation) {
  const std::string home = add("home/lib"), home64 = add("home/lib64");
  add("usr/local/cuda-12.8/lib64");
  const std::string old = add("usr/local/cuda-12.8/lib64"),
                    newer = add("usr/local/cuda-13.0/targets/x86_64-linux/lib"),
                    chosen = add("usr/local/cuda-13.1/lib64");
  fs::create_directory_symlink("cuda-13.1", folder_ / "usr/local/cuda");
  const std::string active = "venv/lib/python3.11/site-packages/nvidia/";
  const std::string cudnn = add(active + "cudnn/lib"), nccl = add(active + "nccl/lib"),
                    toolkit = add(active + "cu" + series + "/lib");
  const std::string wheel = add("opt/lib/python3.12/site-packages/nvidia/cudnn/lib"),
                    debian = add("opt/local/lib/python3.12/dist-packages/nvidia/cudnn/lib");
  add("opt/bin");
  add("bin");
  std::ofstream(folder_ / "opt/bin/python3.12") << "#!/bin/sh\n";
  fs::permissions(folder_ / "opt/bin/python3.12", fs::perms::owner_all);
  fs::create_symlink(folder_ / "opt/bin/python3.12", folder_ / "bin/python3");

  const LibraryPlaces places =
      cuda::library_places(environment({{"TANDEM_CUDA_LIBRARIES", "/one:/two::"},
                                        {"CUDA_HOME", folder_ / "home"},
                                        {"VIRTUAL_ENV", folder_ / "venv"},
                                        {"PATH", folder_ / "none" + ":" + (folder_ / "bin")}}),
                           folder_.path());
  EXPECT_THAT(places.first, ElementsAre("/one", "/two"));
  EXPECT_TRUE(places.by_name);
  EXPECT_THAT(places.others, ElementsAre(home, home64, folder_ / "usr/local/cuda/lib64", newer, old,
                                         cudnn, toolkit, nccl, wheel, debian))
      << chosen << " is there under another name";
}

TEST_F(Places, NothingIsThere) {
  const LibraryPlaces places = cuda::library_places(environment({}), folder_.path());
  EXPECT_THAT(places.first, IsEmpty());
  EXPECT_THAT(places.others, IsEmpty());
}

/// The number of the library that was opened.
int number_from(const cuda::SharedLibrary& library) {
  const auto number = reinterpret_cast<int (*)()>(library.function("number"));
  return number != nullptr ? number() : -1;
}

class Opening : public Folders {
 protected:
  void add_numbered(const std::string& folder, int number) {
    compile_library(folder_ / folder + "/libnumber.so.1",
                    "int number(void) { return " + std::to_string(number) + "; }");
  }
  void add_broken(const std::string& folder) {
    std::ofstream(add(folder) + "/libnumber.so.1") << "no library";
  }
};

TEST_F(Opening, TheFirstPlaceThatHasIt) {
  add_numbered("b", 2);
  add_numbered("c", 3);
  const std::string a = add("a"), b = add("b"), c = add("c");
  const cuda::SharedLibrary library = cuda::open_library("libnumber.so.1", {{a}, true, {b, c}});
  EXPECT_EQ(number_from(library), 2);
  EXPECT_EQ(library.path, b + "/libnumber.so.1");
  EXPECT_EQ(library.problem, "");
  EXPECT_EQ(library.function("another"), nullptr);
  EXPECT_EQ(number_from(cuda::open_library("libnumber.so.1", {{a, c}, true, {b}})), 3);
  EXPECT_THAT(cuda::other_files("libnumber.so.1", {{a, c}, true, {b}}, library.path),
              ElementsAre(c + "/libnumber.so.1"));
}

TEST_F(Opening, ByNameAsTheLoaderFindsIt) {
  const cuda::SharedLibrary library = cuda::open_library("libm.so.6", {{add("a")}, true, {}});
  EXPECT_THAT(library.path, AllOf(StartsWith("/"), EndsWith("/libm.so.6")));
  EXPECT_NE(library.function("cosf"), nullptr);
  EXPECT_EQ(cuda::open_library("libm.so.6", {{}, false, {add("a")}}).handle, nullptr);
  compile_library(add("b") + "/libm.so.6", "int number(void) { return 6; }");
  EXPECT_EQ(cuda::open_library("libm.so.6", {{}, true, {add("b")}}).path, library.path);
  EXPECT_EQ(number_from(cuda::open_library("libm.so.6", {{add("b")}, true, {}})), 6);
}

TEST_F(Opening, NowhereSaysWhere) {
  const std::string a = add("a"), b = add("b");
  const cuda::SharedLibrary library = cuda::open_library("libnumber.so.7", {{a}, true, {b}});
  EXPECT_EQ(library.handle, nullptr);
  EXPECT_EQ(library.path, "");
  EXPECT_EQ(library.problem, "libnumber.so.7 is not in " + a + ", the loader's folders, " + b);
}

TEST_F(Opening, ABrokenFileIsSkippedUnlessItWasAskedFor) {
  add_broken("a");
  add_numbered("b", 2);
  const std::string a = add("a"), b = add("b");
  EXPECT_EQ(number_from(cuda::open_library("libnumber.so.1", {{}, false, {a, b}})), 2);
  const cuda::SharedLibrary asked = cuda::open_library("libnumber.so.1", {{a}, false, {b}});
  EXPECT_EQ(asked.handle, nullptr);
  EXPECT_THAT(asked.problem, HasSubstr(a + "/libnumber.so.1: "));
  const cuda::SharedLibrary only = cuda::open_library("libnumber.so.1", {{}, false, {a}});
  EXPECT_EQ(only.handle, nullptr);
  EXPECT_THAT(only.problem, HasSubstr(a + "/libnumber.so.1: "));
}

TEST_F(Opening, APartBesideTheLibraryComesFirst) {
  add_numbered("a", 1);
  const std::string a = add("a");
  const cuda::SharedLibrary library = cuda::open_library("libnumber.so.1", {{a}, false, {}});
  EXPECT_EQ(cuda::open_part("libm.so.6", library), "") << "not in the same folder";
  std::ofstream(a + "/libm.so.6") << "no library";
  EXPECT_THAT(cuda::open_part("libm.so.6", library),
              StartsWith("its part libm.so.6 cannot be opened: " + a + "/libm.so.6: "));
}

TEST_F(SmallLibraries, ThatFitAreTables) {
  add_parts();
  add_library(cublas_lt_file(), cublas_lt(CUBLAS_VER_MAJOR, CUBLAS_VER_MINOR));
  add_library(cudnn_file(), cudnn(CUDNN_MAJOR, CUDNN_MINOR + 1));
  add_library(nvrtc_file(), nvrtc(CUDART_VERSION / 1000, nvrtc_minor));
  add_library(nccl_file(), nccl(NCCL_MAJOR, NCCL_MINOR + 2));
  const auto libraries = open();
  ASSERT_NE(libraries->cudnn(), nullptr);
  EXPECT_EQ(libraries->cudnn()->cudnnGetVersion(),
            static_cast<std::size_t>(CUDNN_MAJOR * 10000 + (CUDNN_MINOR + 1) * 100 + 3));
  EXPECT_NE(libraries->cudnn()->cudnnBackendExecute, nullptr);
  EXPECT_NE(libraries->cublas_lt(), nullptr);
  EXPECT_NE(libraries->nvrtc(), nullptr);
  EXPECT_NE(libraries->nccl(), nullptr);
  std::vector<std::string> names;
  for (const FoundLibrary& report : libraries->report()) {
    names.push_back(report.name);
    EXPECT_EQ(report.problem, "") << report.name;
    EXPECT_EQ(report.fix, "") << report.name;
    EXPECT_THAT(report.path, StartsWith(folder_ / "a/lib")) << report.name;
  }
  EXPECT_THAT(names, ElementsAre("cuBLASLt", "cuDNN", "NVRTC", "NCCL"));
  const FoundLibrary cudnn = libraries->report()[1];
  EXPECT_EQ(cudnn.needed, std::to_string(CUDNN_MAJOR) + "." + std::to_string(CUDNN_MINOR));
  EXPECT_EQ(cudnn.version,
            std::to_string(CUDNN_MAJOR) + "." + std::to_string(CUDNN_MINOR + 1) + ".3");
}

TEST_F(SmallLibraries, OfOtherVersionsAreRefused) {
  add_parts();
  add_library(cublas_lt_file(), cublas_lt(CUBLAS_VER_MAJOR, CUBLAS_VER_MINOR - 1));
  add_library(cudnn_file(), cudnn(CUDNN_MAJOR - 1, CUDNN_MINOR + 5));
  add_library(nvrtc_file(), nvrtc(CUDART_VERSION / 1000 - 1, 9));
  add_library(nccl_file(), nccl(NCCL_MAJOR + 1, 0));
  const auto libraries = open();
  EXPECT_EQ(libraries->cublas_lt(), nullptr);
  EXPECT_EQ(libraries->cudnn(), nullptr);
  EXPECT_EQ(libraries->nvrtc(), nullptr);
  EXPECT_EQ(libraries->nccl(), nullptr);
  const std::string old = report_of("cuBLASLt", *libraries).problem;
  EXPECT_EQ(old, "version " + std::to_string(CUBLAS_VER_MAJOR) + "." +
                     std::to_string(CUBLAS_VER_MINOR - 1) + ".2 is older than " +
                     std::to_string(CUBLAS_VER_MAJOR) + "." + std::to_string(CUBLAS_VER_MINOR) +
                     ", which this build was made with");
  EXPECT_THAT(report_of("cuDNN", *libraries).problem, HasSubstr(" is older than "));
  EXPECT_THAT(report_of("NVRTC", *libraries).problem, HasSubstr("9 is older than "));
  EXPECT_THAT(report_of("NCCL", *libraries).problem, HasSubstr(" is of another series than "));
  EXPECT_THAT(report_of("NCCL", *libraries).path, EndsWith(nccl_file()));
  EXPECT_EQ(report_of("cuDNN", *libraries).fix,
            "pip install 'nvidia-cudnn-cu" + series + ">=" + std::to_string(CUDNN_MAJOR) + "." +
                std::to_string(CUDNN_MINOR) + "', and name its folder in TANDEM_CUDA_LIBRARIES");
}

TEST_F(SmallLibraries, WithoutAFunctionAreRefusedByItsName) {
  add_parts();
  const auto without = [](std::string code, const std::string& name) {
    const std::string definition = "void " + name + "(void) {}";
    EXPECT_NE(code.find(definition), std::string::npos) << name;
    return code.replace(code.find(definition), definition.size(), "");
  };
  add_library(cublas_lt_file(),
              without(cublas_lt(CUBLAS_VER_MAJOR, CUBLAS_VER_MINOR), "cublasLtMatmul"));
  add_library(cudnn_file(), without(cudnn(CUDNN_MAJOR, CUDNN_MINOR), "cudnnBackendExecute"));
  add_library(nvrtc_file(), without(nvrtc(CUDART_VERSION / 1000, nvrtc_minor), "nvrtcGetCUBIN"));
  add_library(nccl_file(), without(nccl(NCCL_MAJOR, NCCL_MINOR), "ncclCommAbort"));
  const auto libraries = open();
  for (const auto& [name, function] :
       std::map<std::string, std::string>{{"cuBLASLt", "cublasLtMatmul"},
                                          {"cuDNN", "cudnnBackendExecute"},
                                          {"NVRTC", "nvrtcGetCUBIN"},
                                          {"NCCL", "ncclCommAbort"}}) {
    EXPECT_EQ(report_of(name, *libraries).problem, "it has no function " + function);
  }
  EXPECT_EQ(libraries->cublas_lt(), nullptr);
  EXPECT_EQ(libraries->nccl(), nullptr);
}

// The real cuDNN ends the program if a part of it is missing.
TEST_F(SmallLibraries, WithoutTheirPartsAreRefusedBeforeAnyCall) {
  const std::string graph = "libcudnn_graph.so." + std::to_string(CUDNN_MAJOR);
  std::ofstream(add("a") + "/" + graph) << "no library";
  add_library(cudnn_file(),
              functions_that_do_nothing(
                  cudnn_functions,
                  "void abort(void);\nunsigned long cudnnGetVersion(void) { abort(); return 0; }"));
  add_library(nvrtc_file(), nvrtc(CUDART_VERSION / 1000, 99));
  const auto libraries = open();
  EXPECT_EQ(libraries->cudnn(), nullptr);
  EXPECT_THAT(report_of("cuDNN", *libraries).problem,
              StartsWith("its part " + graph + " cannot be opened: "));
  EXPECT_EQ(libraries->nvrtc(), nullptr);
  EXPECT_THAT(report_of("NVRTC", *libraries).problem,
              StartsWith("its part libnvrtc-builtins.so." + series + ".99 cannot be opened: "));
}

TEST_F(SmallLibraries, ACudnnOfAnotherCudaIsRefused) {
  add_parts();
  add_library(cudnn_file(), cudnn(CUDNN_MAJOR, CUDNN_MINOR, 12080));
  const auto libraries = open();
  EXPECT_EQ(libraries->cudnn(), nullptr);
  EXPECT_EQ(report_of("cuDNN", *libraries).problem,
            "it is made for CUDA 12, this build for CUDA " + series);
}

TEST_F(SmallLibraries, ThatAreMissingSaySo) {
  const auto libraries = open();
  EXPECT_EQ(libraries->nccl(), nullptr);
  const FoundLibrary report = report_of("NCCL", *libraries);
  EXPECT_EQ(report.problem, nccl_file() + " is not in " + (folder_ / "a"));
  EXPECT_EQ(report.path, "");
  EXPECT_EQ(report.version, "");
  EXPECT_THAT(report.fix, AllOf(StartsWith("pip install 'nvidia-nccl-cu" + series + ">="),
                                EndsWith(", or name its folder in TANDEM_CUDA_LIBRARIES")));
}

TEST_F(SmallLibraries, TheFixNamesAnotherFileThatIsThere) {
  add_library(nccl_file(), nccl(NCCL_MAJOR, NCCL_MINOR - 1), "a");
  add_library(nccl_file(), nccl(NCCL_MAJOR, NCCL_MINOR), "b");
  const auto libraries = open({"a", "b"});
  EXPECT_EQ(libraries->nccl(), nullptr) << "the first one counts";
  EXPECT_THAT(report_of("NCCL", *libraries).fix,
              StartsWith("try the other one: TANDEM_CUDA_LIBRARIES=" + (folder_ / "b") + "; or "));
  EXPECT_NE(open({"b", "a"})->nccl(), nullptr);
}

TEST_F(SmallLibraries, OfTheVariableThatCannotBeOpenedSayWhichFoldersToName) {
  add_library(nccl_file(), nccl(NCCL_MAJOR, NCCL_MINOR), "b");
  const std::string a = add("a"), b = folder_ / "b";
  std::ofstream(a + "/" + nccl_file()) << "no library";
  const auto broken = cuda::make_libraries({{a}, false, {}});
  EXPECT_EQ(broken->nccl(), nullptr);
  EXPECT_EQ(report_of("NCCL", *broken).problem,
            a + "/" + nccl_file() + ": it is no shared library");
  EXPECT_THAT(report_of("NCCL", *broken).fix,
              StartsWith("take " + a + " out of TANDEM_CUDA_LIBRARIES, or replace the file: pip "));
  const auto with_other = cuda::make_libraries({{a}, false, {b}});
  EXPECT_EQ(with_other->nccl(), nullptr) << "a file of the variable has to be usable";
  EXPECT_THAT(report_of("NCCL", *with_other).fix,
              StartsWith("try the other one: TANDEM_CUDA_LIBRARIES=" + b + "; or pip "));
}

TEST_F(SmallLibraries, AreOpenedWhenAskedForInOrderAndOnce) {
  const auto notes = [&](const std::string& name) {  // code that appends to a file when opened
    return "\n#include <stdio.h>\n__attribute__((constructor)) static void opened(void) {\n  FILE* "
           "f = "
           "fopen(\"" +
           (folder_ / "notes") + "\", \"a\");\n  fputs(\"" + name + "\\n\", f);\n  fclose(f);\n}\n";
  };
  add_parts(notes("part"));
  add_library(cublas_lt_file(), cublas_lt(CUBLAS_VER_MAJOR, CUBLAS_VER_MINOR) + notes("cublasLt"));
  add_library(cudnn_file(), cudnn(CUDNN_MAJOR, CUDNN_MINOR) + notes("cudnn"));
  add_library(nvrtc_file(), nvrtc(CUDART_VERSION / 1000, nvrtc_minor) + notes("nvrtc"));
  add_library(nccl_file(), nccl(NCCL_MAJOR, NCCL_MINOR) + notes("nccl"));
  const auto opened = [&] {
    std::ifstream file(folder_ / "notes");
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    return lines;
  };
  const auto libraries = open();
  EXPECT_THAT(opened(), IsEmpty());
  std::vector<const cuda::Cudnn*> found(8);
  std::vector<std::thread> threads;
  for (const cuda::Cudnn*& to : found)
    threads.emplace_back([&to, libraries] { to = libraries->cudnn(); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_NE(found[0], nullptr);
  EXPECT_THAT(found, ::testing::Each(found[0]));
  EXPECT_THAT(opened(), ElementsAre("cublasLt", "nvrtc", "part", "cudnn", "part"));
  libraries->report();
  EXPECT_THAT(opened(), ElementsAre("cublasLt", "nvrtc", "part", "cudnn", "part", "nccl"));
}

TEST(RealLibraries, AreUsableOrSayWhyNot) {
  const auto libraries = cuda::make_real_libraries();
  const std::vector<FoundLibrary> reports = libraries->report();
  ASSERT_EQ(reports.size(), 4u);
  const void* tables[] = {libraries->cublas_lt(), libraries->cudnn(), libraries->nvrtc(),
                          libraries->nccl()};
  for (std::size_t i = 0; i < reports.size(); ++i) {
    EXPECT_EQ(tables[i] != nullptr, reports[i].problem.empty()) << reports[i].problem;
    EXPECT_EQ(reports[i].problem.empty(), reports[i].fix.empty()) << reports[i].name;
    EXPECT_NE(reports[i].needed, "");
    EXPECT_TRUE(tables[i] == nullptr || fs::exists(reports[i].path)) << reports[i].path;
  }
}

TEST(RealLibraries, NvrtcCompiles) {
  const auto libraries = cuda::make_real_libraries();
  const cuda::Nvrtc* nvrtc = libraries->nvrtc();
  if (nvrtc == nullptr) GTEST_SKIP() << libraries->report()[2].problem;
  nvrtcProgram program = nullptr;
  const char* code = "extern \"C\" __global__ void twice(float* x) { x[threadIdx.x] *= 2.f; }";
  ASSERT_EQ(nvrtc->nvrtcCreateProgram(&program, code, "twice.cu", 0, nullptr, nullptr),
            NVRTC_SUCCESS);
  const char* options[] = {"--gpu-architecture=sm_90"};
  EXPECT_EQ(nvrtc->nvrtcCompileProgram(program, 1, options), NVRTC_SUCCESS);
  std::size_t bytes = 0;
  EXPECT_EQ(nvrtc->nvrtcGetCUBINSize(program, &bytes), NVRTC_SUCCESS);
  EXPECT_GT(bytes, 0u);
  EXPECT_EQ(nvrtc->nvrtcDestroyProgram(&program), NVRTC_SUCCESS);
}

}  // namespace
}  // namespace tandem::testing

// The kernel of fused bodies over the fake runtime: what it accepts and refuses, layouts, and how
// its programs are cached. Results come from the emulation by reference kernels;
// fused_source_test.cpp tests the generated code.
#include <filesystem>
#include <fstream>

#include "engine/graph/error.h"
#include "kernels/cuda/pointwise/fused/fused_programs.h"
#include "tests/cuda/fused_bodies.h"
#include "tests/cuda/support/fake_nvrtc.h"

namespace tandem::testing::pointwise {
namespace {

namespace fs = std::filesystem;

int count_calls(GpuKernels& kernels, const std::string& start) {
  int count = 0;
  for (const std::string& call : kernels.gpu().runtime->calls())
    count += call.compare(0, start.size(), start) == 0;
  return count;
}

TEST(CudaFused, CasesInSeveralLayouts) {
  GpuKernels kernels(cuda::add_pointwise_kernels, nvrtc_alone());
  for (const auto& examples : {fused_case_examples(), more_fused_examples()}) {
    for (const FusedExample& example : examples) {
      SCOPED_TRACE(example.name);
      for (const LayoutVariant& variant : all_variants()) {
        SCOPED_TRACE(variant.name);
        std::vector<Layout> layouts;
        for (const HostTensor& x : example.inputs) layouts.push_back(variant.layout(x.shape()));
        expect_equal(kernels.run(example.graph, example.inputs, layouts), example.expected,
                     example.tolerance);
      }
    }
  }
  EXPECT_GT(count_calls(kernels, "launch fused"), 100);
}

TEST(CudaFused, RefusesWithoutACompiler) {
  GpuKernels kernels(cuda::add_pointwise_kernels);
  const FusedExample example = fused_case_examples().front();
  std::vector<std::string> refusals;
  EXPECT_EQ(choose_kernel(kernels.list(), plain_request(example.graph, example.graph.nodes[0]),
                          &refusals),
            nullptr);
  ASSERT_EQ(refusals.size(), 1u);
  EXPECT_EQ(refusals[0], "cuda.fused: NVRTC is missing, which compiles fused bodies at run time");
}

std::string refusal(const std::vector<TensorType>& types, const BuildBody& build) {
  GpuKernels kernels(cuda::add_pointwise_kernels, nvrtc_alone());
  const Graph graph = single_node("Fused", types, {}, fused_body(types, build));
  std::vector<std::string> refusals;
  choose_kernel(kernels.list(), plain_request(graph, graph.nodes[0]), &refusals);
  return refusals.empty() ? "" : refusals[0];
}

TEST(CudaFused, RefusesWhatItCannot) {
  using Values = std::vector<ValueId>;
  const TensorType floats{DType::float32, {4, 6}}, whole{DType::int32, {4, 6}};
  EXPECT_EQ(
      refusal({floats, {DType::float32, {6}}},
              [](GraphBuilder& g, const Values& x) { return Values{g.add(x[0], g.neg(x[1]))}; }),
      "cuda.fused: several index spaces");
  EXPECT_EQ(refusal({whole},
                    [](GraphBuilder& g, const Values& x) {
                      return Values{g.reduce_sum(g.neg(x[0]), {1}, true)};
                    }),
            "cuda.fused: a reduction of int32");
  EXPECT_EQ(refusal({floats},
                    [](GraphBuilder& g, const Values& x) {
                      return Values{g.neg(g.reduce_sum(g.neg(x[0]), {1}, true))};
                    }),
            "cuda.fused: a reduction inside");
  EXPECT_EQ(refusal({floats},
                    [](GraphBuilder& g, const Values& x) {
                      return Values{g.add_node("Softmax", {x[0]}, {{"axis", std::int64_t{1}}})};
                    }),
            "cuda.fused: operator Softmax");
  EXPECT_EQ(refusal(std::vector<TensorType>(40, floats),
                    [](GraphBuilder& g, const Values& x) {
                      ValueId sum = x[0];
                      for (std::size_t i = 1; i < x.size(); ++i) sum = g.add(sum, x[i]);
                      return Values{sum};
                    }),
            "cuda.fused: more than 32 operands");
  EXPECT_EQ(refusal({{DType::float32, Shape(9, 2)}},
                    [](GraphBuilder& g, const Values& x) { return Values{g.neg(x[0])}; }),
            "cuda.fused: more than 8 axes");
}

// Known inputs are written into the source as numbers; other values of the same shape are not.
TEST(CudaFused, ProgramsAreSharedBySource) {
  GpuKernels kernels(cuda::add_pointwise_kernels, nvrtc_alone());
  const auto run = [&](std::int64_t n) {
    const FusedExample example = fused_example(
        "sum", {random_numbers({n}, DType::float32, 1), random_numbers({n}, DType::float32, 2)},
        [](GraphBuilder& g, const std::vector<ValueId>& x) {
          return std::vector<ValueId>{g.neg(g.add(x[0], x[1]))};
        },
        1e-6);
    expect_equal(kernels.run(example.graph, example.inputs), example.expected, 1e-6);
  };
  run(64);
  run(1000);
  run(7);
  EXPECT_EQ(count_calls(kernels, "load_library"), 1);
}

class CudaFusedFiles : public ::testing::Test {
 protected:
  CudaFusedFiles() : folder_(fs::path(::testing::TempDir()) / "tandem_fused_programs") {
    fs::remove_all(folder_);
  }
  ~CudaFusedFiles() override { fs::remove_all(folder_); }

  /// Runs one body on a fresh GPU; returns the loaded files.
  std::vector<fs::path> run() {
    GpuKernels kernels(cuda::add_pointwise_kernels, nvrtc_alone());
    kernels.gpu().gpu->cache_folder = (folder_ / "cache").string();
    const FusedExample example = fused_case_examples().front();
    expect_equal(kernels.run(example.graph, example.inputs), example.expected, 1e-5);
    EXPECT_EQ(count_calls(kernels, "load_library"), 1);
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(folder_ / "cache"))
      files.push_back(entry.path());
    return files;
  }

  static std::string content(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }

  fs::path folder_;
};

TEST_F(CudaFusedFiles, AreWrittenOnceAndReadAgain) {
  const std::vector<fs::path> first = run();
  ASSERT_EQ(first.size(), 1u);
  const std::string text = content(first[0]);
  EXPECT_NE(text.find("--gpu-architecture=sm_90"), std::string::npos);
  const int compiled = fake_nvrtc_compiled;
  EXPECT_EQ(run(), first);
  EXPECT_EQ(fake_nvrtc_compiled, compiled);
}

TEST_F(CudaFusedFiles, BrokenOnesAreCompiledAgain) {
  const std::vector<fs::path> first = run();
  ASSERT_EQ(first.size(), 1u);
  const std::string text = content(first[0]);
  const int compiled = fake_nvrtc_compiled;
  std::ofstream(first[0], std::ios::binary) << text.substr(0, text.size() / 2);
  EXPECT_EQ(run(), first);
  EXPECT_EQ(content(first[0]), text);
  std::ofstream(first[0], std::ios::binary | std::ios::trunc);
  EXPECT_EQ(run(), first);
  EXPECT_EQ(content(first[0]), text);
  EXPECT_EQ(fake_nvrtc_compiled, compiled + 2);
}

TEST(CudaFused, ACacheThatCannotBeWrittenIsNone) {
  GpuKernels kernels(cuda::add_pointwise_kernels, nvrtc_alone());
  kernels.gpu().gpu->cache_folder = "/proc/tandem";
  const FusedExample example = fused_case_examples().front();
  expect_equal(kernels.run(example.graph, example.inputs), example.expected, 1e-5);
}

TEST(CudaFused, NewerGpusGetPtx) {
  const auto cubin = cuda::compile_for_gpu(fake_nvrtc(), "fused", 86);
  EXPECT_EQ(cubin.code.substr(0, 35), "cubin --gpu-architecture=sm_86 --st");
  const auto ptx = cuda::compile_for_gpu(fake_nvrtc(), "fused", 103);
  EXPECT_EQ(ptx.code.substr(0, 35), "ptx --gpu-architecture=compute_90 -");
  EXPECT_THROW(cuda::compile_for_gpu(fake_nvrtc(), "fused", 70), Error);
}

TEST(CudaFused, TheCompilersWordsAreInTheError) {
  try {
    cuda::compile_for_gpu(fake_nvrtc(), "this does not compile", 90);
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::runtime);
    EXPECT_NE(std::string(e.what()).find("log"), std::string::npos);
  }
}

TEST(CudaFused, AGpuThatRefusesTheCodeIsAnError) {
  GpuKernels kernels(cuda::add_pointwise_kernels, nvrtc_alone());
  const FusedExample example = fused_case_examples().front();
  kernels.gpu().runtime->fail("load_library", 1, cudaErrorNoKernelImageForDevice);
  EXPECT_THROW(kernels.run(example.graph, example.inputs), Error);
  kernels.gpu().runtime->fail("find_kernel", 1, cudaErrorSymbolNotFound);
  EXPECT_THROW(kernels.run(example.graph, example.inputs), Error);
}

}  // namespace
}  // namespace tandem::testing::pointwise

// The generated code of fused kernels: NVRTC compiles it without a warning, and compiled by g++ it
// computes the results of the reference kernels.
#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "engine/graph/error.h"
#include "kernels/cuda/pointwise/fused/fused_plan.h"
#include "kernels/cuda/pointwise/fused/fused_programs.h"
#include "kernels/cuda/pointwise/pointwise.h"
#include "kernels/reference/scalar_operators.h"
#include "tests/cuda/fused_bodies.h"
#include "tests/cuda/support/fake_nvrtc.h"
#include "tests/harness/folders.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::testing::pointwise {
namespace {

namespace fs = std::filesystem;
using HostEntry = void (*)(const cuda::LaunchShape&, const void*);

/// Sources and, after `compile`, their functions.
class HostPrograms {
 public:
  ~HostPrograms() {
    if (library_ != nullptr) dlclose(library_);
  }

  void add(const std::string& source) { entries_.try_emplace(source, nullptr); }
  HostEntry entry(const std::string& source) const { return entries_.at(source); }
  std::vector<std::string> sources() const {
    std::vector<std::string> all;
    for (const auto& [source, entry] : entries_) all.push_back(source);
    return all;
  }

  /// Compiles all sources as one file, each with its own names.
  void compile() {
    const std::string code = folder_ / "sources.cpp", library = folder_ / "sources.so";
    {
      std::ofstream file(code);
      int number = 0;
      for (const auto& [source, entry] : entries_) {
        const std::string own = std::to_string(number++);
        for (const char* name : {"Body", "Kernel", "fused"})
          file << "#define " << name << " " << name << "_" << own << "\n";
        file << source;
        for (const char* name : {"Body", "Kernel", "fused"}) file << "#undef " << name << "\n";
      }
    }
    const std::string root = source_folder();
    const std::string command = std::string(TANDEM_CXX_COMPILER) +
                                " -std=c++20 -O0 -shared -fPIC -Wall -Wextra -Werror -I'" + root +
                                "' -I'" + root + "/include' -o '" + library + "' '" + code + "'";
    ASSERT_EQ(std::system(command.c_str()), 0) << "the sources do not compile without a warning";
    library_ = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library_, nullptr) << dlerror();
    int number = 0;
    for (auto& [source, entry] : entries_) {
      const std::string name = "fused_" + std::to_string(number++);
      entry = reinterpret_cast<HostEntry>(dlsym(library_, name.c_str()));
      ASSERT_NE(entry, nullptr) << name;
    }
  }

 private:
  testing::TemporaryFolder folder_;
  void* library_ = nullptr;
  std::map<std::string, HostEntry> entries_;
};

/// How many runs used each code path.
struct Ways {
  int wide = 0, narrow = 0, parts = 0, empty = 0;
};

/// The GPU's kernel with the generated code in place of its emulation. If `run` is false, it only
/// collects sources and computes nothing.
class Generated final : public PreparedKernel {
 public:
  Generated(const KernelRequest& request, const cuda::Gpu& gpu, HostPrograms& programs, bool run,
            Ways& ways)
      : gpu_(gpu), programs_(programs), run_(run), ways_(ways) {
    cuda::FusedBody body;
    EXPECT_EQ(cuda::read_body(request, body), std::nullopt);
    plan_ = cuda::plan_fused(request, body, gpu->properties.multiprocessors);
    if (plan_.elements > 0) programs.add(plan_.source);
    inputs_ = request.inputs.size();
    outputs_ = request.outputs.size();
    if (body.reduction) result_ = body.reduction->output;
    if (result_ >= 0) result_type_ = request.outputs[static_cast<std::size_t>(result_)].type.dtype;
    workspace_bytes = plan_.workspace_bytes();
  }

  void run(const KernelArguments& a) noexcept override {
    if (!run_) return;
    bool wide = plan_.wide.possible;
    for (std::size_t k = 0; wide && k < plan_.alignment.size(); ++k) {
      const void* address = k < inputs_ ? a.inputs[k] : a.outputs[k - inputs_];
      wide = cuda::is_aligned(address, plan_.alignment[k]);
    }
    if (plan_.elements > 0) {
      const cuda::FusedPlan::Way& way = wide ? plan_.wide : plan_.narrow;
      ++(wide ? ways_.wide : ways_.narrow);
      cuda::FusedArguments arguments = way.arguments;
      for (std::size_t i = 0; i < inputs_; ++i)
        arguments.operands[i] = const_cast<void*>(a.inputs[i]);
      std::copy_n(a.outputs, outputs_, arguments.operands + inputs_);
      if (plan_.finish.parts > 0) arguments.partial = static_cast<double*>(a.workspace);
      programs_.entry(plan_.source)(way.shape, &arguments);
    }
    if (result_ < 0 || plan_.finish.elements == 0 || a.outputs[result_] == nullptr) return;
    if (plan_.elements > 0 && plan_.finish.parts == 0) return;
    ++(plan_.elements > 0 ? ways_.parts : ways_.empty);
    cuda::FinishArguments finish = plan_.finish;
    finish.partial = static_cast<const double*>(a.workspace);
    finish.result = a.outputs[result_];
    const cuda::LaunchShape shape = cuda::spread(finish.elements, gpu_->properties.multiprocessors);
    cuda::launch_finish(*gpu_, finish, result_type_, shape, a.queue);
  }

 private:
  cuda::Gpu gpu_;
  HostPrograms& programs_;
  bool run_;
  Ways& ways_;
  cuda::FusedPlan plan_;
  std::size_t inputs_ = 0, outputs_ = 0;
  int result_ = -1;
  DType result_type_ = DType::float32;
};

const std::vector<FusedExample>& examples() {
  static const std::vector<FusedExample> all = [] {
    std::vector<FusedExample> both = fused_case_examples();
    for (FusedExample& example : more_fused_examples()) both.push_back(std::move(example));
    return both;
  }();
  return all;
}

/// Calls f(example, run options) for each example in each layout.
template <class F>
void for_each_run(const F& f) {
  for (const FusedExample& example : examples()) {
    SCOPED_TRACE(example.name);
    for (const LayoutVariant& variant : all_variants()) {
      const bool large = example.inputs[0].type().elements() > 100000;
      if (large && variant.layout != row_major) continue;
      SCOPED_TRACE(variant.name);
      RunOptions options;
      for (const HostTensor& x : example.inputs)
        options.input_layouts.push_back(variant.layout(x.shape()));
      f(example, options);
    }
    if (example.expected.size() < 2) continue;
    RunOptions first;
    first.only_output = 0;
    SCOPED_TRACE("only the first output is read");
    f(example, first);
  }
}

/// The GPU's fused kernel with another `prepare`.
struct GeneratedKernel {
  GeneratedKernel() : gpu({}, nvrtc_alone()) {
    KernelList list;
    cuda::add_fused_kernels(list, gpu.gpu);
    kernel = list.front();
    kernel.prepare = [this](const KernelRequest& request) {
      return std::make_unique<Generated>(request, gpu.gpu, programs, run, ways);
    };
  }

  FakeGpu gpu;
  HostPrograms programs;
  bool run = false;
  Ways ways;
  Kernel kernel;

  void collect() {
    for_each_run([&](const FusedExample& example, RunOptions options) {
      options.queue = gpu.stream;
      run_node(kernel, example.graph, example.graph.nodes[0], example.inputs, options);
    });
  }
};

TEST(CudaFusedSource, ExamplesHoldEveryFunction) {
  std::set<std::string> held;
  for (const FusedExample& example : examples()) {
    for (const Node& node : example.graph.nodes[0].body->nodes) held.insert(node.op->name);
  }
  for_each_scalar_operator([&](const Operator& op) {
    EXPECT_EQ(held.count(op.name), 1u) << op.name << " belongs into tests/cuda/fused_bodies.cpp";
  });
}

TEST(CudaFusedSource, ComputesOnTheHostWhatTheReferenceDoes) {
  GeneratedKernel generated;
  generated.collect();
  generated.programs.compile();
  if (HasFatalFailure()) return;
  generated.run = true;
  for_each_run([&](const FusedExample& example, RunOptions options) {
    options.queue = generated.gpu.stream;
    options.finish = [&] { generated.gpu.runtime->synchronize(generated.gpu.stream); };
    const auto results =
        run_node(generated.kernel, example.graph, example.graph.nodes[0], example.inputs, options);
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (options.only_output >= 0 && static_cast<int>(i) != options.only_output) continue;
      EXPECT_EQ(compare(results[i], example.expected[i], example.tolerance), "") << "output " << i;
    }
    EXPECT_EQ(generated.gpu.problem(), "");
  });
  // The examples reach every code path.
  EXPECT_GT(generated.ways.wide, 50);
  EXPECT_GT(generated.ways.narrow, 50);
  EXPECT_GT(generated.ways.parts, 20);
  EXPECT_GT(generated.ways.empty, 2);
}

/// Compiles every `stride`-th source with the real NVRTC.
void compile_for_gpus(std::size_t stride, std::initializer_list<int> architectures) {
  const std::shared_ptr<cuda::Libraries> libraries = cuda::make_real_libraries();
  const cuda::Nvrtc* const nvrtc = libraries->nvrtc();
  if (nvrtc == nullptr) GTEST_SKIP() << "NVRTC is not on this machine";
  GeneratedKernel generated;
  generated.collect();
  const auto& sources = generated.programs.sources();
  ASSERT_GT(sources.size(), 4 * stride);
  std::set<std::string> failed;
  for (std::size_t i = 0; i < sources.size(); i += stride) {
    const std::string& source = sources[i];
    for (int architecture : architectures) {
      try {
        const cuda::CompiledKernel kernel = cuda::compile_for_gpu(*nvrtc, source, architecture);
        EXPECT_EQ(kernel.log, "") << source;
        EXPECT_EQ(kernel.code.substr(1, 3), "ELF");
        EXPECT_NE(kernel.code.find("fused"), std::string::npos);
      } catch (const Error& e) {
        failed.insert(e.what());
      }
    }
  }
  for (const std::string& text : failed) ADD_FAILURE() << text;
}

TEST(CudaFusedSource, NvrtcCompilesSomeWithoutWarnings) { compile_for_gpus(8, {90}); }
TEST(CudaFusedSource, LongNvrtcCompilesAllWithoutWarnings) { compile_for_gpus(1, {80, 90, 120}); }

TEST(CudaFusedSource, ReadsLikeTheBody) {
  GeneratedKernel generated;
  const FusedExample example = fused_example(
      "gelu of a sum",
      {random_numbers({6, 32}, DType::float32, 1), random_numbers({32}, DType::float32, 2)},
      [](GraphBuilder& g, const std::vector<ValueId>& x) {
        return std::vector<ValueId>{g.add_node("Gelu", {g.add(x[0], x[1])})};
      },
      1e-5);
  run_node(generated.kernel, example.graph, example.graph.nodes[0], example.inputs);
  ASSERT_EQ(generated.programs.sources().size(), 1u);
  const std::string source = generated.programs.sources()[0];
  for (const char* line :
       {"// Fused: Add, Gelu", "static constexpr int width = 4, places = 2;",
        "read(x0, p.operands[0], at[0], 1);", "read(x1, p.operands[1], at[1], 1);",
        "const float v2 = scalar::add<float>(v0, v1);",
        "const float v3 = scalar::gelu<float>(v2, from_bits<float>(0x0u) /* 0 */);",
        "y0[i] = stored<float>(v3);", "write(p.operands[2], at[0], y0);"})
    EXPECT_NE(source.find(line), std::string::npos) << line << "\nin\n" << source;
}

}  // namespace
}  // namespace tandem::testing::pointwise

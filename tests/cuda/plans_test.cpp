// Which engines cuDNN's plans come from, plans kept in memory and on disk, packs of addresses, and
// failures of the library.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "engine/graph/error.h"
#include "kernels/cuda/networks/convolution_graph.h"
#include "kernels/cuda/networks/plans.h"
#include "tests/cuda/support/network_check.h"

namespace tandem::testing {
namespace {

using cuda::EngineRules;
using cuda::NetworkGraph;
using cuda::Plans;

NetworkGraph small_convolution(DType dtype = DType::float32, std::int64_t channels = 4) {
  cuda::ConvolutionShape c;
  c.dtype = dtype;
  c.x = {1, channels, 3, 3}, c.weight = {2, channels, 1, 1}, c.y = {1, 2, 3, 3};
  c.steps = {{1, 1}, {1, 1}, {0, 0}, {0, 0}};
  return convolution_graph(c);
}

struct PlansTest : ::testing::Test {
  std::shared_ptr<FakeRuntime> runtime = std::make_shared<FakeRuntime>();
  FakeCudnn cudnn{runtime};
  std::filesystem::path folder;

  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "plans.XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder = name;
  }
  void TearDown() override {
    std::filesystem::remove_all(folder);
    EXPECT_EQ(cudnn.live(), 0u);
    for (const std::string& text : cudnn.problems()) ADD_FAILURE() << text;
  }
  std::unique_ptr<Plans> plans(const std::string& gpu = "9.0 a GPU") {
    return std::make_unique<Plans>(*cudnn.table(), gpu, folder.string());
  }
  /// The workspace of the graph's plan, which shows which of the fake's engines computes it.
  std::size_t workspace(const NetworkGraph& graph, const EngineRules& rules) {
    return plans("card " + std::to_string(++gpus_))->plan(graph, rules)->workspace_bytes;
  }
  std::vector<std::filesystem::path> files() const {
    std::vector<std::filesystem::path> all;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) all.push_back(entry);
    return all;
  }

 private:
  int gpus_ = 0;
};

constexpr EngineRules exact_engines{.tensor_cores = false, .deterministic = true};
constexpr EngineRules short_products{.tensor_cores = true, .deterministic = true};

TEST_F(PlansTest, EnginesByTheirNotes) {
  cudnn.engines = {
      {.notes = {CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS}, .workspace_bytes = 1},
      {.notes = {CUDNN_NUMERICAL_NOTE_TENSOR_CORE}, .workspace_bytes = 2},
      {.notes = {CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC}, .workspace_bytes = 3},
      {.notes = {CUDNN_NUMERICAL_NOTE_FFT}, .workspace_bytes = 4},
      {.notes = {CUDNN_NUMERICAL_NOTE_WINOGRAD, CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6},
       .workspace_bytes = 5},
      {.notes = {CUDNN_NUMERICAL_NOTE_WINOGRAD, CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4},
       .workspace_bytes = 6},
      {.workspace_bytes = 7}};
  EXPECT_EQ(workspace(small_convolution(), exact_engines), 6u);
  EXPECT_EQ(workspace(small_convolution(), short_products), 2u);
  EngineRules any = exact_engines;
  any.deterministic = false;
  EXPECT_EQ(workspace(small_convolution(), any), 3u);
  // Products of 16-bit floats are exact in every engine.
  EXPECT_EQ(workspace(small_convolution(DType::bfloat16), exact_engines), 1u);
  cudnn.engines.insert(cudnn.engines.begin(),
                       {.notes = {CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION}});
  EXPECT_EQ(workspace(small_convolution(DType::float16), exact_engines), 1u);

  const cuda::EngineCount count = plans()->count(small_convolution(), exact_engines);
  EXPECT_EQ(count.offered, 8);
  EXPECT_EQ(count.allowed, 2);
}

TEST_F(PlansTest, EnginesThatMakeNoPlan) {
  cudnn.engines = {{.workspace_bytes = 1, .makes_plans = false},
                   {.workspace_bytes = 2, .is_fallback = true}};
  EXPECT_EQ(workspace(small_convolution(), exact_engines), 2u);
  cudnn.engines[1].makes_plans = false;
  EXPECT_THROW(workspace(small_convolution(), exact_engines), Error);
  cudnn.engines.clear();
  EXPECT_THROW(workspace(small_convolution(), exact_engines), Error);
}

TEST_F(PlansTest, LargeWorkspacesComeLast) {
  EngineRules rules = exact_engines;
  rules.workspace_limit = 100;
  cudnn.engines = {{.workspace_bytes = 300}, {.workspace_bytes = 200}, {.workspace_bytes = 50}};
  EXPECT_EQ(workspace(small_convolution(), rules), 50u);
  cudnn.engines[2].workspace_bytes = 250;
  EXPECT_EQ(workspace(small_convolution(), rules), 200u);
}

TEST_F(PlansTest, OncePerGraph) {
  const auto all = plans();
  all->count(small_convolution(), exact_engines);
  const int asked = cudnn.questions();
  all->count(small_convolution(), exact_engines);
  EXPECT_EQ(cudnn.questions(), asked);
  const auto first = all->plan(small_convolution(), exact_engines);
  EXPECT_EQ(all->plan(small_convolution(), exact_engines), first);
  EXPECT_NE(all->plan(small_convolution(DType::float32, 8), exact_engines), first);
  EXPECT_NE(all->plan(small_convolution(), short_products), first);
  EXPECT_EQ(cudnn.plans_made(), 3);
}

TEST_F(PlansTest, KeptOnDisk) {
  const std::size_t bytes = plans()->plan(small_convolution(), exact_engines)->workspace_bytes;
  ASSERT_EQ(files().size(), 1u);
  EXPECT_EQ(cudnn.plans_made(), 1);
  EXPECT_EQ(plans()->plan(small_convolution(), exact_engines)->workspace_bytes, bytes);
  EXPECT_EQ(cudnn.plans_made(), 1);
  EXPECT_EQ(cudnn.plans_read(), 1);
  // Other GPUs, rules and shapes have their own plans.
  plans("8.0 another GPU")->plan(small_convolution(), exact_engines);
  plans()->plan(small_convolution(), short_products);
  plans()->plan(small_convolution(DType::float16), exact_engines);
  EXPECT_EQ(cudnn.plans_made(), 4);
  EXPECT_EQ(files().size(), 4u);
}

TEST_F(PlansTest, DamagedFilesAreMadeAnew) {
  plans()->plan(small_convolution(), exact_engines);
  ASSERT_EQ(files().size(), 1u);
  const std::filesystem::path path = files()[0];
  std::ifstream in(path, std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(in)), {});
  const auto keep = [&](const std::string& text) { std::ofstream(path, std::ios::binary) << text; };
  const std::size_t key = whole.find('\n');
  int made = cudnn.plans_made();
  for (const std::string& text : {whole.substr(0, whole.size() - 1), std::string(), "x" + whole,
                                  whole.substr(0, key + 1) + "4\nlate"}) {
    keep(text);
    plans()->plan(small_convolution(), exact_engines);
    EXPECT_EQ(cudnn.plans_made(), ++made) << text.substr(0, 40);
    EXPECT_EQ(cudnn.plans_read(), 0);
    EXPECT_EQ(files().size(), 1u);
  }
  plans()->plan(small_convolution(), exact_engines);
  EXPECT_EQ(cudnn.plans_read(), 1);
}

TEST_F(PlansTest, NoFolderIsNoFailure) {
  Plans nowhere(*cudnn.table(), "9.0 a GPU", "/proc/no/such/folder");
  EXPECT_NO_THROW(nowhere.plan(small_convolution(), exact_engines));
  Plans nothing(*cudnn.table(), "9.0 a GPU", "");
  EXPECT_NO_THROW(nothing.plan(small_convolution(), exact_engines));
  EXPECT_TRUE(files().empty());
}

OperatorCase convolution_case() {
  return {.name = "small",
          .op = "Conv",
          .inputs = {{.shape = {2, 8, 5, 5}}, {.shape = {4, 8, 3, 3}}, {.shape = {4}}},
          .attributes = {{"strides", Ints{1, 1}},
                         {"pads", Ints{1, 1, 1, 1}},
                         {"dilations", Ints{1, 1}},
                         {"group", std::int64_t{1}}}};
}

TEST(CudaPlans, ProductsInFullUnlessShortOnesAreAllowed) {
  NetworkGpu gpu;
  check_node(gpu, convolution_case());
  ASSERT_EQ(gpu.cudnn.runs().size(), 1u);
  EXPECT_EQ(gpu.cudnn.runs()[0].engine, 2);
  gpu.gpu->allow_tf32 = true;
  gpu.list_kernels();
  check_node(gpu, convolution_case(), {.tolerance = 4e-3});
  ASSERT_EQ(gpu.cudnn.runs().size(), 2u);
  EXPECT_EQ(gpu.cudnn.runs()[1].engine, 0);
}

TEST(CudaPlans, WithoutCudnnOurOwnKernelsCompute) {
  FakeGpu plain;
  KernelList kernels;
  cuda::add_network_kernels(kernels, plain.gpu);
  const Graph graph = graph_in(convolution_case(), DType::float32);
  std::vector<std::string> refusals;
  const Kernel* kernel =
      choose_kernel(kernels, plain_request(graph, graph.nodes[0], plain.facts), &refusals);
  ASSERT_NE(kernel, nullptr);
  EXPECT_EQ(kernel->name, "cuda.conv");
  EXPECT_EQ(refusals, (std::vector<std::string>{"cudnn.conv: cuDNN cannot be used"}));
}

TEST(CudaPlans, WhatCudnnLacksOurOwnKernelsCompute) {
  NetworkGpu gpu;
  gpu.cudnn.unsupported = [](const FakeGraph&) { return true; };
  EXPECT_EQ(check_node(gpu, convolution_case()), (std::vector<std::string>{"cuda.conv"}));
  const Graph graph = graph_in(convolution_case(), DType::float32);
  const KernelRequest request = plain_request(graph, graph.nodes[0], gpu.facts);
  EXPECT_EQ(gpu.kernel("cudnn.conv", "Conv").refuse(request).value_or(""),
            "cuDNN has no engine for it");
  gpu.cudnn.unsupported = nullptr;
  gpu.cudnn.engines = {{.notes = {CUDNN_NUMERICAL_NOTE_TENSOR_CORE}}};
  gpu.list_kernels();
  EXPECT_EQ(gpu.kernel("cudnn.conv", "Conv").refuse(request).value_or(""),
            "cuDNN has no engine for it that is deterministic and exact enough");
}

/// A prepared convolution with operands on the GPU.
struct PreparedConvolution {
  explicit PreparedConvolution(NetworkGpu& c) : gpu(c) {
    graph = graph_in(convolution_case(), DType::float32);
    const std::vector<HostTensor> inputs = rounded_inputs(convolution_case(), graph);
    expected = in_double(convolution_case(), graph, inputs)[0];
    prepared =
        gpu.kernel("cudnn.conv", "Conv").prepare(plain_request(graph, graph.nodes[0], gpu.facts));
    for (const HostTensor& x : inputs) {
      in.push_back(allocate(x.bytes()));
      gpu.runtime->copy_now(in.back(), x.data(), x.bytes());
    }
    workspace = allocate(prepared->workspace_bytes);
  }
  ~PreparedConvolution() {
    for (void* memory : all) gpu.runtime->release(memory);
  }
  void* allocate(std::size_t bytes) {
    void* memory = nullptr;
    EXPECT_EQ(gpu.runtime->allocate(memory, bytes), cudaSuccess);
    all.push_back(memory);
    return memory;
  }
  void run(void* y) {
    const void* inputs[] = {in[0], in[1], in[2]};
    void* outputs[] = {y};
    prepared->run({inputs, outputs, workspace, nullptr, gpu.stream});
  }
  std::string difference(void* y) {
    HostTensor result(TensorType{DType::float32, expected.shape()});
    gpu.runtime->synchronize(gpu.stream);
    gpu.runtime->copy_now(result.data(), y, result.bytes());
    return compare(result, expected, 1e-5);
  }

  NetworkGpu& gpu;
  Graph graph;
  HostTensor expected;
  std::unique_ptr<PreparedKernel> prepared;
  std::vector<void*> in, all;
  void* workspace = nullptr;
};

TEST(CudaPlans, PacksAreMadeAhead) {
  NetworkGpu gpu;
  PreparedConvolution convolution(gpu);
  const int made = gpu.cudnn.packs_made();
  std::vector<void*> places;
  for (int i = 0; i < 10; ++i) places.push_back(convolution.allocate(2 * 4 * 25 * sizeof(float)));
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 8; ++i) convolution.run(places[i]);
  }
  EXPECT_EQ(gpu.cudnn.packs_made(), made) << "a run has made a pack";
  for (int i = 0; i < 8; ++i) EXPECT_EQ(convolution.difference(places[i]), "") << i;
  // More sets of addresses than are kept: results are correct, but packs must be made.
  for (int i = 8; i < 10; ++i) convolution.run(places[i]);
  EXPECT_EQ(gpu.cudnn.packs_made(), made + 2);
  for (int i = 8; i < 10; ++i) EXPECT_EQ(convolution.difference(places[i]), "") << i;
  // The two that were used longest ago are gone, the others are kept.
  for (int i = 2; i < 10; ++i) convolution.run(places[i]);
  EXPECT_EQ(gpu.cudnn.packs_made(), made + 2);
  gpu.expect_clean();
}

TEST(CudaPlans, Captured) {
  NetworkGpu gpu;
  PreparedConvolution convolution(gpu);
  void* y = convolution.allocate(2 * 4 * 25 * sizeof(float));
  ASSERT_EQ(gpu.runtime->begin_capture(gpu.stream), cudaSuccess);
  convolution.run(y);
  cudaGraphExec_t graph = nullptr;
  ASSERT_EQ(gpu.runtime->end_capture(gpu.stream, graph), cudaSuccess);
  for (int i = 0; i < 2; ++i) {
    gpu.runtime->fill(y, 0xff, 2 * 4 * 25 * sizeof(float), gpu.stream);
    gpu.runtime->launch_graph(graph, gpu.stream);
    EXPECT_EQ(convolution.difference(y), "");
  }
  gpu.runtime->destroy_graph(graph);
  gpu.expect_clean();
}

TEST(CudaPlans, FailuresOfARunAreNoted) {
  for (const char* function : {"cudnnBackendExecute", "cudnnSetStream", "cudnnBackendSetAttribute",
                               "cudnnBackendFinalize"}) {
    NetworkGpu gpu;
    PreparedConvolution convolution(gpu);
    void* y = convolution.allocate(2 * 4 * 25 * sizeof(float));
    gpu.cudnn.failing[function] = CUDNN_STATUS_INTERNAL_ERROR;
    convolution.run(y);
    const std::string failure = gpu.gpu->take_failure();
    EXPECT_NE(failure.find(std::string(function) + " fails"), std::string::npos) << failure;
    // The next run works as if nothing had happened.
    convolution.run(y);
    EXPECT_EQ(convolution.difference(y), "") << function;
    gpu.expect_clean();
  }
}

TEST(CudaPlans, FailuresAheadOfARunAreErrors) {
  for (const char* function :
       {"cudnnCreate", "cudnnBackendCreateDescriptor", "cudnnBackendFinalize"}) {
    NetworkGpu gpu;
    gpu.cudnn.failing[function] = CUDNN_STATUS_INTERNAL_ERROR;
    EXPECT_THROW(PreparedConvolution{gpu}, Error) << function;
  }
}

TEST(CudaPlans, NothingIsLeft) {
  NetworkGpu gpu;
  check_node(gpu, convolution_case());
  EXPECT_GT(gpu.cudnn.live(), 0u);
  gpu.kernels.clear();
  EXPECT_EQ(gpu.cudnn.live(), 0u);
}

}  // namespace
}  // namespace tandem::testing

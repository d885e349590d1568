// Which operators the example networks run on a GPU in training: each must have a kernel.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cuda/gpu_check/networks.h"
#include "tests/cuda/support/fake_gpu.h"
#include "tests/cuda/support/fake_machine.h"
#include "tests/cuda/support/listed_gaps.h"
#include "tests/harness/folders.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::testing {
namespace {

using ::testing::IsSupersetOf;

/// MLP, LeNet-5, convolutions with batch normalisation, GPT, encoder, Wide & Deep; and ResNet-18.
std::vector<gpu_check::Network> networks() {
  std::vector<gpu_check::Network> all = gpu_check::check_networks(source_folder());
  const NetworkCase resnet(PolicyCase{"resnet18", 0});
  gpu_check::Network more;
  more.name = "resnet18";
  more.model = resnet.model;
  more.batch = resnet.batch;
  more.settings = resnet.settings;
  more.feeds = resnet.feeds;
  all.push_back(std::move(more));
  return all;
}

/// Operators of forward, backward and update with everything on a GPU, after lowering.
std::set<std::string> operators_on_gpu(const gpu_check::Network& network,
                                       const std::vector<std::string>& more) {
  const TemporaryFolder folder;
  const std::string policy = gpu_check::write_policy(
      folder.path(), "policy", gpu_check::policy_text("emulated:0", {"at = \"**\", on = \"gpu\""}));
  std::vector<std::string> settings = network.settings;
  settings.push_back("policy=" + Json(policy).dump());
  settings.insert(settings.end(), more.begin(), more.end());
  FakeMachine machine;
  PlacedOptions options;
  options.placing = machine.placing();
  PlacedTraining training(network.model, network.batch, settings, network.batch_of(0), options);
  std::set<std::string> names;
  for (const Program* program : training.programs()) {
    const Lowered& lowered = program->lowered();
    for (std::size_t i = 0; i < lowered.nodes.size(); ++i) {
      const Operator& op = *lowered.graph.nodes[i].op;
      if (lowered.nodes[i].device != 0 && op.view == nullptr) names.insert(op.name);
    }
  }
  return names;
}

TEST(CudaModelOperators, NoneIsWithoutAKernel) {
  std::set<std::string> without;
  for (const std::string& line : listed_gaps()) {
    const std::size_t colon = line.find(':');
    // Other lines are about single cases of an operator.
    if (line.compare(colon, 5, ": no ") == 0) without.insert(line.substr(0, colon));
  }
  ASSERT_FALSE(without.empty()) << listed_gaps_path;
  FakeGpu gpu;
  std::set<std::string> with{"Transfer"};  // an instruction of a copy queue
  for (const Kernel& kernel : cuda::cuda_kernels(gpu.gpu)) with.insert(kernel.op);
  std::set<std::string> seen;
  for (const gpu_check::Network& network : networks()) {
    for (const char* precision : {"float32", "bfloat16"}) {
      SCOPED_TRACE(network.name + " " + precision);
      const std::set<std::string> names =
          operators_on_gpu(network, {std::string("precision.compute=") + precision});
      EXPECT_GT(names.size(), 5u);
      for (const std::string& name : names) {
        EXPECT_TRUE(with.contains(name) && !without.contains(name)) << name;
      }
      seen.insert(names.begin(), names.end());
    }
  }
  EXPECT_THAT(seen, IsSupersetOf({"Attention", "AttentionGrad", "Conv", "ConvGradInput",
                                  "ConvGradWeight", "Gather", "LayerNormalization", "RowsUpdate"}));
}

}  // namespace
}  // namespace tandem::testing

// precision.tf32, from the configuration to the requests to cuBLASLt and cuDNN.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "tests/cuda/support/fake_machine.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Engines that the fake cuDNN has by default.
constexpr int with_tensor_cores = 0, exact = 2;

/// What two steps of a training on the GPU requested from the libraries.
struct Asked {
  std::set<cublasComputeType_t> products;
  std::set<int> engines;  // engines that ran convolutions
  std::vector<double> losses;
};

Asked asked_by(const PolicyCase& of, const std::vector<std::string>& settings) {
  const NetworkCase network(of);
  const TemporaryFolder folder;
  const std::string policy = folder / "policy.toml";
  std::ofstream(policy) << "policy = 1\ndevices = { gpu = { use = \"cuda:0\" } }\n"
                           "rules = [\n  { at = \"**\", on = \"gpu\" },\n]\n";
  FakeMachine machine;
  PlacedOptions options;
  DeviceBackend backend{.family = family_of_use("cuda:0")};
  backend.look = [] {
    DeviceReport report;
    report.toolkit = report.driver = "13.0";
    report.devices = {{0, "a GPU", std::size_t{1} << 30, std::size_t{1} << 30, 9, 0, ""}};
    return report;
  };
  backend.open = [&](const DeviceRequest& given) {
    CudaOptions watched = cuda_options(given);
    watched.monitor =
        machine.runtime->watch(std::dynamic_pointer_cast<OrderChecker>(given.monitor));
    return cuda::make_device(watched, machine.runtime, machine.libraries);
  };
  options.placing.machine = api::Machine({backend});
  Asked asked;
  {
    PlacedTraining training = network.training(policy, settings, options);
    asked.losses = losses_of(training, 2, [&](int step) { return network.batch_of(step); });
  }
  for (const LtProblem& product : machine.libraries->lt.questions())
    asked.products.insert(product.operation.compute);
  for (const CudnnRun& run : machine.libraries->dnn.runs()) asked.engines.insert(run.engine);
  return asked;
}

const PolicyCase mlp{"mlp", 0}, convolutions{"conv_bn", 1};

TEST(CudaTf32, ProductsAreExactUnlessItIsAsked) {
  const Asked plain = asked_by(mlp, {});
  EXPECT_THAT(plain.products, ElementsAre(CUBLAS_COMPUTE_32F));
  const Asked off = asked_by(mlp, {"precision.tf32=false"});
  EXPECT_EQ(off.products, plain.products);
  const Asked on = asked_by(mlp, {"precision.tf32=true"});
  EXPECT_THAT(on.products, ElementsAre(CUBLAS_COMPUTE_32F_FAST_TF32));
  expect_near(on.losses, plain.losses, 1e-5);  // the fake computes both in double
}

TEST(CudaTf32, ConvolutionsAreExactUnlessItIsAsked) {
  EXPECT_THAT(asked_by(convolutions, {}).engines, ElementsAre(exact));
  EXPECT_THAT(asked_by(convolutions, {"precision.tf32=true"}).engines,
              ElementsAre(with_tensor_cores));
}

TEST(CudaTf32, SixteenBitsAddInFloat32AllTheSame) {
  const Asked both = asked_by(mlp, {"precision.tf32=true", "precision.compute=bfloat16"});
  EXPECT_TRUE(both.products.contains(CUBLAS_COMPUTE_32F));
}

}  // namespace
}  // namespace tandem::testing

// The training stages of the GPU check, on accelerators in software and on the fake GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "kernels/cuda/device/cuda_device.h"
#include "tests/cuda/gpu_check/counted_captures.h"
#include "tests/cuda/gpu_check/networks.h"
#include "tests/cuda/gpu_check/stages.h"
#include "tests/cuda/support/fake_libraries.h"
#include "tests/cuda/support/stage_said.h"
#include "tests/harness/folders.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::gpu_check {
namespace {

std::unique_ptr<Device> fake_gpu(CudaOptions options) {
  options.memory_bytes = std::size_t{64} << 20;
  auto runtime = std::make_shared<testing::FakeRuntime>();
  return cuda::make_device(options, runtime, std::make_shared<testing::FakeLibraries>(runtime));
}

/// A device that updates each parameter twice.
class UpdatedTwice final : public CountedDevice {
 public:
  explicit UpdatedTwice(std::unique_ptr<Device> inner)
      : CountedDevice(std::move(inner), std::make_shared<std::uint64_t>(0)),
        kernels_(CountedDevice::kernels()) {
    for (Kernel& kernel : kernels_) {
      if (kernel.op.find("Update") == std::string::npos && kernel.op != "GemmSgd") continue;
      kernel.prepare = [prepare = kernel.prepare](const KernelRequest& request) {
        std::shared_ptr<PreparedKernel> once = prepare(request);
        return prepared(
            [once](const KernelArguments& arguments) {
              once->run(arguments);
              once->run(arguments);
            },
            once->workspace_bytes);
      };
    }
  }
  const KernelList& kernels() const override { return kernels_; }

 private:
  KernelList kernels_;
};

class TrainingStage : public ::testing::Test {
 protected:
  Said run(void (*stage)(const Options&, Report&), Options options) {
    options.out = folder_.path();
    if (options.fixtures.empty()) options.fixtures = source_folder();
    if (options.use == Options().use) options.use = "emulated:0";
    options.steps = 3;
    return said_by([&](Report& report) { stage(options, report); });
  }
  testing::TemporaryFolder folder_;
};

TEST_F(TrainingStage, GradientsPass) {
  Options options;
  options.only = "mlp";
  const Said said = run(run_gradients, options);
  EXPECT_EQ(said.code, 0) << said.verdict;
  EXPECT_EQ(said.verdict["checks"], 3);
}

TEST_F(TrainingStage, PartitionsPass) {
  Options options;
  options.only = "mlp";
  const Said said = run(run_partitions, options);
  EXPECT_EQ(said.code, 0) << said.verdict;
  EXPECT_EQ(said.verdict["checks"], 3);
  for (const Json& line : said.lines) {
    if (!line.contains("limit")) continue;
    EXPECT_GE(line["limit"], 1e-5);
    EXPECT_LE(line["limit"], 1e-4) << line;
  }
}

TEST_F(TrainingStage, GradientsFailWhereTheGpuIsMissing) {
  Options options;
  options.only = "mlp";
  options.use = "emulated:none";
  EXPECT_EQ(run(run_gradients, options).code, Exit::failed);
}

TEST_F(TrainingStage, GraphsCompareBits) {
  Options options;
  options.only = "mlp";
  options.make_gpu = [](const CudaOptions& gpu) { return fake_gpu(gpu); };
  const Said said = run(run_graphs, options);
  EXPECT_EQ(said.code, 0) << said.verdict;
  ASSERT_NE(said.find("mlp with sgd, the same run twice"), nullptr);
  EXPECT_EQ(said.verdict["skipped"], 0);
  const bool one = std::any_of(said.lines.begin(), said.lines.end(), [](const Json& line) {
    return line.contains("value") && line["value"] == "mlp with sgd, graphs launched" &&
           line["number"] == 1;
  });
  EXPECT_TRUE(one) << "of three steps the first two are run without";
}

TEST_F(TrainingStage, GraphsFailWhereARunDiffers) {
  for (const int other : {2, 3}) {  // the runs are: off, off again, on
    Options options;
    options.only = "mlp";
    int made = 0;
    options.make_gpu = [&](const CudaOptions& gpu) -> std::unique_ptr<Device> {
      if (++made != other) return fake_gpu(gpu);
      return std::make_unique<UpdatedTwice>(fake_gpu(gpu));
    };
    const Said said = run(run_graphs, options);
    EXPECT_EQ(said.code, Exit::failed) << other << said.verdict;
    const char* const check =
        other == 2 ? "mlp with sgd, the same run twice" : "mlp with sgd, with graphs and without";
    ASSERT_NE(said.find(check), nullptr);
    EXPECT_EQ((*said.find(check))["ok"], false);
  }
}

// Five steps of LeNet-5 with Adam: 61,706 weights, a loss of ln 10, lr = 5e-3. A gradient with an
// error that an operator may have moves the loss by more than 1e-5 of it; a missing step moves it
// by more than the limit.
TEST_F(TrainingStage, LimitsOfLossesAreOfTheOptimizer) {
  RunsBeside runs;
  runs.rate = 5e-3;
  runs.adaptive = true;
  runs.parameters = 61'706;
  runs.gradient_norm = 1;
  runs.loss = 2.3026;
  runs.steps = 4;
  // 1e-5 (1 + 4 * 2 * 5e-3 * 248.4 / 2.3026)
  EXPECT_NEAR(limit_of_losses(runs), 5.315e-5, 1e-8);
  const double one_step = runs.rate * runs.gradient_norm * runs.gradient_norm / runs.loss;
  EXPECT_GT(one_step, 10 * limit_of_losses(runs));
  runs.adaptive = false;
  runs.momentum = 0.9;
  // 1e-5 (1 + 4 * 5e-3 * 10 / 2.3026)
  EXPECT_NEAR(limit_of_losses(runs), 1.0869e-5, 1e-9);
}

TEST_F(TrainingStage, OtherLossesAreDifferent) {
  const std::vector<double> a{1, 2, 3}, b{1, 2, 3.003};
  EXPECT_EQ(worst_difference(a, a, 3), 0);
  EXPECT_NEAR(worst_difference(b, a, 3), 1e-3, 1e-9);
  EXPECT_EQ(worst_difference(b, a, 2), 0);
  EXPECT_EQ(worst_difference({1, NAN, 3}, a, 3), HUGE_VAL);
  EXPECT_EQ(worst_difference({1}, a, 3), HUGE_VAL);
  EXPECT_EQ(worst_difference({}, {}, 0), HUGE_VAL);
}

TEST_F(TrainingStage, TimesSkipWhatIsMissing) {
  Options options;
  options.models = folder_ / "none";
  const Said said = run(run_times, options);
  EXPECT_EQ(said.code, Exit::skipped);
  EXPECT_EQ(said.verdict["skipped"], workload_names().size());
}

}  // namespace
}  // namespace tandem::gpu_check

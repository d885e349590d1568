// A machine with fake GPUs for whole trainings, which compares what they count with the plan.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <memory>
#include <vector>

#include "kernels/cuda/device/cuda_device.h"
#include "tests/cuda/gpu_check/counted_captures.h"
#include "tests/cuda/support/fake_libraries.h"
#include "tests/end_to_end/policy_cases.h"

namespace tandem::testing {

/// A machine with two GPUs; the accelerators of a policy get them in turn.
struct FakeMachine {
  /// With `log` the runtime keeps a list of its calls.
  explicit FakeMachine(FakeRuntimeOptions options = {}, bool log = false) {
    options.gpus = 2;
    options.log = log;
    options.memory_bytes = std::size_t{256} << 20;
    runtime = std::make_shared<FakeRuntime>(options);
    libraries = std::make_shared<FakeLibraries>(runtime);
  }
  ~FakeMachine() {
    EXPECT_THAT(runtime->problems(), ::testing::IsEmpty());
    if (!is_broken) {
      EXPECT_THAT(runtime->leaks(), ::testing::IsEmpty());
      EXPECT_EQ(runtime->pageable_copies(), 0);
    }
    libraries->expect_no_problem();
  }

  api::PlacingArguments placing() {
    api::PlacingArguments arguments;
    arguments.make_device = [this](const ResolvedDevice& device,
                                   const std::shared_ptr<OrderChecker>& monitor) {
      CudaOptions options;
      options.name = device.name;
      options.ordinal = made++;
      options.capture = capture;
      options.monitor = runtime->watch(monitor);
      return gpu_check::count_captures(cuda::make_device(options, runtime, libraries), launches);
    };
    return arguments;
  }

  std::shared_ptr<FakeRuntime> runtime;
  std::shared_ptr<FakeLibraries> libraries;
  int made = 0;
  bool capture = true;  // for GPUs that are made later
  /// How many graphs were launched.
  std::shared_ptr<std::uint64_t> launches = std::make_shared<std::uint64_t>(0);
  bool is_broken = false;  // a broken GPU releases nothing
};

/// Losses of `steps` steps; checks what the devices counted and did against the plan.
inline std::vector<double> losses_of(PlacedTraining& training, int steps,
                                     const std::function<PlacedTraining::Feeds(int)>& feeds) {
  std::vector<double> losses;
  for (int step = 0; step < steps; ++step) {
    const std::vector<Copied> before = counted(training);
    losses.push_back(training.step(feeds(step)));
    if (training.programs().size() == 1)
      expect_planned_bytes(difference(counted(training), before), training.program());
  }
  training.synchronize();
  EXPECT_THAT(training.monitor().order_errors(), ::testing::IsEmpty());
  if (training.programs().size() == 1) expect_planned_memory(training);
  return losses;
}

inline void expect_near(const std::vector<double>& got, const std::vector<double>& expected,
                        double tolerance) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_NEAR(got[i], expected[i], tolerance * std::abs(expected[i])) << "step " << i + 1;
  }
}

}  // namespace tandem::testing

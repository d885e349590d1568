// The NCCL stage of the GPU check, over the fake NCCL: passes if all is well, fails if a result is
// wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cuda/gpu_check/stages.h"
#include "tests/cuda/support/fake_nccl.h"
#include "tests/cuda/support/stage_said.h"

namespace tandem::gpu_check {
namespace {

using ::testing::IsEmpty;
using ::testing::NotNull;

Said run(testing::FakeNccl& nccl, testing::FakeRuntimeOptions options = {}) {
  const auto runtime = std::make_shared<testing::FakeRuntime>(options);
  nccl.on_this_thread(runtime);
  Options of_stage;
  of_stage.small = true;
  Said said;
  {
    CheckGpu gpu(runtime, testing::nccl_alone(nccl.table()));
    said = said_by([&](Report& report) { run_nccl(gpu, of_stage, report); });
  }
  EXPECT_THAT(runtime->problems(), IsEmpty());
  EXPECT_THAT(runtime->leaks(), IsEmpty());
  EXPECT_THAT(nccl.problems(), IsEmpty());
  EXPECT_EQ(nccl.live_communicators(), 0);
  nccl.on_this_thread(nullptr);
  return said;
}

TEST(GpuCheckNccl, Passes) {
  for (const bool late : {false, true}) {
    testing::FakeNccl nccl;
    nccl.set_polls(2);
    testing::FakeRuntimeOptions options;
    options.late = late;
    const Said said = run(nccl, options);
    EXPECT_EQ(said.code, Exit::passed) << said.verdict;
    EXPECT_EQ(said.verdict["checks"], 11);
    EXPECT_THAT(said.find("a captured sum"), NotNull());
    EXPECT_EQ(nccl.aborted(), 1);
  }
}

TEST(GpuCheckNccl, FailsWhereResultsAreWrong) {
  testing::FakeNccl nccl;
  nccl.spoil_results(true);
  const Said said = run(nccl);
  EXPECT_EQ(said.code, Exit::failed);
  EXPECT_EQ(said.verdict["failed"], 9);  // each operation, and the captured one
}

}  // namespace
}  // namespace tandem::gpu_check

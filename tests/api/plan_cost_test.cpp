// The cost of planning a small model, however large its extents are.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "tests/api/small_model.h"
#include "tests/harness/allocation_count.h"
#include "tests/harness/program.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::api {
namespace {

using tandem::testing::SmallModel;

/// The peak memory of `inspect --stage plan`, in MiB.
double peak_of_plan(const std::string& model) {
  const pid_t child = fork();
  if (child == 0) {
    const int nowhere = open("/dev/null", O_WRONLY);
    dup2(nowhere, STDOUT_FILENO);
    execl(tandem::testing::program.c_str(), "tandem", "inspect", model.c_str(), "--stage", "plan",
          nullptr);
    _exit(127);
  }
  int status = 0;
  rusage used{};
  EXPECT_EQ(wait4(child, &status, 0, &used), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << model;
  return static_cast<double>(used.ru_maxrss) / 1024;
}

TEST(PlanCost, OfAConvolutionDoesNotGrowWithItsMaps) {
  if (!tandem::testing::counts_allocations()) GTEST_SKIP() << "sanitizers take memory of their own";
  const tandem::testing::TemporaryFolder folder;
  const auto plan = [&](std::int64_t channels, std::int64_t width) {
    SmallModel model;
    model.input("x", {1, channels, 3, width}).weight("w", {channels, channels, 3, 3}, 0.5f);
    model.node("Conv", "conv", {"x", "w"}, "y").output("y", {1, channels, 1, width - 2});
    const std::string path = folder / "model.onnx";
    std::ofstream(path, std::ios::binary) << model.bytes();
    return peak_of_plan(path);
  };
  for (const std::int64_t channels : {1, 8, 16}) {
    const double narrow = plan(channels, 64), wide = plan(channels, 1 << 20);
    EXPECT_LT(wide, narrow + 48) << channels << " channels";
  }
}

}  // namespace
}  // namespace tandem::api

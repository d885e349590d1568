// The options of the GPU check's command line: names of checks, fixtures.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <exception>

#include "tests/cuda/gpu_check/networks.h"
#include "tests/cuda/gpu_check/stages.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::gpu_check {
namespace {

TEST(GpuCheckOptions, OnlyTakesOneOrSeveralParts) {
  Options options;
  EXPECT_TRUE(is_wanted(options, "Softmax/axis"));
  options.only = "Softmax/";
  EXPECT_TRUE(is_wanted(options, "LogSoftmax/axis"));
  EXPECT_FALSE(is_wanted(options, "SoftmaxGrad/axis"));
  options.only = "Gemm/|Softmax/";
  EXPECT_TRUE(is_wanted(options, "Softmax/axis"));
  EXPECT_TRUE(is_wanted(options, "Gemm/bias"));
  EXPECT_FALSE(is_wanted(options, "Conv/bias"));
}

TEST(GpuCheckOptions, MissingFixturesAreNamed) {
  const testing::TemporaryFolder empty;
  try {
    (void)check_networks(empty.path());
    FAIL() << "networks out of an empty folder";
  } catch (const std::exception& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("no fixtures in " + empty.path()));
  }
}

}  // namespace
}  // namespace tandem::gpu_check

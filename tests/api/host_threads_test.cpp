// The number of threads on the host: from the policy, a binding, or train.toml.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/cpu/cpu_device.h"
#include "tests/api/trained_runs.h"

namespace tandem::api {
namespace {

using namespace tandem::testing;
using ::testing::HasSubstr;

class HostThreads : public ::testing::Test {
 protected:
  HostThreads() {
    write_clicks(folder_);
    write_file(folder_ / "one.toml",
               "policy = 1\ndevices = { cpu = { threads = 1 } }\nrules = []\n");
    write_file(folder_ / "none.toml", "policy = 1\nrules = []\n");
  }
  std::string summary(const std::string& policy, const std::vector<std::string>& overrides,
                      const std::vector<std::string>& devices = {}) {
    TrainOptions options;
    options.dry_run = true;
    options.overrides = overrides;
    options.overrides.push_back("policy=" + (folder_ / policy));
    options.devices = devices;
    options.on_message = [this](const std::string& text) { messages_ += text + "\n"; };
    return Trainer(folder_ / "train.toml", options).summary();
  }

  TemporaryFolder folder_;
  std::string messages_;
};

TEST_F(HostThreads, ThePolicyGoesBeforeTrainToml) {
  if (usable_cores() == 1) GTEST_SKIP() << "one core alone";
  unsetenv("OMP_NUM_THREADS");
  const std::string all = " instructions, " + std::to_string(usable_cores()) + " threads";
  EXPECT_THAT(summary("none.toml", {}), HasSubstr(all));
  EXPECT_THAT(summary("none.toml", {"threads=1"}), HasSubstr(" instructions, 1 thread\n"));
  EXPECT_THAT(summary("one.toml", {}), HasSubstr(" instructions, 1 thread\n"));
  EXPECT_THAT(summary("one.toml", {"threads=2"}), HasSubstr(" instructions, 1 thread\n"));
  EXPECT_THAT(summary("none.toml", {}, {"cpu=threads=1"}), HasSubstr(" instructions, 1 thread\n"));
  EXPECT_THAT(summary("one.toml", {}, {"cpu=threads=2"}), HasSubstr(" instructions, 2 threads"));
  EXPECT_THAT(messages_, ::testing::Not(HasSubstr("does nothing")));
}

TEST_F(HostThreads, OmpNumThreadsIsHeardWhereNothingElseSaysSo) {
  if (usable_cores() == 1) GTEST_SKIP() << "one core alone";
  setenv("OMP_NUM_THREADS", "1", 1);
  EXPECT_THAT(summary("none.toml", {}), HasSubstr(" instructions, 1 thread (OMP_NUM_THREADS)"));
  EXPECT_THAT(summary("none.toml", {"threads=2"}), HasSubstr(" instructions, 2 threads\n"));
  EXPECT_THAT(summary("none.toml", {}, {"cpu=threads=2"}), HasSubstr(" instructions, 2 threads\n"));
  setenv("OMP_NUM_THREADS", "4096", 1);
  EXPECT_THAT(summary("none.toml", {}),
              HasSubstr(" instructions, " + std::to_string(usable_cores()) + " threads\n"));
  unsetenv("OMP_NUM_THREADS");
}

TEST(DefaultThreads, AreTheFirstNumberOfTheListUpToTheCores) {
  const auto with = [](const char* text) {
    setenv("OMP_NUM_THREADS", text, 1);
    return default_threads(8);
  };
  EXPECT_EQ(with("3"), 3);
  EXPECT_EQ(with(" 3 "), 3);
  EXPECT_EQ(with("4,2"), 4);
  EXPECT_EQ(with("100"), 8);
  for (const char* none : {"", "0", "-2", "many", "3x", "99999999999999"})
    EXPECT_EQ(with(none), 8) << none;
  unsetenv("OMP_NUM_THREADS");
  EXPECT_EQ(default_threads(8), 8);
  EXPECT_EQ(default_threads(0), 1);  // more ranks than cores
}

}  // namespace
}  // namespace tandem::api

// How many threads compute on the host: the policy's number, a binding's, or that of train.toml.
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
  const std::string all = " instructions, " + std::to_string(usable_cores()) + " threads";
  EXPECT_THAT(summary("none.toml", {}), HasSubstr(all));
  EXPECT_THAT(summary("none.toml", {"threads=1"}), HasSubstr(" instructions, 1 threads"));
  EXPECT_THAT(summary("one.toml", {}), HasSubstr(" instructions, 1 threads"));
  EXPECT_THAT(summary("one.toml", {"threads=2"}), HasSubstr(" instructions, 1 threads"));
  EXPECT_THAT(summary("none.toml", {}, {"cpu=threads=1"}), HasSubstr(" instructions, 1 threads"));
  EXPECT_THAT(summary("one.toml", {}, {"cpu=threads=2"}), HasSubstr(" instructions, 2 threads"));
  EXPECT_THAT(messages_, ::testing::Not(HasSubstr("does nothing")));
}

}  // namespace
}  // namespace tandem::api

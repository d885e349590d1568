// batch_size = "auto": the largest size whose memory plan fits the declared devices.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/config/run_config.h"
#include "tests/api/error_of.h"
#include "tests/api/trained_runs.h"

namespace tandem::api {
namespace {

using namespace tandem::testing;
using ::testing::Contains;
using ::testing::HasSubstr;

class BatchSizeTest : public ::testing::Test {
 protected:
  BatchSizeTest() { write_digits(folder_); }

  static std::string device(int kilobytes) {
    return "gpu=emulated:0,memory=" + std::to_string(kilobytes) + "KiB";
  }
  bool fits(std::int64_t size, int kilobytes) const {
    PolicyOptions options;
    options.config = config_;
    options.overrides = {"device=gpu", "batch_size=" + std::to_string(size)};
    options.devices = {device(kilobytes)};
    return policy_plan(options).fits;
  }
  /// An amount of memory in which some batch sizes fit, but not all.
  int small_memory() const {
    int kilobytes = 16;
    while (!fits(32, kilobytes)) kilobytes *= 2;
    return kilobytes;
  }
  TrainOptions options(const std::string& size, int kilobytes) {
    TrainOptions options;
    options.overrides = {"steps=1", "device=gpu", "batch_size=" + size};
    options.devices = {device(kilobytes)};
    options.run_dir = folder_ / "run";
    options.on_message = [this](const std::string& text) { said_.push_back(text); };
    return options;
  }
  std::int64_t size_of_run() const {
    return read_run_config(folder_ / "run/train.resolved.toml").batch_size;
  }

  TemporaryFolder folder_;
  const std::string config_ = folder_ / "train.toml";
  std::vector<std::string> said_;
};

TEST_F(BatchSizeTest, TheLargestThatFitsIsTakenAndKept) {
  const int kilobytes = small_memory();
  std::int64_t expected = 0;
  for (std::int64_t size = 1; size <= 1024; size *= 2) {
    if (fits(size, kilobytes)) expected = size;
  }
  ASSERT_GE(expected, 32);
  ASSERT_LT(expected, 1024) << "the memory is no limit";
  Trainer(config_, options("auto", kilobytes)).run();
  EXPECT_EQ(size_of_run(), expected);
  EXPECT_THAT(said_, Contains("batch_size " + std::to_string(expected) +
                              ": the largest power of two whose memory plan fits the devices"));
  // Resumed where a larger size would fit, the run keeps its own.
  TrainOptions more = options("auto", 1 << 20);
  more.overrides[0] = "steps=2";
  more.resume = true;
  more.accept_changes = true;  // the device's memory changed
  Trainer(config_, more).run();
  EXPECT_EQ(size_of_run(), expected);
  EXPECT_THAT(said_,
              Contains("batch_size " + std::to_string(expected) + ", as the run was started with"));
}

TEST_F(BatchSizeTest, AListIsChosenFrom) {
  const int kilobytes = small_memory();
  ASSERT_FALSE(fits(4096, kilobytes));
  Trainer(config_, options("[4096,24,8]", kilobytes)).run();
  EXPECT_EQ(size_of_run(), 24);
  EXPECT_THAT(said_, Contains(HasSubstr("batch_size 24: the largest of the list")));
}

TEST_F(BatchSizeTest, WhereNoneFitsTheNumbersAreTold) {
  EXPECT_THAT(error_of([&] { Trainer(config_, options("auto", 1)); }, ErrorKind::does_not_fit),
              HasSubstr("no batch size fits the devices"));
}

TEST_F(BatchSizeTest, OtherCommandsChooseTheSame) {
  PolicyOptions planning;
  planning.config = config_;
  planning.overrides = {"device=gpu", "batch_size=auto"};
  planning.devices = {device(small_memory())};
  EXPECT_TRUE(policy_plan(planning).fits);
  // Without a plan there is no choice, and the default is used.
  EXPECT_EQ(read_run_config(config_, {"batch_size=auto"}).batch_size, 32);
}

TEST(BatchChoiceKey, IsReadAndWritten) {
  const std::string text = "model = \"m.onnx\"\nsteps = 4\noptimizer = { kind = \"sgd\" }\n";
  const auto parse = [&](const std::string& setting) {
    return parse_run_config(text, "/folder/train.toml", {setting});
  };
  for (const std::string value : {"auto", "[ 8, 64 ]"}) {
    const RunConfig config = parse("batch_size=" + value);
    EXPECT_TRUE(config.batch_choice.is_open);
    EXPECT_EQ(parse_run_config(to_toml(config), "/folder/x.toml"), config) << to_toml(config);
  }
  EXPECT_EQ(parse("batch_size=[8,64]").batch_choice.sizes, (std::vector<std::int64_t>{8, 64}));
  EXPECT_FALSE(parse("batch_size=8").batch_choice.is_open);
  const auto error = [&](const std::string& setting) { return error_of([&] { parse(setting); }); };
  EXPECT_THAT(error("batch_size=[]"), HasSubstr("nothing to choose from"));
  EXPECT_THAT(error("batch_size=[0]"), HasSubstr("out of range"));
  EXPECT_THAT(error("batch_size=[8,true]"), HasSubstr("wrong type"));
  EXPECT_THAT(error("batch_size=most"), HasSubstr("unknown value"));
  EXPECT_THAT(error_of([&] {
                parse_run_config(text, "/folder/train.toml", {"batch_size=auto", "micro_batch=4"});
              }),
              HasSubstr("memory is that of a micro-batch"));
}

}  // namespace
}  // namespace tandem::api

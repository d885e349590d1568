// `tandem data bench`: its numbers exist, add up, and concern only the data.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "api/program/data.h"
#include "engine/data/loader.h"
#include "engine/formats/stage_clock.h"
#include "tandem/tandem.h"
#include "tests/harness/program.h"
#include "tests/training/error_text.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::api {
namespace {

using tandem::testing::error_of;
using tandem::testing::run_program;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Json = nlohmann::json;

class DataBench : public ::testing::Test {
 protected:
  DataBench() {
    std::ofstream ids(folder_ / "ids.bin", std::ios::binary);
    for (int i = 0; i < 4096; ++i) ids.put(static_cast<char>(i % 7)).put(0);
    configure("train = { files = 'ids.bin' }");
  }
  void configure(const std::string& data) {
    std::ofstream(folder_ / "train.toml")
        << "model = 'there_is_none.onnx'\nbatch_size = 16\nsteps = 1\n[optimizer]\nkind = 'sgd'\n"
           "[data]\nkind = 'tokens'\nlength = 32\n"
        << data << "\n[data.fields]\nids = { from = 'tokens', as = ['float32', 'scale(1/7)'] }\n"
        << "targets = 'targets'\n";
  }
  DataBenchOptions options() const {
    DataBenchOptions options;
    options.seconds = 0.05;
    options.threads = 3;
    return options;
  }
  Json bench() const { return Json::parse(data_bench(folder_ / "train.toml", options()).json); }

  tandem::testing::TemporaryFolder folder_;
};

TEST_F(DataBench, MeasuresEachNumberOfThreads) {
  const Json told = bench();
  EXPECT_EQ(told["samples"], 127);
  EXPECT_EQ(told["bytes_per_sample"], 32 * 4 + 32 * 8);
  std::vector<int> threads;
  for (const Json& run : told["runs"]) {
    threads.push_back(run["threads"]);
    EXPECT_GT(run["samples_per_second"], 0);
    EXPECT_NEAR(run["mib_per_second"].get<double>() * (1 << 20),
                run["samples_per_second"].get<double>() * (32 * 4 + 32 * 8), 1e3);
    const Json& stages = run["us_per_sample"];
    EXPECT_GT(stages["read"], 0);       // the windows
    EXPECT_GT(stages["transform"], 0);  // scale
    EXPECT_EQ(stages["decode"], 0);     // there are no pictures
    double most = 0;
    for (const Json& stage : stages) most = std::max(most, stage.get<double>());
    EXPECT_EQ(stages[run["bound"].get<std::string>()], most);
  }
  EXPECT_THAT(threads, ElementsAre(1, 2, 3));
}

// Samplers and buckets are those of the configuration, and mistakes in them are reported.
TEST_F(DataBench, ReadsWhatTrainingReads) {
  configure("train = { files = 'ids.bin', sampler = { kind = 'weighted', field = 'w' } }");
  EXPECT_THAT(error_of([&] { bench(); }), HasSubstr("there is no data field \"w\""));
  configure(
      "train = { files = 'ids.bin' }\nbuckets = { field = 'ids', lengths = [16, 32], "
      "dimension = 'sequence', pad = 9 }");
  EXPECT_EQ(bench()["runs"].size(), 3u);
}

TEST_F(DataBench, StopsWhenAsked) {
  DataBenchOptions asked = options();
  asked.data.stop.request_stop();
  EXPECT_THAT(error_of([&] { data_bench(folder_ / "train.toml", asked); }),
              HasSubstr("interrupted"));
}

TEST_F(DataBench, IsACommand) {
  const auto ended = run_program("data bench " + (folder_ / "train.toml") +
                                 " --seconds 0.1 --threads 1 --json 2>/dev/null");
  EXPECT_EQ(ended.code, 0);
  EXPECT_EQ(Json::parse(ended.text)["runs"].size(), 1u);
}

TEST(StageClockTest, CountsTheInnermostStage) {
  const auto pass = [] { std::this_thread::sleep_for(std::chrono::milliseconds(20)); };
  EXPECT_EQ(StageClock::of_thread(), nullptr);
  { const InStage unmeasured(LoadStage::read); }
  StageClock clock;
  {
    const InStage decode(LoadStage::decode);
    pass();
    {
      const InStage read(LoadStage::read);
      pass();
    }
    pass();
  }
  const StageClock::Seconds seconds = clock.seconds();
  EXPECT_GE(seconds[0], 0.019);
  EXPECT_GE(seconds[1], 0.038);
  EXPECT_EQ(seconds[2], 0);
  EXPECT_LT(seconds[3], seconds[1]);
}

}  // namespace
}  // namespace tandem::api

// Wide & Deep in training on the CUDA device over the fake runtime: tables on the GPU, on the
// host, sent as rows or as results, cached, fetched a step ahead.
#include <gtest/gtest.h>

#include <fstream>

#include "engine/formats/arrays/npy.h"
#include "tests/cuda/support/fake_machine.h"
#include "tests/end_to_end/rows_ahead_model.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::testing {
namespace {

constexpr int steps = 4;

class ReplayTablesTest : public ::testing::Test {
 protected:
  struct Case {
    std::string rules = {};              // after the rule that puts everything on the gpu
    std::vector<std::string> more = {};  // keys of train.toml
    bool ahead = false, cached = false, late = false;
  };

  void compare_on(const Case& c, double tolerance = 1e-5) {
    FakeMachine machine({.late = c.late});
    const std::vector<double> got = losses(c, machine.placing());
    EXPECT_EQ(machine.made, 1);
    expect_near(got, losses(c), tolerance);
  }

 private:
  std::vector<double> losses(const Case& c, const api::PlacingArguments& placing = {}) {
    const std::string policy = folder_ / "policy.toml";
    std::ofstream(policy) << "policy = 1\ndevices = { gpu = { use = \"emulated:0\" } }\nrules = "
                             "[\n  { at = \"**\", on = \"gpu\" },\n"
                          << c.rules << "]\n";
    std::vector<std::string> keys{
        "loss.terms=[{name=\"wide_loss\", kind=\"binary_cross_entropy\", logits=\"logits\", "
        "labels=\"label\"}, {name=\"l2\", kind=\"sum_of_squares\", of=\"deep_rows\", weight=4e-2, "
        "reduction=\"sum\"}]",
        "optimizer.kind=adam",
        "optimizer.lr=3e-3",
        "optimizer.groups=[{at=\"wide:*\", kind=\"ftrl\", lr=0.05, l1=1e-8, l2=1e-8, "
        "initial_accumulator=1.0}, {at=\"deep:*\", kind=\"lazy_adam\"}]",
        "data={kind=\"npz\", train={files=[\"" + (c.cached ? data_file() : "none.npz") +
            "\"]}, fields={ids=\"ids\", label=\"label\"}}",
        "policy=" + policy};
    keys.insert(keys.end(), c.more.begin(), c.more.end());
    PlacedOptions options;
    options.rows_ahead = c.ahead;
    options.counts_rows = c.cached;
    options.placing = placing;
    PlacedTraining training(model, batch_size, keys, feeds_of(1), options);
    std::vector<double> result;
    for (int step = 1; step <= steps; ++step) {
      const PlacedTraining::Feeds next = feeds_of(step + 1);
      result.push_back(training.step(feeds_of(step), c.ahead ? &next : nullptr));
    }
    training.synchronize();
    EXPECT_THAT(training.monitor().order_errors(), ::testing::IsEmpty());
    return result;
  }

  /// Saves the first step's feeds as the run's data, in which rows are counted.
  std::string data_file() {
    const PlacedTraining::Feeds feeds = feeds_of(1);
    write_npz(folder_ / "train.npz", {{"ids", feeds.at("ids")}, {"label", feeds.at("label")}});
    return folder_ / "train.npz";
  }

  TemporaryFolder folder_;
};

std::string tables(const std::string& attributes) {
  return "  { at = \"{wide,deep}.**\", " + attributes + " },\n";
}

TEST_F(ReplayTablesTest, OnTheGpu) {
  compare_on({});
  compare_on({.late = true});
  compare_on({.more = {"optimizer.clip_norm=0.05"}});
  compare_on({.more = {"micro_batch=16"}});
}

TEST_F(ReplayTablesTest, OnTheHost) {
  compare_on({.rules = tables("on = \"cpu\"")});
  compare_on({.rules = tables("on = \"cpu\", ship = \"rows\"")});
  compare_on({.rules = tables("on = \"cpu\", ship = \"rows\""), .late = true});
  compare_on({.rules = tables("on = \"cpu\", ship = \"results\"")});
  compare_on({.rules = tables("on = \"cpu\", ship = \"rows\""), .more = {"micro_batch=16"}});
  compare_on({.rules = "  { at = \"deep.**\", on = \"cpu\" },\n"});
}

TEST_F(ReplayTablesTest, StatesOnTheHost) { compare_on({.rules = tables("state = \"cpu\"")}); }

TEST_F(ReplayTablesTest, RowsAStepAhead) {
  const std::string rules = tables("on = \"cpu\", ship = \"rows\", lookahead = 1");
  compare_on({.rules = rules, .ahead = true});
  compare_on({.rules = rules, .ahead = true, .late = true});
}

TEST_F(ReplayTablesTest, CachedRows) {
  for (const char* ship : {"rows", "results"}) {
    const std::string rules =
        tables("on = \"cpu\"") + tables("ship = \"" + std::string(ship) + "\", cache = \"5%\"");
    compare_on({.rules = rules, .cached = true});
  }
  compare_on(
      {.rules = tables("on = \"cpu\"") + tables("ship = \"rows\", lookahead = 1, cache = \"5%\""),
       .ahead = true,
       .cached = true});
}

TEST_F(ReplayTablesTest, SplitTables) {
  const std::vector<std::string> split{
      "parameters.storage=[{at=\"{wide,deep}:weight\", kind=\"split_bfloat16\"}]"};
  compare_on({.more = split}, 1e-4);
  compare_on({.rules = tables("on = \"cpu\", ship = \"rows\""), .more = split}, 1e-4);
}

}  // namespace
}  // namespace tandem::testing

// Wide & Deep with sparse updates: losses are the same wherever tables and layers are, and however
// a step is split into micro-batches.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "tests/end_to_end/near_losses.h"
#include "tests/end_to_end/placed_training.h"
#include "tests/end_to_end/wide_deep_feeds.h"
#include "tests/harness/folders.h"

namespace tandem::testing {
namespace {

constexpr std::int64_t wide_deep_steps = 6;

std::vector<std::string> wide_deep_settings(const std::vector<std::string>& more = {}) {
  std::vector<std::string> all{
      "loss.terms=[{name=\"wide_loss\", kind=\"binary_cross_entropy\", logits=\"logits\", "
      "labels=\"label\"}, {name=\"l2\", kind=\"sum_of_squares\", of=\"deep_rows\", weight=4e-2, "
      "reduction=\"sum\"}]",
      "optimizer.kind=adam", "optimizer.lr=3e-3",
      "optimizer.groups=[{at=\"wide:*\", kind=\"ftrl\", lr=0.05, l1=1e-8, l2=1e-8, "
      "initial_accumulator=1.0}, {at=\"deep:*\", kind=\"lazy_adam\"}]",
      "data={kind=\"npz\", train={files=[\"none.npz\"]}, fields={ids=\"ids\", label=\"label\"}}"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

class WideDeepRun {
 public:
  explicit WideDeepRun(const std::vector<std::string>& more,
                       const std::vector<std::string>& without = {})
      : training_(source_folder() + "/models/wide_deep/model.onnx", wide_deep_batch,
                  wide_deep_settings(more), wide_deep_feeds(1), {.without = without}) {
    for (int step = 1; step <= wide_deep_steps; ++step)
      losses.push_back(training_.step(wide_deep_feeds(step)));
    training_.synchronize();
    if (training_.devices().size() > 1) {
      bytes_to_device = training_.devices()[1]->counters().bytes_to_device;
      bytes_to_host = training_.devices()[1]->counters().bytes_to_host;
    }
  }
  int count(const std::string& op) const {
    const auto& nodes = training_.program().lowered().graph.nodes;
    return static_cast<int>(
        std::count_if(nodes.begin(), nodes.end(), [&](const Node& n) { return n.op->name == op; }));
  }
  std::vector<double> losses;
  std::uint64_t bytes_to_device = 0, bytes_to_host = 0;

 private:
  PlacedTraining training_;
};

const std::vector<double>& losses_on_the_host() {
  static const std::vector<double> losses = WideDeepRun({}).losses;
  return losses;
}

TEST(WideDeep, UpdatesRowsAlone) {
  const WideDeepRun run({});
  EXPECT_EQ(run.count("RowsUpdate"), 2);
  EXPECT_EQ(run.count("UniqueIndices"), 1) << "both tables are looked up by the same ids";
  EXPECT_EQ(run.count("GatherGrad"), 0);
  EXPECT_LT(run.losses.back(), run.losses.front());
}

// The wide rows of a sample are summed during the lookup, and their gradient is a single number.
TEST(WideDeep, SumsOfRowsAreNotWrittenOut) {
  const std::vector<std::string> off{"recognise_embedding_bag"};
  const WideDeepRun run({}), without({}, off);
  EXPECT_EQ(run.count("EmbeddingBag"), 1);
  EXPECT_EQ(run.count("EmbeddingBagGrad"), 0);
  EXPECT_EQ(run.count("Gather"), 1) << "the deep rows";
  EXPECT_EQ(without.count("EmbeddingBag"), 0);
  EXPECT_EQ(without.count("Gather"), 2);
  EXPECT_LT(run.count("Copy"), without.count("Copy"));
  expect_near_losses(run.losses, without.losses, 1e-6);
  const std::vector<std::string> clipped{"optimizer.clip_norm=0.05"};
  expect_near_losses(WideDeepRun(clipped).losses, WideDeepRun(clipped, off).losses, 1e-6);
  const std::vector<std::string> in_micro_batches{"micro_batch=16"};
  expect_near_losses(WideDeepRun(in_micro_batches).losses,
                     WideDeepRun(in_micro_batches, off).losses, 1e-6);
}

TEST(WideDeep, LossesDoNotDependOnThePlacement) {
  const std::string head = "policy = 1\ndevices = { gpu = { use = \"emulated:0\" } }\nrules = [\n";
  const std::vector<std::string> policies{
      "  { at = \"**\", on = \"gpu\" },\n]\n",
      "  { at = \"**\", on = \"gpu\" },\n  { at = \"{wide,deep}.**\", on = \"cpu\" },\n]\n",
      "  { at = \"**\", on = \"gpu\" },\n  { at = \"deep.**\", on = \"cpu\" },\n]\n",
      "  { at = \"**\", on = \"gpu\" },\n  { at = \"{wide,deep}.**\", state = \"cpu\" },\n]\n"};
  for (std::size_t i = 0; i < policies.size(); ++i) {
    SCOPED_TRACE(policies[i]);
    const std::string path = ::testing::TempDir() + "wide_deep_" + std::to_string(i) + ".toml";
    std::ofstream(path) << head << policies[i];
    expect_near_losses(WideDeepRun({"policy=" + path}).losses, losses_on_the_host(), 1e-5);
  }
}

// What is copied for both tables, in both directions: each row that occurs, once, and an index for
// each id.
TEST(WideDeep, RowsThatCrossAreFewer) {
  const auto policy = [](const std::string& ship) {
    const std::string path = ::testing::TempDir() + "wide_deep_ship_" + ship + ".toml";
    std::ofstream(path) << "policy = 1\ndevices = { gpu = { use = \"emulated:0\" } }\nrules = [\n"
                           "  { at = \"**\", on = \"gpu\" },\n  { at = \"{wide,deep}.**\", on = "
                           "\"cpu\", ship = \""
                        << ship << "\" },\n]\n";
    return path;
  };
  const WideDeepRun rows({"policy=" + policy("rows")}), results({"policy=" + policy("results")});
  expect_near_losses(rows.losses, losses_on_the_host(), 1e-5);
  expect_near_losses(results.losses, losses_on_the_host(), 1e-5);
  EXPECT_EQ(rows.count("GatherRows"), 2);
  EXPECT_EQ(results.count("GatherRows"), 0);
  EXPECT_LT(rows.bytes_to_device, results.bytes_to_device);
  EXPECT_LT(rows.bytes_to_host, results.bytes_to_host);
  const WideDeepRun clipped({"policy=" + policy("rows"), "optimizer.clip_norm=0.05"});
  expect_near_losses(clipped.losses, WideDeepRun({"optimizer.clip_norm=0.05"}).losses, 1e-5);
  const WideDeepRun in_micro_batches({"policy=" + policy("rows"), "micro_batch=16"});
  expect_near_losses(in_micro_batches.losses, losses_on_the_host(), 1e-5);
}

TEST(WideDeep, PassesOfAStepAddUp) {
  expect_near_losses(WideDeepRun({"micro_batch=16"}).losses, losses_on_the_host(), 1e-5);
}

TEST(WideDeep, ClipsByTheNormOfRows) {
  const std::vector<std::string> clipped{"optimizer.clip_norm=0.05"};
  std::vector<std::string> in_micro_batches = clipped;
  in_micro_batches.push_back("micro_batch=16");
  const std::vector<double> whole = WideDeepRun(clipped).losses;
  EXPECT_GT(std::fabs(whole[2] - losses_on_the_host()[2]), 1e-5) << "clipping changes something";
  expect_near_losses(WideDeepRun(in_micro_batches).losses, whole, 1e-5);
}

}  // namespace
}  // namespace tandem::testing

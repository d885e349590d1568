// Wide & Deep with tables on the host whose rows are partly cached on the accelerator: the losses
// of a run without a cache, whatever its size, and fewer bytes copied.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <type_traits>

#include "engine/formats/arrays/npy.h"
#include "engine/operators/update_kind.h"
#include "engine/optimizers/optimizer.h"
#include "tests/end_to_end/near_losses.h"
#include "tests/end_to_end/placed_training.h"
#include "tests/end_to_end/wide_deep_feeds.h"
#include "tests/harness/folders.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::testing {
namespace {

constexpr std::int64_t cached_steps = 5;

/// Writes the feeds of all steps, one after another, as the run's data.
std::string data_file(const TemporaryFolder& folder) {
  HostTensor ids(TensorType{DType::int64, {cached_steps * wide_deep_batch, wide_deep_fields}}),
      labels(TensorType{DType::float32, {cached_steps * wide_deep_batch}});
  for (int step = 0; step < cached_steps; ++step) {
    const PlacedTraining::Feeds feeds = wide_deep_feeds(step + 1);
    const auto copy = [&](HostTensor& to, const HostTensor& from) {
      std::memcpy(static_cast<char*>(to.data()) + static_cast<std::size_t>(step) * from.bytes(),
                  from.data(), from.bytes());
    };
    copy(ids, feeds.at("ids"));
    copy(labels, feeds.at("label"));
  }
  write_npz(folder / "train.npz", {{"ids", ids}, {"label", labels}});
  return folder / "train.npz";
}

std::string cached_rows_policy(const TemporaryFolder& folder, const std::string& attributes) {
  std::ofstream(folder / "policy.toml")
      << "policy = 1\ndevices = { gpu = { use = \"emulated:0\" } }\nrules = [\n"
         "  { at = \"**\", on = \"gpu\" },\n  { at = \"{wide,deep}.**\", on = \"cpu\" },\n"
         "  { at = \"{wide,deep}.**\", "
      << attributes << " },\n]\n";
  return folder / "policy.toml";
}

/// The optimizer of the dense layers, Adam by default, and one for the tables.
struct Optimizers {
  std::string base = "adam";
  std::string groups =
      "[{at=\"wide:*\", kind=\"ftrl\", lr=0.05, l1=1e-8, l2=1e-8, initial_accumulator=1.0}, "
      "{at=\"deep.weight\", kind=\"lazy_adam\"}]";
};

class CachedRun {
 public:
  /// `ahead`: each step gets the next one's ids.
  explicit CachedRun(const std::string& attributes, const std::vector<std::string>& more = {},
                     const Optimizers& optimizers = {}, bool ahead = false)
      : training_(source_folder() + "/models/wide_deep/model.onnx", wide_deep_batch,
                  settings(folder_, attributes, more, optimizers), wide_deep_feeds(1),
                  {.rows_ahead = ahead, .counts_rows = true}) {
    for (int step = 1; step <= cached_steps; ++step) {
      const PlacedTraining::Feeds next = wide_deep_feeds(step + 1);
      losses.push_back(training_.step(wide_deep_feeds(step), ahead ? &next : nullptr));
    }
    training_.synchronize();
    if (training_.devices().size() > 1) {
      const DeviceCounters counters = training_.devices()[1]->counters();
      bytes_to_device = static_cast<std::int64_t>(counters.bytes_to_device);
      bytes_to_host = static_cast<std::int64_t>(counters.bytes_to_host);
      EXPECT_THAT(training_.monitor().order_errors(), ::testing::IsEmpty());
    }
  }

  /// Number of nodes of that operator on that device, in all programs.
  int count(const std::string& op, int device) const {
    int count = 0;
    for (const Program* program : training_.programs()) {
      const Lowered& lowered = program->lowered();
      for (std::size_t n = 0; n < lowered.graph.nodes.size(); ++n) {
        count += lowered.graph.nodes[n].op->name == op && lowered.nodes[n].device == device;
      }
    }
    return count;
  }
  const State* cache() const {
    return training_.program().lowered().graph.find_state("deep.weight/cached");
  }
  std::int64_t cached_rows() const { return cache() == nullptr ? 0 : cache()->start.shape()[0]; }

  std::vector<double> losses;
  std::int64_t bytes_to_device = 0, bytes_to_host = 0;

 private:
  static std::vector<std::string> settings(const TemporaryFolder& folder,
                                           const std::string& attributes,
                                           const std::vector<std::string>& more,
                                           const Optimizers& optimizers) {
    std::vector<std::string> all{
        "loss.terms=[{name=\"wide_loss\", kind=\"binary_cross_entropy\", logits=\"logits\", "
        "labels=\"label\"}, {name=\"l2\", kind=\"sum_of_squares\", of=\"deep_rows\", weight=4e-2, "
        "reduction=\"sum\"}]",
        "optimizer.kind=\"" + optimizers.base + "\"", "optimizer.lr=3e-3",
        "optimizer.groups=" + optimizers.groups,
        "data={kind=\"npz\", train={files=[\"" + data_file(folder) +
            "\"]}, fields={ids=\"ids\", label=\"label\"}}"};
    if (!attributes.empty()) all.push_back("policy=" + cached_rows_policy(folder, attributes));
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  TemporaryFolder folder_;
  PlacedTraining training_;
};

// A row of the deep table has 4 columns and two moments of the same size, all in float32.
std::string rows_cached(std::int64_t count) {
  return "cache = \"" + std::to_string(48 * count) + "B\"";
}

/// How many of these rows occur in a step, summed over all steps.
std::int64_t occurring(const std::vector<std::int64_t>& cached) {
  std::int64_t count = 0;
  for (int step = 1; step <= cached_steps; ++step) {
    const std::vector<std::int64_t> ids = wide_deep_feeds(step).at("ids").integers();
    const std::set<std::int64_t> named(ids.begin(), ids.end());
    for (const std::int64_t row : cached) count += static_cast<std::int64_t>(named.count(row));
  }
  return count;
}

TEST(CachedRows, LossesDoNotDependOnTheCache) {
  const std::vector<double> on_the_host = CachedRun("").losses;
  const CachedRun uncached("ship = \"rows\"");
  expect_near_losses(uncached.losses, on_the_host);
  EXPECT_EQ(uncached.cached_rows(), 0);
  for (const std::int64_t count : {20, 200, 2000}) {
    const CachedRun run("ship = \"rows\", " + rows_cached(count));
    SCOPED_TRACE(count);
    EXPECT_EQ(run.cached_rows(), count);
    expect_near_losses(run.losses, on_the_host);
    EXPECT_EQ(run.count("SplitIds", 0), 1) << "one split of the ids, for both tables";
    EXPECT_EQ(run.count("GatherAdd", 1), 2);
    EXPECT_EQ(run.count("RowsUpdate", 0), 2);
    EXPECT_EQ(run.count("RowsUpdate", 1), 2);
    EXPECT_EQ(run.count("UniqueIndices", 0), 1);
    EXPECT_EQ(run.count("UniqueIndices", 1), 1);
    // Cached rows of 4 + 1 columns are copied neither in nor out; instead an int32 for each id and
    // the wide table's learning rate are copied in.
    const std::int64_t saved = 20 * occurring(*run.cache()->derived.as<CachedRows>()->rows);
    EXPECT_GT(saved, 0);
    EXPECT_EQ(run.bytes_to_host, uncached.bytes_to_host - saved);
    EXPECT_EQ(run.bytes_to_device, uncached.bytes_to_device - saved +
                                       cached_steps * (4 * wide_deep_batch * wide_deep_fields + 4));
  }
  const CachedRun all("ship = \"rows\", " + rows_cached(wide_deep_rows + 1));
  EXPECT_EQ(all.cached_rows(), wide_deep_rows);
  expect_near_losses(all.losses, on_the_host);
}

TEST(CachedRows, ResultsAreSummedOnTheDevice) {
  const std::vector<double> on_the_host = CachedRun("").losses;
  const CachedRun run("ship = \"results\", " + rows_cached(200));
  EXPECT_EQ(run.cached_rows(), 200);
  EXPECT_EQ(run.count("GatherRows", 0), 0);
  expect_near_losses(run.losses, on_the_host);
}

// Rows that are not cached are fetched a step ahead.
TEST(CachedRows, GoWithALookAhead) {
  const std::string rule = "ship = \"rows\", lookahead = 1, cache = \"5%\"";
  const CachedRun ahead(rule, {}, {}, true);
  EXPECT_EQ(ahead.cached_rows(), wide_deep_rows / 20);
  EXPECT_EQ(ahead.count("GatherParts", 1), 2);
  EXPECT_EQ(ahead.count("SplitIds", 0), 2) << "of this step's ids and of the next one's";
  expect_near_losses(ahead.losses, CachedRun("ship = \"rows\", cache = \"5%\"").losses, 0);
}

TEST(CachedRows, GoWithSplitTables) {
  const std::vector<std::string> split{
      "parameters.storage=[{at=\"{wide,deep}:weight\", kind=\"split_bfloat16\"}]"};
  const CachedRun run("ship = \"rows\", cache = \"5%\"", split);
  EXPECT_EQ(run.cached_rows(), wide_deep_rows / 20);
  expect_near_losses(run.losses, CachedRun("", split).losses);
}

TEST(CachedRows, PassesOfAStepAddUp) {
  const std::vector<std::string> in_micro_batches{"micro_batch=16"};
  const CachedRun run("ship = \"rows\", cache = \"5%\"", in_micro_batches);
  EXPECT_EQ(run.cached_rows(), wide_deep_rows / 20);
  EXPECT_GT(run.count("TouchedRows", 0), 0);
  EXPECT_GT(run.count("TouchedRows", 1), 0) << "marks of cached rows stay on the device";
  expect_near_losses(run.losses, CachedRun("", in_micro_batches).losses);
}

TEST(CachedRows, TheNormHasBothParts) {
  const std::vector<std::string> clipped{"optimizer.clip_norm=0.05"};
  const std::vector<double> wanted = CachedRun("", clipped).losses;
  const CachedRun run("ship = \"rows\", cache = \"5%\"", clipped);
  expect_near_losses(run.losses, wanted);
  EXPECT_EQ(run.count("RowsSumOfSquares", 0), 2);
  EXPECT_EQ(run.count("RowsSumOfSquares", 1), 2);
  EXPECT_EQ(run.count("UniqueIndices", 1), 1);
  std::vector<std::string> in_micro_batches = clipped;
  in_micro_batches.emplace_back("micro_batch=16");
  expect_near_losses(CachedRun("ship = \"rows\", cache = \"5%\"", in_micro_batches).losses, wanted);
}

// Options that make a kind's step hardest: a dense gradient, decay, rows that become 0.
std::string options_of(std::string_view kind) {
  if (kind == "sgd") return ", momentum=0.9";
  if (kind == "adamw") return ", weight_decay=0.1";
  if (kind == "ftrl") return ", lr=0.05, l1=1e-8, l2=1e-8, initial_accumulator=1.0";
  if (kind == "group_ftrl") return ", l21=1e-3";
  return "";
}

// Two kinds in a run: kinds whose rows move without ids, kinds with one state per row, and kinds
// with a dense gradient. Kinds that do not update rows have no cache; they are used for the wide
// table.
TEST(CachedRows, EveryKindOfOptimizer) {
  const auto group = [](const std::string& table, std::string_view kind) {
    return "{at=\"" + table + ":*\", kind=\"" + std::string(kind) + "\"" + options_of(kind) + "}";
  };
  std::vector<std::string_view> wide, deep;
  for (const OptimizerKind& kind : all_optimizers()) {
    const bool has_cache = find_update_kind(kind.choose({}).op)->updates_rows();
    (!has_cache || wide.size() < deep.size() ? wide : deep).push_back(kind.name);
  }
  for (std::size_t k = 0; k < std::max(wide.size(), deep.size()); ++k) {
    const Optimizers optimizers{"sgd", "[" + group("wide", wide[k % wide.size()]) + ", " +
                                           group("deep", deep[k % deep.size()]) + "]"};
    SCOPED_TRACE(optimizers.groups);
    const CachedRun run("ship = \"rows\", cache = \"10%\"", {}, optimizers);
    EXPECT_EQ(run.cached_rows(), wide_deep_rows / 10);
    expect_near_losses(run.losses, CachedRun("", {}, optimizers).losses);
  }
}

TEST(CachedRows, AFrozenTableIsCachedToo) {
  const std::vector<std::string> frozen{"parameters.freeze=[{at=\"deep.weight\"}]"};
  const CachedRun run("ship = \"rows\", cache = \"10%\"", frozen);
  EXPECT_EQ(run.cached_rows(), wide_deep_rows / 10);
  EXPECT_EQ(run.count("RowsUpdate", 0) + run.count("RowsUpdate", 1), 2) << "of the wide table";
  expect_near_losses(run.losses, CachedRun("", frozen).losses);
}

// A loss term that reads the whole table needs it in one place.
TEST(CachedRows, ATableThatALossReadsHasNone) {
  const std::vector<std::string> whole{
      "loss.terms=[{name=\"wide_loss\", kind=\"binary_cross_entropy\", logits=\"logits\", "
      "labels=\"label\"}, {name=\"decay\", kind=\"sum_of_squares\", of=\"deep.weight\", "
      "weight=1e-3, reduction=\"sum\"}]"};
  const CachedRun run("cache = \"10%\"", whole);
  EXPECT_EQ(run.cached_rows(), 0);
  EXPECT_EQ(run.count("SplitIds", 0), 1) << "the wide table's";
  expect_near_losses(run.losses, CachedRun("", whole).losses);
}

}  // namespace
}  // namespace tandem::testing

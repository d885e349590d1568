// Wide & Deep on ranks that shard the rows of its tables, or the columns of the deep one, under
// policies that put tables and layers on the host or on accelerators: losses, tables and moments
// are those of one process. Ranks are threads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <barrier>
#include <cmath>
#include <cstring>
#include <fstream>

#include "engine/operators/collectives/collective.h"
#include "tests/end_to_end/placed_training.h"
#include "tests/end_to_end/rows_ahead_model.h"
#include "tests/engine/plan/missing_wait.h"
#include "tests/harness/allocation_count.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::testing {
namespace {

using ::testing::IsEmpty;

struct TrainedTables {
  std::vector<double> losses;
  std::map<std::string, HostTensor> states;
  std::map<std::string, StateShard> shards;
};

constexpr const char* sharded = "  { at = \"{wide,deep}:*\", shard = \"rows\" },\n";
constexpr const char* by_columns =
    "  { at = \"wide:*\", shard = \"rows\" },\n  { at = \"deep:*\", shard = \"columns\" },\n";
constexpr const char* on_accelerator = "  { at = \"**\", on = \"gpu\" },\n";

class ShardedTablesTest : public ::testing::Test {
 protected:
  std::vector<std::string> settings_of(const std::string& rules,
                                       const std::vector<std::string>& more) {
    const std::string path = folder_ / ("policy" + std::to_string(++policies_) + ".toml");
    const bool has_gpu = rules.find("gpu") != std::string::npos;
    std::ofstream(path) << "policy = 1\n"
                        << (has_gpu ? "devices = { gpu = { use = \"emulated:0\" } }\n" : "")
                        << "rules = [\n"
                        << rules << "]\n";
    std::vector<std::string> all{
        "loss.terms=[{name=\"wide_loss\", kind=\"binary_cross_entropy\", logits=\"logits\", "
        "labels=\"label\"}, {name=\"l2\", kind=\"sum_of_squares\", of=\"deep_rows\", "
        "weight=4e-2, reduction=\"sum\"}]",
        "optimizer.kind=adam",
        "optimizer.lr=3e-3",
        "optimizer.groups=[{at=\"wide:*\", kind=\"ftrl\", lr=0.05, l1=1e-8, l2=1e-8, "
        "initial_accumulator=1.0}, {at=\"deep:*\", kind=\"lazy_adam\"}]",
        "data={kind=\"npz\", train={files=[\"none.npz\"]}, fields={ids=\"ids\", "
        "label=\"label\"}}",
        "threads=1",
        "policy=\"" + path + "\""};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  static TrainedTables train(const std::vector<std::string>& settings,
                             std::shared_ptr<RankGroup> ranks = nullptr) {
    PlacedOptions options;
    options.ranks = std::move(ranks);
    PlacedTraining training(model, batch_size, settings, feeds_of(0), options);
    TrainedTables result;
    for (int step = 0; step < 4; ++step) result.losses.push_back(training.step(feeds_of(step)));
    training.synchronize();
    for (const std::string& name : training.states().names()) {
      if (name.ends_with("/gradient_sum") || name.ends_with("/touched_rows")) continue;
      result.states.emplace(name, training.states().read(name));
      if (const StateShard* shard = training.states().shard(name))
        result.shards.emplace(name, *shard);
    }
    EXPECT_THAT(training.monitor().order_errors(), IsEmpty());
    return result;
  }

  void expect_as_alone(const std::string& rules, std::initializer_list<int> counts,
                       const std::vector<std::string>& more = {}) {
    const std::vector<std::string> settings = settings_of(rules, more);
    const TrainedTables alone = train(settings);
    for (const int ranks : counts) {
      SCOPED_TRACE(std::to_string(ranks) + " ranks");
      std::vector<TrainedTables> all(static_cast<std::size_t>(ranks));
      on_rank_threads(ranks, [&](RankGroup& group) {
        const std::shared_ptr<RankGroup> own(std::shared_ptr<void>(), &group);
        all[static_cast<std::size_t>(group.rank())] = train(settings, own);
      });
      for (const TrainedTables& one : all) {
        EXPECT_EQ(one.losses, all[0].losses);
        for (std::size_t i = 0; i < alone.losses.size(); ++i)
          EXPECT_NEAR(one.losses[i], alone.losses[i], 2e-6 * std::abs(alone.losses[i]));
      }
      EXPECT_GE(all[0].shards.size(), 6u);  // two tables, two states of each
      for (const auto& [name, expected] : alone.states) expect_whole(all, name, expected);
    }
  }

  /// The ranks' rows or columns together must equal the whole tensor.
  static void expect_whole(const std::vector<TrainedTables>& all, const std::string& name,
                           const HostTensor& expected) {
    const auto ranks = static_cast<std::int64_t>(all.size());
    double largest = 1, worst = 0;
    for (std::int64_t i = 0; i < expected.type().elements(); ++i)
      largest = std::max(largest, std::abs(expected.number(i)));
    const auto shard = all[0].shards.find(name);
    const bool is_shared = shard != all[0].shards.end();
    const bool has_columns = is_shared && shard->second.kind == ShardKind::column_blocks;
    const std::int64_t width =
        is_shared ? expected.type().elements() / expected.shape()[0] : std::int64_t{1};
    const std::int64_t share = (width + ranks - 1) / ranks;
    for (std::int64_t i = 0; i < expected.type().elements(); ++i) {
      const std::int64_t row = i / width, column = i % width;
      const std::int64_t rank = has_columns ? column / share : is_shared ? row % ranks : 0;
      const std::int64_t at = has_columns ? row * share + column % share
                              : is_shared ? row / ranks * width + column
                                          : i;
      const double found = all[static_cast<std::size_t>(rank)].states.at(name).number(at);
      worst = std::max(worst, std::abs(found - expected.number(i)));
    }
    EXPECT_LE(worst, 2e-6 * largest) << name;
  }

  TemporaryFolder folder_;
  int policies_ = 0;
};

TEST_F(ShardedTablesTest, OnTheHost) { expect_as_alone(sharded, {2, 3, 4}); }

TEST_F(ShardedTablesTest, Columns) {
  expect_as_alone(by_columns, {2, 4});
  expect_as_alone(by_columns, {2}, {"micro_batch=24", "optimizer.clip_norm=0.05"});
}

TEST_F(ShardedTablesTest, ColumnsAndAccelerators) {
  const std::string host = "  { at = \"{wide,deep}.**\", on = \"cpu\", ship = \"rows\" },\n";
  expect_as_alone(on_accelerator + host + by_columns, {2});
  expect_as_alone(std::string(on_accelerator) + by_columns, {2});
}

TEST_F(ShardedTablesTest, MicroBatchesAndNorms) {
  expect_as_alone(sharded, {2}, {"micro_batch=24", "optimizer.clip_norm=0.05"});
}

// Rows are copied to the accelerator after they have come from their ranks.
TEST_F(ShardedTablesTest, TablesOnTheHostAndLayersOnAccelerators) {
  const std::string host = "  { at = \"{wide,deep}.**\", on = \"cpu\" },\n";
  expect_as_alone(on_accelerator + host + sharded, {2, 3});
}

TEST_F(ShardedTablesTest, RowsAreSentToAccelerators) {
  const std::string host = "  { at = \"{wide,deep}.**\", on = \"cpu\", ship = \"rows\" },\n";
  expect_as_alone(on_accelerator + host + sharded, {2});
}

TEST_F(ShardedTablesTest, TablesOnAccelerators) {
  expect_as_alone(std::string(on_accelerator) + sharded, {2});
}

// A missing wait is found, for each wait for or by an exchange.
TEST_F(ShardedTablesTest, AMissingWaitIsFound) {
  for (const std::string& rules : {std::string(sharded), on_accelerator + std::string(sharded)}) {
    const std::vector<std::string> settings = settings_of(rules, {});
    on_rank_threads(2, [&](RankGroup& group) {
      PlacedOptions options;
      options.ranks = std::shared_ptr<RankGroup>(std::shared_ptr<void>(), &group);
      PlacedTraining training(model, batch_size, settings, feeds_of(0), options);
      training.step(feeds_of(0));
      if (group.rank() == 1) return;
      const Lowered& lowered = training.program().lowered();
      const auto exchanges = [&](const Instruction& instruction) {
        return instruction.kind == Instruction::Kind::collective &&
               collective_kind(lowered.graph.node(instruction.node)) ==
                   CollectiveKind::exchange_rows;
      };
      EXPECT_GE(expect_missed_waits(training.program().plan(), lowered, exchanges), 5);
    });
  }
}

// Neither rank may allocate, once everything that is used exists.
TEST_F(ShardedTablesTest, StepsTakeNoMemoryFromTheHeap) {
  if (!counts_allocations()) GTEST_SKIP() << "the sanitizer has its own heap";
  for (const char* rules : {sharded, by_columns}) {
    const std::vector<std::string> settings = settings_of(rules, {});
    std::barrier<> both(2);
    on_rank_threads(2, [&](RankGroup& group) {
      PlacedOptions options;
      options.ranks = std::shared_ptr<RankGroup>(std::shared_ptr<void>(), &group);
      options.check_order = false;
      PlacedTraining training(model, batch_size, settings, feeds_of(0), options);
      const PlacedTraining::Feeds feeds = feeds_of(0);
      for (int step = 0; step < 6; ++step) training.step(feeds);
      both.arrive_and_wait();
      const AllocationCount count;
      both.arrive_and_wait();
      for (int step = 0; step < 4; ++step) training.step(feeds);
      both.arrive_and_wait();
      const std::int64_t calls = count.calls();
      both.arrive_and_wait();
      EXPECT_EQ(calls, 0);
    });
  }
}

TEST_F(ShardedTablesTest, ALossScaleOfAllRanks) {
  const std::string host = "  { at = \"{wide,deep}.**\", on = \"cpu\" },\n";
  const std::vector<std::string> settings =
      settings_of(on_accelerator + host + sharded, {"precision.compute=\"float16\""});
  std::vector<TrainedTables> all(2);
  on_rank_threads(2, [&](RankGroup& group) {
    const std::shared_ptr<RankGroup> own(std::shared_ptr<void>(), &group);
    all[static_cast<std::size_t>(group.rank())] = train(settings, own);
  });
  EXPECT_EQ(all[0].losses, all[1].losses);
  const TrainedTables alone = train(settings);
  for (std::size_t i = 0; i < alone.losses.size(); ++i)
    EXPECT_NEAR(all[0].losses[i], alone.losses[i], 2e-3 * std::abs(alone.losses[i]));
}

}  // namespace
}  // namespace tandem::testing

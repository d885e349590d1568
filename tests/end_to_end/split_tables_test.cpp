// Wide & Deep with tables of split bfloat16: losses near those of float32, the same wherever tables
// lie and however a step is split, half the bytes over the link, and lossless checkpoints.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>

#include "engine/train/loop/trainer.h"
#include "tests/end_to_end/near_losses.h"
#include "tests/end_to_end/placed_training.h"
#include "tests/end_to_end/table_model.h"
#include "tests/end_to_end/wide_deep_feeds.h"
#include "tests/harness/folders.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::testing {
namespace {

constexpr std::int64_t split_steps = 6;
constexpr std::int64_t columns = 1 + 4;  // both tables together
const std::string split_storage =
    R"(parameters.storage=[{at="{wide,deep}:weight", kind="split_bfloat16"}])";

std::vector<std::int64_t> ids_of(int step) {
  std::mt19937 random(static_cast<unsigned>(step) + 7);
  return wide_deep_ids(random);
}

PlacedTraining::Feeds split_feeds(int step) {
  std::mt19937 random(static_cast<unsigned>(step) + 70);
  std::vector<float> labels(wide_deep_batch);
  for (float& label : labels) label = random() % 3 == 0 ? 1.0f : 0.0f;
  return {
      {"ids", HostTensor::from<std::int64_t>({wide_deep_batch, wide_deep_fields}, ids_of(step))},
      {"label", HostTensor::from<float>({wide_deep_batch}, labels)}};
}

const std::string lazy =
    "optimizer.groups=[{at=\"wide:*\", kind=\"ftrl\", lr=0.05, l1=1e-8, l2=1e-8, "
    "initial_accumulator=1.0}, {at=\"deep:*\", kind=\"lazy_adam\"}]";

class SplitRun {
 public:
  explicit SplitRun(const std::vector<std::string>& more, const std::string& groups = lazy)
      : training_(source_folder() + "/models/wide_deep/model.onnx", wide_deep_batch,
                  settings(more, groups), split_feeds(1)) {
    for (int step = 1; step <= split_steps; ++step)
      losses.push_back(training_.step(split_feeds(step)));
    training_.synchronize();
    if (training_.devices().size() > 1)
      bytes_to_device = training_.devices()[1]->counters().bytes_to_device;
  }
  const Graph& graph() const { return training_.program().lowered().graph; }
  std::vector<const Node*> nodes(const std::string& op) const {
    std::vector<const Node*> found;
    for (const Node& node : graph().nodes) {
      if (node.op->name == op) found.push_back(&node);
    }
    return found;
  }
  std::vector<double> losses;
  std::uint64_t bytes_to_device = 0;

 private:
  static std::vector<std::string> settings(const std::vector<std::string>& more,
                                           const std::string& groups) {
    std::vector<std::string> all{
        "loss.terms=[{name=\"wide_loss\", kind=\"binary_cross_entropy\", logits=\"logits\", "
        "labels=\"label\"}, {name=\"l2\", kind=\"sum_of_squares\", of=\"deep_rows\", weight=4e-2, "
        "reduction=\"sum\"}]",
        "optimizer.kind=adam", "optimizer.lr=3e-3", groups,
        "data={kind=\"npz\", train={files=[\"none.npz\"]}, fields={ids=\"ids\", label=\"label\"}}"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  PlacedTraining training_;
};

std::string policy(const std::string& name, const std::string& rules) {
  const std::string path = ::testing::TempDir() + "split_tables_" + name + ".toml";
  std::ofstream(path) << "policy = 1\ndevices = { gpu = { use = \"emulated:0\" } }\nrules = [\n"
                      << rules << "]\n";
  return "policy=" + path;
}
std::string host_tables(const std::string& ship) {
  return policy("ship_" + ship,
                "  { at = \"**\", on = \"gpu\" },\n  { at = \"{wide,deep}.**\", on = \"cpu\", ship "
                "= \"" +
                    ship + "\" },\n");
}

const SplitRun& split_on_the_host() {
  static const SplitRun run({split_storage});
  return run;
}

// A bfloat16 has 8 bits: rows have a relative error of at most 2^-9, masters have none.
TEST(SplitTables, LossesStayNearThoseOfFloat32) {
  const SplitRun whole({});
  expect_near_losses(split_on_the_host().losses, whole.losses, 2e-3);
  EXPECT_NE(split_on_the_host().losses, whole.losses);
  EXPECT_LT(split_on_the_host().losses.back(), split_on_the_host().losses.front());
}

TEST(SplitTables, LookupsReadAndUpdatesWriteTheHalves) {
  const SplitRun& run = split_on_the_host();
  const Graph& graph = run.graph();
  for (const std::string table : {"wide.weight", "deep.weight"}) {
    const State& top = *graph.find_state(table);
    const State& tail = *graph.find_state(table + "/tail");
    EXPECT_EQ(graph.type(top.initial).dtype, DType::bfloat16);
    EXPECT_EQ(graph.type(tail.initial).dtype, DType::int16);
    EXPECT_TRUE(tail.derived.is_of<LowHalf>(table));
    EXPECT_FALSE(top.final == top.initial || tail.final == tail.initial);
    EXPECT_EQ(graph.value(top.final).producer, graph.value(tail.final).producer);
  }
  ASSERT_EQ(run.nodes("RowsUpdate").size(), 2u);
  for (const Node* update : run.nodes("RowsUpdate")) EXPECT_TRUE(update->attributes.flag("split"));
  // Lookups widen the rows as they read them: no cast follows.
  for (const std::string op : {"Gather", "EmbeddingBag"}) {
    ASSERT_EQ(run.nodes(op).size(), 1u) << op;
    EXPECT_EQ(run.nodes(op)[0]->attributes.text("to"), "float32") << op;
  }
  EXPECT_TRUE(run.nodes("Cast").empty());
}

TEST(SplitTables, LossesDoNotDependOnThePlacement) {
  const std::vector<std::string> policies{
      policy("gpu", "  { at = \"**\", on = \"gpu\" },\n"),
      policy("deep", "  { at = \"**\", on = \"gpu\" },\n  { at = \"deep.**\", on = \"cpu\" },\n"),
      policy("state",
             "  { at = \"**\", on = \"gpu\" },\n  { at = \"{wide,deep}.**\", state = \"cpu\" },\n"),
      host_tables("rows"), host_tables("results")};
  for (const std::string& placed : policies) {
    SCOPED_TRACE(placed);
    expect_near_losses(SplitRun({split_storage, placed}).losses, split_on_the_host().losses, 1e-5);
  }
}

TEST(SplitTables, LossesDoNotDependOnThePasses) {
  expect_near_losses(SplitRun({split_storage, "micro_batch=16"}).losses, split_on_the_host().losses,
                     1e-5);
  const std::string clip = "optimizer.clip_norm=0.05";
  const SplitRun clipped({split_storage, clip});
  EXPECT_GT(std::fabs(clipped.losses[2] - split_on_the_host().losses[2]), 1e-5);
  expect_near_losses(SplitRun({split_storage, clip, "micro_batch=16"}).losses, clipped.losses,
                     1e-5);
  expect_near_losses(SplitRun({split_storage, clip, host_tables("rows")}).losses, clipped.losses,
                     1e-5);
}

// Kinds that move every row: in a step with few ids, with many, and with micro-batches.
TEST(SplitTables, RowsWithoutIdsMoveWithAdam) {
  const std::string dense = "optimizer.groups=[{at=\"wide:*\", kind=\"adamw\"}]";
  const SplitRun whole({}, dense), halves({split_storage}, dense);
  expect_near_losses(halves.losses, whole.losses, 2e-3);
  expect_near_losses(SplitRun({split_storage, "micro_batch=16"}, dense).losses, halves.losses,
                     1e-5);
  EXPECT_GT(std::fabs(halves.losses.back() - split_on_the_host().losses.back()), 1e-6);
}

// Exactly two bytes less for each element of the rows that are copied.
TEST(SplitTables, HalfTheBytesOfRowsCross) {
  std::uint64_t unique = 0;
  for (int step = 1; step <= split_steps; ++step) {
    const std::vector<std::int64_t> ids = ids_of(step);
    unique += std::set<std::int64_t>(ids.begin(), ids.end()).size();
  }
  const std::uint64_t all = split_steps * wide_deep_batch * wide_deep_fields;
  for (const auto& [ship, crossing] :
       {std::pair<std::string, std::uint64_t>{"rows", unique}, {"results", all}}) {
    SCOPED_TRACE(ship);
    const SplitRun whole({host_tables(ship)}), halves({split_storage, host_tables(ship)});
    EXPECT_EQ(whole.bytes_to_device - halves.bytes_to_device, crossing * columns * 2);
    for (const Node* node : halves.nodes("GatherRows"))
      EXPECT_EQ(halves.graph().type(node->outputs[0]).dtype, DType::bfloat16);
  }
}

// Products in 16 bits on the device read the rows as they were copied, and no table is converted.
TEST(SplitTables, ComputeInSixteenBitsGoesWithThem) {
  const std::string half = "precision.compute=bfloat16";
  for (const std::string ship : {"rows", "results"}) {
    SCOPED_TRACE(ship);
    const SplitRun whole({host_tables(ship), half}), both({split_storage, host_tables(ship), half});
    expect_near_losses(both.losses, whole.losses, 5e-3);
    expect_near_losses(both.losses, split_on_the_host().losses, 3e-2);
    EXPECT_NE(both.losses, split_on_the_host().losses);
    for (const Node* cast : both.nodes("Cast")) {
      for (const std::string table : {"wide.weight", "deep.weight"})
        EXPECT_FALSE(cast->inputs[0] == both.graph().find_state(table)->initial) << cast->path;
    }
    expect_near_losses(SplitRun({split_storage, host_tables(ship), half, "micro_batch=16"}).losses,
                       both.losses, 1e-2);
  }
  EXPECT_EQ(SplitRun({split_storage, half}).losses, split_on_the_host().losses)
      << "the host has no 16 bits";
}

/// Trains a table of 500 rows towards random targets.
class TableTraining {
 public:
  TableTraining(const TemporaryFolder& folder, int until, bool halves) {
    write_table_model(folder / "table.onnx", 20);
    std::vector<std::string> settings{
        "steps=" + std::to_string(until),
        "batch_size=64",
        "run_dir=\"" + folder / "run" + "\"",
        "parameters.shape=[{at=\"table:weight\", rows=500}]",
        "parameters.init=[{at=\"table:weight\", kind=\"normal\", std=0.1}]",
        "loss.terms=[{name=\"mse\", kind=\"mse\", predictions=\"y\", targets=\"t\"}]",
        "optimizer={kind=\"lazy_adam\", lr=0.01}",
        "data={kind=\"npz\", train={files=[\"none.npz\"]}, fields={ids=\"ids\", t=\"t\"}}"};
    if (halves)
      settings.push_back(R"(parameters.storage=[{at="table:weight", kind="split_bfloat16"}])");
    config_ = parse_run_config("model = \"table.onnx\"\n", folder / "train.toml", settings);
    engine_ = std::make_unique<api::Engine>();
    model_ = std::make_unique<api::PlacedModel>(*engine_, config_);
    std::mt19937 random(3);
    std::normal_distribution<float> normal;
    std::vector<std::int64_t> ids(256);
    for (auto& id : ids) id = static_cast<std::int64_t>(random() % 500);
    HostTensor targets(TensorType{DType::float32, {256, 20}});
    for (float& x : targets.as<float>()) x = normal(random);
    const DataSets data{
        make_array_source({{"ids", HostTensor::from<std::int64_t>({256}, ids)}, {"t", targets}}),
        nullptr};
    training_ = std::make_unique<Training>(config_, model_->run_parts(), data);
  }
  void run(const std::string& resume = "") { training_->run(resume, {}); }
  /// The bits of master and moments, one after another.
  std::vector<std::uint32_t> bits() {
    std::vector<std::uint32_t> all;
    for (const std::string& name : training_->states().names()) {
      const HostTensor value = training_->states().read(name);
      if (value.dtype() != DType::float32) continue;
      const auto* from = static_cast<const std::uint32_t*>(value.data());
      all.insert(all.end(), from, from + value.type().elements());
    }
    return all;
  }
  bool is_split() { return training_->states().has("table.weight/tail"); }

 private:
  RunConfig config_;
  std::unique_ptr<api::Engine> engine_;
  std::unique_ptr<api::PlacedModel> model_;
  std::unique_ptr<Training> training_;
};

TEST(SplitTables, CheckpointsHoldTheWholeFloats) {
  TemporaryFolder folder, other;
  const std::string run = folder / "run";
  const auto begin_again = [&] { std::filesystem::remove(run + "/summary.json"); };
  TableTraining first(folder, 5, true);
  first.run();
  EXPECT_TRUE(first.is_split());
  const std::vector<std::uint32_t> after = first.bits();
  for (const bool halves : {false, true}) {
    begin_again();
    TableTraining resumed(folder, 5, halves);
    EXPECT_NE(resumed.bits(), after) << "initial values";
    resumed.run(run);
    EXPECT_EQ(resumed.is_split(), halves);
    EXPECT_TRUE(resumed.bits() == after);
  }
  begin_again();
  TableTraining longer(folder, 9, true);
  longer.run(run);
  TableTraining at_once(other, 9, true);
  at_once.run();
  EXPECT_TRUE(longer.bits() == at_once.bits()) << "interrupted or not";
  EXPECT_TRUE(longer.bits() != after);
}

TEST(SplitTables, InitialValuesAreThoseOfFloat32) {
  TemporaryFolder folder, other;
  TableTraining whole(folder, 1, false), halves(other, 1, true);
  EXPECT_TRUE(whole.bits() == halves.bits());
}

}  // namespace
}  // namespace tandem::testing

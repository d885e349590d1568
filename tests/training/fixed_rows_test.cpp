// [parameters] fixed_rows: the rows keep their bits whatever updates the others, which are updated
// as without the rule.
#include "engine/train/tables/fixed_rows.h"

#include <cstring>

#include "engine/graph/builder.h"
#include "engine/optimizers/optimizer.h"
#include "engine/train/graph/training_graph.h"
#include "tests/training/training_run.h"

namespace tandem {
namespace {

using namespace testing;
using ::testing::AllOf;
using ::testing::HasSubstr;

const std::string fixed = R"(parameters.fixed_rows=[{at="fc1:weight", rows=[5, 2]}])";

class FixedRowsTest : public TrainingRun {
 protected:
  static std::vector<std::string> with(std::vector<std::string> keys, const std::string& more) {
    keys.push_back(more);
    return keys;
  }
  static HostTensor weight(const Trained& run) { return run.training->states().read("fc1.weight"); }
  static HostTensor start() {
    const SmallEngine engine;
    return small_network(engine.operators, 8).find_state("fc1.weight")->start;
  }
  static bool is_row_equal(const HostTensor& a, const HostTensor& b, std::int64_t row) {
    const std::size_t bytes = a.bytes() / static_cast<std::size_t>(a.shape()[0]);
    const auto at = [&](const HostTensor& t) {
      return static_cast<const char*>(t.data()) + static_cast<std::size_t>(row) * bytes;
    };
    return std::memcmp(at(a), at(b), bytes) == 0;
  }
  void expect_only_these_rows_stay(const std::vector<std::string>& keys) {
    const HostTensor before = start(), after = weight(run(with(keys, fixed)));
    for (std::int64_t row = 0; row < 8; ++row)
      EXPECT_EQ(is_row_equal(before, after, row), row == 2 || row == 5) << row;
  }
};

std::vector<std::string> kind_of_fc1(std::string_view kind, const std::string& more = "") {
  return {"optimizer.groups=[{at=\"fc1:weight\", kind=\"" + std::string(kind) + "\"" + more + "}]"};
}

// Optimizers included that move every element in every step, by moments and by weight decay.
TEST_F(FixedRowsTest, UnderEveryOptimizer) {
  for (const OptimizerKind& kind : all_optimizers()) {
    SCOPED_TRACE(kind.name);
    std::string more;
    for (const OptimizerSetting& setting : kind.settings) {
      if (setting.info.key == "weight_decay") more = ", weight_decay=0.1";
    }
    const std::vector<std::string> keys = kind_of_fc1(kind.name, more);
    const UpdateChoice update = choose_update(OptimizerOptions(kind), start().type().elements());
    if (!find_update_kind(update.op)->updates_rows()) {
      EXPECT_THAT(error_text([&] { run(with(keys, fixed)); }),
                  AllOf(HasSubstr("fc1:weight"), HasSubstr("rows by themselves"),
                        HasSubstr(std::string(kind.name)), HasSubstr("optimizer.groups")));
      continue;
    }
    expect_only_these_rows_stay(keys);
    // One step changes the other rows as without the rule.
    const HostTensor with_rule = weight(run(with(with(keys, fixed), "steps=1"))),
                     without = weight(run(with(keys, "steps=1")));
    for (const std::int64_t row : {0, 1, 3, 4, 6, 7}) {
      for (std::int64_t i = 6 * row; i < 6 * row + 6; ++i)
        EXPECT_NEAR(with_rule.number(i), without.number(i), 1e-6) << i;
    }
  }
}

TEST_F(FixedRowsTest, OverMicroBatchesAndWithClipping) {
  expect_only_these_rows_stay(with(kind_of_fc1("adamw"), "micro_batch=4"));
  expect_only_these_rows_stay(with(kind_of_fc1("momentum"), "optimizer.clip_norm=0.1"));
}

TEST_F(FixedRowsTest, ResumesBitByBit) {
  const std::vector<std::string> keys = with(kind_of_fc1("adamw"), fixed);
  const Trained whole = run(with(keys, "run_dir=\"whole\""));
  const Trained first = run(with(keys, "run_dir=\"parts\""), 3);
  const Trained second = run(with(keys, "run_dir=\"parts\""), 0, first.result.run_dir);
  EXPECT_EQ(difference(whole.training->states(), second.training->states()), "");
  EXPECT_TRUE(is_row_equal(start(), weight(second), 2));
}

TEST_F(FixedRowsTest, BiasesHaveRowsToo) {
  const Trained done = run({R"(parameters.fixed_rows=[{at="fc*:bias", rows=[1]}])"});
  const SmallEngine engine;
  const Graph network = small_network(engine.operators, 8);
  for (const char* name : {"fc1.bias", "fc2.bias"}) {
    const HostTensor before = network.find_state(name)->start,
                     after = done.training->states().read(name);
    for (std::int64_t i = 0; i < before.type().elements(); ++i)
      EXPECT_EQ(before.number(i) == after.number(i), i == 1) << name << i;
  }
}

TEST_F(FixedRowsTest, Mistakes) {
  const auto refused = [&](const std::string& rules) {
    return error_text([&] { run({"parameters.fixed_rows=" + rules}); });
  };
  EXPECT_THAT(refused(R"([{at="fc1:weigth", rows=[0]}])"),
              AllOf(HasSubstr("matches no parameter"), HasSubstr("fc1:weight")));
  EXPECT_THAT(refused(R"([{at="fc2:weight", rows=[3]}])"),
              AllOf(HasSubstr("there is no row 3"), HasSubstr("0 to 2")));
  EXPECT_THAT(refused(R"([{at="fc2:weight", rows=[-1]}])"), HasSubstr("rows"));
  EXPECT_THAT(refused(R"([{at="fc2:weight"}])"), HasSubstr("rows"));
}

TEST(FixedRows, AreWrittenAsTheyWereRead) {
  const RunConfig config =
      parse_run_config("model = \"m.onnx\"\nsteps = 1\n[optimizer]\nkind = \"sgd\"\n",
                       "/folder/train.toml", {fixed});
  ASSERT_EQ(config.parameters.fixed_rows.size(), 1u);
  EXPECT_EQ(config.parameters.fixed_rows[0].rows, (std::vector<std::int64_t>{5, 2}));
  EXPECT_EQ(parse_run_config(to_toml(config), "/folder/resolved.toml").parameters,
            config.parameters);
}

// ids int64 [8] -> rows of table.weight [20, 3] -> logits.
TrainingGraph lookup(const std::string& kind, bool is_tied, MicroBatchKind micro_batch,
                     const std::string& storage = "float32") {
  static const OperatorSet operators = all_operators();
  GraphBuilder g(operators);
  State state;
  state.name = "table.weight";
  state.path = "table:weight";
  state.start = HostTensor(TensorType{DType::float32, {20, 3}});
  state.trainable = true;
  const ValueId table = g.state(std::move(state));
  ValueId rows = g.node("Gather", {table, g.input("ids", {DType::int32, {8}})})[0];
  if (is_tied) rows = g.add(rows, g.reduce_sum(table, {0}, true));
  g.output("logits", rows);
  const RunConfig config = small_config(
      "/folder", {"optimizer.kind=\"" + kind + "\"",
                  R"(parameters.fixed_rows=[{at="table:weight", rows=[0, 4]}])",
                  "parameters.storage=[{at=\"table:weight\", kind=\"" + storage + "\"}]"});
  TrainingRequest request;
  request.config = &config;
  request.fields = {{"labels", {DType::int64, {8}}}};
  request.kind = micro_batch;
  request.samples = {8, micro_batch == MicroBatchKind::whole ? 8 : 16};
  TrainingGraph made = build_training_graph(operators, g.finish(), request);
  verify(made.graph);
  return made;
}

TEST(FixedRows, OfSplitTables) {
  const std::string split = "split_bfloat16";
  EXPECT_NO_THROW(lookup("lazy_adam", false, MicroBatchKind::whole, split));
  EXPECT_THAT(error_text([&] { lookup("adam", false, MicroBatchKind::whole, split); }),
              AllOf(HasSubstr("a split table with fixed_rows"), HasSubstr("table:weight"),
                    HasSubstr("optimizer.groups")));
}

int count(const TrainingGraph& made, const std::string& op) {
  int number = 0;
  for (const Node& node : made.graph.nodes) number += node.op->name == op;
  return number;
}

TEST(FixedRows, GradientsOfRowsStayRows) {
  const TrainingGraph made = lookup("lazy_adam", false, MicroBatchKind::whole);
  EXPECT_EQ(count(made, "UniqueIndices"), 1);
  EXPECT_EQ(count(made, "Where"), 2);  // one for each id
  EXPECT_EQ(count(made, "TouchedRows"), 0);
  const TrainingGraph tied = lookup("lazy_adam", true, MicroBatchKind::whole);
  EXPECT_EQ(count(tied, "UniqueIndices"), 0);
  EXPECT_EQ(count(tied, "RowsUpdate"), 1);
  const TrainingGraph passes = lookup("lazy_adam", false, MicroBatchKind::first);
  EXPECT_EQ(count(passes, "MarkRows"), 1);
  EXPECT_EQ(count(passes, "Where"), 2);
}

}  // namespace
}  // namespace tandem

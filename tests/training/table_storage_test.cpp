// [parameters] storage: which tables it applies to, what is refused and why, and the resulting
// training graph.
#include "engine/train/tables/table_storage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "engine/graph/builder.h"
#include "engine/graph/error.h"
#include "engine/operators/update_kind.h"
#include "engine/optimizers/optimizer.h"
#include "engine/train/graph/training_graph.h"
#include "tests/training/support.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using testing::error_text;
using ::testing::HasSubstr;

constexpr const char* split = R"([{at="table:weight", kind="split_bfloat16"}])";

TEST(TableStorage, IsWrittenAsItWasRead) {
  const auto parse = [](const std::string& rules) {
    return parse_run_config("model = \"m.onnx\"\nsteps = 1\n[optimizer]\nkind = \"sgd\"\n",
                            "/folder/train.toml", {"parameters.storage=" + rules});
  };
  const RunConfig config =
      parse(R"([{at="a", kind="split_bfloat16"}, {at="b", kind="nf4", block=128}])");
  ASSERT_EQ(config.parameters.storage.size(), 2u);
  EXPECT_EQ(config.parameters.storage[0].at, "a");
  EXPECT_EQ(config.parameters.storage[0].kind, StorageKind::split_bfloat16);
  EXPECT_EQ(config.parameters.storage[1].kind, StorageKind::nf4);
  EXPECT_EQ(config.parameters.storage[1].block, 128);
  EXPECT_EQ(parse_run_config(to_toml(config), "/folder/train.resolved.toml").parameters,
            config.parameters);
  const auto refused = [&](const std::string& rules) { return error_text([&] { parse(rules); }); };
  EXPECT_THAT(refused(R"([{at="a", kind="bfloat"}])"), HasSubstr("split_bfloat16"));
  EXPECT_THAT(refused(R"([{at="a"}])"), HasSubstr("kind"));
  EXPECT_THAT(refused(R"([{kind="split_bfloat16"}])"), HasSubstr("at"));
}

enum class Reads { rows, constant_ids, product, transposed_axis, nothing };

/// ids int64 [4] -> rows of table.weight [8, 6], and what else reads the table -> logits [4,
/// 3].
Graph network_that_reads(const OperatorSet& operators, Reads also, DType dtype = DType::float32) {
  GraphBuilder g(operators);
  const auto parameter = [&](const std::string& name, Shape shape, DType type) {
    State state;
    state.name = name + ".weight";
    state.path = name + ":weight";
    state.start = HostTensor(TensorType{type, std::move(shape)});
    state.trainable = true;
    return g.state(std::move(state));
  };
  const ValueId ids = g.input("ids", {DType::int64, {4}});
  const ValueId table = parameter("table", {8, 6}, dtype),
                fc = parameter("fc", {6, 3}, DType::float32);
  g.set_scope({"table.Gather"});
  ValueId rows = also == Reads::nothing ? g.input("x", {DType::float32, {4, 6}})
                                        : g.node("Gather", {table, ids})[0];
  if (dtype != DType::float32) rows = g.cast(rows, DType::float32);
  if (also == Reads::constant_ids) {
    g.set_scope({"table.first"});
    const ValueId first = g.constant(HostTensor::from<std::int64_t>({4}, {0, 1, 2, 3}));
    rows = g.add(rows, g.node("Gather", {table, first})[0]);
  }
  if (also == Reads::transposed_axis) {
    g.set_scope({"table.columns"});
    const ValueId column =
        g.node("Gather", {table, ids}, {{"axis", std::int64_t{1}}})[0];  // [8, 4]
    const ValueId sums = g.reduce_sum(column, {0}, false);               // [4]
    rows = g.add(rows, g.reshape(sums, {4, 1}));
  }
  g.set_scope({"fc.MatMul"});
  ValueId logits = g.node("MatMul", {rows, fc})[0];
  if (also == Reads::product) {
    g.set_scope({"tied.MatMul"});
    const ValueId turned = g.node("Transpose", {table}, {{"perm", Ints{1, 0}}})[0];
    const ValueId scores = g.node("MatMul", {rows, turned})[0];  // [4, 8]
    logits = g.add(logits, g.reduce_sum(scores, {1}, true));
  }
  g.output("logits", logits);
  return g.finish();
}

class TableStorageTest : public ::testing::Test {
 protected:
  TrainingGraph make(const std::vector<std::string>& keys, Reads also = Reads::rows,
                     DType dtype = DType::float32, MicroBatchKind kind = MicroBatchKind::whole) {
    std::vector<std::string> all{std::string("parameters.storage=") + split};
    all.insert(all.end(), keys.begin(), keys.end());
    const RunConfig config = testing::small_config("/folder", all);
    TrainingRequest request;
    request.config = &config;
    request.fields = {{"labels", {DType::int64, {4}}}};
    request.kind = kind;
    request.samples = {4, kind == MicroBatchKind::whole ? 4 : 8};
    TrainingGraph made =
        build_training_graph(operators_, network_that_reads(operators_, also, dtype), request);
    verify(made.graph);
    return made;
  }
  std::string refused(const std::vector<std::string>& keys, Reads also = Reads::rows,
                      DType dtype = DType::float32) {
    return error_text([&] { make(keys, also, dtype); });
  }
  static int count(const TrainingGraph& made, const std::string& op) {
    const auto& nodes = made.graph.nodes;
    return static_cast<int>(
        std::count_if(nodes.begin(), nodes.end(), [&](const Node& n) { return n.op->name == op; }));
  }

  OperatorSet operators_ = all_operators();
};

TEST_F(TableStorageTest, RulesNameTables) {
  const std::string storage = "parameters.storage=";
  EXPECT_THAT(refused({storage + R"([{at="tabel:weight", kind="split_bfloat16"}])"}),
              AllOf(HasSubstr("\"tabel:weight\" matches no parameter"),
                    HasSubstr("did you mean \"table:weight\"?")));
  EXPECT_THAT(
      refused({storage + R"([{at="fc:weight", kind="split_bfloat16"}])"}),
      AllOf(HasSubstr("fc:weight"), HasSubstr("only lookups"), HasSubstr("fc.MatMul (MatMul)")));
  EXPECT_THAT(refused({}, Reads::product),
              AllOf(HasSubstr("table:weight"), HasSubstr("(Transpose)")));
  EXPECT_THAT(refused({}, Reads::transposed_axis), HasSubstr("table.columns (Gather)"));
  EXPECT_THAT(refused({}, Reads::constant_ids), HasSubstr("with constant ids"));
  EXPECT_THAT(refused({}, Reads::nothing), HasSubstr("no lookup reads this parameter"));
  EXPECT_THAT(refused({}, Reads::rows, DType::bfloat16),
              AllOf(HasSubstr("split_bfloat16 is a way to keep float32"), HasSubstr("bfloat16")));
}

// The last rule that covers a table decides.
TEST_F(TableStorageTest, LaterRulesWin) {
  const RunConfig config =
      testing::small_config("/folder", {R"(parameters.storage=[{at="**", kind="split_bfloat16"}, )"
                                        R"({at="fc:*", kind="float32"}])"});
  const std::vector<SplitTable> tables =
      split_tables(config.parameters, network_that_reads(operators_, Reads::rows));
  ASSERT_EQ(tables.size(), 1u);
  EXPECT_EQ(tables[0].name, "table.weight");
}

TEST_F(TableStorageTest, OptimizersUpdateRows) {
  const std::string wanted = "needs an optimizer that updates rows";
  EXPECT_THAT(refused({"optimizer.kind=sgd", "optimizer.momentum=0.9"}),
              AllOf(HasSubstr(wanted), HasSubstr("sgd of every row"), HasSubstr("lazy_adam")));
  EXPECT_THAT(refused({"optimizer.kind=adagrad", "optimizer.weight_decay=0.1"}),
              AllOf(HasSubstr(wanted), HasSubstr("adagrad of every row")));
  EXPECT_THAT(refused({"optimizer.kind=sgd", "optimizer.momentum=0.9"}),
              AllOf(HasSubstr("sgd without momentum"),
                    HasSubstr("rowwise_adagrad without weight_decay"), HasSubstr(", group_ftrl")));
  EXPECT_THAT(refused({"optimizer.kind=lamb"}),
              AllOf(HasSubstr(wanted), HasSubstr("lamb of every row"), Not(HasSubstr(", lamb"))));
  EXPECT_THAT(refused({"optimizer.kind=adafactor"}),
              AllOf(HasSubstr(wanted), HasSubstr("adafactor of every row"),
                    HasSubstr("rowwise_adagrad without")));
  for (const OptimizerKind& kind : all_optimizers()) {
    if (!find_update_kind(kind.choose({}).op)->updates_rows()) continue;
    SCOPED_TRACE(kind.name);
    const TrainingGraph made = make({"optimizer.kind=" + std::string(kind.name)});
    EXPECT_EQ(count(made, "RowsUpdate"), 1);
    EXPECT_EQ(made.graph.type(made.graph.find_state("table.weight")->initial).dtype, DType::float32)
        << "halves are made where the graph is lowered";
  }
  // Frozen tables need no update of rows.
  const TrainingGraph frozen = make(
      {"optimizer.kind=sgd", "optimizer.momentum=0.9", R"(parameters.freeze=[{at="table:*"}])"});
  EXPECT_EQ(count(frozen, "RowsUpdate"), 0);
}

// What reads whole rows is refused with its key, unless it can do without the halves.
TEST_F(TableStorageTest, LimitsAndNormsOfGradients) {
  EXPECT_THAT(
      refused({"optimizer.clip_adaptive=0.1"}),
      AllOf(HasSubstr("table:weight"), HasSubstr("optimizer.clip_adaptive reads whole rows"),
            HasSubstr("{ at = \"table:weight\", clip_adaptive = 0 } to optimizer.groups"),
            HasSubstr("parameters.storage")));
  make({"optimizer.clip_adaptive=0.1",
        "optimizer.groups=[{at=\"table:weight\", clip_adaptive=0.0}]"});
  make({"optimizer.clip_value=0.1"});
  make({"optimizer.clip_norm=0.1"});
  const TrainingGraph made = make({"log.norms=[\"**\"]"});
  EXPECT_NE(made.graph.find_output("norm.gradient.table:weight"), nullptr);
  EXPECT_EQ(made.graph.find_output("norm.update.table:weight"), nullptr);
  EXPECT_NE(made.graph.find_output("norm.update.fc:weight"), nullptr);
  EXPECT_THAT(made.notes,
              ::testing::Contains(AllOf(HasSubstr("table:weight has only norm.gradient"),
                                        HasSubstr("parameters.storage"))));
}

// With half as many ids as rows a float32 table gets a dense update.
TEST_F(TableStorageTest, GradientsStayRowsHoweverMany) {
  EXPECT_EQ(count(make({"optimizer.kind=adam", "parameters.storage=[]"}), "RowsUpdate"), 0);
  for (const MicroBatchKind kind : {MicroBatchKind::whole, MicroBatchKind::last}) {
    const TrainingGraph made = make({"optimizer.kind=adam"}, Reads::rows, DType::float32, kind);
    EXPECT_EQ(count(made, "RowsUpdate"), 1);
    EXPECT_EQ(count(made, "AdamUpdate"), 1) << "of the layer";
    EXPECT_EQ(count(made, "TouchedRows"), kind == MicroBatchKind::last);
  }
  const TrainingGraph first =
      make({"optimizer.kind=adam"}, Reads::rows, DType::float32, MicroBatchKind::first);
  EXPECT_EQ(count(first, "MarkRows"), 1);
}

// The rows that got a gradient are marked where the table's update is placed, in every program of a
// step: a last batch of one micro-batch has a program of its own.
TEST_F(TableStorageTest, MarksOfRowsArePartOfTheUpdate) {
  for (const MicroBatchKind kind :
       {MicroBatchKind::whole, MicroBatchKind::first, MicroBatchKind::last}) {
    const TrainingGraph made =
        make({"optimizer.kind=lazy_adam", "optimizer.clip_value=0.1", "parameters.storage=[]"},
             Reads::rows, DType::float32, kind);
    int marks = 0;
    for (const Node& node : made.graph.nodes) {
      if (node.op->name != "MarkRows") continue;
      ++marks;
      EXPECT_EQ(node.phase, Phase::update);
      EXPECT_THAT(node.path, HasSubstr("table"));
    }
    EXPECT_EQ(marks, 1);
  }
}

}  // namespace
}  // namespace tandem

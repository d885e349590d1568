// Tables with more rows than their placeholder in the file: import, refusals, export.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "engine/graph/error.h"
#include "importer/export_graph.h"
#include "onnx/checker.h"
#include "tests/harness/few_addresses.h"
#include "tests/importer/support.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;
using namespace tandem::testing;

// wide.weight [1, 1] and deep.weight [1, 4] are looked up by ids [2, 3]; deep's rows meet
// fc.weight.
ModelMaker tables() {
  ModelMaker m;
  m.input("ids", {2, 3}, onnx::TensorProto::INT64);
  m.weight("wide.weight", {1, 1}).weight("deep.weight", {1, 4}).weight("fc.weight", {4, 1});
  m.node("Gather", {"wide.weight", "ids"}, {"wide_rows"});
  m.node("Gather", {"deep.weight", "ids"}, {"deep_rows"});
  m.node("MatMul", {"deep_rows", "fc.weight"}, {"deep_out"});
  m.node("Add", {"wide_rows", "deep_out"}, {"logits"});
  m.output("logits");
  return m;
}

ImportOptions with_rows(std::vector<RowsRule> rules) {
  ImportOptions options = with_evaluator();
  options.rows = std::move(rules);
  return options;
}
RowsRule rule(const std::string& at, std::int64_t rows) { return {at, rows, "train.toml", 4, 9}; }

std::string refusal_of_rows(const ModelMaker& m, std::vector<RowsRule> rules) {
  return error_of([&] { import_graph(m.file(), engine_operators(), with_rows(std::move(rules))); });
}

TEST(Tables, GetTheirRowsAtImport) {
  const ImportResult result =
      import_graph(tables().file(), engine_operators(),
                   with_rows({rule("{wide,deep}:weight", 50), rule("deep", 1000)}));
  const State* wide = result.graph.find_state("wide.weight");
  const State* deep = result.graph.find_state("deep.weight");
  EXPECT_EQ(wide->start.shape(), (Shape{50, 1}));
  EXPECT_EQ(deep->start.shape(), (Shape{1000, 4}));  // the last rule counts
  EXPECT_TRUE(wide->starts_at_zero && deep->starts_at_zero);
  for (const float x : deep->start.as<float>()) ASSERT_EQ(x, 0);
  EXPECT_FALSE(result.graph.find_state("fc.weight")->starts_at_zero);
  for (const ParameterSummary& p : result.summary.parameters) {
    EXPECT_EQ(p.type.shape[0], p.name == "wide.weight" ? 50 : p.name == "deep.weight" ? 1000 : 4);
  }
}

TEST(Tables, MayBeLargerThanAnyFile) {
  const std::int64_t rows = (std::int64_t{1} << 31) + 1000;
  const ImportResult result =
      import_graph(tables().file(), engine_operators(), with_rows({rule("wide:weight", rows)}));
  EXPECT_EQ(result.graph.find_state("wide.weight")->start.shape(), (Shape{rows, 1}));
}

TEST(Tables, WithTheRowsAlreadyKeepTheirValues) {
  const ImportResult result =
      import_graph(tables().file(), engine_operators(), with_rows({rule("deep:weight", 1)}));
  EXPECT_FALSE(result.graph.find_state("deep.weight")->starts_at_zero);
  EXPECT_NE(result.graph.find_state("deep.weight")->start.as<float>()[0], 0);
}

TEST(Tables, ThatMatchNothingAreErrorsWithTheNearestName) {
  const std::string text = refusal_of_rows(tables(), {rule("deap:weight", 10), rule("none", 10)});
  EXPECT_THAT(text, HasSubstr("train.toml:4:9"));
  EXPECT_THAT(text, HasSubstr("\"deap:weight\" matches no parameter"));
  EXPECT_THAT(text, HasSubstr("did you mean \"deep:weight\"?"));
  EXPECT_THAT(text, HasSubstr("\"none\" matches no parameter"));
}

TEST(Tables, ReadByOtherOperatorsAreRefused) {
  EXPECT_THAT(refusal_of_rows(tables(), {rule("fc:weight", 10)}), HasSubstr("MatMul"));
  ModelMaker axis = tables();
  set(*axis.graph().mutable_node(1), "axis", std::int64_t{1});
  const std::string text = refusal_of_rows(axis, {rule("deep:weight", 10)});
  EXPECT_THAT(text, HasSubstr("deep.weight"));
  EXPECT_THAT(text, HasSubstr("Gather along axis 1"));
  EXPECT_THAT(text, HasSubstr("train.toml:4:9"));
  // Through a copy it is noticed only once there is a graph.
  ModelMaker copied = tables();
  copied.node("Identity", {"deep.weight"}, {"copy"});
  copied.node("ReduceSum", {"copy"}, {"sum"});
  copied.output("sum");
  EXPECT_THAT(refusal_of_rows(copied, {rule("deep:weight", 10)}), HasSubstr("ReduceSum"));
}

TEST(Tables, NeedRowsThatCanBe) {
  EXPECT_THAT(refusal_of_rows(tables(), {rule("deep:weight", 0)}), HasSubstr("bad number of rows"));
  EXPECT_THAT(refusal_of_rows(tables(), {rule("deep:weight", std::int64_t{1} << 62)}),
              HasSubstr("too large"));
}

TEST(Tables, ThatTheHostHasNoRangeForAreNamed) {
  constexpr std::size_t gib = std::size_t{1} << 30;
  std::string text;
  {
    const FewAddresses few(64 * gib);
    ASSERT_TRUE(few.is_set());
    try {
      import_graph(
          tables().file(), engine_operators(),
          with_rows({rule("deep:weight", std::int64_t{1} << 33), rule("wide:weight", 50)}));
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::does_not_fit);
      text = error.what();
    }
  }
  EXPECT_THAT(
      text,
      HasSubstr("deep.weight: the host does not have enough memory for a table of this many rows"));
  EXPECT_THAT(text, HasSubstr("float32[8589934592, 4], 137438953472 bytes ("));
  EXPECT_THAT(text, HasSubstr("bytes of addresses in all, to which the process is limited"));
  EXPECT_THAT(text, HasSubstr("(raise the limit (ulimit -v), or lower its rows in "
                              "parameters.shape; optimizer states take as much again)"));
}

class ExportTables : public ::testing::Test {
 protected:
  void round_trip(const ExportOptions& options, std::size_t files) {
    const OnnxFile file = tables().file();
    const ImportResult before = import_graph(file, engine_operators(), options.import);
    NamedTensors values;
    for (const State& state : before.graph.states) {
      HostTensor value(state.start.type());
      for (std::int64_t i = 0; i < value.type().elements(); ++i)
        value.as<float>()[static_cast<std::size_t>(i)] = static_cast<float>(i % 17);
      values.emplace_back(state.name, value);
    }
    const std::filesystem::path to = folder_.path() / "trained.onnx";
    const ExportResult written = export_graph(file, engine_operators(), values, to, options);
    EXPECT_EQ(written.files.size(), files);
    EXPECT_NO_THROW(onnx::checker::check_model(to.string()));
    const ImportResult after =
        import_graph(OnnxFile::open(to), engine_operators(), with_evaluator());
    for (const auto& [name, value] : values) {
      const State* state = after.graph.find_state(name);
      ASSERT_TRUE(state) << name;
      ASSERT_EQ(state->start.type(), value.type());
      EXPECT_EQ(std::memcmp(state->start.data(), value.data(), value.bytes()), 0) << name;
    }
  }
  ScratchFolder folder_;
};

TEST_F(ExportTables, HaveTheirRowsInTheFile) {
  ExportOptions options;
  options.import = with_rows({rule("{wide,deep}:weight", 1000)});
  round_trip(options, 1);
}

TEST_F(ExportTables, GoBesideTheModelWhereTheyAreLarge) {
  ExportOptions options;
  options.import = with_rows({rule("{wide,deep}:weight", 300'000)});
  options.inline_bytes = 1 << 20;
  round_trip(options, 2);
}

TEST_F(ExportTables, OfAnotherSizeThanTheirRuleAreRefused) {
  ExportOptions options;
  options.import = with_rows({rule("deep:weight", 10)});
  const NamedTensors values{{"deep.weight", HostTensor(TensorType{DType::float32, {1, 4}})}};
  EXPECT_THAT(error_of([&] {
                export_graph(tables().file(), engine_operators(), values, folder_.path() / "x.onnx",
                             options);
              }),
              HasSubstr("[10, 4]"));
}

}  // namespace
}  // namespace tandem

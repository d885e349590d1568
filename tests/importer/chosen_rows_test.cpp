// Models that train although data chooses rows: what they compute (onnxruntime's numbers, written
// by tests/scripts/data_extents.py), their gradients against differences in double, a mixture of
// experts against its dense formula. What is refused: tests/expected/import/chosen_rows.txt.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "engine/formats/files.h"
#include "tests/harness/folders.h"
#include "tests/importer/differences.h"

namespace tandem::testing {
namespace {

using Json = nlohmann::json;
using ::testing::Contains;
using ::testing::HasSubstr;

ImportResult import_for_training(const std::string& text) {
  return import_graph(OnnxFile::from_bytes(model_bytes(text)), engine_operators(),
                      with_evaluator());
}

std::vector<Json> trained_cases() {
  const std::string path = source_folder() + "/tests/data/chosen_rows.json";
  return Json::parse(read_file(path)).get<std::vector<Json>>();
}

class ChosenRowsTest : public ::testing::TestWithParam<Json> {};

TEST_P(ChosenRowsTest, ComputesWhatOnnxruntimeDoes) {
  const Graph graph = import_for_training(GetParam().at("model")).graph;
  for (const Json& run : GetParam().at("runs")) {
    SCOPED_TRACE(run.at("inputs").dump());
    const NamedTensors got = run_graph(graph, tensors_of(run.at("inputs")));
    expect_near(got, tensors_of(run.at("outputs")), 1e-12);
  }
}

TEST_P(ChosenRowsTest, HasTheGradientsOfItsDifferences) {
  const Graph graph = import_for_training(GetParam().at("model")).graph;
  for (const Json& run : GetParam().at("runs")) {
    SCOPED_TRACE(run.at("inputs").dump());
    expect_gradients(graph, tensors_of(run.at("inputs")));
  }
}

INSTANTIATE_TEST_SUITE_P(All, ChosenRowsTest, ::testing::ValuesIn(trained_cases()),
                         [](const auto& info) {
                           return info.param.at("name").template get<std::string>();
                         });

// Masks leave out where a function is not finite: no gradient becomes NaN because of that.
TEST(ChosenRowsGradients, AreFiniteWhereWhatIsLeftOutIsNot) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::string head = R"(<ir_version: 10, opset_import: ["": 20]>
m (double[4] x, bool[4] keep, double[1] scale) => (double y)
<int64[1] first = {0}>
{
)";
  const std::string by_places =
      "  place = NonZero (keep)\n  index = Squeeze (place, first)\n"
      "  chosen = Gather (x, index)\n";
  const std::string by_condition = "  chosen = Compress <axis = 0> (x, keep)\n";
  const std::string logarithms = R"(  scaled = Mul (chosen, scale)
  bent = Log (scaled)
  y = ReduceSum <keepdims = 0> (bent)
})";
  const HostTensor scale = HostTensor::from<double>({1}, {1.5});
  const NamedTensors feeds{{"x", HostTensor::from<double>({4}, {2, 0, nan, 3})},
                           {"keep", HostTensor::from<bool>({4}, {true, false, false, true})},
                           {"scale", scale}};
  for (const std::string& choice : {by_places, by_condition}) {
    SCOPED_TRACE(choice);
    const Graph graph = import_for_training(head + choice + logarithms).graph;
    EXPECT_NEAR(run_graph(graph, feeds)[0].second.number(0), std::log(3.0) + std::log(4.5), 1e-12);
    expect_gradients(graph, feeds);
  }
  // A Softmax over no rows at all.
  const Graph shares =
      import_for_training(head + by_places + R"(  share = Softmax <axis = 0> (chosen)
  parts = Mul (share, chosen)
  scaled = Mul (parts, scale)
  y = ReduceSum <keepdims = 0> (scaled)
})")
          .graph;
  expect_gradients(shares, {{"x", HostTensor::from<double>({4}, {2, 0, -1, 3})},
                            {"keep", HostTensor::from<bool>({4}, {false, false, false, false})},
                            {"scale", scale}});
}

// With a batch of one all extents are alike: rows stay along the axis where the file has them.
TEST(ChosenRowsOfOne, StayAlongTheirAxis) {
  const Graph graph = import_for_training(R"(<ir_version: 10, opset_import: ["": 20]>
m (double[1] x, bool[1] keep) => (double[1] y)
<int64[1] first = {0}, int64[1] second = {1}>
{
  place = NonZero (keep)
  index = Squeeze (place, first)
  chosen = Gather (x, index)
  wide = Unsqueeze (chosen, first)
  bent = Exp (wide)
  y = ReduceSum <keepdims = 0> (bent, second)
})")
                          .graph;
  for (const bool keep : {true, false}) {
    const NamedTensors feeds{{"x", HostTensor::from<double>({1}, {2})},
                             {"keep", HostTensor::from<bool>({1}, {keep})}};
    EXPECT_NEAR(run_graph(graph, feeds)[0].second.number(0), keep ? std::exp(2.0) : 0, 1e-12);
  }
}

// y = Σ over experts of (expert == e) gate tanh(x w_e) v_e, for all rows.
TEST(ChosenRowsOfExperts, AreTheDenseFormula) {
  const std::string dense = R"(<ir_version: 10, opset_import: ["": 20]>
moe (double[6,4] x, int64[6] expert, double[6] gate, double[4,5] w0, double[5,4] v0, double[4,5] w1, double[5,4] v1) => (double[6,4] y)
<int64 zero = {0}, int64 one = {1}, int64[1] column = {1}>
{
  is0 = Equal (expert, zero)
  m0 = Cast <to = 11> (is0)
  f0 = Mul (m0, gate)
  c0 = Unsqueeze (f0, column)
  a0 = MatMul (x, w0)
  b0 = Tanh (a0)
  d0 = MatMul (b0, v0)
  y0 = Mul (d0, c0)
  is1 = Equal (expert, one)
  m1 = Cast <to = 11> (is1)
  f1 = Mul (m1, gate)
  c1 = Unsqueeze (f1, column)
  a1 = MatMul (x, w1)
  b1 = Tanh (a1)
  d1 = MatMul (b1, v1)
  y1 = Mul (d1, c1)
  y = Add (y0, y1)
})";
  const Graph expected = import_for_training(dense).graph;
  for (const Json& json : trained_cases()) {
    if (json.at("name") != "mixture_of_experts") continue;
    const Graph graph = import_for_training(json.at("model")).graph;
    for (const Json& run : json.at("runs")) {
      const NamedTensors fed = tensors_of(run.at("inputs"));
      const HostTensor y = run_graph(graph, fed)[0].second, z = run_graph(expected, fed)[0].second;
      for (std::int64_t i = 0; i < z.type().elements(); ++i)
        EXPECT_NEAR(y.number(i), z.number(i), 1e-12);
    }
  }
}

TEST(ChosenRowsNotes, SayThatAllIsComputed) {
  for (const Json& json : trained_cases()) {
    if (json.at("name") != "mixture_of_experts") continue;
    EXPECT_THAT(import_for_training(json.at("model")).summary.notes,
                Contains(HasSubstr("data chooses among 6")));
  }
}

// A loss finds no value under the name of rows that include those that were not chosen.
TEST(ChosenRowsNames, AreNotThoseOfTheFile) {
  for (const Json& json : trained_cases()) {
    if (json.at("name") != "mixture_of_experts") continue;
    const Graph graph = import_for_training(json.at("model")).graph;
    EXPECT_FALSE(graph.find_value("made0"));
    EXPECT_TRUE(graph.find_value("made0 (chosen)"));
    EXPECT_TRUE(graph.find_value("sum0"));
  }
}

}  // namespace
}  // namespace tandem::testing

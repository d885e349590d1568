// Every operator in every version that ONNX has of it, from operator set 7 on: imported, evaluated
// on reference kernels and compared with numbers from formulas.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "engine/graph/error.h"
#include "importer/operators/all.h"
#include "tests/importer/versions.h"

namespace tandem::testing {
namespace {

std::string difference_from_formula(const HostTensor& got, const HostTensor& want) {
  if (!(got.type() == want.type()))
    return fmt::format("type {} instead of {}", to_string(got.type()), to_string(want.type()));
  const bool half = want.dtype() == DType::float16 || want.dtype() == DType::bfloat16;
  const double tolerance = half ? 1e-2 : want.dtype() == DType::float64 ? 1e-11 : 1e-5;
  for (std::int64_t i = 0; i < want.type().elements(); ++i) {
    const double a = got.number(i), b = want.number(i);
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    if (std::abs(a - b) <= tolerance * (0.1 + std::abs(b))) continue;
    return fmt::format("element {}: {} instead of {}", i, a, b);
  }
  return "";
}

std::string problem_of(const VersionRow& row, int version) {
  const NamedTensors inputs = inputs_of(row);
  try {
    const NamedTensors got = run_graph(import_row(row, version, inputs).graph, inputs);
    if (!row.refused.empty()) return "is not refused";
    std::size_t next = 0;
    for (std::size_t i = 0; i < row.outputs.size(); ++i) {
      if (is_absent(row.outputs[i])) continue;
      const std::string why = difference_from_formula(got.at(next).second, row.outputs[i]);
      if (!why.empty()) return fmt::format("output {}: {}", i, why);
      ++next;
    }
    return "";
  } catch (const std::exception& error) {
    const std::string text = error.what();
    if (!row.refused.empty() && text.find(row.refused) != std::string::npos) return "";
    return text;
  }
}

class OperatorVersions : public ::testing::TestWithParam<std::string> {};

TEST_P(OperatorVersions, MeanWhatTheirFormulasSay) {
  std::map<std::string, int> tried;  // by note
  for (const VersionRow& row : version_rows()) {
    if (row.op != GetParam()) continue;
    tried.try_emplace(row.note);
    for (int version : versions_of(row.op)) {
      if (!covers(row, version)) continue;
      ++tried[row.note];
      EXPECT_EQ(problem_of(row, version), "") << row.op << " " << version << ", " << row.note;
    }
  }
  for (const auto& [note, count] : tried) EXPECT_GT(count, 0) << "no version knows: " << note;
}

std::vector<std::string> operator_names() {
  std::vector<std::string> names;
  for (const importer::Lowering& lowering : importer::all_lowerings()) names.push_back(lowering.op);
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, OperatorVersions, ::testing::ValuesIn(operator_names()),
                         [](const auto& info) { return info.param; });

TEST(Versions, EachOfEachOperatorHasARow) {
  std::string missing;
  for (const std::string& op : operator_names()) {
    for (int version : versions_of(op)) {
      const bool found =
          std::any_of(version_rows().begin(), version_rows().end(), [&](const VersionRow& row) {
            return row.op == op && row.refused.empty() && covers(row, version);
          });
      if (!found) missing += fmt::format("{} {}\n", op, version);
    }
  }
  EXPECT_EQ(missing, "") << "these have no row in tests/importer/versions_*.cpp";
}

TEST(Versions, RowsAreOfOperatorsThatAreImported) {
  const std::vector<std::string> names = operator_names();
  for (const VersionRow& row : version_rows()) {
    EXPECT_EQ(std::count(names.begin(), names.end(), row.op), 1) << row.op;
  }
}

// Operators that no row makes, and what makes them.
const std::map<std::string, std::string>& made_elsewhere() {
  static const std::map<std::string, std::string> operators{
      {"Dropout", "in training only, at random: DropoutInTraining"},
  };
  return operators;
}

// What a graph gets from a file: every operator has an importer that makes it.
TEST(Versions, EachOperatorOfTheEngineIsMade) {
  std::set<std::string> made;
  for (const VersionRow& row : version_rows()) {
    if (!row.refused.empty()) continue;
    const NamedTensors inputs = inputs_of(row);
    for (int version : versions_of(row.op)) {
      if (!covers(row, version)) continue;
      for (const Node& node : import_row(row, version, inputs).graph.nodes) {
        made.insert(node.op->name);
      }
    }
  }
  for (const Operator& op : engine_operators().all()) {
    if (op.engine_only) continue;
    const auto exception = made_elsewhere().find(op.name);
    EXPECT_NE(made.count(op.name) > 0, exception != made_elsewhere().end())
        << op.name << ": a row makes it, or made_elsewhere() says what does";
  }
  for (const auto& [name, maker] : made_elsewhere()) {
    EXPECT_NE(engine_operators().find(name), nullptr) << name;
  }
}

// Dropout is random: what stays is scaled by 1 / (1 - ratio), about that share stays, and the mask
// says which elements.
TEST(Versions, DropoutInTraining) {
  constexpr double ratio = 0.25;
  for (int version : versions_of("Dropout")) {
    SCOPED_TRACE(version);
    VersionRow row{.op = "Dropout", .training = true};
    row.inputs = {floats({20, 50}, Numbers(1000, 2.0))};
    row.outputs = {row.inputs[0], row.inputs[0]};
    if (version < 12) {
      row.attributes = {{"ratio", ratio}};
    } else {
      row.inputs.insert(row.inputs.end(), {floats({}, {ratio}), booleans({}, {1})});
    }
    const NamedTensors inputs = inputs_of(row);
    const NamedTensors got = run_graph(import_row(row, version, inputs).graph, inputs);
    const HostTensor &y = got[0].second, &mask = got[1].second;
    EXPECT_EQ(mask.dtype(), version < 10 ? DType::float32 : DType::boolean);
    double kept = 0;
    for (std::int64_t i = 0; i < 1000; ++i) {
      kept += mask.number(i);
      EXPECT_NEAR(y.number(i), mask.number(i) * 2.0 / (1.0 - ratio), 1e-5);
    }
    EXPECT_NEAR(kept / 1000, 1.0 - ratio, 0.08);
  }
}

}  // namespace
}  // namespace tandem::testing

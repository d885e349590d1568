// The scalar functions, direct and composed, against PyTorch's numbers and gradients at odd points
// (tests/scripts/scalar_functions.py). Also the rules for their rows.
#include "engine/operators/scalar_functions.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/formats/files.h"
#include "engine/gradient/gradient.h"
#include "tests/harness/folders.h"
#include "tests/harness/operator_case.h"
#include "tests/operators/single_node.h"

namespace tandem::testing {
namespace {

using Json = nlohmann::json;

const Json& scalar_function_cases() {
  static const Json json =
      Json::parse(read_file(source_folder() + "/tests/data/scalar_functions.json"));
  return json;
}

std::vector<float> floats_in(const Json& list) {
  std::vector<float> all;
  for (const Json& x : list) {
    if (x.is_number())
      all.push_back(x.get<float>());
    else
      all.push_back(x == "nan"   ? std::numeric_limits<float>::quiet_NaN()
                    : x == "inf" ? std::numeric_limits<float>::infinity()
                                 : -std::numeric_limits<float>::infinity());
  }
  return all;
}

AttributeValue value_of(const ScalarAttribute& attribute, const Json& given) {
  if (!given.contains(attribute.name)) return attribute.value;
  const Json& x = given[attribute.name];
  if (std::holds_alternative<std::int64_t>(attribute.value)) return x.get<std::int64_t>();
  return x.get<double>();
}

/// The function in the graph, as an operator or composed.
ValueId function(GraphBuilder& g, const std::string& op, const Json& given,
                 const std::vector<ValueId>& x) {
  for (const ComposedFunction& composed : composed_functions()) {
    if (composed.name != op) continue;
    std::vector<double> settings;
    for (const ScalarAttribute& attribute : composed.attributes)
      settings.push_back(std::get<double>(value_of(attribute, given)));
    return compose(g, composed, x[0], settings);
  }
  Attributes attributes;
  for (const ScalarAttribute& attribute :
       scalar_row(operator_set().get(op).scalar)->options.attributes)
    attributes.set(attribute.name, value_of(attribute, given));
  return g.add_node(op, x, attributes);
}

/// Expects NaN for NaN, infinity for infinity, and numbers within some units in the last place plus
/// `absolute`, which allows the cancellation in 1 - tanh^2 and similar terms.
void expect_near(const HostTensor& got, const std::vector<float>& expected, double absolute,
                 const std::vector<float>& at) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double a = got.number(static_cast<std::int64_t>(i)), b = expected[i];
    if (std::isnan(b) || std::isinf(b)) {
      EXPECT_TRUE(std::isnan(b) ? std::isnan(a) : a == b) << a << " for " << b << " at " << at[i];
    } else {
      EXPECT_LE(std::abs(a - b), absolute + 5e-7 * std::abs(b))
          << a << " for " << b << " at " << at[i];
    }
  }
}

TEST(ScalarFunctions, AreThoseOfPyTorchWithTheirGradients) {
  for (const Json& c : scalar_function_cases()) {
    const std::string op = c["op"];
    SCOPED_TRACE(op + " " + c["attributes"].dump());
    GraphBuilder g(operator_set());
    std::vector<ValueId> x;
    std::vector<std::pair<std::string, HostTensor>> feeds;
    for (const Json& list : c["x"]) {
      const std::vector<float> values = floats_in(list);
      const Shape shape{static_cast<std::int64_t>(values.size())};
      feeds.emplace_back("x" + std::to_string(x.size()), HostTensor::from<float>(shape, values));
      x.push_back(g.input(feeds.back().first, {DType::float32, shape}));
    }
    const ValueId y = function(g, op, c["attributes"], x);
    const GradientSeed seed{y, g.filled(0.75, g.type(y))};
    const std::vector<ValueId> dx = add_gradients(g, std::span(&seed, 1), x);
    std::vector<ValueId> wanted{y};
    for (const ValueId id : dx) {
      if (id) wanted.push_back(id);
    }
    const std::vector<HostTensor> got = evaluate(g.graph(), feeds, wanted);
    const std::vector<float> at = floats_in(c["x"][0]);
    expect_near(got[0], floats_in(c["y"]), 1e-37, at);
    std::size_t next = 1;
    for (std::size_t i = 0; i < dx.size(); ++i) {
      SCOPED_TRACE("gradient of operand " + std::to_string(i));
      const std::vector<float> expected = floats_in(c["dx"][i]);
      if (dx[i])
        expect_near(got[next++], expected, 2e-7, at);
      else
        for (const float slope : expected) EXPECT_EQ(slope, 0);
    }
  }
}

// Every composed function has expectations and is not an operator.
TEST(ScalarFunctions, ComposedOnesHaveExpectations) {
  std::set<std::string> tried;
  for (const Json& c : scalar_function_cases()) tried.insert(c["op"]);
  for (const ComposedFunction& composed : composed_functions()) {
    EXPECT_EQ(tried.count(composed.name), 1u) << composed.name;
    EXPECT_EQ(operator_set().find(composed.name), nullptr) << composed.name;
    for (const ScalarAttribute& attribute : composed.attributes)
      EXPECT_TRUE(std::holds_alternative<double>(attribute.value)) << composed.name;
  }
}

TEST(ScalarFunctions, RowsAreInTheOrderOfTheEnumeration) {
  std::set<std::string> names;
  for (const ScalarRow& row : scalar_rows()) {
    EXPECT_EQ(scalar_row(row.function), &row) << row.name;
    EXPECT_LE(row.options.attributes.size(), ScalarSettings().size()) << row.name;
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_EQ(operator_set().get(row.name).scalar, row.function);
  }
  EXPECT_EQ(scalar_row(ScalarFunction::pow), nullptr);
}

TEST(ScalarFunctions, GetAttributesAsNumbers) {
  GraphBuilder g(operator_set());
  const ValueId x = g.input("x", {DType::float32, {2}});
  g.add_node("Gelu", {x}, {{"approximate", std::string("tanh")}});
  g.add_node("Clip", {x}, {{"min", -2.0}});
  const std::vector<Node>& nodes = g.graph().nodes;
  EXPECT_EQ(scalar_settings(nodes[0])[0], 1);
  EXPECT_EQ(scalar_settings(nodes[1])[0], -2);
  EXPECT_EQ(scalar_settings(nodes[1])[1], std::numeric_limits<double>::infinity());
}

}  // namespace
}  // namespace tandem::testing

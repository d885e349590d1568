// Indices that are out of range: every kernel reports them once and clamps them alike. Also NaN
// among the largest elements, and what the operators refuse.
#include <gmock/gmock.h>

#include <limits>

#include "tests/operators/single_node.h"

namespace tandem::testing {
namespace {

using ::testing::HasSubstr;

/// Compares output 0 on every kernel, each of which must report `offending`.
void expect_reported(const std::string& op, const std::vector<HostTensor>& inputs,
                     const Attributes& attributes, std::int64_t offending,
                     const std::vector<double>& expected) {
  const Graph graph = single_node(op, inputs, attributes);
  each_kernel(graph, [&](const Kernel& kernel) {
    ErrorWord error;
    StepContext context;
    context.error = &error;
    const HostTensor y = run_in_context(kernel, graph, inputs, context)[0];
    EXPECT_EQ(numbers_of(y), expected);
    EXPECT_EQ(error.packed.load() >> 32, ErrorWord::index_out_of_range);
    EXPECT_EQ(error.value.load(), offending);
  });
}

TEST(Indices, OutOfRangeAreReportedAndClamped) {
  const Attributes grid{
      {"extents", Ints{3, 4}}, {"strides", Ints{4, 1}}, {"position_strides", Ints{0}}};
  expect_reported("FlatIndices", {HostTensor::from<std::int64_t>({2, 2}, {1, 4, -3, -4})}, grid, 4,
                  {7, 0});
  expect_reported("FlatIndices", {HostTensor::from<std::int32_t>({1, 2}, {-4, 1})}, grid, -4, {1});
  const HostTensor x = HostTensor::from<float>({3}, {1, 2, 3});
  const HostTensor u = HostTensor::from<float>({2}, {10, 20});
  for (const auto& [reduction, last] : {std::pair{"none", 10.0}, {"add", 13.0}}) {
    expect_reported("ScatterRows", {x, HostTensor::from<std::int64_t>({2}, {3, 0}), u},
                    {{"reduction", std::string(reduction)}}, 3,
                    {last == 10 ? 20.0 : 21.0, 2, last});
    expect_reported("ScatterRows", {x, HostTensor::from<std::int32_t>({2}, {2, -4}), u},
                    {{"reduction", std::string(reduction)}}, -4,
                    {last == 10 ? 20.0 : 21.0, 2, last});
  }
}

TEST(Indices, NanIsTheLargestNumber) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<HostTensor> x{HostTensor::from<float>({5}, {1, nan, 7, nan, -2})};
  for (const std::int64_t k : {1, 4}) {
    for (const std::int64_t largest : {0, 1}) {
      SCOPED_TRACE(std::to_string(k) + (largest != 0 ? " largest" : " smallest"));
      const Graph graph =
          single_node("TopK", x, {{"axis", std::int64_t{0}}, {"k", k}, {"largest", largest}});
      std::vector<double> places =
          largest != 0 ? std::vector<double>{1, 3, 2, 0} : std::vector<double>{4, 0, 2, 1};
      places.resize(static_cast<std::size_t>(k));
      each_kernel(graph, [&](const Kernel& kernel) {
        const auto y = run_in_context(kernel, graph, x, {});
        EXPECT_EQ(numbers_of(y[1]), places);
      });
    }
  }
}

std::string refusal_of_node(const std::string& op, const std::vector<HostTensor>& inputs,
                            const Attributes& attributes) {
  try {
    single_node(op, inputs, attributes);
  } catch (const Error& e) {
    return e.what();
  }
  return "nothing was thrown";
}

TEST(Indices, WhatDoesNotFitIsRefused) {
  const HostTensor x = HostTensor::from<float>({3}, {1, 2, 3});
  const HostTensor ids = HostTensor::from<std::int64_t>({2}, {0, 1});
  EXPECT_THAT(refusal_of_node("ScatterRows", {x, ids, x}, {}), HasSubstr("shape of 'updates'"));
  EXPECT_THAT(refusal_of_node("ScatterRows", {x, x, x}, {}), HasSubstr("int32 or int64"));
  EXPECT_THAT(refusal_of_node("ScatterRows", {x, ids, HostTensor::from<float>({2}, {1, 2})},
                              {{"reduction", std::string("mean")}}),
              HasSubstr("none, add, mul, max or min"));
  EXPECT_THAT(refusal_of_node(
                  "FlatIndices", {ids},
                  {{"extents", Ints{2, 0}}, {"strides", Ints{1, 1}}, {"position_strides", Ints{}}}),
              HasSubstr("an axis without elements"));
  EXPECT_THAT(refusal_of_node(
                  "FlatIndices", {ids},
                  {{"extents", Ints{2}}, {"strides", Ints{1, 1}}, {"position_strides", Ints{}}}),
              HasSubstr("'extents'"));
  EXPECT_THAT(refusal_of_node("TopK", {x}, {{"axis", std::int64_t{0}}, {"k", std::int64_t{4}}}),
              HasSubstr("0 to 3"));
  EXPECT_THAT(refusal_of_node("CumSum", {x}, {{"axis", std::int64_t{1}}}), HasSubstr("axis"));
  const auto resize = [&](const char* name, AttributeValue value) {
    Attributes attributes{{"axis", std::int64_t{0}}, {"size", std::int64_t{2}}};
    attributes.set(name, std::move(value));
    return refusal_of_node("Resize", {x}, attributes);
  };
  EXPECT_THAT(resize("scale", 0.0), HasSubstr("scale"));
  EXPECT_THAT(resize("size", std::int64_t{-1}), HasSubstr("size"));
  EXPECT_THAT(resize("mode", std::string("area")), HasSubstr("linear or cubic"));
  EXPECT_THAT(resize("filter_scale", 1e-9), HasSubstr("filter_scale"));
  EXPECT_THAT(resize("offset", std::numeric_limits<double>::quiet_NaN()), HasSubstr("offset"));
}

}  // namespace
}  // namespace tandem::testing

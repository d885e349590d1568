// Bernoulli and Multinomial draw as often as the probabilities say, within five standard
// deviations.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/importer/versions.h"

namespace tandem::testing {
namespace {

HostTensor drawn(const VersionRow& row) {
  const NamedTensors inputs = inputs_of(row);
  const int version = *versions_of(row.op).rbegin();
  return run_graph(import_row(row, version, inputs).graph, inputs)[0].second;
}

void expect_share(double count, double draws, double p) {
  EXPECT_NEAR(count, draws * p, 5 * std::sqrt(draws * p * (1 - p)) + 1e-9) << p;
}

TEST(Random, BernoulliDrawsByProbability) {
  for (double p : {0.1, 0.5, 0.9}) {
    const HostTensor y = drawn({.op = "Bernoulli",
                                .inputs = {floats({4000}, Numbers(4000, p))},
                                .outputs = {floats({4000}, Numbers(4000))}});
    double ones = 0;
    for (double value : numbers_of(y)) ones += value;
    expect_share(ones, 4000, p);
  }
}

TEST(Random, MultinomialDrawsByWeight) {
  const Numbers weights{1, 0, 5, 2};
  Numbers logarithms;
  for (double weight : weights) logarithms.push_back(std::log(weight) + 3);
  const HostTensor y = drawn({.op = "Multinomial",
                              .inputs = {floats({1, 4}, logarithms)},
                              .attributes = {{"sample_size", 4000}},
                              .outputs = {typed(DType::int32, {1, 4000}, Numbers(4000))}});
  Numbers counts(4);
  for (double value : numbers_of(y)) ++counts.at(static_cast<std::size_t>(value));
  for (std::size_t i = 0; i < 4; ++i) expect_share(counts[i], 4000, weights[i] / 8);
}

}  // namespace
}  // namespace tandem::testing

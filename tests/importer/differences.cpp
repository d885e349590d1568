#include "tests/importer/differences.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "engine/gradient/gradient.h"
#include "engine/graph/builder.h"
#include "tests/importer/json_nodes.h"

namespace tandem::testing {
namespace {

// Σ weight · output, over all outputs that are real numbers; the weights differ.
double weighted_sum(const NamedTensors& outputs, std::size_t count) {
  double sum = 0;
  for (std::size_t k = 0; k < count; ++k) {
    const HostTensor& y = outputs[k].second;
    if (!is_float(y.dtype())) continue;
    for (std::int64_t i = 0; i < y.type().elements(); ++i)
      sum += (1 + 0.3 * static_cast<double>(i) + 0.1 * static_cast<double>(k)) * y.number(i);
  }
  return sum;
}

}  // namespace

NamedTensors tensors_of(const nlohmann::json& entries) {
  NamedTensors tensors;
  for (const nlohmann::json& entry : entries)
    tensors.emplace_back(entry.at("name"), tensor_of(entry));
  return tensors;
}

void expect_near(const NamedTensors& got, const NamedTensors& want, double bound) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t k = 0; k < want.size(); ++k) {
    EXPECT_EQ(got[k].first, want[k].first);
    ASSERT_EQ(got[k].second.type(), want[k].second.type()) << want[k].first;
    for (std::int64_t i = 0; i < want[k].second.type().elements(); ++i) {
      const double number = want[k].second.number(i);
      EXPECT_NEAR(got[k].second.number(i), number, bound * (1 + std::fabs(number)))
          << want[k].first << ", element " << i;
    }
  }
}

void expect_gradients(const Graph& imported, const NamedTensors& feeds) {
  GraphBuilder builder(engine_operators(), imported);
  std::vector<GradientSeed> seeds;
  const std::size_t outputs = imported.outputs.size();
  for (std::size_t k = 0; k < outputs; ++k) {
    const ValueId y = imported.outputs[k].value;
    if (!is_float(builder.dtype(y))) continue;
    HostTensor dy(builder.type(y));
    for (std::size_t i = 0; i < dy.as<double>().size(); ++i)
      dy.as<double>()[i] = 1 + 0.3 * static_cast<double>(i) + 0.1 * static_cast<double>(k);
    seeds.push_back({y, builder.constant(dy)});
  }
  std::vector<ValueId> wanted;
  std::vector<std::string> names;
  for (const NamedValue& input : imported.inputs) {
    if (!is_float(imported.type(input.value).dtype)) continue;
    wanted.push_back(input.value);
    names.push_back(input.name);
  }
  const std::vector<ValueId> gradients = add_gradients(builder, seeds, wanted);
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    ASSERT_TRUE(gradients[i]) << "no gradient of " << names[i];
    builder.output("gradient of " + names[i], gradients[i]);
  }
  const Graph graph = builder.finish();
  ASSERT_NO_THROW(verify(graph)) << to_text(graph);
  const NamedTensors results = run_graph(graph, feeds);
  for (std::size_t i = 0; i < names.size(); ++i) {
    const HostTensor& gradient = results[outputs + i].second;
    for (std::int64_t k = 0; k < gradient.type().elements(); ++k) {
      const auto sum_at = [&](double change) {
        NamedTensors moved = feeds;
        for (auto& [name, tensor] : moved) {
          if (name != names[i]) continue;
          tensor = tensor.clone();
          tensor.as<double>()[static_cast<std::size_t>(k)] += change;
        }
        return weighted_sum(run_graph(imported, moved), outputs);
      };
      const double step = 1e-5, slope = (sum_at(step) - sum_at(-step)) / (2 * step);
      EXPECT_NEAR(gradient.number(k), slope, 1e-6 * (1 + std::fabs(slope)))
          << names[i] << ", element " << k;
    }
  }
}

}  // namespace tandem::testing

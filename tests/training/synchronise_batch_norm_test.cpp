// BatchNormalization over the samples of all ranks, which are threads here: outputs, running
// statistics and gradients are those of the operator over the whole batch in one process.
#include "engine/train/sharding/synchronise_batch_norm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>

#include "engine/gradient/gradient.h"
#include "engine/graph/builder.h"
#include "engine/operators/collectives/collective.h"
#include "engine/runtime/program.h"
#include "tests/engine/runtime/machine.h"
#include "tests/harness/rank_threads.h"

namespace tandem::testing {
namespace {

constexpr std::int64_t batch = 10, channels = 3, columns = 7;
constexpr double mean = 50;  // far from 0: plain sums of squares would lose the variance

struct Share {
  int ranks = 1;
  std::int64_t first = 0, own = batch;
};

/// x * weight -> BatchNormalization -> the sum of (y * t)^2; outputs of the loss and all gradients.
Graph graph_of(const OperatorSet& operators, const Share& share) {
  GraphBuilder b(operators);
  const auto state = [&](const std::string& name, StateKind kind, const Shape& shape, float value) {
    State made;
    made.name = made.path = name;
    made.kind = kind;
    made.start = HostTensor(TensorType{DType::float32, shape});
    float i = 0;
    for (float& number : made.start.as<float>()) number = value + 0.1f * i++;
    return b.state(std::move(made));
  };
  const ValueId x = b.input("x", {DType::float32, {share.own, channels, columns}});
  b.input("t", {DType::float32, {share.own, channels, columns}});
  const ValueId weight = state("weight", StateKind::parameter, {channels, columns}, 1);
  const ValueId scale = state("scale", StateKind::parameter, {channels}, 0.5f);
  const ValueId bias = state("bias", StateKind::parameter, {channels}, -0.3f);
  const ValueId running_mean = state("running_mean", StateKind::buffer, {channels}, 0);
  const ValueId running_var = state("running_var", StateKind::buffer, {channels}, 1);
  b.set_scope({"norm", Phase::forward, {}});
  const std::vector<ValueId> made = b.node(
      "BatchNormalizationTraining", {b.mul(x, weight), scale, bias, running_mean, running_var},
      {{"epsilon", 1e-5}, {"momentum", 0.8}});
  b.write_state(running_mean, made[1]);
  b.write_state(running_var, made[2]);
  b.output("y", made[0]);
  Graph graph = b.finish();
  if (share.ranks > 1) graph = synchronise_batch_norm(operators, graph, share.ranks);

  GraphBuilder g(operators, std::move(graph));
  const ValueId y = g.graph().find_output("y")->value;
  g.graph().outputs.clear();
  g.set_scope({"loss", Phase::forward, {}});
  const ValueId far = g.mul(y, g.graph().find_input("t")->value);
  const ValueId loss = g.reduce_sum(g.mul(far, far), {0, 1, 2}, false);
  std::vector<ValueId> wanted;
  for (int s = 0; s < 3; ++s) wanted.push_back(g.graph().states[s].initial);
  g.set_scope({"", Phase::backward, {}});
  const GradientSeed seed{loss, g.filled(1, g.type(loss))};
  std::vector<ValueId> values = add_gradients(g, {&seed, 1}, wanted);
  values.push_back(loss);
  g.set_scope({"sums", Phase::update, {}});
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (share.ranks > 1)
      values[i] = g.add_node(all_reduce_name, {values[i]}, {{"ranks", std::int64_t{share.ranks}}});
    g.output("value" + std::to_string(i), values[i]);
  }
  verify(g.graph());
  return g.finish();
}

/// Gradients of weight, scale and bias, the loss, and the running statistics after two steps.
std::vector<std::vector<double>> run(const Share& share, int device, RankGroup* group = nullptr) {
  const OperatorSet operators = all_operators();
  Machine machine(device);
  for (Device* one : machine.devices) {
    if (group != nullptr) one->join(group->make_communicator());
  }
  const Graph graph = graph_of(operators, share);
  Placement placement;
  for (const Device* one : machine.devices) placement.devices.push_back(one->name());
  placement.nodes.resize(graph.nodes.size(), {device, "test"});
  placement.states.resize(graph.states.size(), {device, device, "test"});
  StateStore states;
  Program program(graph, placement, operators, machine.devices, states, make_arenas(), {});
  for (std::uint64_t step = 0; step < 2; ++step) {
    for (int i = 0; i < 2; ++i) {
      auto* slot = static_cast<float*>(program.input_slot(i, step));
      for (std::int64_t k = 0; k < share.own * channels * columns; ++k) {
        const auto at = static_cast<double>(k + share.first * channels * columns + i + 5 * step);
        slot[k] = static_cast<float>((i == 0 ? mean : 0) + std::sin(at * 1.3));
      }
    }
    StepContext context;
    context.step = step + 1;
    program.run(context, step);
  }
  std::vector<std::vector<double>> results;
  for (std::size_t o = 0; o < graph.outputs.size(); ++o) {
    const auto* numbers = static_cast<const float*>(program.output(static_cast<int>(o), 1));
    results.emplace_back(numbers, numbers + graph.type(graph.outputs[o].value).elements());
  }
  machine.synchronize();
  for (const char* name : {"running_mean", "running_var"}) {
    const HostTensor value = states.read(name);
    results.emplace_back();
    for (std::int64_t i = 0; i < channels; ++i) results.back().push_back(value.number(i));
  }
  return results;
}

class SynchroniseBatchNorm : public ::testing::TestWithParam<std::tuple<int, int>> {};

TEST_P(SynchroniseBatchNorm, IsThatOfTheWholeBatch) {
  const auto [ranks, device] = GetParam();
  const auto alone = run({}, device);
  on_rank_threads(ranks, [&, ranks = ranks, device = device](RankGroup& group) {
    const std::int64_t rank = group.rank(), more = batch % ranks;
    const Share share{ranks, rank * (batch / ranks) + std::min(rank, more),
                      batch / ranks + (rank < more ? 1 : 0)};
    const auto own = run(share, device, &group);
    ASSERT_EQ(own.size(), alone.size());
    for (std::size_t i = 0; i < alone.size(); ++i) {
      double largest = 0;
      for (const double number : alone[i]) largest = std::max(largest, std::abs(number));
      for (std::size_t k = 0; k < alone[i].size(); ++k)
        EXPECT_NEAR(own[i][k], alone[i][k], 1e-5 * std::max(largest, 1.0)) << i << " " << k;
    }
  });
}

// Statistics cross in one exchange, and their gradients in one.
TEST(SynchroniseBatchNormGraph, ExchangesOnceEachWay) {
  const OperatorSet operators = all_operators();
  std::map<std::string, int> count;
  for (const Node& node : graph_of(operators, {4, 0, 3}).nodes) {
    if (node.op->role == Role::collective && node.phase != Phase::update) ++count[node.op->name];
  }
  EXPECT_EQ(count, (std::map<std::string, int>{{all_gather_name, 1}, {reduce_scatter_name, 1}}));
}

// Many elements with a large mean: the statistics of ranks round no more than a few units in the
// last place of what one process computes in double.
TEST(SynchroniseBatchNormGraph, LargeSumsKeepTheirDigits) {
  constexpr std::int64_t images = 16, side = 64;
  constexpr int ranks = 4;
  const auto number = [](std::int64_t i) {
    return static_cast<float>(20 + std::sin(0.37 * static_cast<double>(i)) +
                              0.5 * std::cos(0.0113 * static_cast<double>(i)));
  };
  const auto graph_over = [&](const OperatorSet& operators) {
    GraphBuilder b(operators);
    const auto state = [&](const std::string& name, StateKind kind, float value) {
      State made;
      made.name = made.path = name;
      made.kind = kind;
      made.start = HostTensor::from<float>({1}, {value});
      return b.state(std::move(made));
    };
    const ValueId x = b.input("x", {DType::float32, {images, 1, side, side}});
    const ValueId scale = state("scale", StateKind::parameter, 1),
                  bias = state("bias", StateKind::parameter, 0),
                  running_mean = state("mean", StateKind::buffer, 0),
                  running_var = state("var", StateKind::buffer, 0);
    const std::vector<ValueId> made =
        b.node("BatchNormalizationTraining", {x, scale, bias, running_mean, running_var},
               {{"epsilon", 0.0}, {"momentum", 0.0}});
    b.write_state(running_mean, made[1]);
    b.write_state(running_var, made[2]);
    b.output("y", made[0]);
    return synchronise_batch_norm(operators, b.finish(), ranks);
  };
  constexpr std::int64_t own = images * side * side;
  double sum = 0, squares = 0;
  for (std::int64_t i = 0; i < ranks * own; ++i) sum += static_cast<double>(number(i));
  const double expected_mean = sum / static_cast<double>(ranks * own);
  for (std::int64_t i = 0; i < ranks * own; ++i) {
    const double apart = static_cast<double>(number(i)) - expected_mean;
    squares += apart * apart;
  }
  const double expected_var = squares / static_cast<double>(ranks * own);
  on_rank_threads(ranks, [&](RankGroup& group) {
    const OperatorSet operators = all_operators();
    Machine machine(0);
    machine.devices[0]->join(group.make_communicator());
    const Graph graph = graph_over(operators);
    Placement placement;
    for (const Device* one : machine.devices) placement.devices.push_back(one->name());
    placement.nodes.resize(graph.nodes.size(), {0, "test"});
    placement.states.resize(graph.states.size(), {0, 0, "test"});
    StateStore states;
    Program program(graph, placement, operators, machine.devices, states, make_arenas(), {});
    auto* slot = static_cast<float*>(program.input_slot(0, 0));
    for (std::int64_t i = 0; i < own; ++i) slot[i] = number(group.rank() * own + i);
    StepContext context;
    context.step = 1;
    program.run(context, 0);
    machine.synchronize();
    EXPECT_NEAR(states.read("mean").number(0), expected_mean, 3e-7 * expected_mean);
    EXPECT_NEAR(states.read("var").number(0), expected_var, 6e-7 * expected_var);
  });
}

INSTANTIATE_TEST_SUITE_P(All, SynchroniseBatchNorm,
                         ::testing::Combine(::testing::Values(2, 3), ::testing::Values(0, 1)));

}  // namespace
}  // namespace tandem::testing

// Training graphs of several ranks, which are threads here: a table of rows, dense layers, norms,
// micro-batches and shares that differ by a sample. One process on the whole of each micro-batch is
// the reference.
#include "engine/training/rank_sums.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "engine/graph/builder.h"
#include "engine/graph/error.h"
#include "engine/runtime/program.h"
#include "engine/training/config/config_value.h"
#include "engine/training/data/loader.h"
#include "engine/training/training_graph.h"
#include "tests/engine/runtime/machine.h"
#include "tests/harness/rank_threads.h"

namespace tandem::testing {
namespace {

constexpr std::int64_t rows = 400, columns = 3, fields = 4, outputs = 2;
constexpr int steps = 4;

Graph forward_graph(const OperatorSet& operators, std::int64_t samples) {
  GraphBuilder b(operators);
  const auto parameter = [&](const std::string& name, const Shape& shape) {
    State state;
    state.name = name;
    state.path = name;
    state.path.replace(name.find('.'), 1, ":");
    state.trainable = true;
    state.start = HostTensor(TensorType{DType::float32, shape});
    double i = 0;
    for (float& number : state.start.as<float>())
      number = static_cast<float>(0.3 * std::sin(i += 1.3));
    return b.state(std::move(state));
  };
  const ValueId ids = b.input("ids", {DType::int64, {samples, fields}});
  b.set_scope({"table", Phase::forward, {}});
  const ValueId looked_up = b.add_node("Gather", {parameter("table.weight", {rows, columns}), ids},
                                       {{"axis", std::int64_t{0}}});
  b.set_scope({"dense", Phase::forward, {}});
  const ValueId flat = b.reshape(looked_up, {samples, fields * columns});
  const ValueId product = b.matmul(flat, parameter("dense.weight", {fields * columns, outputs}));
  const ValueId y = b.add(product, parameter("dense.bias", {outputs}));
  b.output("y", y);
  return b.finish();
}

struct Case {
  std::vector<std::string> keys;
  std::int64_t batch = 12, micro_batch = 12;
  int device = 0;
};

RunConfig config_of(const Case& of) {
  std::vector<std::string> keys{
      "model=\"m.onnx\"", "batch_size=" + std::to_string(of.batch),
      "loss.terms=[{name=\"mse\", kind=\"mse\", predictions=\"y\", targets=\"t\"}]",
      "optimizer.lr=0.05"};
  keys.insert(keys.end(), of.keys.begin(), of.keys.end());
  return parse_run_config("steps = 1\n", "train.toml", keys);
}

struct Trained {
  std::vector<float> losses;
  std::map<std::string, HostTensor> states;
  float norm = 0, stop = -1;
};

Trained train(const Case& of, const RankPlace& place = {}, RankGroup* group = nullptr) {
  const OperatorSet operators = all_operators();
  const RunConfig config = config_of(of);
  Machine machine(of.device);
  for (Device* device : machine.devices) {
    if (group != nullptr) device->join(group->make_communicator());
  }
  StateStore states;
  const auto arenas = make_arenas();
  const SampleShare share = share_of(of.micro_batch, place);
  const std::int64_t count = of.batch / of.micro_batch;
  const auto kind_of = [&](std::int64_t i) {
    if (count == 1) return MicroBatchKind::whole;
    return i == 0           ? MicroBatchKind::first
           : i + 1 == count ? MicroBatchKind::last
                            : MicroBatchKind::middle;
  };
  std::map<MicroBatchKind, std::unique_ptr<Program>> programs;
  for (std::int64_t i = 0; i < count; ++i) {
    TrainingRequest request;
    request.config = &config;
    request.kind = kind_of(i);
    request.samples = {share.count, of.batch};
    request.fields = {{"t", {DType::float32, {share.count, outputs}}}};
    if (place.ranks > 1)
      request.ranks = {place.ranks, share.count, share_of(of.micro_batch, {0, place.ranks}).count};
    const TrainingGraph training =
        build_training_graph(operators, forward_graph(operators, share.count), request);
    verify(training.graph);
    Placement placement;
    for (const Device* device : machine.devices) placement.devices.push_back(device->name());
    placement.nodes.resize(training.graph.nodes.size(), {of.device, "test"});
    placement.states.resize(training.graph.states.size(), {of.device, of.device, "test"});
    programs[request.kind] = std::make_unique<Program>(
        training.graph, placement, operators, machine.devices, states, arenas, ProgramOptions{});
  }
  Trained result;
  std::uint64_t ticket = 0;
  for (int step = 0; step < steps; ++step) {
    float loss = 0;
    for (std::int64_t i = 0; i < count; ++i, ++ticket) {
      Program& program = *programs.at(kind_of(i));
      const Graph& graph = program.lowered().graph;
      const std::int64_t first = i * of.micro_batch + share.first + 100 * step;
      for (std::size_t k = 0; k < graph.inputs.size(); ++k) {
        void* slot = program.input_slot(static_cast<int>(k), ticket);
        const std::string& name = graph.inputs[k].name;
        if (name == "ids") {
          for (std::int64_t e = 0; e < share.count * fields; ++e)
            static_cast<std::int64_t*>(slot)[e] = (first * fields + e) * 7 % 11;  // many twice
        } else if (name == "t") {
          for (std::int64_t e = 0; e < share.count * outputs; ++e)
            static_cast<float*>(slot)[e] =
                static_cast<float>(std::sin(static_cast<double>(first * outputs + e)));
        } else if (name == step_input) {
          *static_cast<std::int64_t*>(slot) = step + 1;
        } else if (name == stop_flag) {
          *static_cast<float*>(slot) = place.rank == 1 ? 1 : 0;
        } else {
          *static_cast<float*>(slot) = 0.05f;  // the rate
        }
      }
      StepContext context;
      context.step = static_cast<std::uint64_t>(step) + 1;
      program.run(context, ticket);
      for (std::size_t o = 0; o < graph.outputs.size(); ++o) {
        const float value = *static_cast<const float*>(program.output(static_cast<int>(o), ticket));
        if (graph.outputs[o].name == "loss") loss += value;
        if (graph.outputs[o].name == "gradient_norm") result.norm = value;
        if (graph.outputs[o].name == stop_flag) result.stop = value;
      }
    }
    result.losses.push_back(loss);
  }
  machine.synchronize();
  for (const std::string& name : states.names()) {
    // Each rank's own, within a step.
    if (name.ends_with("/gradient_sum") || name.ends_with("/touched_rows")) continue;
    result.states.emplace(name, states.read(name));
  }
  EXPECT_THAT(machine.monitor->order_errors(), ::testing::IsEmpty());
  return result;
}

void expect_as_alone(const Case& of, std::initializer_list<int> counts) {
  const Trained alone = train(of);
  for (const int ranks : counts) {
    SCOPED_TRACE(std::to_string(ranks) + " ranks");
    std::vector<Trained> all(static_cast<std::size_t>(ranks));
    on_rank_threads(ranks, [&](RankGroup& group) {
      all[static_cast<std::size_t>(group.rank())] = train(of, {group.rank(), ranks}, &group);
    });
    for (const Trained& one : all) {
      EXPECT_EQ(one.stop, 1);
      EXPECT_EQ(one.losses, all[0].losses);
      EXPECT_NEAR(one.norm, alone.norm, 1e-6 * std::max(1.0f, alone.norm));
      for (int step = 0; step < steps; ++step)
        EXPECT_NEAR(one.losses[step], alone.losses[step], 1e-6) << "step " << step + 1;
      for (const auto& [name, expected] : alone.states) {
        ASSERT_TRUE(one.states.contains(name)) << name;
        const HostTensor& value = one.states.at(name);
        EXPECT_EQ(std::memcmp(value.data(), all[0].states.at(name).data(), value.bytes()), 0)
            << name;
        for (std::int64_t i = 0; i < expected.type().elements(); ++i)
          ASSERT_NEAR(value.number(i), expected.number(i), 1e-6) << name << " " << i;
      }
    }
  }
}

const std::vector<std::string> momentum{"optimizer.kind=sgd", "optimizer.momentum=0.9"};
const std::vector<std::string> lazy{"optimizer.kind=sgd",
                                    "optimizer.groups=[{at=\"table:weight\", kind=\"lazy_adam\"}]"};

TEST(RankSums, DenseGradients) {
  expect_as_alone({.keys = momentum}, {2, 4, 5});
  expect_as_alone({.keys = momentum, .device = 1}, {2, 3});
}

TEST(RankSums, RowsOfTables) {
  expect_as_alone({.keys = lazy}, {2, 4, 5});
  expect_as_alone({.keys = lazy, .device = 1}, {2, 3});
}

TEST(RankSums, NormsAreOfAllGradients) {
  std::vector<std::string> keys = lazy;
  keys.push_back("optimizer.clip_norm=0.01");
  expect_as_alone({.keys = keys}, {2, 5});
  keys = momentum;
  keys.push_back("optimizer.clip_norm=0.01");
  expect_as_alone({.keys = keys}, {2, 5});
}

TEST(RankSums, MicroBatches) {
  for (const std::vector<std::string>& keys : {momentum, lazy}) {
    expect_as_alone({.keys = keys, .micro_batch = 4}, {2, 3});
    expect_as_alone({.keys = keys, .micro_batch = 4, .device = 1}, {3});
  }
}

// Ids are gathered as if each rank had the largest share; one whose size does not follow the
// samples cannot be.
TEST(RankSums, IdsThatAreNoneOfASampleAreRefused) {
  const OperatorSet operators = all_operators();
  GraphBuilder g(operators);
  const ValueId ids = g.input("ids", {DType::int64, {7}});
  RankSums even(g, {2, 3, 3}), uneven(g, {2, 3, 4});
  const RowGradient gradient{{ids}, {}, {1}, {ValueId{}}};
  EXPECT_EQ(even.gathered_ids(gradient), 14);
  try {
    uneven.gathered_ids(gradient);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_THAT(error.what(), ::testing::HasSubstr("drop_last"));
  }
}

}  // namespace
}  // namespace tandem::testing

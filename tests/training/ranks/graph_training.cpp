#include "tests/training/ranks/graph_training.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "engine/config/keys/config_value.h"
#include "engine/train/averages/weights_in_use.h"
#include "tests/engine/runtime/machine.h"
#include "tests/harness/rank_threads.h"

namespace tandem::testing {
namespace {

constexpr float rate = 0.05f;

class GraphTrainer {
 public:
  GraphTrainer(const GraphTraining& of, const RankPlace& place, RankGroup* group)
      : of_(of),
        place_(place),
        share_(share_of(of.micro_batch, place)),
        count_(of.batch / of.micro_batch),
        config_(config_of(of)),
        machine_(of.device) {
    for (Device* device : machine_.devices) {
      if (group != nullptr) device->join(group->make_communicator());
    }
    for (std::int64_t i = 0; i < count_; ++i) {
      const TrainingGraph training = training_graph(operators_, config_, of, kind_of(i), place);
      verify(training.graph);
      Placement placement;
      for (const Device* device : machine_.devices) placement.devices.push_back(device->name());
      placement.nodes.resize(training.graph.nodes.size(), {of.device, "test"});
      placement.states.resize(training.graph.states.size(), {of.device, of.device, "test"});
      programs_[kind_of(i)] =
          std::make_unique<Program>(training.graph, placement, operators_, machine_.devices,
                                    states_, arenas_, ProgramOptions{});
    }
    initialise_averages(states_);
  }

  TrainedGraph run() {
    for (int step = 0; step < of_.steps; ++step) {
      float loss = 0;
      for (std::int64_t i = 0; i < count_; ++i) loss += run_micro_batch(step, i);
      result_.losses.push_back(loss);
    }
    machine_.synchronize();
    for (const std::string& name : states_.names()) {
      // Each rank has its own, and only within a step.
      if (name.ends_with("/gradient_sum") || name.ends_with("/touched_rows")) continue;
      result_.states.emplace(name, states_.read(name));
      if (const StateShard* shard = states_.shard(name)) result_.shards.emplace(name, *shard);
    }
    EXPECT_THAT(machine_.monitor->order_errors(), ::testing::IsEmpty());
    return std::move(result_);
  }

 private:
  MicroBatchKind kind_of(std::int64_t i) const {
    if (count_ == 1) return MicroBatchKind::whole;
    return i == 0            ? MicroBatchKind::first
           : i + 1 == count_ ? MicroBatchKind::last
                             : MicroBatchKind::middle;
  }

  void fill(const std::string& name, int step, std::int64_t first, void* slot) const {
    if (name == "t") {
      for (std::int64_t e = 0; e < share_.count * of_.outputs; ++e)
        static_cast<float*>(slot)[e] =
            static_cast<float>(std::sin(static_cast<double>(first * of_.outputs + e)));
    } else if (name == step_input) {
      *static_cast<std::int64_t*>(slot) = step + 1;
    } else if (name == stop_flag) {
      *static_cast<float*>(slot) = place_.rank == 1 ? 1 : 0;
    } else if (name.starts_with("optimizer.lr")) {
      *static_cast<float*>(slot) = rate;
    } else {
      of_.feed(name, first, share_.count, slot);
    }
  }

  float run_micro_batch(int step, std::int64_t i) {
    Program& program = *programs_.at(kind_of(i));
    const Graph& graph = program.lowered().graph;
    const std::int64_t first = i * of_.micro_batch + share_.first + 100 * step;
    for (std::size_t k = 0; k < graph.inputs.size(); ++k)
      fill(graph.inputs[k].name, step, first, program.input_slot(static_cast<int>(k), ticket_));
    ErrorWord word;
    StepContext context;
    context.step = static_cast<std::uint64_t>(step) + 1;
    context.error = &word;
    program.run(context, ticket_);
    if (!result_.error) result_.error = program.error_in(word);
    float loss = 0;
    for (std::size_t o = 0; o < graph.outputs.size(); ++o) {
      const float value = *static_cast<const float*>(program.output(static_cast<int>(o), ticket_));
      if (graph.outputs[o].name == "loss") loss += value;
      if (graph.outputs[o].name == "gradient_norm") result_.norm = value;
      if (graph.outputs[o].name == stop_flag) result_.stop = value;
    }
    ++ticket_;
    return loss;
  }

  const GraphTraining& of_;
  const RankPlace place_;
  const SampleShare share_;
  const std::int64_t count_;
  const OperatorSet operators_ = all_operators();
  const RunConfig config_;
  Machine machine_;
  StateStore states_;
  const std::shared_ptr<Arenas> arenas_ = make_arenas();
  std::map<MicroBatchKind, std::unique_ptr<Program>> programs_;
  std::uint64_t ticket_ = 0;
  TrainedGraph result_;
};

}  // namespace

State sine_parameter(const std::string& name, const Shape& shape) {
  State state;
  state.name = name;
  state.path = name;
  state.path.replace(name.find('.'), 1, ":");
  state.trainable = true;
  state.start = HostTensor(TensorType{DType::float32, shape});
  double i = 0;
  for (float& number : state.start.as<float>())
    number = static_cast<float>(0.3 * std::sin(i += 1.3));
  return state;
}

RunConfig config_of(const GraphTraining& of) {
  std::vector<std::string> keys{
      "model=\"m.onnx\"", "batch_size=" + std::to_string(of.batch),
      "loss.terms=[{name=\"mse\", kind=\"mse\", predictions=\"y\", targets=\"t\"}]",
      "optimizer.lr=0.05"};
  keys.insert(keys.end(), of.keys.begin(), of.keys.end());
  return parse_run_config("steps = 1\n", "train.toml", keys);
}

TrainingGraph training_graph(const OperatorSet& operators, const RunConfig& config,
                             const GraphTraining& of, MicroBatchKind kind, const RankPlace& place) {
  const SampleShare share = share_of(of.micro_batch, place);
  TrainingRequest request;
  request.config = &config;
  request.kind = kind;
  request.samples = {share.count, of.batch};
  request.fields = {{"t", {DType::float32, {share.count, of.outputs}}}};
  if (place.ranks > 1) {
    request.ranks = {place.ranks, share.count, share_of(of.micro_batch, {0, place.ranks}).count,
                     place.rank};
  }
  request.shards = of.shards;
  return build_training_graph(operators, of.forward(operators, share.count), request);
}

TrainedGraph train_graph(const GraphTraining& of, const RankPlace& place, RankGroup* group) {
  return GraphTrainer(of, place, group).run();
}

std::vector<TrainedGraph> train_graph_on(int ranks, const GraphTraining& of) {
  std::vector<TrainedGraph> all(static_cast<std::size_t>(ranks));
  on_rank_threads(ranks, [&](RankGroup& group) {
    all[static_cast<std::size_t>(group.rank())] = train_graph(of, {group.rank(), ranks}, &group);
  });
  return all;
}

}  // namespace tandem::testing

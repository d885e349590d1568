// Steps that exchange with other ranks, which are threads here: each computes its samples, and all
// have the updates that one process makes of the whole batch. The reference is that one process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <thread>

#include "engine/gradient/gradient.h"
#include "engine/graph/builder.h"
#include "engine/graph/error.h"
#include "engine/operators/collectives/collective.h"
#include "engine/plan/collectives.h"
#include "engine/plan/simulate.h"
#include "engine/ranks/communicator.h"
#include "engine/runtime/program.h"
#include "tests/engine/plan/missing_wait.h"
#include "tests/engine/runtime/machine.h"
#include "tests/harness/rank_threads.h"

namespace tandem::testing {
namespace {

constexpr std::int64_t whole_batch = 12, inputs = 9, hidden = 17, outputs = 5;
constexpr int collective_steps = 5;

/// A number for each element, spread over (-scale, scale).
void spread(std::span<float> numbers, double scale, double phase) {
  double i = phase;
  for (float& number : numbers) number = static_cast<float>(scale * std::sin(i += 1.7));
}

struct Network {
  int ranks = 1;
  std::int64_t first = 0, own = whole_batch;  // samples of this rank
  bool clips = false;
};

/// Two layers towards targets: mean over the elements of the whole batch, SGD.
Graph training_graph(const OperatorSet& operators, const Network& network) {
  GraphBuilder b(operators);
  std::vector<ValueId> parameters;
  const auto parameter = [&](const std::string& name, const Shape& shape) {
    State state;
    state.name = name;
    state.path = name;
    state.trainable = true;
    state.start = HostTensor(TensorType{DType::float32, shape});
    spread(state.start.as<float>(), 0.4, static_cast<double>(parameters.size()));
    parameters.push_back(b.state(std::move(state)));
    return parameters.back();
  };
  const auto summed = [&](ValueId value) {
    if (network.ranks == 1) return value;
    return b.add_node(all_reduce_name, {value}, {{"ranks", std::int64_t{network.ranks}}});
  };
  const ValueId x = b.input("x", {DType::float32, {network.own, inputs}});
  const ValueId t = b.input("t", {DType::float32, {network.own, outputs}});
  b.set_scope({"first", Phase::forward, {}});
  const ValueId w1 = parameter("first.weight", {inputs, hidden});
  const ValueId b1 = parameter("first.bias", {hidden});
  const ValueId h = b.add_node("Tanh", {b.add(b.matmul(x, w1), b1)});
  b.set_scope({"second", Phase::forward, {}});
  const ValueId w2 = parameter("second.weight", {hidden, outputs});
  const ValueId b2 = parameter("second.bias", {outputs});
  const ValueId off = b.sub(b.add(b.matmul(h, w2), b2), t);
  b.set_scope({"loss", Phase::forward, {}});
  const ValueId loss = b.mul(b.reduce_sum(b.mul(off, off), {0, 1}, false),
                             b.scalar(1.0 / (whole_batch * outputs), DType::float32));
  b.set_scope({"", Phase::backward, {}});
  const GradientSeed seed{loss, b.filled(1, b.type(loss))};
  std::vector<ValueId> gradients = add_gradients(b, {&seed, 1}, parameters);
  b.set_scope({"update", Phase::update, {}});
  b.output("loss", summed(loss));
  for (ValueId& gradient : gradients) gradient = summed(gradient);
  const ValueId lr = b.scalar(0.5, DType::float32), step = b.scalar(1, DType::int64);
  ValueId scale = b.scalar(1, DType::float32);
  const ValueId skip = b.scalar(0, DType::boolean);
  if (network.clips) {
    std::vector<ValueId> squares;
    for (ValueId gradient : gradients) squares.push_back(b.add_node("SumOfSquares", {gradient}));
    scale = b.node("ClipScale", squares, {{"max_norm", 0.05}})[0];
  }
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    b.set_scope({"update." + b.graph().states[i].name, Phase::update, {}});
    b.write_state(parameters[i], b.add_node("SgdUpdate", {parameters[i], gradients[i], ValueId{},
                                                          lr, step, scale, skip}));
  }
  return b.finish();
}

struct Trained {
  std::vector<float> losses;
  std::map<std::string, HostTensor> states;
};

/// `device`: where all of it runs. `look` sees the program when it has run.
Trained train(const Network& network, int device, RankGroup* group = nullptr,
              const std::function<void(const Program&)>& look = {}) {
  const OperatorSet operators = all_operators();
  Machine machine(device);
  for (Device* one : machine.devices) {
    if (group != nullptr) one->join(group->make_communicator());
  }
  const Graph graph = training_graph(operators, network);
  Placement placement;
  for (const Device* one : machine.devices) placement.devices.push_back(one->name());
  placement.nodes.resize(graph.nodes.size(), {device, "test"});
  for (std::size_t s = 0; s < graph.states.size(); ++s)
    placement.states.push_back({device, device, "test"});
  StateStore states;
  Program program(graph, placement, operators, machine.devices, states, make_arenas(), {});
  Trained result;
  for (std::uint64_t step = 0; step < collective_steps; ++step) {
    for (int i = 0; i < 2; ++i) {
      const std::int64_t width = i == 0 ? inputs : outputs;
      std::vector<float> all(static_cast<std::size_t>(whole_batch * width));
      spread(all, 1, static_cast<double>(step) + 10 * i);
      std::memcpy(program.input_slot(i, step), all.data() + network.first * width,
                  static_cast<std::size_t>(network.own * width) * sizeof(float));
    }
    StepContext context;
    context.step = step + 1;
    program.run(context, step);
    result.losses.push_back(*static_cast<const float*>(program.output(0, step)));
  }
  machine.synchronize();
  for (const std::string& name : states.names()) result.states.emplace(name, states.read(name));
  EXPECT_THAT(machine.monitor->order_errors(), ::testing::IsEmpty());
  if (look) look(program);
  return result;
}

std::vector<Trained> train_on(int ranks, Network network, int device,
                              const std::function<void(const Program&)>& look = {}) {
  std::vector<Trained> all(static_cast<std::size_t>(ranks));
  on_rank_threads(ranks, [&](RankGroup& group) {
    Network own = network;
    own.ranks = ranks;
    const std::int64_t rank = group.rank(), more = whole_batch % ranks;
    own.own = whole_batch / ranks + (rank < more ? 1 : 0);
    own.first = rank * (whole_batch / ranks) + std::min(rank, more);
    all[static_cast<std::size_t>(rank)] =
        train(own, device, &group, rank == 0 ? look : std::function<void(const Program&)>());
  });
  return all;
}

void expect_equal_training(const Trained& one, const Trained& alone, double tolerance) {
  for (int step = 0; step < collective_steps; ++step)
    EXPECT_NEAR(one.losses[step], alone.losses[step], tolerance) << "step " << step + 1;
  ASSERT_EQ(one.states.size(), alone.states.size());
  for (const auto& [name, expected] : alone.states) {
    for (std::int64_t i = 0; i < expected.type().elements(); ++i)
      ASSERT_NEAR(one.states.at(name).number(i), expected.number(i), tolerance) << name;
  }
}

// Ranks, the device (0: the host), and whether gradients are clipped; 5 ranks have uneven shares.
class CollectivesTest : public ::testing::TestWithParam<std::tuple<int, int, bool>> {};

TEST_P(CollectivesTest, StepsAreThoseOfTheWholeBatch) {
  const auto [ranks, device, clips] = GetParam();
  const Network network{.clips = clips};
  const Trained alone = train(network, device);
  EXPECT_LT(alone.losses.back(), 0.95f * alone.losses.front()) << "nothing was learned";
  const std::vector<Trained> all = train_on(ranks, network, device);
  for (const Trained& one : all) {
    expect_equal_training(one, alone, 1e-6);
    EXPECT_EQ(one.losses, all[0].losses);
    for (const auto& [name, value] : all[0].states)
      EXPECT_EQ(std::memcmp(one.states.at(name).data(), value.data(), value.bytes()), 0) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(All, CollectivesTest,
                         ::testing::Combine(::testing::Values(2, 4, 5), ::testing::Values(0, 1),
                                            ::testing::Bool()));

std::vector<NodeId> collectives_of(const Program& program) {
  std::vector<NodeId> nodes;
  for (const Launch& launch : program.plan().launches) {
    const Queue& queue = program.plan().queues[launch.queue];
    const Instruction& instruction = queue.instructions[launch.index];
    if (instruction.kind != Instruction::Kind::collective) continue;
    EXPECT_EQ(queue.role, Queue::Role::collective);
    nodes.push_back(instruction.node);
  }
  return nodes;
}

// Weights and biases are one bucket, whose operands lie side by side and are summed in place; the
// loss, which goes to a slot, is one with them where it is a value of the device.
TEST(Collectives, SmallGradientsTravelAsOne) {
  for (const int device : {0, 1}) {
    train_on(2, {}, device, [](const Program& program) {
      std::size_t operands = 0, calls = 0;
      for (NodeId node : collectives_of(program)) {
        operands += program.lowered().graph.node(node).inputs.size();
        calls += collective_calls(program.lowered(), program.plan(), node).size();
      }
      EXPECT_EQ(operands, 5u);
      EXPECT_LE(calls, 2u) << to_text(program.plan(), program.lowered());
    });
  }
}

// Backward continues while gradients are exchanged: no update comes before the last gradient.
TEST(Collectives, UpdatesStandBehindBackward) {
  train_on(2, {}, 0, [](const Program& program) {
    bool updates = false;
    for (const Instruction& instruction : program.plan().queues[0].instructions) {
      if (instruction.kind != Instruction::Kind::run) continue;
      const Phase phase = program.lowered().graph.node(instruction.node).phase;
      updates = updates || phase == Phase::update;
      EXPECT_FALSE(updates && phase == Phase::backward)
          << to_text(program.plan(), program.lowered());
    }
    EXPECT_TRUE(updates);
  });
}

/// Ten layers of 1 MiB of weights, in one of two ranks; nothing runs.
CompiledProgram compile_deep(const OperatorSet& operators, Machine& machine) {
  constexpr std::int64_t width = 512;
  GraphBuilder b(operators);
  ValueId y = b.input("x", {DType::float32, {width, width}});
  std::vector<ValueId> parameters;
  for (int l = 0; l < 10; ++l) {
    const std::string name = "layer" + std::to_string(l);
    b.set_scope({name, Phase::forward, {}});
    for (const Shape& shape : {Shape{width, width}, Shape{width}}) {
      State state;
      state.name = state.path = name + (shape.size() == 2 ? ".weight" : ".bias");
      state.start = HostTensor(TensorType{DType::float32, shape});
      parameters.push_back(b.state(std::move(state)));
    }
    y = b.add_node("Tanh", {b.add(b.matmul(y, parameters.end()[-2]), parameters.back())});
  }
  const ValueId loss = b.reduce_sum(y, {0, 1}, false);
  b.set_scope({"", Phase::backward, {}});
  const GradientSeed seed{loss, b.filled(1, b.type(loss))};
  const std::vector<ValueId> gradients = add_gradients(b, {&seed, 1}, parameters);
  const ValueId lr = b.scalar(0.5, DType::float32), step = b.scalar(1, DType::int64);
  const ValueId scale = b.scalar(1, DType::float32), skip = b.scalar(0, DType::boolean);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    b.set_scope({"update." + b.graph().states[i].name, Phase::update, {}});
    const ValueId sum = b.add_node(all_reduce_name, {gradients[i]}, {{"ranks", std::int64_t{2}}});
    b.write_state(parameters[i],
                  b.add_node("SgdUpdate", {parameters[i], sum, ValueId{}, lr, step, scale, skip}));
  }
  const Graph graph = b.finish();
  Placement placement{{"cpu"}, {}, {}};
  placement.nodes.resize(graph.nodes.size(), {0, "test"});
  placement.states.resize(graph.states.size(), {0, 0, "test"});
  return compile_program(graph, placement, operators, machine.devices, {});
}

TEST(Collectives, BucketsFollowBackwardAndAreOneCallEach) {
  const OperatorSet operators = all_operators();
  Machine machine(0);
  const CompiledProgram program = compile_deep(operators, machine);
  std::vector<std::string> order;
  int buckets = 0;
  for (const Launch& launch : program.plan.launches) {
    const Instruction& instruction = program.plan.queues[launch.queue].instructions[launch.index];
    if (instruction.kind != Instruction::Kind::collective) continue;
    ++buckets;
    EXPECT_EQ(collective_calls(program.lowered, program.plan, instruction.node).size(), 1u);
    const Node& node = program.lowered.graph.node(instruction.node);
    std::size_t bytes = 0;
    for (ValueId input : node.inputs) bytes += program.lowered.graph.type(input).bytes();
    EXPECT_LE(bytes, (std::size_t{1} << 20) + 4096);
    for (const std::string& origin : node.origins) order.push_back(origin);
  }
  EXPECT_GE(buckets, 9);
  EXPECT_LE(buckets, 11);
  // The last layer's gradients come first.
  EXPECT_THAT(order.front(), ::testing::HasSubstr("layer9"));
  EXPECT_THAT(order.back(), ::testing::HasSubstr("layer0"));
}

// On a network of 10 Gb/s every exchange that can overlap with backward does: all but the last
// bucket.
TEST(Collectives, ExchangesHideBehindBackward) {
  const OperatorSet operators = all_operators();
  Machine machine(0);
  const CompiledProgram program = compile_deep(operators, machine);
  DeviceProfile profile;
  profile.network_bandwidth = 1.25e9;
  profile.network_latency = 20e-6;
  const Simulation simulation = simulate(program.plan, program.lowered, {profile});
  double exchanging = 0, exposed = 0;
  for (const SimulatedSpan& span : simulation.spans) {
    const Queue& queue = program.plan.queues[span.queue];
    if (queue.role != Queue::Role::collective) continue;
    exchanging += span.end - span.start;
    exposed += span.exposed;
  }
  EXPECT_GT(exchanging, 10 * (1 << 20) / 1.25e9);
  EXPECT_LE(exposed, 0.2 * exchanging);
}

// Ten weights of 625 KiB are five buckets of two, each a little more than 1 MiB, which takes as
// long as three of its four products: the next one's are computed meanwhile.
TEST(Collectives, WhatIsScatteredPromptlyHidesBehindTheNextBucket) {
  const OperatorSet operators = all_operators();
  Machine machine(0);
  constexpr std::int64_t width = 400;
  GraphBuilder b(operators);
  ValueId y = b.input("x", {DType::float32, {width, width}});
  std::vector<ValueId> weights, sums;
  for (int l = 0; l < 10; ++l) {
    const std::string name = "layer" + std::to_string(l);
    b.set_scope({name, Phase::forward, {}});
    State weight, sum;
    weight.name = weight.path = name + ".weight";
    weight.start = HostTensor(TensorType{DType::float32, {width, width}});
    weights.push_back(b.state(std::move(weight)));
    sum.name = name + ".sum";
    sum.kind = StateKind::optimizer;
    sum.start = HostTensor(TensorType{DType::float32, {width * width / 2}});
    sums.push_back(b.state(std::move(sum)));
    y = b.add_node("Tanh", {b.matmul(y, weights.back())});
  }
  const ValueId loss = b.reduce_sum(y, {0, 1}, false);
  b.set_scope({"", Phase::backward, {}});
  const GradientSeed seed{loss, b.filled(1, b.type(loss))};
  const std::vector<ValueId> gradients = add_gradients(b, {&seed, 1}, weights);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    b.set_scope({"update.layer" + std::to_string(i), Phase::update, {}});
    const ValueId part = b.add_node(reduce_scatter_name, {b.reshape(gradients[i], {width * width})},
                                    {{"ranks", std::int64_t{2}}, {"prompt", std::int64_t{1}}});
    b.write_state(sums[i], b.add_node("Accumulate", {sums[i], part}));
  }
  const Graph graph = b.finish();
  Placement placement{{"cpu"}, {}, {}};
  placement.nodes.resize(graph.nodes.size(), {0, "test"});
  placement.states.resize(graph.states.size(), {0, 0, "test"});
  const CompiledProgram program = compile_program(graph, placement, operators, machine.devices, {});
  DeviceProfile profile;
  profile.bandwidth = 1e12;
  profile.network_latency = 0;
  const double product = 2.0 * width * width * width / profile.flops;
  profile.network_bandwidth = width * width * sizeof(float) / (3 * product);
  const Simulation simulation = simulate(program.plan, program.lowered, {profile});
  int buckets = 0;
  double exchanging = 0, exposed = 0;
  for (const SimulatedSpan& span : simulation.spans) {
    if (program.plan.queues[span.queue].role != Queue::Role::collective) continue;
    ++buckets;
    exchanging += span.end - span.start;
    exposed += span.exposed;
  }
  EXPECT_EQ(buckets, 5);
  EXPECT_NEAR(exchanging, 15 * product, 1e-6);
  EXPECT_LE(exposed, 0.4 * exchanging) << to_text(program.plan, program.lowered);
}

TEST(Collectives, EveryMissingWaitIsFound) {
  for (const int device : {0, 1}) {
    train_on(2, {}, device, [](const Program& program) {
      const Plan& plan = program.plan();
      EXPECT_THAT(verify(plan, program.lowered()), ::testing::IsEmpty());
      int tried = 0;
      for (const Launch& wait : waits_of(plan)) {
        const KeptApart pair = kept_apart(plan, wait);
        if (pair.first->kind != Instruction::Kind::collective &&
            pair.second->kind != Instruction::Kind::collective)
          continue;
        Plan broken = plan;
        erase_wait(broken, wait);
        EXPECT_FALSE(verify(broken, program.lowered()).empty());
        ++tried;
      }
      EXPECT_GE(tried, 2);
    });
  }
}

/// Takes its time to gather.
class SlowToGather final : public Communicator {
 public:
  explicit SlowToGather(std::shared_ptr<Communicator> other) : other_(std::move(other)) {}
  int rank() const override { return other_->rank(); }
  int ranks() const override { return other_->ranks(); }
  void enqueue(Stream& stream, std::string_view name, const Exchange& exchange) override {
    if (exchange.kind == CollectiveKind::all_gather) {
      KernelCall call;
      call.kernel = &sleep_;
      call.operation = {name, 0, {}};
      stream.run(call);
    }
    other_->enqueue(stream, name, exchange);
  }
  void watch(Stream& stream, std::string_view name) override { other_->watch(stream, name); }
  void check() override { other_->check(); }
  void wait(Stream& stream) override { other_->wait(stream); }
  void abort(const std::string& why) override { other_->abort(why); }

 private:
  struct Sleep final : PreparedKernel {
    void run(const KernelArguments&) noexcept override {
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
    }
  };
  const std::shared_ptr<Communicator> other_;
  Sleep sleep_;
};

// The host waits for no device before it reads its states, and nothing of the step reads this one.
TEST(Collectives, WhatIsGatheredOnTheHostIsThereWhenAStepIsFinished) {
  on_rank_threads(2, [](RankGroup& group) {
    const OperatorSet operators = all_operators();
    Machine machine(0);
    machine.cpu->join(std::make_shared<SlowToGather>(group.make_communicator()));
    GraphBuilder b(operators);
    const ValueId x = b.input("x", {DType::float32, {6}});
    State state;
    state.name = state.path = "w";
    state.start = HostTensor(TensorType{DType::float32, {6}});
    const ValueId w = b.state(std::move(state));
    b.output("y", b.neg(x));
    b.set_scope({"update", Phase::update, {}});
    const ValueId own = b.add_node(
        "Slice", {x}, {{"starts", Ints{3 * group.rank()}}, {"sizes", Ints{3}}, {"steps", Ints{1}}});
    const ValueId all = b.add_node(all_gather_name, {b.neg(own)}, {{"ranks", std::int64_t{2}}});
    b.write_state(w, b.add_node("Assign", {w, all}));
    const Graph graph = b.finish();
    Placement placement{{"cpu"}, {}, {}};
    placement.nodes.resize(graph.nodes.size(), {0, "test"});
    placement.states.resize(graph.states.size(), {0, 0, "test"});
    StateStore states;
    Program program(graph, placement, operators, machine.devices, states, make_arenas(), {});
    int in_place = 0;
    for (const Node& node : program.lowered().graph.nodes)
      in_place += node.op->name == gather_states_name;
    EXPECT_EQ(in_place, 1);
    for (std::uint64_t step = 0; step < 2; ++step) {
      std::vector<float> numbers(6);
      spread(numbers, 1, static_cast<double>(step));
      std::memcpy(program.input_slot(0, step), numbers.data(), 6 * sizeof(float));
      StepContext context;
      context.step = step + 1;
      program.run(context, step);
      const HostTensor found = states.read("w");
      for (std::int64_t i = 0; i < 6; ++i)
        EXPECT_EQ(found.number(i), -static_cast<double>(numbers[static_cast<std::size_t>(i)]));
    }
  });
}

TEST(Collectives, ADeviceThatIsJoinedToNobodyIsRefused) {
  try {
    train({.ranks = 2, .own = 6}, 0);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_THAT(error.what(), ::testing::HasSubstr("cpu is joined to none"));
  }
}

TEST(Collectives, ARankThatFailsEndsTheStepsOfOthers) {
  const auto errors = RankThreads(2).run([&](RankGroup& group) {
    if (group.rank() == 1) {
      group.make_communicator();
      throw Error(ErrorKind::runtime, {.message = "no memory left"});
    }
    train({.ranks = 2, .own = 6}, 0, &group);
  });
  EXPECT_THAT(errors[0], ::testing::HasSubstr("no memory left"));
}

}  // namespace
}  // namespace tandem::testing

// `policy auto --ranks` of a network with a head of 4 GiB, of which nothing is ever written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/graph/builder.h"
#include "engine/training/config/config_value.h"
#include "engine/training/training_graph.h"
#include "kernels/cpu/cpu_device.h"
#include "placement/auto/find.h"
#include "placement/derive.h"
#include "placement/report/run_memory.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::int64_t inputs = 512, width = 2048, classes = 524'288, batch = 64;
constexpr int ranks = 8;

Graph network(const OperatorSet& operators, std::int64_t samples) {
  GraphBuilder g(operators);
  const auto parameter = [&](const std::string& layer, Shape shape) {
    State state;
    state.name = layer + ".weight";
    state.path = layer + ":weight";
    state.trainable = true;
    state.starts_at_zero = true;
    state.start = HostTensor(TensorType{DType::float32, std::move(shape)});
    return g.state(std::move(state));
  };
  ValueId x = g.input("x", {DType::float32, {samples, inputs}});
  g.set_scope({"body.MatMul", Phase::forward, {}});
  x = g.matmul(x, parameter("body", {inputs, width}));
  g.set_scope({"body.Relu", Phase::forward, {}});
  x = g.add_node("Relu", {x});
  g.set_scope({"head.MatMul", Phase::forward, {}});
  g.output("logits", g.matmul(x, parameter("head", {width, classes})));
  return g.finish();
}

class Network final : public TriedModel {
 public:
  Network() { replace_policy("policy = 1\n"); }
  const Graph& graph() override { return graph_; }
  void replace_policy(const std::string& text) override {
    policy_.text = text;
    policy_.policy = parse_policy(text, "policy.toml");
    resolved_.reset();
  }
  const RunPolicy& policy() const override { return policy_; }
  const ResolvedPolicy& resolved() override {
    if (!resolved_) resolved_ = resolve(policy_.policy, graph_, policy_.options);
    return *resolved_;
  }
  PlannedStep plan(PlannedPrograms) override {
    TrainingRequest request;
    request.config = &config_;
    request.samples = {batch / ranks, batch};
    request.fields = {{"labels", {DType::int64, {batch / ranks}}}};
    request.ranks = {ranks, batch / ranks, batch / ranks, 0};
    request.shards = shardings_of(resolved());
    const TrainingGraph training =
        build_training_graph(operators_, network(operators_, batch / ranks), request);
    const std::vector<Device*> devices{device_.get()};
    PlannedMicroBatch micro_batch;
    micro_batch.shape = {batch / ranks, batch, MicroBatchKind::whole, batch};
    micro_batch.program = compile_program(
        training.graph, derive_placement(training.graph, resolved()), operators_, devices, {});
    DeviceProfile profile = assumed_profile(device_->facts());
    profile.network_bandwidth = 1.25e9;
    profile.network_latency = 5e-6;
    micro_batch.simulation =
        simulate(micro_batch.program.plan, micro_batch.program.lowered, {profile});
    PlannedStep step;
    step.ranks = ranks;
    RunMemory memory;
    memory.add(micro_batch.program);
    step.add(std::move(micro_batch), graph_);
    step.set_memory(memory.uses(), resolved(), devices);
    return step;
  }

 private:
  const OperatorSet operators_ = all_operators();
  const Graph graph_ = network(operators_, batch / ranks);
  const std::unique_ptr<Device> device_ = make_cpu_device(1);
  const RunConfig config_ = parse_run_config(
      "model = \"m.onnx\"\nsteps = 1\nbatch_size = 64\n[loss]\nterms = [ { name = \"loss\", kind = "
      "\"softmax_cross_entropy\", logits = \"logits\", labels = \"labels\" } ]\n[optimizer]\nkind "
      "= \"adam\"\nlr = 0.1\n",
      "train.toml", {});
  RunPolicy policy_;
  std::optional<ResolvedPolicy> resolved_;
};

TEST(SplitHead, IsChosenWhereItsGradientWouldBeMostOfAStep) {
  Network model;
  AutoCase of(model, "policy = 1\n", {"cpu"}, {}, 0);
  const FoundPlacement found = find_placement(of, "policy = 1\n", ranks);
  const auto plan = [&](const std::string& name) {
    for (const auto& [known, plan] : found.shardings) {
      if (known == name) return plan;
    }
    ADD_FAILURE() << "no " << name;
    return AutoPlan{};
  };
  EXPECT_THAT(found.sharding, HasSubstr("data parallel body, split head:weight"));
  const std::string text = found_text(found, "policy.toml", true);
  EXPECT_THAT(text, AllOf(HasSubstr("shard = \"columns\""), HasSubstr("head:weight"),
                          HasSubstr("gradients of 4.00 GiB are not summed over ranks")));
  const AutoPlan plain = plan("data parallel"),
                 split = plan("data parallel body, split head:weight");
  ASSERT_TRUE(split.score.possible);
  EXPECT_LT(split.exchanged, 0.01 * plain.exchanged);
  EXPECT_LT(split.score.seconds, plain.score.seconds);
  // Weight, gradient and two moments of the head are an eighth.
  EXPECT_LT(split.devices[0].memory.peak, plain.devices[0].memory.peak / 4);
}

}  // namespace
}  // namespace tandem

// Networks that are planned and simulated but never run, so that their weights are never written.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/config/keys/config_value.h"
#include "engine/graph/builder.h"
#include "engine/runtime/run_memory.h"
#include "engine/train/graph/training_graph.h"
#include "kernels/cpu/cpu_device.h"
#include "placement/auto/tried_model.h"
#include "placement/derive.h"

namespace tandem::testing {

/// A network of parameters that start at zero, with an output "logits" of [samples, classes].
class Layers {
 public:
  explicit Layers(const OperatorSet& operators) : g(operators) {}

  ValueId parameter(const std::string& layer, Shape shape) {
    State state;
    state.name = layer + ".weight";
    state.path = layer + ":weight";
    state.trainable = true;
    state.starts_at_zero = true;
    state.start = HostTensor(TensorType{DType::float32, std::move(shape)});
    return g.state(std::move(state));
  }
  ValueId product(const std::string& layer, ValueId x, std::int64_t out) {
    g.set_scope({layer + ".MatMul", Phase::forward, {}});
    return g.matmul(x, parameter(layer, {g.shape(x).back(), out}));
  }
  ValueId convolution(const std::string& layer, ValueId x, std::int64_t out, std::int64_t side,
                      std::int64_t stride) {
    g.set_scope({layer + ".Conv", Phase::forward, {}});
    const std::int64_t pad = side / 2;
    return g.add_node("Conv", {x, parameter(layer, {out, g.shape(x)[1], side, side}), {}},
                      {{"strides", Ints{stride, stride}},
                       {"pads", Ints{pad, pad, pad, pad}},
                       {"dilations", Ints{1, 1}}});
  }
  ValueId relu(const std::string& layer, ValueId x) {
    g.set_scope({layer + ".Relu", Phase::forward, {}});
    return g.add_node("Relu", {x});
  }

  GraphBuilder g;
};

using Forward = std::function<Graph(const OperatorSet& operators, std::int64_t samples)>;

/// The plan of rank 0 of `ranks`, connected by 10 Gb/s, with `batch` samples over all ranks; a
/// sample has labels of the type `label`.
class NeverRun final : public TriedModel {
 public:
  NeverRun(Forward forward, std::int64_t batch, int ranks, const TensorType& label)
      : forward_(std::move(forward)),
        batch_(batch),
        ranks_(ranks),
        label_(label),
        graph_(forward_(operators_, batch / ranks)),
        config_(parse_run_config(
            "model = \"m.onnx\"\nsteps = 1\nbatch_size = " + std::to_string(batch) +
                "\n[loss]\nterms = [ { name = \"loss\", kind = \"softmax_cross_entropy\", logits = "
                "\"logits\", labels = \"labels\" } ]\n[optimizer]\nkind = \"adam\"\nlr = 0.1\n",
            "train.toml", {})) {}
  const Graph& graph() override { return graph_; }
  void replace_policy(RunPolicy policy) override {
    policy_ = std::move(policy);
    resolved_.reset();
  }
  void with_rule(const PolicyRule& rule, FunctionRef<void()> look) override {
    struct PutBack {
      NeverRun& of;
      std::unique_ptr<ResolvedPolicy> resolved;
      ~PutBack() {
        of.policy_.policy.rules.pop_back();
        of.resolved_ = std::move(resolved);
      }
    };
    policy_.policy.rules.push_back(rule);
    const PutBack put_back{*this, std::move(resolved_)};
    look();
  }
  const RunPolicy& policy() const override { return policy_; }
  const ResolvedPolicy& resolved() override {
    if (!resolved_) {
      resolved_ =
          std::make_unique<ResolvedPolicy>(resolve(policy_.policy, graph_, policy_.options));
    }
    return *resolved_;
  }
  PlannedStep plan(PlannedPrograms) override {
    const std::int64_t samples = batch_ / ranks_;
    TrainingRequest request;
    request.config = &config_;
    request.samples = {samples, batch_};
    TensorType labels = label_;
    labels.shape.insert(labels.shape.begin(), samples);
    request.fields = {{"labels", labels}};
    request.ranks = {ranks_, samples, samples, 0};
    request.shards = shardings_of(resolved());
    const TrainingGraph training =
        build_training_graph(operators_, forward_(operators_, samples), request);
    const std::vector<Device*> devices{device_.get()};
    PlannedMicroBatch micro_batch;
    micro_batch.shape = {samples, batch_, MicroBatchKind::whole, batch_};
    micro_batch.program = compile_program(
        training.graph, derive_placement(training.graph, resolved()), operators_, devices, {});
    DeviceProfile profile;  // 100 GFLOP/s and 20 GB/s, independent of this machine
    profile.network_bandwidth = 1.25e9;
    profile.network_latency = 5e-6;
    micro_batch.simulation =
        simulate(micro_batch.program.plan, micro_batch.program.lowered, {profile});
    PlannedStep step;
    step.ranks = ranks_;
    RunMemory memory;
    memory.add(micro_batch.program);
    step.add(std::move(micro_batch), graph_);
    step.set_memory(memory.uses(), resolved(), devices);
    return step;
  }

 private:
  const OperatorSet operators_ = all_operators();
  const Forward forward_;
  const std::int64_t batch_;
  const int ranks_;
  const TensorType label_;
  const Graph graph_;
  const std::unique_ptr<Device> device_ = make_cpu_device(1);
  const RunConfig config_;
  RunPolicy policy_;
  std::unique_ptr<ResolvedPolicy> resolved_;
};

}  // namespace tandem::testing

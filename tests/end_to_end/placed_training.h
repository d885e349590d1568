// A model in training under a policy, with what its devices count and its monitor saw at hand.
#pragma once

#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "api/engine.h"
#include "engine/training/training_graph.h"

namespace tandem::testing {

class PlacedTraining {
 public:
  using Feeds = std::map<std::string, HostTensor>;

  /// `settings` are keys of train.toml: "optimizer.kind=adamw", "policy=..."; feeds give the types.
  PlacedTraining(const std::string& model, std::int64_t batch,
                 const std::vector<std::string>& settings, const Feeds& feeds)
      : config_(config_of(model, batch, settings)),
        engine_(config_.threads),
        model_(engine_, config_),
        parts_(api::run_parts(engine_, model_, config_)) {
    TrainingRequest request;
    request.config = &config_;
    request.samples = {batch, batch};
    request.evaluate = engine_.evaluate;
    std::vector<std::string> names;
    for (const auto& [name, tensor] : feeds) {
      request.fields[name] = tensor.type();
      names.push_back(name);
    }
    const TrainingGraph training =
        build_training_graph(engine_.operators, model_.forward(batch, true), request);
    bound_ = bind_program(training, parts_, states_, make_arenas(), names);
  }

  /// Returns the loss; devices may still work.
  double step(const Feeds& feeds) {
    Program& program = *bound_.program;
    const Graph& graph = program.lowered().graph;
    for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
      const auto found = feeds.find(graph.inputs[i].name);
      if (found == feeds.end()) continue;
      std::memcpy(program.input_slot(static_cast<int>(i), steps_), found->second.data(),
                  found->second.bytes());
    }
    const std::int64_t number = static_cast<std::int64_t>(steps_ + 1);
    std::memcpy(program.input_slot(bound_.step_input, steps_), &number, sizeof number);
    for (const auto& [input, rate] : bound_.learning_rates) {
      const auto lr = static_cast<float>(rate.base);
      std::memcpy(program.input_slot(input, steps_), &lr, sizeof lr);
    }
    StepContext context;
    context.seed = config_.seed;
    context.step = steps_ + 1;
    program.run(context, steps_);
    return *static_cast<const float*>(program.output(bound_.loss_output, steps_++));
  }

  void synchronize() {
    for (Device* device : devices()) device->synchronize();
  }
  const Program& program() const { return *bound_.program; }
  const std::vector<Device*>& devices() const { return parts_.devices; }
  OrderChecker& monitor() { return *engine_.monitor; }

 private:
  static RunConfig config_of(const std::string& model, std::int64_t batch,
                             const std::vector<std::string>& settings) {
    std::vector<std::string> overrides{"model=\"" + model + "\"",
                                       "batch_size=" + std::to_string(batch)};
    overrides.insert(overrides.end(), settings.begin(), settings.end());
    return parse_run_config("steps = 1\n", model + ".toml", overrides);
  }

  RunConfig config_;
  api::Engine engine_;
  api::OpenModel model_;
  RunParts parts_;
  StateStore states_;
  BoundProgram bound_;
  std::uint64_t steps_ = 0;
};

}  // namespace tandem::testing

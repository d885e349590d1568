// Trainings of adapters: against PyTorch (tests/scripts/lora_expectations.py), what checkpoints
// hold, and how they are resumed.
#include <cstring>
#include <filesystem>

#include "engine/gradient/gradient.h"
#include "engine/graph/error.h"
#include "engine/train/checkpoints/checkpoint.h"
#include "tests/harness/operator_case.h"
#include "tests/harness/program_check.h"
#include "tests/training/error_text.h"
#include "tests/training/test_hooks.h"
#include "tests/training/training_run.h"
#include "tests/training/tuned_network.h"

namespace tandem {
namespace {

using namespace tandem::testing;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

class LoraTraining : public ::testing::Test {
 protected:
  RunParts parts() {
    RunParts parts;
    parts.operators = &engine_.operators;
    parts.devices = {engine_.cpu.get()};
    own_model(parts).make_placement = on_one_device;
    own_model(parts).make_graph = [this](const ForwardKey& key) {
      const std::int64_t batch = key.samples;
      LoraRequest request = request_;
      request.training = key.training;
      return add_lora(base(batch), engine_.operators, request);
    };
    return parts;
  }
  Graph base(std::int64_t batch) {
    Graph graph = convolutional_network(engine_.operators, json_, batch);
    for (State& state : graph.states) {
      if (state.name != changed_) continue;
      state.start = state.start.clone();
      state.start.as<float>()[0] += 1;
    }
    return graph;
  }
  Trained run(std::uint64_t stop_after = 0, const std::string& resume = "",
              std::vector<std::string> keys = {}) {
    keys.insert(keys.end(), {"steps=10", "optimizer.lr=" + json_["lr"].dump(),
                             "optimizer.momentum=" + json_["momentum"].dump()});
    Trained run;
    Hooks hooks;
    std::uint64_t done = 0;
    hooks.on_progress = [&](const TrainingProgress& p) {
      run.steps.push_back(p);
      done = p.step;
    };
    hooks.stop_requested = [&] { return stop_after > 0 && done >= stop_after; };
    run.training =
        std::make_unique<Training>(small_config(folder_.path(), keys), parts(),
                                   DataSets{samples_in(json_), nullptr}, hooks.observer());
    run.result = run.training->run(resume, {});
    return run;
  }
  static std::string adapter(const std::string& key) {  // "conv_a" -> "conv.weight/lora_a"
    const std::size_t line = key.find('_');
    return key.substr(0, line) + ".weight/lora" + key.substr(line);
  }
  static CheckpointContent saved(const Trained& run, std::uint64_t step) {
    return read_checkpoint(run.result.run_dir + "/checkpoints/" + checkpoint_name(step));
  }

  const nlohmann::json json_ = expectations("lora.json");
  LoraRequest request_ = lora_request(json_);
  std::string changed_;  // a parameter of the base that has another value
  TemporaryFolder folder_;
  SmallEngine engine_;
};

TEST_F(LoraTraining, LossesAndAdaptersArePyTorchs) {
  const Trained trained = run();
  const std::vector<double> losses = trained.all("loss");
  ASSERT_EQ(losses.size(), json_["losses"].size());
  for (std::size_t i = 0; i < losses.size(); ++i)
    EXPECT_NEAR(losses[i], json_["losses"][i].get<double>(), 2e-5) << i;
  StateStore& states = trained.training->states();
  for (const auto& [key, value] : json_["end"].items())
    EXPECT_EQ(compare(states.read(adapter(key)), tensor_in(value), 1e-4), "") << key;
  for (const auto& [name, value] : json_["weights"].items()) {
    const HostTensor now = states.read(name), then = tensor_in(value);
    EXPECT_EQ(std::memcmp(now.data(), then.data(), then.bytes()), 0) << name << " has changed";
  }
}

TEST_F(LoraTraining, GradientsArePyTorchs) {
  GraphBuilder g(engine_.operators, parts().model->forward({8, true}));
  const ValueId labels = g.input("labels", {DType::int64, {8}});
  const std::vector<ValueId> losses =
      g.node("SoftmaxCrossEntropy", {g.graph().find_output("logits")->value, labels, ValueId{}},
             {{"label_smoothing", 0.0}});
  const ValueId loss = g.reduce_mean(losses[0], {0}, false);
  std::vector<ValueId> wanted;
  std::vector<std::string> keys;
  for (const auto& [key, value] : json_["gradients"].items()) {
    keys.push_back(key);
    wanted.push_back(g.graph().find_state(adapter(key))->initial);
  }
  const GradientSeed seed{loss, g.scalar(1, DType::float32)};
  const std::vector<ValueId> gradients = add_gradients(g, {&seed, 1}, wanted);
  const auto numbers = json_["labels"].get<std::vector<std::int64_t>>();
  Graph graph = g.finish();
  for (State& state : graph.states) {
    for (const auto& [key, value] : json_["at_gradients"].items()) {
      if (state.name == adapter(key)) state.start = tensor_in(value);
    }
  }
  std::vector<std::pair<std::string, HostTensor>> feeds{
      {"x", tensor_in(json_["x"])}, {"labels", HostTensor::from<std::int64_t>({8}, numbers)}};
  for (const State& state : graph.states) feeds.emplace_back(state.name, state.start);
  const std::vector<HostTensor> got = evaluate(graph, feeds, gradients);
  for (std::size_t i = 0; i < keys.size(); ++i)
    EXPECT_EQ(compare(got[i], tensor_in(json_["gradients"][keys[i]]), 1e-5), "") << keys[i];
}

TEST_F(LoraTraining, MergedWeightsSayWhatAdaptersDid) {
  const Trained trained = run();
  StateStore& states = trained.training->states();
  Graph plain = base(8);
  for (const AdaptedWeight& weight : adapted_weights(plain, request_.rules)) {
    for (State& state : plain.states) {
      if (state.name == weight.name)
        state.start =
            merged_weight(weight, state.start, {states.read(weight.a()), states.read(weight.b())});
    }
  }
  std::vector<std::pair<std::string, HostTensor>> feeds{{"x", tensor_in(json_["x"])}};
  for (const State& state : plain.states) feeds.emplace_back(state.name, state.start);
  const auto got = evaluate(plain, feeds, {plain.outputs[0].value});
  EXPECT_EQ(compare(got[0], tensor_in(json_["logits"]), 1e-4), "");
}

TEST_F(LoraTraining, CheckpointsHoldWhatTrainsAndHashesOfTheRest) {
  const CheckpointContent content = saved(run(), 10);
  std::vector<std::string> names;
  for (const NamedTensor& tensor : content.model) names.push_back(tensor.name);
  EXPECT_THAT(names, UnorderedElementsAre("conv.weight/lora_a", "conv.weight/lora_b",
                                          "middle.weight/lora_a", "middle.weight/lora_b",
                                          "last.weight/lora_a", "last.weight/lora_b"));
  EXPECT_EQ(content.position.frozen.size(), 6u);
  EXPECT_TRUE(content.position.frozen.contains("middle.bias"));
  for (const NamedTensor& tensor : content.optimizer) EXPECT_THAT(tensor.name, HasSubstr("/lora_"));
  EXPECT_GE(content.optimizer.size(), 6u);  // each with a momentum
}

TEST_F(LoraTraining, WhatTrainNamesTrainsToo) {
  request_.train = {{"last:bias", {}}};
  const Trained trained = run();
  const HostTensor now = trained.training->states().read("last.bias"),
                   then = tensor_in(json_["weights"]["last.bias"]);
  EXPECT_NE(std::memcmp(now.data(), then.data(), then.bytes()), 0);
  const CheckpointContent content = saved(trained, 10);
  EXPECT_FALSE(content.position.frozen.contains("last.bias"));
  EXPECT_EQ(content.model.size(), 7u);
}

TEST_F(LoraTraining, ResumeIsBitEqual) {
  for (AdapterRule& rule : request_.rules) rule.dropout = 0.25;
  const Trained whole = run();
  for (const std::uint64_t stop : {1, 7}) {
    const Trained stopped = run(stop);
    ASSERT_TRUE(stopped.result.interrupted);
    const Trained resumed = run(0, stopped.result.run_dir);
    EXPECT_EQ(difference(resumed.training->states(), whole.training->states()), "") << stop;
    EXPECT_EQ(metrics_of(resumed.result.run_dir), metrics_of(whole.result.run_dir)) << stop;
  }
}

TEST_F(LoraTraining, DropoutIsForTrainingAlone) {
  const std::vector<double> without = run().all("loss");
  for (AdapterRule& rule : request_.rules) rule.dropout = 0.5;
  const std::vector<double> with = run().all("loss");
  EXPECT_NEAR(with[0], without[0], 1e-6);  // the second adapter starts at zero
  EXPECT_NE(with.back(), without.back());
  const Graph graph = parts().model->forward({8, false});
  for (const Node& node : graph.nodes) EXPECT_NE(node.op->name, "Dropout");
}

TEST_F(LoraTraining, AnotherBaseIsRefusedByName) {
  const Trained stopped = run(4);
  changed_ = "middle.weight";
  EXPECT_THAT(error_of([&] { run(0, stopped.result.run_dir); }),
              AllOf(HasSubstr("middle.weight"), HasSubstr("the base model has other values"),
                    HasSubstr("step-00000004"), HasSubstr("put back the file")));
  changed_ = "";
  request_.train = {{"last:bias", {}}};
  EXPECT_THAT(error_of([&] { run(0, stopped.result.run_dir); }),
              AllOf(HasSubstr("last.bias"), HasSubstr("what is frozen is not what was frozen")));
}

}  // namespace
}  // namespace tandem

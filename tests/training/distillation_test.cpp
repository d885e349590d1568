// A model that learns from a teacher: against PyTorch (tests/scripts/distillation_expectations.py),
// what [distillation] makes of the loss, and what checkpoints hold.
#include <filesystem>

#include "engine/graph/error.h"
#include "engine/losses/distillation.h"
#include "engine/passes/teacher.h"
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

class Distillation : public ::testing::Test {
 protected:
  RunParts parts() {
    RunParts parts;
    parts.operators = &engine_.operators;
    parts.devices = {engine_.cpu.get()};
    own_model(parts).make_placement = on_one_device;
    own_model(parts).make_graph = [this](const ForwardKey& key) {
      const std::int64_t batch = key.samples;
      Graph teacher = two_layers(engine_.operators, json_["teacher"], batch);
      for (State& state : teacher.states) {
        if (!other_teacher_ || state.name != "fc1.bias") continue;
        state.start = state.start.clone();
        state.start.as<float>()[0] += 1;
      }
      const Graph joined = with_teacher(two_layers(engine_.operators, json_["student"], batch),
                                        teacher, engine_.operators, {"teacher.", {}, {}});
      return keep_named_values(joined, config());
    };
    return parts;
  }
  std::string section() const {
    return "distillation={teacher='teacher.onnx', temperature=" + json_["temperature"].dump() +
           ", weight=" + json_["weight"].dump() + ", at={logits='logits'}}";
  }
  RunConfig config(std::vector<std::string> keys = {}) {
    keys.insert(keys.end(), {"steps=10", "optimizer.lr=" + json_["lr"].dump(), section()});
    return small_config(folder_.path(), keys);
  }
  Trained run(std::uint64_t stop_after = 0, const std::string& resume = "") {
    Trained run;
    Hooks hooks;
    std::uint64_t done = 0;
    hooks.on_progress = [&](const TrainingProgress& p) {
      run.steps.push_back(p);
      done = p.step;
    };
    hooks.stop_requested = [&] { return stop_after > 0 && done >= stop_after; };
    run.training = std::make_unique<Training>(
        config(), parts(), DataSets{samples_in(json_), nullptr}, hooks.observer());
    run.result = run.training->run(resume, {});
    return run;
  }

  const nlohmann::json json_ = expectations("distillation.json");
  bool other_teacher_ = false;
  TemporaryFolder folder_;
  SmallEngine engine_;
};

TEST_F(Distillation, LossesAndWeightsArePyTorchs) {
  const Trained trained = run();
  const std::vector<double> losses = trained.all("loss"), terms = trained.all("distillation");
  ASSERT_EQ(losses.size(), 10u);
  for (std::size_t i = 0; i < losses.size(); ++i) {
    EXPECT_NEAR(losses[i], json_["losses"][i].get<double>(), 1e-5) << i;
    EXPECT_NEAR(terms[i], json_["distillation"][i].get<double>(), 1e-5) << i;
  }
  StateStore& states = trained.training->states();
  for (const auto& [name, value] : json_["end"].items())
    EXPECT_EQ(compare(states.read(name), tensor_in(value), 1e-5), "") << name;
  for (const auto& [name, value] : json_["teacher"].items())
    EXPECT_EQ(compare(states.read("teacher." + name), tensor_in(value), 0), "") << name;
}

TEST_F(Distillation, CheckpointsHoldTheHashOfTheTeacherAlone) {
  const Trained stopped = run(4);
  const CheckpointContent content =
      read_checkpoint(stopped.result.run_dir + "/checkpoints/" + checkpoint_name(4));
  for (const NamedTensor& tensor : content.model)
    EXPECT_FALSE(names_teacher(tensor.name)) << tensor.name;
  EXPECT_EQ(content.model.size(), 4u);
  EXPECT_EQ(content.position.frozen.size(), 4u);
  const Trained whole = run(), resumed = run(0, stopped.result.run_dir);
  EXPECT_EQ(difference(resumed.training->states(), whole.training->states()), "");
  const Trained again = run(4);
  other_teacher_ = true;
  EXPECT_THAT(error_of([&] { run(0, again.result.run_dir); }),
              AllOf(HasSubstr("teacher.fc1.bias"), HasSubstr("the teacher has other values"),
                    HasSubstr("teacher.onnx")));
}

TEST_F(Distillation, TheSectionMakesTermsOnce) {
  RunConfig made = config();
  made.data.reset();  // arrays in memory, which no file describes
  ASSERT_EQ(made.loss.terms.size(), 2u);
  const LossTerm& term = made.loss.terms[1];
  EXPECT_EQ(term.name, "distillation");
  EXPECT_EQ(term.values, (std::vector<std::string>{"logits", "teacher.logits"}));
  EXPECT_EQ(term.options.as<DistillationOptions>().temperature, 3);
  EXPECT_EQ(term.weight, 0.5);
  EXPECT_EQ(parse_run_config(to_toml(made), "/other/train.resolved.toml").loss, made.loss);
}

TEST_F(Distillation, AnyLossMayReadTheTeacher) {
  const RunConfig mse =
      small_config(folder_.path(),
                   {"distillation={teacher='teacher.onnx'}",
                    "loss.terms=[{kind='mse', predictions='logits', targets='teacher.logits'}]"});
  TrainingRequest request;
  request.config = &mse;
  request.samples = {8, 8};
  const Graph graph =
      keep_named_values(with_teacher(two_layers(engine_.operators, json_["student"], 8),
                                     two_layers(engine_.operators, json_["teacher"], 8),
                                     engine_.operators, {"teacher.", {}, {}}),
                        mse);
  const TrainingGraph training = build_training_graph(engine_.operators, graph, request);
  EXPECT_EQ(training.graph.find_input("teacher.logits"), nullptr);
  EXPECT_TRUE(mse.loss.terms[0].fields().empty());
  RunConfig other = mse;
  other.loss.terms[0].labels = "teacher.logit";
  request.config = &other;
  EXPECT_THAT(
      error_of([&] { build_training_graph(engine_.operators, graph, request); }),
      AllOf(HasSubstr("the teacher has no value"), HasSubstr("did you mean \"teacher.logits\"?")));
}

TEST_F(Distillation, MistakesOfTheSectionAreNamed) {
  const auto mistake = [&](const std::vector<std::string>& keys) {
    return error_of([&] { small_config(folder_.path(), keys); });
  };
  EXPECT_THAT(mistake({"distillation={teacher='t.onnx'}"}), HasSubstr("nothing reads the teacher"));
  EXPECT_THAT(mistake({"distillation={temperature=3}"}), HasSubstr("distillation.teacher"));
  EXPECT_THAT(mistake({"distillation={teacher='t.onnx', temperature=0, at={logits='logits'}}"}),
              HasSubstr("out of range"));
  EXPECT_THAT(
      mistake({"loss.terms=[{kind='distillation', logits='logits', teacher_logits='teacher.y'}]"}),
      HasSubstr("there is no teacher"));
  EXPECT_THAT(mistake({"loss.terms=[]", "distillation={teacher='t.onnx', at={logits='logits'}}"}),
              HasSubstr("these terms are added to other terms of the loss"));
}

TEST_F(Distillation, ATrainedModelForgetsItsTeacher) {
  RunConfig trained = config();
  forget_teacher(trained.distillation, trained.loss);
  EXPECT_FALSE(trained.distillation.has_teacher());
  ASSERT_EQ(trained.loss.terms.size(), 1u);
  EXPECT_EQ(trained.loss.terms[0].name, "loss");
}

}  // namespace
}  // namespace tandem

// Averages of weights and norms in whole trainings: what is evaluated, kept, resumed and logged.
#include <gmock/gmock.h>

#include "engine/train/averages/weights_in_use.h"
#include "engine/train/checkpoints/checkpoint.h"
#include "engine/train/evaluation/evaluation.h"
#include "tests/training/training_run.h"

namespace tandem {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using testing::Trained;
using Keys = std::vector<std::string>;

class AveragesTest : public testing::TrainingRun {
 protected:
  void SetUp() override { eval_ = testing::small_data(7, 9); }

  static Keys with(Keys keys, const Keys& more) {
    keys.insert(keys.end(), more.begin(), more.end());
    return keys;
  }
};

const Keys all_averages{"steps=9",
                        "optimizer.ema={decay=0.8, start=\"2 steps\", warmup=true}",
                        "optimizer.swa={start=\"1 epoch\", every=\"2 steps\"}",
                        "optimizer.lookahead={k=2, alpha=0.5}",
                        "eval.every=\"2 steps\"",
                        "eval.metrics=[\"loss\"]",
                        "eval.best=\"loss\""};

TEST_F(AveragesTest, AResumedRunGoesOnExactly) {
  for (const char* weights : {"trained", "ema", "swa"}) {
    const Keys keys = with(all_averages, {std::string("eval.weights=") + weights});
    const Trained whole = run(keys);
    for (const std::uint64_t stop : {1, 2, 3, 4, 7}) {
      SCOPED_TRACE(std::string(weights) + " " + std::to_string(stop));
      const Trained stopped = run(keys, stop);
      const Trained resumed = run(keys, 0, stopped.result.run_dir);
      EXPECT_EQ(testing::difference(resumed.training->states(), whole.training->states()), "");
      EXPECT_EQ(testing::metrics_of(stopped.result.run_dir),
                testing::metrics_of(whole.result.run_dir));
    }
  }
}

// An evaluation with averages changes no step, and measures the averaged weights.
TEST_F(AveragesTest, EvaluationsAreOfTheChosenWeights) {
  const Trained plain = run(all_averages), ema = run(with(all_averages, {"eval.weights=ema"}));
  EXPECT_EQ(testing::difference(plain.training->states(), ema.training->states()), "");
  EXPECT_NE(plain.evaluations.back().values, ema.evaluations.back().values);
  EXPECT_THAT(ema.messages, Contains(HasSubstr("are of the ema weights")));
  StateStore& states = plain.training->states();
  const WeightsInUse in_use(states, Weights::ema);
  const RunConfig config = testing::small_config(folder_.path(), all_averages);
  Evaluation evaluation(config, engine_.parts(), eval_, states, make_arenas());
  EXPECT_EQ(evaluation.run()->at(0).second, Trained::value(ema.evaluations.back(), "loss"));
}

TEST_F(AveragesTest, CheckpointsHaveThem) {
  const Trained trained = run(with(all_averages, {"checkpoint.keep=0"}));
  const std::string folder = trained.result.run_dir + "/checkpoints/";
  CheckpointContent content = read_checkpoint(folder + list_checkpoints(folder).back());
  const auto find = [](const std::vector<NamedTensor>& all, const std::string& name) {
    for (const NamedTensor& tensor : all) {
      if (tensor.name == name) return tensor.tensor;
    }
    ADD_FAILURE() << "no " << name;
    return HostTensor();
  };
  const HostTensor ema = find(content.optimizer, "fc1.weight/ema");
  EXPECT_NE(ema.number(0), find(content.model, "fc1.weight").number(0));
  find(content.optimizer, "fc1.weight/slow");
  use_weights(content, Weights::ema, folder);
  EXPECT_EQ(find(content.model, "fc1.weight").number(0), ema.number(0));
  content.optimizer.clear();
  EXPECT_THAT(testing::error_text([&] { use_weights(content, Weights::swa, folder); }),
              HasSubstr("the checkpoint has no swa weights"));
}

// Averages of a layer that thaws begin with its values, even if there was no average before.
TEST_F(AveragesTest, OfWhatThawsBeginsThere) {
  for (const char* at : {"**", "fc1"}) {
    SCOPED_TRACE(at);
    const std::string which = std::string("at='") + at + "'";
    const Keys keys{"steps=4", "optimizer.ema={decay=0.5, " + which + "}",
                    "optimizer.lookahead={k=2, " + which + "}",
                    "parameters.freeze=[{at=\"fc1\", until=\"3 steps\"}]", "optimizer.lr=0.0"};
    const Trained trained = run(keys);
    const StateStore& states = trained.training->states();
    const HostTensor weight = states.read("fc1.weight");
    for (const char* name : {"fc1.weight/ema", "fc1.weight/slow"}) {
      const HostTensor average = states.read(name);
      for (std::int64_t i = 0; i < weight.type().elements(); ++i)
        EXPECT_FLOAT_EQ(static_cast<float>(average.number(i)),
                        static_cast<float>(weight.number(i)));
    }
    for (const std::uint64_t stop : {2, 3}) {
      const Trained stopped = run(keys, stop);
      const Trained resumed = run(keys, 0, stopped.result.run_dir);
      EXPECT_EQ(testing::difference(resumed.training->states(), states), "");
    }
  }
}

TEST_F(AveragesTest, NormsAreLogged) {
  const Keys keys{"steps=3", "log.norms=[\"fc1\", \"fc2:bias\"]", "optimizer.clip_norm=0.01"};
  for (const Keys& more :
       {Keys{}, Keys{"micro_batch=4"}, Keys{"precision.compute=float16"},
        Keys{"optimizer.momentum=0.9", "optimizer.lookahead={k=1, alpha=0.5}"}}) {
    const Trained trained = run(with(keys, more));
    const auto lines = testing::metrics_of(trained.result.run_dir);
    const Trained before = run(with(with(keys, more), {"steps=2"}));
    double squares = 0;
    const HostTensor w = trained.training->states().read("fc2.bias"),
                     v = before.training->states().read("fc2.bias");
    for (std::int64_t i = 0; i < w.type().elements(); ++i)
      squares += std::pow(w.number(i) - v.number(i), 2);
    const double found = lines[2].at("norm.update.fc2:bias");
    EXPECT_NEAR(found, std::sqrt(squares), 1e-3 * found);
    // `gradient_norm` is that of all gradients that are there, before they are clipped.
    double all = 0;
    const Trained every = run(with(with(keys, more), {"log.norms=[\"**\"]"}));
    const nlohmann::json line = testing::metrics_of(every.result.run_dir)[1];
    for (const auto& [name, value] : line.items()) {
      if (name.starts_with("norm.gradient.")) all += std::pow(value.get<double>(), 2);
    }
    EXPECT_NEAR(std::sqrt(all), line.at("gradient_norm").get<double>(), 1e-5);
    EXPECT_EQ(line.at("norm.gradient.fc1:weight"), lines[1].at("norm.gradient.fc1:weight"));
    EXPECT_FALSE(lines[1].contains("norm.gradient.fc2:weight"));
  }
}

}  // namespace
}  // namespace tandem

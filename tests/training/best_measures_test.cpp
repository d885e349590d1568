// Resumes that change what eval.best measures, and loss terms with the names of other numbers.
#include "engine/train/checkpoints/best_measures.h"

#include <filesystem>
#include <fstream>

#include "tests/training/training_run.h"

namespace tandem {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::Not;
using ::testing::Pair;
using testing::Trained;
using ::testing::UnorderedElementsAre;
using Keys = std::vector<std::string>;

class BestMeasuresTest : public testing::TrainingRun {
 protected:
  BestMeasuresTest() { eval_ = testing::small_data(9, 9); }

  std::map<std::string, std::string> measures(const Keys& keys) {
    return best_measures(testing::small_config(folder_.path(), keys));
  }
  /// Runs 4 steps, and a fifth with other keys; returns the second run's messages.
  std::vector<std::string> resumed(const Keys& keys, const Keys& first, const Keys& second) {
    const auto with = [&](const Keys& more, const char* steps) {
      Keys all = keys;
      all.insert(all.end(), more.begin(), more.end());
      all.insert(all.end(), {steps, "optimizer.lr=0.0", "eval.every=\"2 steps\""});
      return all;
    };
    const Trained before = run(with(first, "steps=4"));
    return run(with(second, "steps=5"), 0, before.result.run_dir).messages;
  }
};

TEST_F(BestMeasuresTest, AreTheKeysThatDecide) {
  EXPECT_THAT(measures({}), IsEmpty());
  EXPECT_THAT(measures({"eval.metrics=[\"loss\", {kind=\"top_k\", k=2, name=\"m\"}]", "eval.best=m",
                        "loss.terms.0.weight=0.5"}),
              UnorderedElementsAre(
                  Pair("eval.metrics.0.kind", "\"top_k\""), Pair("eval.metrics.0.k", "2"),
                  Pair("eval.metrics.0.name", "\"m\""), Pair("eval.weights", "\"trained\"")));
  const auto by_loss = measures({"eval.metrics=[\"loss\"]", "eval.best=loss", "eval.weights=ema",
                                 "optimizer.ema.decay=0.9", "loss.terms.0.weight=0.5"});
  EXPECT_THAT(by_loss, Contains(Pair("loss.terms.0.weight", "0.5")));
  EXPECT_THAT(by_loss, Contains(Pair("eval.weights", "\"ema\"")));
  EXPECT_THAT(by_loss, Not(Contains(Key(HasSubstr("optimizer")))));
}

TEST_F(BestMeasuresTest, AnotherWeightOfTheLossStartsBestAnew) {
  const Keys keys{"eval.metrics=[\"loss\"]", "eval.best=loss"};
  const auto anew =
      Contains("what eval.best (loss) measures changed: best and eval.patience start again");
  EXPECT_THAT(resumed(keys, {"loss.terms.0.weight=0.1"}, {"loss.terms.0.weight=1.0"}), anew);
  EXPECT_THAT(resumed(keys, {"loss.terms.0.weight=0.1"}, {"loss.terms.0.weight=0.1"}), Not(anew));
}

TEST_F(BestMeasuresTest, OtherWeightsStartBestAnew) {
  const Keys keys{"eval.metrics=[\"accuracy\"]", "eval.best=accuracy", "optimizer.ema.decay=0.9"};
  EXPECT_THAT(resumed(keys, {"eval.weights=trained"}, {"eval.weights=ema"}),
              Contains(HasSubstr("what eval.best (accuracy) measures changed")));
}

TEST_F(BestMeasuresTest, AnotherFormulaUnderTheNameStartsBestAnew) {
  const Keys keys{"eval.best=m"};
  EXPECT_THAT(resumed(keys, {"eval.metrics=[{kind=\"top_k\", k=2, name=\"m\"}]"},
                      {"eval.metrics=[{kind=\"accuracy\", name=\"m\"}]"}),
              Contains(HasSubstr("what eval.best (m) measures changed")));
}

// The learning rate is 0: both measures stay what they are at the first evaluation.
TEST_F(BestMeasuresTest, TheBestAfterwardsIsOfTheNewMeasure) {
  const Keys keys{"optimizer.lr=0.0", "eval.every=\"2 steps\"", "eval.metrics=[\"loss\"]",
                  "eval.best=loss"};
  const auto with = [&](const Keys& more) {
    Keys all = keys;
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  const Trained before = run(with({"steps=4", "loss.terms.0.weight=0.1"}));
  const std::string checkpoints = before.result.run_dir + "/checkpoints/";
  EXPECT_THAT(testing::lines_of(checkpoints + "best"), ElementsAre("step-00000002"));
  run(with({"steps=8"}), 0, before.result.run_dir);
  EXPECT_THAT(testing::lines_of(checkpoints + "best"), ElementsAre("step-00000006"));
}

TEST_F(BestMeasuresTest, TermsDoNotReplaceOtherNumbers) {
  const std::string term = "kind=\"softmax_cross_entropy\", logits=\"logits\", labels=\"labels\"}";
  const Trained trained =
      run({"steps=2", "log.every=\"1 steps\"", "eval.metrics=[\"loss\"]",
           "loss.terms=[{name=\"loss\", " + term + ", {name=\"step\", weight=2.0, " + term +
               ", {name=\"other\", " + term + "]"});
  std::size_t lines = 0;
  for (const nlohmann::json& line : testing::metrics_of(trained.result.run_dir)) {
    ++lines;
    EXPECT_TRUE(line["step"] == 1 || line["step"] == 2) << line;
    const double one = line["loss.loss"], two = line["loss.step"], other = line["other"];
    EXPECT_NEAR(two, 2 * one, 1e-5);
    EXPECT_NEAR(line["loss"].get<double>(), one + two + other, 1e-5);
  }
  EXPECT_EQ(lines, 3u);
}

}  // namespace
}  // namespace tandem

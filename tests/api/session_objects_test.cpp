// Sessions that are made of structs: the same trainings as from texts, and their evaluations.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tandem/session_config.h"
#include "tandem/tandem.h"
#include "tests/api/digits.h"
#include "tests/api/error_of.h"

namespace tandem::api {
namespace {

using ::testing::AllOf;
using testing::digits_model;
using testing::error_of;
using ::testing::HasSubstr;
using testing::training_digits;

SessionConfig session_config_of(double rate = 3e-3) {
  return {.model = {.file = digits_model},
          .batch_size = 32,
          .seed = 3,
          .parameters = {.init = {{.at = "fc1:weight", .kind = InitKind::normal, .std = 0.1}}},
          .loss = {.terms = {{.name = "loss",
                              .kind = SoftmaxCrossEntropyLoss{.logits = "logits",
                                                              .labels = "labels"}}}},
          .optimizer = {.kind = Adam{.lr = rate}},
          .metrics = {{.kind = EvalMetricKind::accuracy}}};
}

TEST(SessionObjects, StructsAndTextsTrainTheSame) {
  Session structs(session_config_of());
  Session texts(digits_model, 32,
                {testing::cross_entropy, "optimizer.kind=adam", "optimizer.lr=3e-3", "seed=3",
                 "parameters.init=[{ at = \"fc1:weight\", kind = \"normal\", std = 0.1 }]"});
  for (int step = 0; step < 4; ++step) {
    const Tensors fed = training_digits().batch(32 * step, 32);
    EXPECT_EQ(structs.step(fed), texts.step(fed)) << step;
  }
  EXPECT_EQ(structs.steps(), 4u);
}

/// Mean cross-entropy and accuracy, from predictions.
std::pair<double, double> measured_by_hand(Session& session, std::int64_t first,
                                           std::int64_t count) {
  const Tensors made = session.predict(training_digits().image(first, count));
  const std::span<const float> logits = made.at("logits").values<float>();
  double loss = 0, right = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto row = logits.subspan(static_cast<std::size_t>(10 * i), 10);
    const std::int64_t label = training_digits().labels.as<std::int64_t>()[first + i];
    const double most = *std::max_element(row.begin(), row.end());
    double sum = 0;
    for (const float x : row) sum += std::exp(x - most);
    loss += std::log(sum) + most - row[static_cast<std::size_t>(label)];
    right += std::max_element(row.begin(), row.end()) - row.begin() == label;
  }
  return {loss / static_cast<double>(count), right / static_cast<double>(count)};
}

TEST(SessionObjects, EvaluatesMoreSamplesThanABatchExactly) {
  Session session(session_config_of());
  for (int step = 0; step < 20; ++step) session.step(training_digits().batch(32 * step, 32));
  const Tensors before = session.parameters();
  // 100 samples are three whole micro-batches and one of four; other samples of the same number
  // reuse the programs.
  for (const std::int64_t first : {0, 700}) {
    const auto [loss, accuracy] = measured_by_hand(session, first, 100);
    const std::map<std::string, double> values =
        session.evaluate(training_digits().batch(first, 100));
    EXPECT_NEAR(values.at("loss"), loss, 1e-5) << first;
    EXPECT_NEAR(values.at("accuracy"), accuracy, 1e-9) << first;
  }
  EXPECT_EQ(session.parameters(), before);
}

TEST(SessionObjects, EvaluatesBeforeTheFirstStepAndFollowsWhatIsTrained) {
  Session session(session_config_of());
  const Tensors fed = training_digits().batch(0, 32);
  const double start = session.evaluate(fed).at("loss");
  EXPECT_NEAR(start, measured_by_hand(session, 0, 32).first, 1e-5);
  Session other(session_config_of());
  EXPECT_EQ(session.step(fed), other.step(fed));  // the evaluation has changed nothing
  for (int step = 0; step < 5; ++step) session.step(fed);
  EXPECT_LT(session.evaluate(fed).at("loss"), start);
}

// Label 9 counts nothing, so the mean divides by fewer labels in the second call than in the first.
TEST(SessionObjects, WeightsOfAnEvaluationAreThoseOfItsOwnSamples) {
  SessionConfig config = session_config_of();
  config.loss.terms[0].kind =
      SoftmaxCrossEntropyLoss{.logits = "logits", .labels = "labels", .ignore_index = 9};
  config.metrics.clear();
  Session session(config);
  Tensors fed = training_digits().batch(0, 8);
  fed["labels"] = Tensor::copy_of({8}, std::vector<std::int64_t>{1, 1, 1, 1, 1, 1, 1, 1});
  const double all = session.evaluate(fed).at("loss");
  fed["labels"] = Tensor::copy_of({8}, std::vector<std::int64_t>{1, 9, 9, 9, 9, 9, 9, 9});
  const double one = session.evaluate(fed).at("loss");
  Tensors first = training_digits().batch(0, 1);
  first["labels"] = Tensor::copy_of({1}, std::vector<std::int64_t>{1});
  EXPECT_NEAR(one, session.evaluate(first).at("loss"), 1e-5);
  EXPECT_GT(std::abs(one - all), 1e-6);
}

TEST(SessionObjects, FeedsOfAnEvaluationHaveAnEntryForEachSample) {
  Session session(session_config_of());
  Tensors fed = training_digits().batch(0, 8);
  fed["labels"] = Tensor::copy_of({7}, std::vector<std::int64_t>(7));
  EXPECT_THAT(error_of([&] { session.evaluate(fed); }),
              AllOf(HasSubstr("labels"), HasSubstr("expected 8 samples on axis 0")));
  EXPECT_THAT(error_of([&] { session.evaluate({}); }), HasSubstr("at least one fed tensor"));
}

TEST(SessionObjects, TheLearningRateIsShown) {
  Session session(session_config_of(0.25));
  EXPECT_EQ(session.learning_rate(), 0.25);
  session.set_learning_rate(0.5);
  EXPECT_EQ(session.learning_rate(), 0.5);
}

TEST(SessionObjects, AStopIsHonouredBeforeAnythingChanges) {
  SessionConfig config = session_config_of();
  Session session(config);
  const Tensors fed = training_digits().batch(0, 32);
  session.step(fed);
  const Tensors before = session.parameters();
  config.stop.request_stop();
  for (const std::function<void()>& call : {std::function<void()>([&] { session.step(fed); }),
                                            {[&] { session.evaluate(fed); }},
                                            {[&] { session.predict(fed); }},
                                            {[&] { Session another(config); }}})
    EXPECT_THAT(error_of(call, ErrorKind::runtime), HasSubstr("interrupted"));
  EXPECT_EQ(session.parameters(), before);
}

TEST(SessionObjects, WhatASessionDoesNotHonourIsRefusedByName) {
  SessionConfig config = session_config_of();
  config.model.sync_batch_norm = true;
  config.optimizer.schedule = {.kind = ConstantSchedule{}, .warmup = Duration::epochs(1)};
  EXPECT_THAT(error_of([&] { Session session(config); }),
              AllOf(HasSubstr("model.sync_batch_norm: a Session does not honour this key"),
                    HasSubstr("optimizer.schedule.warmup: a Session counts only steps")));
  config = session_config_of(-1);
  EXPECT_THAT(error_of([&] { Session session(config); }),
              HasSubstr("SessionConfig: optimizer.lr: out of range"));
}

}  // namespace
}  // namespace tandem::api

// A session whose optimizer trains weights ahead of those that are used: everything that it gives
// away, and takes, is what is used.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "engine/formats/safetensors.h"
#include "tandem/tandem.h"
#include "tests/api/digits.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::api {
namespace {

using tandem::testing::cross_entropy;
using tandem::testing::digits_model;
using tandem::testing::TemporaryFolder;
using tandem::testing::training_digits;
using ::testing::Ne;

class SessionWeightsTest : public ::testing::Test {
 protected:
  static Session session(const std::string& kind) {
    return Session(digits_model, 8, {cross_entropy, "optimizer.kind=" + kind, "optimizer.lr=0.02"});
  }
  static Session trained() {
    Session session = SessionWeightsTest::session("schedule_free_adamw");
    for (int i = 0; i < 20; ++i) session.step(training_digits().batch(8 * i, 8));
    return session;
  }
  static double loss(Session& session) {
    return session.evaluate(training_digits().batch(200, 50)).at("loss");
  }
  /// The loss of a new session with these weights, whose optimizer trains nothing ahead.
  static double loss_of(const Tensors& parameters) {
    Session other = session("sgd");
    for (const auto& [name, value] : parameters) other.set_parameter(name, value);
    return loss(other);
  }
};

TEST_F(SessionWeightsTest, ParametersAreThoseThatPredictUses) {
  Session session = trained();
  const double used = loss(session);
  EXPECT_EQ(loss_of(session.parameters()), used);
  EXPECT_EQ(loss(session), used);  // reading them changes nothing
  const TemporaryFolder folder;
  session.save(folder / "weights.safetensors");
  const SafetensorsFile saved(folder / "weights.safetensors");
  for (const auto& [name, value] : session.parameters()) {
    const auto bytes = value.bytes();
    ASSERT_NE(saved.find(name), nullptr) << name;
    EXPECT_EQ(std::memcmp(saved.find(name)->data(), bytes.data(), bytes.size()), 0) << name;
  }
}

TEST_F(SessionWeightsTest, ParametersThatAreSetAreUsed) {
  Session session = trained();
  const Tensors before = session.parameters();
  const double used = loss(session);
  for (int i = 0; i < 5; ++i) session.step(training_digits().batch(300 + 8 * i, 8));
  EXPECT_THAT(loss(session), Ne(used));
  for (const auto& [name, value] : before) session.set_parameter(name, value);
  EXPECT_EQ(loss(session), used);
  EXPECT_EQ(session.parameters(), before);
}

TEST_F(SessionWeightsTest, ARestoredSessionUsesThemBeforeItsFirstStep) {
  const TemporaryFolder folder;
  Session session = trained();
  session.save_state(folder / "state.safetensors");
  const auto restored = [&] {
    Session other = SessionWeightsTest::session("schedule_free_adamw");
    other.restore_state(folder / "state.safetensors");
    return other;
  };
  const double used = loss(session);
  Session evaluated = restored(), read = restored(), predicted = restored(), saved = restored();
  EXPECT_EQ(loss(evaluated), used);
  EXPECT_EQ(read.parameters(), session.parameters());
  Tensors feeds = training_digits().batch(200, 8);
  feeds.erase("labels");
  EXPECT_EQ(predicted.predict(feeds), session.predict(feeds));
  session.save(folder / "one.safetensors");
  saved.save(folder / "other.safetensors");
  const SafetensorsFile one(folder / "one.safetensors"), other(folder / "other.safetensors");
  for (const NamedTensor& tensor : one.tensors()) {
    ASSERT_NE(other.find(tensor.name), nullptr) << tensor.name;
    EXPECT_EQ(
        std::memcmp(other.find(tensor.name)->data(), tensor.tensor.data(), tensor.tensor.bytes()),
        0)
        << tensor.name;
  }
  const double next = session.step(training_digits().batch(400, 8));
  for (Session* each : {&evaluated, &read, &predicted, &saved})
    EXPECT_EQ(each->step(training_digits().batch(400, 8)), next);
}

}  // namespace
}  // namespace tandem::api

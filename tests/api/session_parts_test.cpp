// Predictions and evaluations over more samples than a batch: in parts, which a stop ends, unless
// samples interact.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <set>

#include "tandem/tandem.h"
#include "tests/api/digits.h"
#include "tests/api/error_of.h"
#include "tests/api/small_model.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::api {
namespace {

using testing::cross_entropy;
using testing::digits_model;
using testing::error_of;
using ::testing::HasSubstr;
using testing::SmallModel;
using testing::training_digits;

TEST(SessionParts, ManySamplesArePredictedAsEachAlone) {
  Session session(digits_model, 8, {cross_entropy, "optimizer.kind=sgd"});
  const std::vector<float> together =
      session.predict(training_digits().image(0, 21)).at("logits").floats();
  ASSERT_EQ(together.size(), 210u);
  for (int i = 0; i < 21; ++i) {
    const std::vector<float> alone =
        session.predict(training_digits().image(i, 1)).at("logits").floats();
    for (int c = 0; c < 10; ++c) EXPECT_NEAR(alone[c], together[10 * i + c], 1e-5) << i;
  }
}

TEST(SessionParts, SamplesThatInteractStayTogether) {
  const testing::TemporaryFolder folder;
  const SmallModel centred = SmallModel()
                                 .free_input("x", {"batch", "width"})
                                 .weight("w", {4, 3}, 0.5f)
                                 .node("MatMul", "dense", {"x", "w"}, "h")
                                 .integer("zero", 0)
                                 .node("ReduceMean", "means", {"h", "zero"}, "mean")
                                 .node("Sub", "centred", {"h", "mean"}, "y")
                                 .free_output("y", {"batch", "classes"});
  std::ofstream(folder / "model.onnx", std::ios::binary) << centred.bytes();
  Session session(folder / "model.onnx", 4,
                  {"loss.terms=[{ kind = \"mse\", predictions = \"y\", targets = \"t\" }]",
                   "optimizer.kind=sgd", "model.bind={ width = 4 }"});
  std::vector<float> x(40);  // the elements of row i are i
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i / 4);
  const std::vector<float> y =
      session.predict({{"x", Tensor::copy_of({10, 4}, x)}}).at("y").floats();
  for (std::size_t i = 0; i < y.size(); ++i)
    EXPECT_NEAR(y[i], y[27 + i % 3] * (static_cast<float>(i / 3) - 4.5f) / 4.5f, 1e-5) << i;
}

TEST(SessionParts, EachPartHasRandomNumbersOfItsOwn) {
  const testing::TemporaryFolder folder;
  const SmallModel noisy = SmallModel()
                               .free_input("x", {"batch", "width"})
                               .weight("w", {4, 3}, 0.5f)
                               .node("MatMul", "dense", {"x", "w"}, "h")
                               .node("RandomNormalLike", "noise", {"h"}, "n")
                               .node("Add", "noisy", {"h", "n"}, "y")
                               .free_output("y", {"batch", "classes"});
  std::ofstream(folder / "model.onnx", std::ios::binary) << noisy.bytes();
  Session session(folder / "model.onnx", 2,
                  {"loss.terms=[{ kind = \"mse\", predictions = \"y\", targets = \"t\" }]",
                   "optimizer.kind=sgd", "model.bind={ width = 4 }", "model.random=always"});
  const Tensors zeros{{"x", Tensor::copy_of({6, 4}, std::vector<float>(24))}};
  const std::vector<float> y = session.predict(zeros).at("y").floats();
  EXPECT_EQ(std::set<float>(y.begin(), y.end()).size(), y.size());
  EXPECT_EQ(session.predict(zeros).at("y").floats(), y);
}

TEST(SessionParts, AStopEndsACallAndNotTheSession) {
  Session session(digits_model, 8, {cross_entropy, "optimizer.kind=adam"});
  const Tensors fed = training_digits().batch(0, 20), images = training_digits().image(0, 20);
  session.step(training_digits().batch(0, 8));
  const Tensors parameters = session.parameters();
  const Tensors outputs = session.predict(images);
  const std::map<std::string, double> values = session.evaluate(fed);
  const StopToken stop;
  stop.request_stop();
  for (const std::function<void()>& call :
       {std::function<void()>([&] { session.predict(images, stop); }),
        {[&] { session.evaluate(fed, stop); }}})
    EXPECT_THAT(error_of(call, ErrorKind::runtime), HasSubstr("interrupted"));
  EXPECT_EQ(session.predict(images), outputs);
  EXPECT_EQ(session.evaluate(fed), values);
  EXPECT_EQ(session.parameters(), parameters);
}

}  // namespace
}  // namespace tandem::api

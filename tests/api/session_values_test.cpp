// Labels and ids out of range that a Session is fed: reported before the step, and the session is
// as if the step had never been requested.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "engine/formats/files.h"
#include "tandem/tandem.h"
#include "tests/api/digits.h"
#include "tests/api/error_of.h"
#include "tests/api/small_model.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::api {
namespace {

using tandem::testing::error_of;
using tandem::testing::TemporaryFolder;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Feeds = Tensors;

/// logits [batch, 3] = table[ids] * scales[place], with ids [batch] and a single place, which has
/// no batch axis.
class SessionValues : public ::testing::Test {
 protected:
  void SetUp() override {
    write_file(folder_ / "model.onnx", tandem::testing::SmallModel()
                                           .free_input("ids", {"batch"}, 7)
                                           .input("place", {}, 7)
                                           .weight("table", {5, 3}, 1)
                                           .weight("scales", {4}, 1)
                                           .node("Gather", "embed", {"table", "ids"}, "rows")
                                           .node("Gather", "scale", {"scales", "place"}, "factor")
                                           .node("Mul", "mul", {"rows", "factor"}, "logits")
                                           .free_output("logits", {"batch", "classes"})
                                           .bytes());
  }
  Session open(const std::string& term) const {
    return Session(folder_ / "model.onnx", 4,
                   {"loss.terms=[{" + term + "}]", "optimizer.kind=adam", "optimizer.lr=0.1",
                    "optimizer.ema={decay=0.9}"});
  }
  static Feeds classes(std::vector<std::int64_t> ids, std::vector<std::int64_t> labels) {
    const auto count = static_cast<std::int64_t>(ids.size());
    return {{"ids", Tensor::copy_of({count}, ids)},
            {"place", Tensor::copy_of({}, std::vector<std::int64_t>{3})},
            {"labels", Tensor::copy_of({count}, labels)}};
  }
  static Feeds yes_or_no(std::vector<float> labels) {
    Feeds feeds = classes({0, 1, 2, 4}, {0, 0, 0, 0});
    feeds["labels"] = Tensor::copy_of({4, 3}, std::move(labels));
    return feeds;
  }
  /// The error for `bad`; afterwards the session must compute the same bits as one that never saw
  /// it.
  std::string refusal(const std::string& term, const Feeds& good, const Feeds& bad) {
    Session tried = open(term), twin = open(term);
    tried.step(good);
    twin.step(good);
    const std::string text = error_of([&] { tried.step(bad); }, ErrorKind::data);
    EXPECT_EQ(state_of(tried), state_of(twin)) << text;
    for (int step = 0; step < 3; ++step) EXPECT_EQ(tried.step(good), twin.step(good)) << text;
    EXPECT_EQ(state_of(tried), state_of(twin)) << text;
    return text;
  }
  /// Contains parameters, moments, averages and the number of steps.
  std::string state_of(const Session& session) const {
    session.save_state(folder_ / "state.safetensors");
    return read_file(folder_ / "state.safetensors");
  }

  TemporaryFolder folder_;
  const std::string cross_entropy_ =
      R"(kind="softmax_cross_entropy", logits="logits", labels="labels")";
  const std::string binary_ = R"(kind="binary_cross_entropy", logits="logits", labels="labels")";
};

TEST_F(SessionValues, IdsTakeNoStep) {
  const Feeds good = classes({0, 1, 2, 4}, {0, 1, 2, 0});
  EXPECT_THAT(refusal(cross_entropy_, good, classes({0, 1, 5, 4}, {0, 1, 2, 0})),
              AllOf(HasSubstr("ids: row 3: out of range: an index of embed into \"table\", which "
                              "has 5 rows: expected 0 to 4, got 5"),
                    Not(HasSubstr("data.fields")), Not(HasSubstr("out_of_range"))));
  EXPECT_THAT(refusal(cross_entropy_, good, classes({-1, 1, 2, 4}, {0, 1, 2, 0})),
              HasSubstr("ids: row 1: out of range"));
  Feeds bad = good;
  bad["place"] = Tensor::copy_of({}, std::vector<std::int64_t>{4});
  EXPECT_THAT(refusal(cross_entropy_, good, bad),
              AllOf(HasSubstr("place: out of range"), HasSubstr("expected 0 to 3, got 4")));
  // A smaller batch uses the same tables.
  EXPECT_THAT(refusal(cross_entropy_, good, classes({1, 7}, {0, 1})), HasSubstr("ids: row 2: "));
}

TEST_F(SessionValues, LabelsTakeNoStep) {
  const Feeds good = yes_or_no({0, 1, 0.5f, 1, 0, 0, 0, 1, 1, 0, 0, 0});
  EXPECT_THAT(refusal(binary_, good, yes_or_no({0, 1, 0, 1, 0, 0, 0, 7, 1, 0, 0, 0})),
              HasSubstr("labels: row 3: out of range: a label of the loss term"));
  EXPECT_THAT(refusal(binary_, good,
                      yes_or_no({0, 1, 0, std::numeric_limits<float>::quiet_NaN(), 0, 0, 0, 1, 1, 0,
                                 0, 0})),
              AllOf(HasSubstr("labels: row 2: "), HasSubstr("expected 0 to 1, got nan")));
  EXPECT_THAT(refusal(cross_entropy_, classes({0, 1, 2, 4}, {0, 1, 2, 0}),
                      classes({0, 1, 2, 4}, {0, 1, 3, 0})),
              AllOf(HasSubstr("labels: row 3: out of range: a label is not a class of \"logits\""),
                    HasSubstr("expected 0 to 2, got 3")));
}

TEST_F(SessionValues, LabelsThatAreIgnoredAreRight) {
  Session session = open(cross_entropy_ + ", ignore_index=-100");
  const double loss = session.step(classes({0, 1, 2, 4}, {0, -100, 2, -100}));
  EXPECT_GT(loss, 0);
  // Refused before the step, since its mean would be 0 / 0.
  const Feeds good = classes({0, 1, 2, 4}, {0, 1, 2, 0});
  EXPECT_THAT(refusal(cross_entropy_ + ", ignore_index=-100", good,
                      classes({0, 1, 2, 4}, {-100, -100, -100, -100})),
              HasSubstr("labels: no label of the loss term"));
}

TEST_F(SessionValues, WeightsOfSamplesAreNotNegative) {
  const auto weighted = [](std::vector<float> weights) {
    Feeds feeds = classes({0, 1, 2, 4}, {0, 1, 2, 0});
    feeds["w"] = Tensor::copy_of({4}, std::move(weights));
    return feeds;
  };
  EXPECT_THAT(refusal(cross_entropy_ + ", sample_weights=\"w\"", weighted({1, 0, 2, 1}),
                      weighted({1, 0, -1, 1})),
              HasSubstr("w: row 3: out of range: a weight of the loss term"));
}

TEST_F(SessionValues, AllThatIsWrongIsSaidTogether) {
  const Feeds good = classes({0, 1, 2, 4}, {0, 1, 2, 0});
  EXPECT_THAT(
      refusal(cross_entropy_, good, classes({9, 1, 2, 8}, {0, 1, 2, 3})),
      AllOf(HasSubstr("ids: row 1: out of range (and 1 row more)"), HasSubstr("labels: row 4: ")));
}

TEST_F(SessionValues, IdsOfPredictHaveRows) {
  Session session = open(cross_entropy_);
  const auto refused = [&](std::int64_t id) {
    return error_of(
        [&] {
          session.predict(classes({0, id, 2, 1, 0}, {0, 0, 0, 9, 0}));
        },
        ErrorKind::data);
  };
  EXPECT_THAT(refused(-1), AllOf(HasSubstr("ids: row 2: out of range"), HasSubstr("got -1")));
  EXPECT_THAT(refused(5), HasSubstr("expected 0 to 4, got 5"));
  EXPECT_EQ(session.predict(classes({0, 4, 2}, {9, 9, 9})).at("logits").shape()[0], 3);
}

}  // namespace
}  // namespace tandem::api

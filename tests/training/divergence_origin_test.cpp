// The operator in which values stop being finite, wherever else that shows: the first one of the
// graph whose result is not finite although its operands are.
#include "engine/graph/builder.h"
#include "engine/graph/error.h"
#include "engine/train/checkpoints/checkpoint.h"
#include "tests/training/training_run.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::infinity;
using ::testing::Not;

constexpr const char* rate_advice = "lower optimizer.lr";

/// logits = f(x w + bias) v in the scopes "first", "body" and "head"; x is 0 and w 0.5.
class OriginTest : public testing::TrainingRun {
 protected:
  using Body = std::function<ValueId(GraphBuilder& g, ValueId h)>;

  static ValueId weight(GraphBuilder& g, const char* name, const Shape& shape, float value,
                        bool trains = true) {
    State state;
    state.name = state.path = name;
    state.trainable = trains;
    state.kind = trains ? StateKind::parameter : StateKind::buffer;
    state.start = HostTensor(TensorType{DType::float32, shape});
    for (float& each : state.start.as<float>()) each = value;
    return g.state(std::move(state));
  }

  RunParts parts_with(const Body& f, double bias, float w = 0.5f) {
    RunParts parts = engine_.parts();
    testing::own_model(parts).make_graph = [this, f, bias, w](const ForwardKey& key) {
      const std::int64_t batch = key.samples;
      GraphBuilder g(engine_.operators);
      const ValueId x = g.input("x", {DType::float32, {batch, 6}});
      const ValueId first = weight(g, "w", {6, 4}, w), last = weight(g, "v", {4, 3}, 0.5f);
      g.set_scope({"first", Phase::forward, {}});
      const ValueId h = g.add(g.matmul(x, first), g.scalar(bias, DType::float32));
      g.set_scope({"body", Phase::forward, {}});
      const ValueId y = f(g, h);
      g.set_scope({"head", Phase::forward, {}});
      g.output("logits", g.matmul(y, last));
      return g.finish();
    };
    return parts;
  }

  std::string text_of(const RunParts& parts, const std::vector<std::string>& keys = {},
                      float x = 0) {
    HostTensor values(TensorType{DType::float32, {22, 6}});
    for (float& each : values.as<float>()) each = x;
    train_ =
        make_array_source({{"x", values}, {"labels", HostTensor(TensorType{DType::int64, {22}})}});
    Training training(testing::small_config(folder_.path(), keys), parts, {train_, nullptr}, {});
    return testing::error_text([&] { training.run("", {}); });
  }
  std::string text(const Body& f, double bias, const std::vector<std::string>& keys = {}) {
    return text_of(parts_with(f, bias), keys);
  }
  static Body operation(const std::string& op) {
    return [op](GraphBuilder& g, ValueId h) { return g.add_node(op, {h}); };
  }
};

TEST_F(OriginTest, AnInfinityCountsWhereverItBecomesNaN) {
  const auto of_first_step = [](const std::string& where) {
    return AllOf(HasSubstr("the loss is not finite at step 1"), HasSubstr(where),
                 HasSubstr("no learning rate was used yet"), Not(HasSubstr(rate_advice)));
  };
  EXPECT_THAT(text(operation("Log"), 0),
              of_first_step("body: inf begins here, in Log: its operand is 0 or below"));
  EXPECT_THAT(text(operation("Log"), -1),
              of_first_step("body: nan begins here, in Log: its operand is 0 or below"));
  EXPECT_THAT(text(operation("Exp"), 200), of_first_step("body: inf begins here, in Exp"));
  EXPECT_THAT(text([](GraphBuilder& g, ValueId h) { return g.div(h, g.sub(h, h)); }, 1),
              of_first_step("body: inf begins here, in Div: its divisor is 0"));
  EXPECT_THAT(text([](GraphBuilder& g, ValueId h) { return g.div(h, h); }, 0),
              of_first_step("body: nan begins here, in Div: its divisor is 0"));
  EXPECT_THAT(text([](GraphBuilder& g, ValueId h) { return g.mul(h, h); }, 1e30),
              of_first_step("body: inf begins here, in Mul: its result overflows"));
  EXPECT_THAT(text([](GraphBuilder& g, ValueId h) { return g.add(h, h); }, 3e38),
              of_first_step("body: inf begins here, in Add: its result overflows"));
}

TEST_F(OriginTest, TheFirstOfSeveralIsNamed) {
  // inf - inf = nan, and another infinity after the first one.
  const std::string said = text(
      [](GraphBuilder& g, ValueId h) {
        g.set_scope({"early", Phase::forward, {}});
        const ValueId large = g.add_node("Exp", {h});
        g.set_scope({"late", Phase::forward, {}});
        return g.sub(large, g.add_node("Exp", {g.add(h, h)}));
      },
      200);
  EXPECT_THAT(said, HasSubstr("early: inf begins here, in Exp"));
}

// Forward is finite: exp overflows, 1 / (1 + inf) is 0, and its gradient 0 times inf.
TEST_F(OriginTest, AnInfinityThatForwardLosesIsFoundFromTheGradient) {
  const std::string said = text(
      [](GraphBuilder& g, ValueId h) {
        const ValueId one = g.scalar(1, DType::float32);
        return g.div(one, g.add(g.add_node("Exp", {h}), one));
      },
      200);
  EXPECT_THAT(said, AllOf(HasSubstr("a parameter or running statistic is not finite at step 1"),
                          HasSubstr("body: inf begins here, in Exp"), Not(HasSubstr(rate_advice))));
}

// log(h) is left out where h is 0, and its gradient there is 0 / 0.
TEST_F(OriginTest, NaNThatBeginsInAGradient) {
  const std::string said = text(
      [](GraphBuilder& g, ValueId h) {
        const ValueId zero = g.scalar(0, DType::float32);
        return g.add_node("Where", {g.add_node("Greater", {h, zero}), g.add_node("Sqrt", {h}), h});
      },
      0);
  EXPECT_THAT(said,
              AllOf(HasSubstr("a parameter or running statistic is not finite at step 1"),
                    HasSubstr("body: nan begins here, in the gradient of Sqrt: its operand is "
                              "0, where its slope is infinite")));
}

TEST_F(OriginTest, AWeightThatIsInfiniteAlready) {
  EXPECT_THAT(
      text_of(parts_with(operation("Relu"), 1, infinity)),
      AllOf(HasSubstr("the loss is not finite at step 1"),
            HasSubstr("w: inf begins here, in this parameter, which had it before the step"),
            HasSubstr("parameters.init gives new values"), Not(HasSubstr(rate_advice))));
}

// Masks are intended: NaN begins where a whole row is masked, and with a finite loss none is
// reported.
TEST_F(OriginTest, InfinitiesOfMasksAreMeant) {
  const auto masked = [](float mask) {
    return [mask](GraphBuilder& g, ValueId h) {
      const ValueId buffer = weight(g, "mask", {4}, mask, /*trains=*/false);
      return g.add_node("Softmax", {g.add(h, buffer)}, {{"axis", std::int64_t{1}}});
    };
  };
  EXPECT_EQ(text(masked(0), 1), "no error");
  EXPECT_THAT(text(masked(-infinity), 1),
              HasSubstr("body: nan begins here, in Softmax: a whole row of it is masked by -inf"));
  const std::string said =
      text([](GraphBuilder& g,
              ValueId h) { return g.mul(h, weight(g, "mask", {4}, infinity, /*trains=*/false)); },
           0);
  EXPECT_THAT(said, HasSubstr("body: nan begins here, in Mul: it reads what is not finite in the "
                              "buffer mask"));
}

TEST_F(OriginTest, WhatThawsIsLookedAtOnceItTrains) {
  // The slope of sqrt at 0 counts from step 3 on.
  const std::string said =
      text(operation("Sqrt"), 0, {"steps=6", "parameters.freeze=[{at='w', until='2 steps'}]"});
  EXPECT_THAT(said, AllOf(HasSubstr("at step 3"), HasSubstr("in the gradient of Sqrt")));
}

// States are checked only in logged steps, of which the first step is one: v trains from the
// second.
TEST_F(OriginTest, AWeightThatTheUpdateBeforeHasMadeInfinite) {
  const std::string said = text_of(
      parts_with(operation("Relu"), 1),
      {"optimizer.lr=1e38", "steps=6", "log.every='100 steps'",
       "optimizer.groups=[{at='w', lr=0.0}]", "parameters.freeze=[{at='v', until='1 step'}]"},
      1e3f);
  EXPECT_THAT(said,
              AllOf(HasSubstr("the loss is not finite at step 3"),
                    HasSubstr("v: inf begins here, in this parameter"), HasSubstr(rate_advice)));
}

// A resumed run returns to the checkpoint from which it was resumed.
TEST_F(OriginTest, OfAResumedRun) {
  const std::string run_dir = folder_ / "run";
  const std::vector<std::string> keys{"run_dir=\"" + run_dir + "\"", "steps=9"};
  const RunParts good = parts_with(operation("Relu"), 1);
  HostTensor x(TensorType{DType::float32, {22, 6}});
  for (float& each : x.as<float>()) each = 1;
  const std::shared_ptr<const DataSource> source =
      make_array_source({{"x", x}, {"labels", HostTensor(TensorType{DType::int64, {22}})}});
  const auto run_with = [&](const std::vector<std::string>& more, const std::string& resume) {
    std::vector<std::string> all = keys;
    all.insert(all.end(), more.begin(), more.end());
    Training training(testing::small_config(folder_.path(), all), good, {source, nullptr}, {});
    training.run(resume, {});
  };
  run_with({"steps=3"}, "");
  EXPECT_THAT(testing::error_text([&] { run_with({"optimizer.lr=1e30"}, run_dir); }),
              AllOf(HasSubstr("not finite at step"), HasSubstr(" begins here, in "),
                    HasSubstr(rate_advice)));
}

}  // namespace
}  // namespace tandem

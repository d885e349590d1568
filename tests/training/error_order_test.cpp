// With an accelerator the next step already runs while one is checked; if both have mistakes, the
// first one is named.

#include "engine/graph/builder.h"
#include "engine/graph/error.h"
#include "engine/train/checkpoints/checkpoint.h"
#include "tests/engine/runtime/machine.h"
#include "tests/training/training_run.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::infinity;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr const char* bad_index = "an index is out of range at step 5";

/// logits = scale * table[2 ids] + sqrt(x w) + big v. Where x is 0, the gradient of w is 0 / 0;
/// where big is 1e25, that of v has a square beyond float32; v itself begins at 0.
Graph network_with_mistakes(const OperatorSet& operators, std::int64_t batch) {
  GraphBuilder g(operators);
  const auto input = [&](const char* name, std::int64_t columns) {
    return g.input(name, {DType::float32, {batch, columns}});
  };
  const auto parameter = [&](const char* name, const Shape& shape, float value) {
    State state;
    state.name = state.path = name;
    state.trainable = true;
    state.start = HostTensor(TensorType{DType::float32, shape});
    for (float& x : state.start.as<float>()) x = value;
    return g.state(std::move(state));
  };
  const ValueId ids = input("ids", 1), scale = input("scale", 1), x = input("x", 3),
                big = input("big", 1);
  g.set_scope({"lookup", Phase::forward, {}});
  const ValueId numbers = g.reshape(g.cast(g.add(ids, ids), DType::int64), {batch});
  const ValueId rows = g.add_node("Gather", {parameter("table", {4, 3}, 0.5f), numbers});
  g.set_scope({"sum", Phase::forward, {}});
  const ValueId root = g.add_node("Sqrt", {g.mul(x, parameter("w", {3}, 1))});
  const ValueId rest = g.mul(big, parameter("v", {3}, 0));
  g.output("logits", g.add(g.add(g.mul(rows, scale), root), rest));
  return g.finish();
}

class ErrorOrder : public testing::TrainingRun {
 protected:
  /// 8 steps of 8 samples. The second sample of step 4 has this value in `field`; if `next_is_bad`,
  /// an index of step 5 is out of range.
  std::string error_of(const char* field, float value, bool next_is_bad,
                       const std::vector<std::string>& more) {
    constexpr std::int64_t samples = 64, in_step_4 = 25, in_step_5 = 35;
    std::map<std::string, HostTensor> data;
    for (const char* name : {"ids", "scale", "x", "big"}) {
      const std::int64_t columns = std::string(name) == "x" ? 3 : 1;
      const bool is_one = std::string(name) != "ids";
      data[name] = HostTensor(TensorType{DType::float32, {samples, columns}});
      for (float& number : data[name].as<float>()) number = is_one ? 1 : 0;
      if (name != std::string(field)) continue;
      for (std::int64_t c = 0; c < columns; ++c)
        data[name].as<float>()[in_step_4 * columns + c] = value;
    }
    if (next_is_bad) data["ids"].as<float>()[in_step_5] = 20;
    data["labels"] = HostTensor(TensorType{DType::int64, {samples}});
    train_ = make_array_source({{"ids", data["ids"]},
                                {"scale", data["scale"]},
                                {"x", data["x"]},
                                {"big", data["big"]},
                                {"labels", data["labels"]}});
    RunParts parts = engine_.parts();
    parts.devices = machine_.devices;
    testing::own_model(parts).make_placement = [](const Graph& graph) {
      Placement placement;
      placement.devices = {"cpu", "emulated:0"};
      placement.nodes.assign(graph.nodes.size(), {1, "test"});
      placement.states.assign(graph.states.size(), {1, 1, "test"});
      return placement;
    };
    testing::own_model(parts).make_graph = [this](const ForwardKey& key) {
      const std::int64_t batch = key.samples;
      return network_with_mistakes(engine_.operators, batch);
    };
    run_dir_ = folder_ / ("run" + std::to_string(++runs_));
    std::vector<std::string> keys{"steps=8", "log.every=\"100 steps\"",
                                  "run_dir=\"" + run_dir_ + "\""};
    keys.insert(keys.end(), more.begin(), more.end());
    RunConfig config = testing::small_config(folder_.path(), keys);
    config.data->shuffle.kind = ShuffleConfig::Kind::none;
    return testing::error_text([&] {
      Training training(config, parts, {train_, nullptr}, {});
      training.run("", {});
    });
  }
  std::vector<std::string> kept() const { return list_checkpoints(run_dir_ + "/checkpoints"); }

  testing::Machine machine_{1};
  std::string run_dir_;
  int runs_ = 0;
};

// The loss scale skips step 4, so the states are valid; after a next step that failed that is not
// known.
TEST_F(ErrorOrder, ABadLossComesBeforeTheNextStep) {
  for (const bool next_is_bad : {false, true}) {
    SCOPED_TRACE(next_is_bad);
    EXPECT_THAT(error_of("scale", infinity, next_is_bad, {"precision.compute=float16"}),
                AllOf(HasSubstr("the loss is not finite at step 4"),
                      HasSubstr("memory:26: data.fields.scale: an infinity in the data"),
                      Not(HasSubstr("out of range"))));
    EXPECT_THAT(kept(), SizeIs(next_is_bad ? 0 : 1));
  }
}

TEST_F(ErrorOrder, BadStatesComeBeforeTheNextStep) {
  for (const bool next_is_bad : {false, true}) {
    SCOPED_TRACE(next_is_bad);
    EXPECT_THAT(error_of("x", 0, next_is_bad, {"optimizer.clip_norm=1"}),
                AllOf(HasSubstr("w: a parameter or running statistic is not finite at step"),
                      Not(HasSubstr("out of range"))));
    EXPECT_THAT(kept(), IsEmpty());
  }
}

TEST_F(ErrorOrder, WhereTheStatesAreGoodTheNextStepIsNamed) {
  EXPECT_EQ(error_of("big", 1e25f, false, {"optimizer.clip_norm=1"}), "no error");
  EXPECT_THAT(error_of("big", 1e25f, true, {"optimizer.clip_norm=1"}),
              AllOf(HasSubstr("lookup"), HasSubstr(bad_index)));
}

}  // namespace
}  // namespace tandem

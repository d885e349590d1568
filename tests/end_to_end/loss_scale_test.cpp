// Training in float16 on an accelerator: steps that overflow are skipped without a trace, and the
// losses then equal those of float32; the scale lives where the gradients are; tables of rows.
#include "engine/train/graph/loss_scale.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <random>

#include "tests/end_to_end/parity_support.h"
#include "tests/end_to_end/placed_training.h"
#include "tests/harness/folders.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::testing {
namespace {

using Feeds = PlacedTraining::Feeds;

const std::string float16_setting = "precision.compute=float16";

HostTensor rows_between(const HostTensor& all, std::int64_t begin, std::int64_t count) {
  Shape shape = all.shape();
  shape[0] = count;
  HostTensor rows(TensorType{all.dtype(), shape});
  const std::size_t bytes = rows.bytes() / static_cast<std::size_t>(count);
  std::memcpy(rows.data(), static_cast<const std::byte*>(all.data()) + begin * bytes, rows.bytes());
  return rows;
}

bool same_states(const std::map<std::string, HostTensor>& before, const StateStore& now) {
  for (const auto& [name, value] : before) {
    const HostTensor other = now.read(name);
    if (std::memcmp(value.data(), other.data(), value.bytes()) != 0) return false;
  }
  return true;
}

std::map<std::string, HostTensor> states_without_loss_scale(const StateStore& states) {
  std::map<std::string, HostTensor> all;
  for (const std::string& name : states.names()) {
    const bool in_step = name.ends_with("/gradient_sum") || name.ends_with("/touched_rows");
    if (!in_step && !is_loss_scale_state(name)) all.emplace(name, states.read(name));
  }
  return all;
}

std::int64_t skipped(const StateStore& states) {
  return states.read(skipped_steps_state).as<std::int64_t>()[0];
}

class LossScalePlacement : public ::testing::Test {
 protected:
  /// Writes a policy with everything on the accelerator, then these rules.
  std::string policy(const std::string& rules) {
    const std::string path = folder_ / ("policy" + std::to_string(++policies_) + ".toml");
    std::ofstream(path) << "policy = 1\ndevices = { gpu = { use = \"emulated:0\", memory = "
                           "\"256MiB\" } }\nrules = [\n  { at = \"**\", on = \"gpu\" },\n"
                        << rules << "]\n";
    return "policy=" + Json(path).dump();
  }

  PlacedTraining mlp(std::vector<std::string> more) {
    const Json fixture = read_fixture("mlp");
    std::vector<std::string> settings{
        "loss.terms=[{name=\"loss\", kind=\"softmax_cross_entropy\", logits=" +
            fixture["loss"]["logits"].dump() + ", labels=" + fixture["loss"]["labels"].dump() +
            ", weight=300.0}]",
        "optimizer.kind=adam", "optimizer.lr=0.002"};
    settings.insert(settings.end(), more.begin(), more.end());
    return PlacedTraining(
        parity_folder() + fixture["files"]["logits"]["torchscript"].get<std::string>(), batch(),
        settings, feeds(0));
  }
  std::int64_t batch() const { return mlp_["batch"]; }
  Feeds feeds(int step) const {
    Feeds feeds;
    for (const auto& [name, all] : all_) feeds[name] = rows_between(all, step * batch(), batch());
    return feeds;
  }

  TemporaryFolder folder_;
  int policies_ = 0;
  const Json mlp_ = read_fixture("mlp");
  const std::map<std::string, HostTensor> all_ = read_feeds(mlp_);
};

TEST_F(LossScalePlacement, OverflowsLeaveNoTrace) {
  constexpr int steps = 16;
  const std::string all = policy("");
  const std::string host_states = policy("  { at = \"**:*\", state = \"cpu\" },\n");
  for (const std::vector<std::string>& keys :
       std::vector<std::vector<std::string>>{{all},
                                             {host_states},
                                             {all, "optimizer.clip_norm=20.0"},
                                             {all, "micro_batch=" + std::to_string(batch() / 2)}}) {
    SCOPED_TRACE(keys.back());
    std::vector<std::string> scaled = keys;
    scaled.push_back(float16_setting);
    PlacedTraining run = mlp(scaled), wide = mlp(keys);
    int taken = 0;
    for (int step = 0; step < steps; ++step) {
      run.synchronize();
      const auto before = states_without_loss_scale(run.states());
      const std::int64_t skipped_before = skipped(run.states());
      const double loss = run.step(feeds(step));
      run.synchronize();
      const bool skips = skipped(run.states()) > skipped_before;
      EXPECT_TRUE(std::isfinite(loss));
      EXPECT_EQ(same_states(before, run.states()), skips) << "step " << step + 1;
      if (skips) continue;
      // As in float32 training on the batches of the steps that were not skipped.
      const double expected = wide.step(feeds(step));
      EXPECT_NEAR(loss, expected, 4e-3 * expected) << "step " << step + 1;
      ++taken;
    }
    EXPECT_GT(taken, 4);
    EXPECT_LT(taken, steps) << "65536 did not overflow";
    EXPECT_EQ(skipped(run.states()), steps - taken);
    EXPECT_EQ(run.states().read(loss_scale_state).number(0), std::ldexp(65536, taken - steps));
  }
}

// No number of the scale's arithmetic is copied to the host within a step, in any micro-batch.
TEST_F(LossScalePlacement, TheScaleLivesWhereTheLossIs) {
  for (const std::string& keys :
       {std::string("steps=1"), "micro_batch=" + std::to_string(batch() / 2)}) {
    PlacedTraining run = mlp({policy(""), float16_setting, keys});
    run.step(feeds(0));
    run.synchronize();
    int scales = 0;
    for (const Program* program : run.programs()) {
      const Lowered& lowered = program->lowered();
      for (std::size_t n = 0; n < lowered.graph.nodes.size(); ++n) {
        const Node& node = lowered.graph.nodes[n];
        const int device = lowered.nodes[n].device;
        if (node.op->name == "LossScale") {
          ++scales;
          EXPECT_EQ(device, 1);
        }
        // Inputs may be converted to 16 bits on the host before they are copied.
        const bool moves = node.op->name == "Transfer" || node.phase == Phase::forward;
        EXPECT_TRUE(device == 1 || moves) << node.op->name << " at " << node.path;
      }
    }
    EXPECT_EQ(scales, 1);
  }
}

// Embeddings on the host by rows, the other layers in float16 on the accelerator.
TEST_F(LossScalePlacement, TablesOfRows) {
  constexpr std::int64_t batch = 48, fields = 39, rows = 5000;
  const auto feeds_of = [](int step) {
    std::mt19937 random(static_cast<unsigned>(step) + 7);
    std::vector<std::int64_t> ids(batch * fields);
    for (std::int64_t& id : ids) id = static_cast<std::int64_t>(random() % rows);
    std::vector<float> labels(batch);
    for (float& label : labels) label = random() % 3 == 0 ? 1.0f : 0.0f;
    return Feeds{{"ids", HostTensor::from<std::int64_t>({batch, fields}, ids)},
                 {"label", HostTensor::from<float>({batch}, labels)}};
  };
  const auto training = [&](std::vector<std::string> more, bool rows_ahead) {
    std::vector<std::string> settings{
        "loss.terms=[{name=\"loss\", kind=\"binary_cross_entropy\", logits=\"logits\", "
        "labels=\"label\", weight=1000.0}]",
        "optimizer.kind=adam", "optimizer.lr=3e-3",
        "optimizer.groups=[{at=\"wide:*\", kind=\"ftrl\", lr=0.05, initial_accumulator=1.0}, "
        "{at=\"deep:*\", kind=\"lazy_adam\"}]"};
    settings.insert(settings.end(), more.begin(), more.end());
    PlacedOptions options;
    options.rows_ahead = rows_ahead;
    return PlacedTraining(source_folder() + "/models/wide_deep/model.onnx", batch, settings,
                          feeds_of(1), options);
  };
  const std::string tables = "  { at = \"{wide,deep}.**\", on = \"cpu\", ship = ";
  for (const std::string& rules :
       {std::string(), tables + "\"rows\" },\n", tables + "\"results\" },\n",
        tables + "\"rows\", lookahead = 1 },\n"}) {
    SCOPED_TRACE(rules);
    const std::string placed = policy(rules);
    const bool ahead = rules.find("lookahead") != std::string::npos;
    PlacedTraining run = training({placed, float16_setting}, ahead),
                   wide = training({placed}, false);
    int taken = 0;
    for (int step = 1; step <= 14; ++step) {
      const auto before = states_without_loss_scale(run.states());
      const std::int64_t skipped_before = skipped(run.states());
      const Feeds next = feeds_of(step + 1);
      const double loss = run.step(feeds_of(step), ahead ? &next : nullptr);
      run.synchronize();
      const bool skips = skipped(run.states()) > skipped_before;
      EXPECT_EQ(same_states(before, run.states()), skips) << "step " << step;
      if (skips) continue;
      const double expected = wide.step(feeds_of(step));
      EXPECT_NEAR(loss, expected, 0.01 * expected) << "step " << step;
      ++taken;
    }
    EXPECT_GT(taken, 2);
    EXPECT_LT(taken, 14) << "65536 did not overflow";
  }
}

}  // namespace
}  // namespace tandem::testing

// Tables next to layers of 16 bits: updates of rows write no 16-bit weight, so no program of the
// run may read one. This includes programs without an update: the first micro-batches of a step,
// evaluations and predictions.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "tests/end_to_end/dlrm_model.h"
#include "tests/end_to_end/parity_support.h"
#include "tests/end_to_end/placed_training.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::testing {
namespace {

constexpr int half_table_steps = 4;
const std::vector<std::string> kinds{"ftrl", "lazy_adam", "rowwise_adagrad", "group_ftrl", "adam"};

std::string half_tables_policy(const TemporaryFolder& folder) {
  std::ofstream(folder / "policy.toml")
      << "policy = 1\ndevices = { gpu = { use = \"emulated:0\" } }\n"
         "rules = [ { at = \"**\", on = \"gpu\" } ]\n";
  return "policy=" + folder / "policy.toml";
}

std::vector<double> losses_of_settings(const std::vector<std::string>& settings) {
  PlacedTraining training(dlrm_model, dlrm_batch, settings, dlrm_feeds(1));
  std::vector<double> all;
  for (int step = 1; step <= half_table_steps; ++step)
    all.push_back(training.step(dlrm_feeds(step)));
  training.synchronize();
  return all;
}

TEST(HalfTables, PassesOfAStepReadWhatTheStepBeforeWrote) {
  const TemporaryFolder folder;
  const std::string policy = half_tables_policy(folder);
  for (const std::string& kind : kinds) {
    SCOPED_TRACE(kind);
    const std::vector<std::string> fast{"optimizer.lr=0.1", "micro_batch=12"};
    std::vector<std::string> half = fast;
    half.insert(half.end(), {policy, "precision.compute=bfloat16"});
    const std::vector<double> expected = losses_of_settings(dlrm_settings(kind, fast)),
                              got = losses_of_settings(dlrm_settings(kind, half));
    for (int i = 0; i < half_table_steps; ++i)
      EXPECT_NEAR(got[i], expected[i], 0.02 * expected[i]) << i + 1;
  }
}

api::Tensors fed(int step, bool labels) {
  api::Tensors arrays;
  for (const auto& [name, tensor] : dlrm_feeds(step)) {
    if (labels || name != "label") arrays[name] = array_of(tensor, 0, dlrm_batch);
  }
  return arrays;
}

// The first prediction makes its program and that program's inputs; the second is after training.
TEST(HalfTables, PredictionsReadWhatTrainingWrote) {
  const TemporaryFolder folder;
  const std::string policy = half_tables_policy(folder);
  for (const std::string& kind : kinds) {
    SCOPED_TRACE(kind);
    const std::vector<std::string> settings =
        dlrm_settings(kind, {"optimizer.lr=0.1", policy, "precision.compute=bfloat16"});
    api::Session trained(dlrm_model, dlrm_batch, settings);
    const auto before = trained.predict(fed(0, false));
    for (int step = 1; step <= half_table_steps; ++step) trained.step(fed(step, true));
    const auto after = trained.predict(fed(0, false));
    api::Session fresh(dlrm_model, dlrm_batch, settings);
    for (const auto& [name, value] : trained.parameters()) fresh.set_parameter(name, value);
    EXPECT_NE(after.at("logits"), before.at("logits"));
    EXPECT_EQ(after.at("logits"), fresh.predict(fed(0, false)).at("logits"));
  }
}

}  // namespace
}  // namespace tandem::testing

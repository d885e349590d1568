// Wide & Deep where a third of the ids names no row: sums of rows and rows, ftrl and lazy_adam.
// Losses are the same wherever the tables are and however a step is split.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <random>

#include "engine/operators/tables/rows.h"
#include "tests/end_to_end/near_losses.h"
#include "tests/end_to_end/placed_training.h"
#include "tests/harness/folders.h"

namespace tandem::testing {
namespace {

constexpr std::int64_t absent_ids_batch = 32, absent_ids_fields = 39, absent_ids_rows = 5000,
                       absent_ids_steps = 5;

PlacedTraining::Feeds feeds_with_absent_ids(int step) {
  std::mt19937 random(static_cast<unsigned>(step) + 11);
  std::uniform_real_distribution<double> uniform(0, 1);
  std::vector<std::int64_t> ids(absent_ids_batch * absent_ids_fields);
  for (std::int64_t& id : ids) {
    id =
        static_cast<std::int64_t>(std::pow(static_cast<double>(absent_ids_rows), uniform(random))) -
        1;
    if (uniform(random) < 0.3) id = absent_id<std::int64_t>;
  }
  std::vector<float> labels(absent_ids_batch);
  for (float& label : labels) label = uniform(random) < 0.3 ? 1.0f : 0.0f;
  return {{"ids", HostTensor::from<std::int64_t>({absent_ids_batch, absent_ids_fields}, ids)},
          {"label", HostTensor::from<float>({absent_ids_batch}, labels)}};
}

std::vector<double> losses_of(const std::vector<std::string>& more,
                              const std::vector<std::string>& without = {}) {
  std::vector<std::string> settings{
      "loss.terms=[{name=\"wide_loss\", kind=\"binary_cross_entropy\", logits=\"logits\", "
      "labels=\"label\"}, {name=\"l2\", kind=\"sum_of_squares\", of=\"deep_rows\", weight=4e-2, "
      "reduction=\"sum\"}]",
      "optimizer.kind=adam",
      "optimizer.lr=3e-3",
      "optimizer.clip_norm=0.5",
      "optimizer.groups=[{at=\"wide:*\", kind=\"ftrl\", lr=0.05, l1=1e-8, l2=1e-8, "
      "initial_accumulator=1.0}, {at=\"deep:*\", kind=\"lazy_adam\"}]",
      "data={kind=\"npz\", train={files=[\"none.npz\"]}, fields={ids=\"ids\", label=\"label\"}}"};
  settings.insert(settings.end(), more.begin(), more.end());
  PlacedTraining training(source_folder() + "/models/wide_deep/model.onnx", absent_ids_batch,
                          settings, feeds_with_absent_ids(1), {.without = without});
  std::vector<double> losses;
  for (int step = 1; step <= absent_ids_steps; ++step)
    losses.push_back(training.step(feeds_with_absent_ids(step)));
  training.synchronize();
  return losses;
}

TEST(AbsentIds, LossesDoNotDependOnPlacementAndPasses) {
  const std::vector<double> expected = losses_of({});
  EXPECT_NE(expected.back(), expected.front());
  expect_near_losses(losses_of({}, {"recognise_embedding_bag"}), expected, 1e-6);
  expect_near_losses(losses_of({"micro_batch=16"}), expected, 1e-5);
  const std::string head = "policy = 1\ndevices = { gpu = { use = \"emulated:0\" } }\nrules = [\n";
  int number = 0;
  for (const char* rule :
       {"", "{ at = \"{wide,deep}.**\", on = \"cpu\", ship = \"rows\" },",
        "{ at = \"{wide,deep}.**\", on = \"cpu\", ship = \"results\" },",
        "{ at = \"deep.**\", on = \"cpu\" },", "{ at = \"{wide,deep}.**\", state = \"cpu\" },"}) {
    SCOPED_TRACE(rule);
    const std::string path =
        ::testing::TempDir() + "absent_ids_" + std::to_string(number++) + ".toml";
    std::ofstream(path) << head << "  { at = \"**\", on = \"gpu\" },\n  " << rule << "\n]\n";
    expect_near_losses(losses_of({"policy=" + path}), expected, 1e-5);
    expect_near_losses(losses_of({"policy=" + path, "micro_batch=16"}), expected, 1e-5);
  }
}

}  // namespace
}  // namespace tandem::testing

// DLRM splits its tables' ids in the graph: if that runs on the accelerator, the ids are computed
// there, and tables and updates on the host get them late.
#include <gtest/gtest.h>

#include <fstream>

#include "engine/formats/arrays/npy.h"
#include "include/tandem/error.h"
#include "tests/end_to_end/dlrm_model.h"
#include "tests/end_to_end/near_losses.h"
#include "tests/end_to_end/parity_support.h"
#include "tests/end_to_end/placed_training.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::testing {
namespace {

constexpr int computed_ids_steps = 4;

std::string computed_ids_policy(const TemporaryFolder& folder, const std::string& rule) {
  std::ofstream(folder / "policy.toml")
      << "policy = 1\ndevices = { gpu = { use = \"emulated:0\" } }\nrules = [\n"
         "  { at = \"**\", on = \"gpu\" },\n  { "
      << rule << " },\n]\n";
  return "policy=" + folder / "policy.toml";
}

std::vector<double> losses_of_rule(const std::string& kind, const std::string& rule,
                                   const std::vector<std::string>& more = {}) {
  const TemporaryFolder folder;
  std::vector<std::string> settings = dlrm_settings(kind, more);
  if (!rule.empty()) settings.push_back(computed_ids_policy(folder, rule));
  PlacedTraining training(dlrm_model, dlrm_batch, settings, dlrm_feeds(1), {.rows_ahead = true});
  std::vector<double> all;
  for (int step = 1; step <= computed_ids_steps; ++step) {
    const PlacedTraining::Feeds next = dlrm_feeds(step + 1);
    all.push_back(training.step(dlrm_feeds(step), &next));
  }
  training.synchronize();
  EXPECT_TRUE(training.monitor().order_errors().empty());
  return all;
}

// `tables.*` covers the lookups, but the first rule covers only the tables: their lookups stay
// where the ids are.
TEST(ComputedIds, TablesOnTheHostTakeTheirGradientsAsRows) {
  for (const std::string kind : {"ftrl", "lazy_adam", "rowwise_adagrad", "adam"}) {
    const std::vector<double> expected = losses_of_rule(kind, "");
    for (const std::string tables : {"tables.*:weight", "tables.**"}) {
      for (const std::string ship : {"rows", "results", "auto"}) {
        SCOPED_TRACE(kind + " " + tables + " " + ship);
        expect_near_losses(losses_of_rule(kind, "at = \"" + tables + "\", on = \"cpu\", ship = \"" +
                                                    ship + "\", lookahead = 1"),
                           expected);
      }
    }
  }
}

TEST(ComputedIds, TheNormHasTheGradientsOfRows) {
  const std::vector<std::string> clipped{"optimizer.clip_norm=0.05"};
  expect_near_losses(
      losses_of_rule("ftrl", "at = \"tables.*:weight\", on = \"cpu\", ship = \"rows\"", clipped),
      losses_of_rule("ftrl", "", clipped));
}

// A Session checks the columns that look up rows before the step, however rows are copied.
TEST(ComputedIds, OnesOfNoRowAreErrors) {
  api::Tensors fed;
  for (auto& [name, tensor] : dlrm_feeds(1)) {
    if (name == "categories") tensor.as<std::int64_t>()[30] = 100;
    fed[name] = array_of(tensor, 0, dlrm_batch);
  }
  for (const std::string attributes :
       {"ship = \"results\"", "ship = \"rows\"", "ship = \"rows\", lookahead = 1"}) {
    SCOPED_TRACE(attributes);
    const TemporaryFolder folder;
    const std::string rule = "at = \"tables.**\", on = \"cpu\", " + attributes;
    api::Session session(dlrm_model, dlrm_batch,
                         dlrm_settings("lazy_adam", {computed_ids_policy(folder, rule)}));
    try {
      session.step(fed);
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::data);
      EXPECT_NE(std::string(error.what()).find("out of range: an index of"), std::string::npos);
    }
  }
}

TEST(ComputedIds, OnesOfNoRowInHeldOutDataAreErrors) {
  const TemporaryFolder folder;
  for (const std::string part : {"train", "eval"}) {
    std::vector<NamedTensor> arrays;
    for (auto& [name, tensor] : dlrm_feeds(1)) {
      if (part == "eval" && name == "categories") tensor.as<std::int64_t>()[30] = 100;
      arrays.push_back({name, tensor});
    }
    write_npz(folder / (part + ".npz"), arrays);
  }
  std::vector<std::string> settings = dlrm_settings("lazy_adam");
  settings.insert(settings.end(), {"data.kind=npz", "data.train.files=[\"train.npz\"]",
                                   "data.eval.files=[\"eval.npz\"]", "run_dir=run"});
  std::ofstream(folder / "train.toml")
      << "model = \"" << dlrm_model << "\"\nbatch_size = 16\nsteps = 2\n";
  try {
    api::Trainer(folder / "train.toml", {.overrides = settings}).run();
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::data);
    EXPECT_NE(std::string(error.what()).find("eval.npz:2: data.fields.categories: out of range"),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace tandem::testing

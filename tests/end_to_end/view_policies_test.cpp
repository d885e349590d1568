// Weights and activations that pass through operators that only move numbers, under random
// policies: every plan can be made and gives the results of the cpu.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "include/tandem/error.h"
#include "tests/end_to_end/policy_cases.h"
#include "tests/end_to_end/view_graphs.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem {
namespace {

using namespace testing;

constexpr std::int64_t view_batch = 5;
constexpr int view_steps = 3;

/// Rules as people write them, after those of `random_policy`: an operator here, its state there.
std::string view_policy(const Names& names, std::uint64_t seed) {
  if (seed % 3 == 0) return random_policy(names, seed);
  std::mt19937_64 random(seed);
  const char* const devices[] = {"cpu", "gpu"};
  const auto device = [&] { return std::string(devices[random() % 2]); };
  std::string rules;
  if (random() % 2 == 0) rules += "  { at = \"**\", on = \"" + device() + "\" },\n";
  const std::uint64_t one_in = 1 + random() % 3;
  for (const std::vector<std::string>* list : {&names.operators, &names.parameters}) {
    for (const std::string& path : *list) {
      if (random() % one_in != 0) continue;
      std::string rule = "on = \"" + device() + "\"";
      if (random() % 2 == 0) rule += ", state = \"" + device() + "\"";
      if (random() % 4 == 0) rule += ", param = \"" + device() + "\"";
      const bool is_operator = list == &names.operators;
      if (is_operator && random() % 4 == 0)
        rule += std::string(", acts = \"") + (random() % 2 == 0 ? "recompute" : "offload") + "\"";
      rules += "  { at = \"" + path + "\", " + rule + " },\n";
    }
  }
  return "policy = 1\nrules = [\n" + rules + "]\n[devices]\n" +
         "gpu = { use = \"emulated:0\", memory = \"64MiB\" }\n";
}

const char* const optimizers[] = {"sgd", "adam", "adamw"};

void expect_as_on_the_cpu(std::uint64_t seed, const std::vector<std::string>& more,
                          double tolerance) {
  const TemporaryFolder folder;
  const std::string model = folder / "views.onnx", path = folder / "policy.toml";
  ViewGraph(seed).write(model);
  std::vector<std::string> keys{
      "loss.terms=[{name=\"loss\", kind=\"softmax_cross_entropy\", logits=\"logits\", "
      "labels=\"labels\"}]",
      std::string("optimizer.kind=") + optimizers[seed % 3], "optimizer.lr=0.05"};
  keys.insert(keys.end(), more.begin(), more.end());
  PlacedTraining::Feeds feeds;
  feeds["x"] = HostTensor(TensorType{DType::float32, {view_batch, ViewGraph::inputs}});
  feeds["labels"] = HostTensor(TensorType{DType::int64, {view_batch}});
  std::mt19937_64 random(seed);
  for (std::int64_t i = 0; i < view_batch * ViewGraph::inputs; ++i)
    feeds["x"].as<float>()[i] = static_cast<float>(random() % 1000) / 500.f - 1.f;
  for (std::int64_t i = 0; i < view_batch; ++i)
    feeds["labels"].as<std::int64_t>()[i] = static_cast<std::int64_t>(random() % 4);
  const std::string policy = view_policy(policy_names_of(model, view_batch), seed);
  std::ofstream(path) << policy;
  PlacedTraining on_cpu(model, view_batch, keys, feeds);
  keys.push_back("policy=" + Json(path).dump());
  try {
    PlacedTraining placed(model, view_batch, keys, feeds);
    for (int step = 0; step < view_steps; ++step) {
      const double expected = on_cpu.step(feeds);
      ASSERT_NEAR(placed.step(feeds), expected, tolerance * std::max(1., std::abs(expected)))
          << "seed " << seed << " step " << step + 1 << "\n"
          << policy;
    }
    placed.synchronize();
    ASSERT_EQ(placed.monitor().order_errors(), std::vector<std::string>()) << policy;
    for (const std::string& name : on_cpu.states().names()) {
      if (!placed.states().has(name)) continue;
      const HostTensor a = on_cpu.states().read(name), b = placed.states().read(name);
      for (std::int64_t i = 0; i < a.type().elements(); ++i)
        ASSERT_NEAR(a.number(i), b.number(i), 20 * tolerance) << name << " seed " << seed << policy;
    }
  } catch (const Error& error) {
    FAIL() << "seed " << seed << ": " << error.what() << "\n" << policy;
  }
}

TEST(ViewPoliciesTest, WhatIsMovedIsPlacedAsWell) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    expect_as_on_the_cpu(seed, {}, 1e-5);
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace tandem

// A plan as data: its members equal what `policy plan --json` prints, with numbers known by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "tandem/tandem.h"
#include "tests/harness/folders.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::api {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Json = nlohmann::json;

const std::string digits_folder = source_folder() + "/models/digits/";
// Parameters of the two convolutions, and of the two products.
constexpr std::uint64_t convolution_bytes = 4 * ((9 + 1) * 16 + (9 * 16 + 1) * 32);
constexpr std::uint64_t product_bytes = 4 * ((512 + 1) * 64 + (64 + 1) * 10);

PolicyOptions digits_options(const std::string& memory = "64MiB") {
  PolicyOptions options;
  options.model = digits_folder + "model.onnx";
  options.bind = {{"batch", 32}};
  options.devices = {"gpu=emulated:0,memory=" + memory};
  return options;
}

/// Convolutions on the accelerator, everything behind them on the host.
std::vector<Rule> split_rules() {
  return {{.at = "**", .on = "gpu"},
          {.at = "**", .after = "MaxPool", .on = "cpu"},
          {.at = "loss.**", .run = "cpu", .why = "the logits are there"}};
}

const Plan::Device& device_of(const Plan& plan, const std::string& name) {
  for (const Plan::Device& device : plan.devices) {
    if (device.name == name) return device;
  }
  throw std::out_of_range(name);
}

TEST(PlanObject, HasKnownBytes) {
  PolicyOptions options = digits_options();
  options.made = Policy::of(split_rules());
  const Plan plan = policy_plan(options);
  EXPECT_TRUE(plan.fits);
  EXPECT_EQ(plan.ranks, 1);
  const Plan::Device &host = device_of(plan, "cpu"), &gpu = device_of(plan, "gpu");
  EXPECT_EQ(gpu.parameters, convolution_bytes);
  EXPECT_EQ(host.parameters, product_bytes);
  EXPECT_EQ(gpu.limit, 64u << 20);
  EXPECT_TRUE(gpu.is_limited);
  EXPECT_FALSE(host.is_limited);
  EXPECT_EQ(gpu.placed.operators, 5);
  EXPECT_EQ(gpu.use, "emulated:0");
  std::vector<Plan::Copy> copies;
  for (const Plan::Copy& copy : plan.copies) {
    if (!copy.is_scalar) copies.push_back(copy);
  }
  ASSERT_THAT(copies, SizeIs(3));
  EXPECT_EQ(copies[0].producer, "image");
  EXPECT_EQ(copies[0].bytes, 32u * 8 * 8 * 4);
  EXPECT_EQ(copies[1].producer, "MaxPool");  // 32 channels of 4 by 4, and their gradient
  EXPECT_EQ(copies[1].bytes, 32u * 32 * 4 * 4 * 4);
  EXPECT_EQ(copies[1].phase, Phase::forward);
  EXPECT_EQ(copies[2].bytes, copies[1].bytes);
  EXPECT_EQ(copies[2].phase, Phase::backward);
  EXPECT_EQ(copies[2].to, "gpu");
  EXPECT_EQ(plan.traffic.copies, 3);
  EXPECT_EQ(plan.traffic.bytes, copies[0].bytes + 2 * copies[1].bytes);
}

TEST(PlanObject, EqualsItsJson) {
  PolicyOptions options = digits_options();
  options.policy = digits_folder + "policy.toml";
  options.devices.clear();
  const Plan plan = policy_plan(options);
  const Json json = Json::parse(plan.json);
  EXPECT_EQ(json["fits"], plan.fits);
  EXPECT_EQ(json["time"]["step_ms"].get<double>(), plan.seconds * 1e3);
  EXPECT_EQ(json["time"]["exposed_copies_ms"].get<double>(), plan.exposed_seconds * 1e3);
  ASSERT_EQ(json["devices"].size(), plan.devices.size());
  for (const Plan::Device& device : plan.devices) {
    const Json& printed = json["devices"][device.name];
    EXPECT_EQ(printed["parameters"], device.parameters);
    EXPECT_EQ(printed["gradients"], device.gradients);
    EXPECT_EQ(printed["state"], device.optimizer_states);
    EXPECT_EQ(printed["activations"], device.activations);
    EXPECT_EQ(printed["workspace"], device.workspace);
    EXPECT_EQ(printed["peak"], device.peak);
    EXPECT_EQ(json["placed"][device.name]["operators"], device.placed.operators);
  }
  ASSERT_EQ(json["transfers"].size(), plan.copies.size());
  for (std::size_t i = 0; i < plan.copies.size(); ++i) {
    const Plan::Copy& copy = plan.copies[i];
    const Json& printed = json["transfers"][i];
    EXPECT_EQ(printed["bytes"], copy.bytes);
    EXPECT_EQ(printed["from"], copy.from);
    EXPECT_EQ(printed["to"], copy.to);
    EXPECT_EQ(printed["consumers"], copy.consumers);
    EXPECT_EQ(printed["exposed_ms"].get<double>(), copy.exposed_seconds * 1e3);
  }
  // Weights of the convolutions are updated on the host: line 10 of the file.
  ASSERT_THAT(plan.hints, SizeIs(1));
  EXPECT_EQ(plan.hints[0].kind, Plan::Hint::Kind::home);
  EXPECT_EQ(plan.hints[0].line, 10);
  EXPECT_EQ(plan.hints[0].bytes, 2 * convolution_bytes);  // gradients there, weights back
  EXPECT_EQ(json["hints"][0]["bytes"], plan.hints[0].bytes);
  EXPECT_EQ(json["hints"][0]["rule"], plan.hints[0].at);
}

TEST(PlanObject, APolicyInCodePlansLikeItsFileToTheByte) {
  const tandem::testing::TemporaryFolder folder;
  const Policy policy = Policy::of(split_rules());
  policy.save(folder / "saved.toml");
  PolicyOptions of_code = digits_options(), of_file = digits_options();
  of_code.made = policy;
  of_file.policy = folder / "saved.toml";
  const Plan made = policy_plan(of_code), read = policy_plan(of_file);
  EXPECT_THAT(made.hints, IsEmpty());  // they would name their file
  EXPECT_EQ(made.text, read.text);
  EXPECT_EQ(made.json, read.json);
  // With hints: a policy that was read names the file, too.
  of_file.policy = digits_folder + "policy.toml";
  of_code.made = Policy::open(of_file.policy);
  const Plan opened = policy_plan(of_code), named = policy_plan(of_file);
  EXPECT_THAT(opened.hints, SizeIs(1));
  EXPECT_EQ(opened.text, named.text);
  EXPECT_EQ(opened.json, named.json);
}

TEST(PlanObject, ARemedyIsARuleThatMakesItFit) {
  PolicyOptions options = digits_options("500KiB");
  std::vector<Rule> rules = split_rules();
  options.made = Policy::of(rules);
  const Plan full = policy_plan(options);
  EXPECT_FALSE(full.fits);
  ASSERT_THAT(full.misfits, SizeIs(1));
  EXPECT_EQ(full.misfits[0].path, "MaxPool");
  ASSERT_FALSE(full.remedies.empty());
  const Plan::Remedy& remedy = full.remedies[0];
  ASSERT_TRUE(remedy.suffices);
  const Json printed = Json::parse(full.json)["remedies"][0];
  EXPECT_EQ(printed["rule"], remedy.text);
  EXPECT_EQ(printed["bytes"], remedy.freed);
  rules.push_back(remedy.rule);
  options.made = Policy::of(rules);
  EXPECT_THAT(options.made->text(), HasSubstr("  " + remedy.text + ",\n"));
  const Plan fitting = policy_plan(options);
  EXPECT_TRUE(fitting.fits);
  EXPECT_DOUBLE_EQ(fitting.seconds, remedy.seconds);
}

TEST(PlanObject, ADifferenceListsWhatMoves) {
  const tandem::testing::TemporaryFolder folder;
  Policy::of({{.at = "**", .on = "gpu"}}).save(folder / "gpu.toml");
  Policy::of({{.at = "**", .on = "gpu"}, {.at = "fc2.**", .on = "cpu"}})
      .save(folder / "split.toml");
  const PolicyDiff diff = policy_diff(digits_options(), folder / "gpu.toml", folder / "split.toml");
  EXPECT_TRUE(diff.differs);
  const Json json = Json::parse(diff.json);
  EXPECT_EQ(json["operators"].size() + json["parameters"].size(), diff.moves.size());
  const auto moved = std::find_if(diff.moves.begin(), diff.moves.end(),
                                  [](const auto& move) { return move.path == "fc2.Gemm"; });
  ASSERT_NE(moved, diff.moves.end());
  EXPECT_EQ(moved->attribute, Attribute::run);
  EXPECT_EQ(moved->from, "gpu");
  EXPECT_EQ(moved->to, "cpu");
}

}  // namespace
}  // namespace tandem::api

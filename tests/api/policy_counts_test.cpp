// All commands that inspect a model count its operators and parameters equally.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <tuple>

#include "api/program/policy_files.h"
#include "tandem/tandem.h"
#include "tests/harness/folders.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::api {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

const std::string normalized_model =
    source_folder() + "/tests/data/exports/mlp_norm.torchscript.onnx";

/// Operators, parameters, buffers.
using Counts = std::tuple<int, int, int>;

Counts counts_in(const Json& json) {
  return {json["operators"].get<int>(), json["parameters"].get<int>(), json["buffers"].get<int>()};
}

TEST(PolicyCounts, AreThoseOfTheModelInAllCommands) {
  const testing::TemporaryFolder folder;
  std::ofstream(folder / "gpu.toml") << "policy = 1\nrules = [ { at = \"**\", on = \"gpu\" } ]\n";
  PolicyOptions options;
  options.model = normalized_model;
  options.policy = folder / "gpu.toml";
  options.devices = {"gpu=emulated:0"};

  int operators = 0;
  const Json names = Json::parse(policy_names(options).json);
  for (const Json& row : names["names"])
    operators += row["kind"] == "operator" && row["op"] != "loss";
  const Counts expected{operators, 6, 2};  // two layers and a normalization with its statistics
  EXPECT_GE(operators, 3);
  EXPECT_EQ(counts_in(names["counts"]), expected);
  EXPECT_EQ(counts_in(Json::parse(inspect(normalized_model).json)["for_policy"]), expected);
  const Json check = Json::parse(policy_check(options).json);
  EXPECT_EQ(counts_in(check["rules"][0]), expected);
  EXPECT_EQ(check["rules"][0]["added"], 1);  // loss.total
  EXPECT_EQ(counts_in(check["devices"]["gpu"]), expected);
  const Json plan = Json::parse(policy_plan(options).json);
  EXPECT_EQ(counts_in(plan["placed"]["gpu"]), expected);

  std::ofstream(folder / "cpu.toml") << "policy = 1\nrules = [ { at = \"**\", on = \"cpu\" } ]\n";
  const PolicyDiff diff = policy_diff(options, "", folder / "cpu.toml");
  const Json moved = Json::parse(diff.json)["groups"];
  ASSERT_EQ(moved.size(), 1u) << moved;
  EXPECT_EQ(counts_in(moved[0]), expected);

  const Report explained = policy_explain(options, "**");
  EXPECT_EQ(counts_in(Json::parse(explained.json)["counts"]), expected);

  const std::string told = std::to_string(operators) + " operators, 6 parameters, 2 buffers";
  EXPECT_THAT(policy_names(options).text, HasSubstr("\n" + told + ", 1 added part\n"));
  EXPECT_THAT(inspect(normalized_model).text, HasSubstr("for a policy: " + told));
  EXPECT_THAT(policy_check(options).text, HasSubstr(told + ", 1 added part; decides"));
  EXPECT_THAT(policy_check(options).text, HasSubstr("ok: 1 rule | gpu " + told + " | cpu 0 "));
  EXPECT_THAT(explained.text, HasSubstr("** (" + told + ", 1 added part)\n"));
  EXPECT_THAT(diff.text, HasSubstr("gpu -> cpu (" + told + ", 1 added part)"));
  EXPECT_THAT(policy_plan(options).text, HasSubstr("placed      gpu " + told + " | cpu 0 "));
}

}  // namespace
}  // namespace tandem::api

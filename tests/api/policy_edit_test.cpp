// `policy edit` with a configuration or a model: rules that would have no effect are not written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tandem/tandem.h"
#include "tests/api/digits.h"
#include "tests/harness/program.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::api {
namespace {

using tandem::testing::digits;
using tandem::testing::Ended;
using tandem::testing::run_program;
using ::testing::HasSubstr;
using Json = nlohmann::json;

const std::string before =
    "policy = 1\nrules = [\n  { at = \"fc3.**\", on = \"cpu\" },  # old\n]\n";

class PolicyEditTest : public ::testing::Test {
 protected:
  PolicyEditTest() { std::ofstream(file_) << before; }
  std::string text() const {
    std::ifstream file(file_);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  Ended edit(const std::string& arguments) const {
    return run_program("policy edit " + file_ + " " + arguments + " 2>&1");
  }

  testing::TemporaryFolder folder_;
  const std::string file_ = folder_ / "policy.toml";
  const std::string config_ = " --config " + digits + "train.toml";
};

TEST_F(PolicyEditTest, RefusesWhatMeansNothingInTheModel) {
  const Ended nothing = edit("--at 'fc4.**' --set run=cpu" + config_);
  EXPECT_EQ(nothing.code, 2);
  EXPECT_THAT(nothing.text, HasSubstr("policy.toml: fc4.**: matches nothing in this model (did you "
                                      "mean \"fc1.**\"? (1 operator, 2 parameters))"));
  const Ended attribute =
      edit("--at fc1:weight --set acts=offload --set state=cpu --model " + digits + "model.onnx");
  EXPECT_EQ(attribute.code, 2);
  EXPECT_THAT(attribute.text, HasSubstr("`acts` applies to operators, and this rule matches none"));
  EXPECT_EQ(text(), before);
  // Without a model it works as before; a rule in another line that matches nothing does not
  // matter.
  EXPECT_EQ(edit("--at 'fc4.**' --set run=cpu").code, 0);
  const Ended taken = edit("--at 'fc1.**' --set run=cpu" + config_);
  EXPECT_EQ(taken.code, 0) << taken.text;
  EXPECT_THAT(taken.text, HasSubstr("+  { at = \"fc1.**\", run = \"cpu\" },\n"
                                    "matches 1 operator, 2 parameters\n"));
  EXPECT_THAT(text(), HasSubstr("fc1.**"));
}

TEST_F(PolicyEditTest, ADeviceMayBeNamedOnTheLine) {
  EXPECT_EQ(edit("--at 'fc1.**' --set on=acc").code, 2);
  const Ended named = edit("--at 'fc1.**' --set on=acc --device acc=emulated:0");
  EXPECT_EQ(named.code, 0) << named.text;
  EXPECT_THAT(text(), HasSubstr("on = \"acc\""));
}

TEST_F(PolicyEditTest, RulesThatMatchNothingCanBeTakenAway) {
  const Ended removed = edit("--at 'fc3.**' --remove --json" + config_);
  EXPECT_EQ(removed.code, 0) << removed.text;
  EXPECT_FALSE(Json::parse(removed.text).contains("matches"));
  EXPECT_EQ(text().find("fc3"), std::string::npos);
}

TEST_F(PolicyEditTest, SaysWhatTheRuleMatches) {
  PolicyOptions model;
  model.config = digits + "train.toml";
  PolicyChange change;
  change.at = "loss.**";
  change.set = {{"run", "cpu"}};
  const Json json = Json::parse(policy_edit(file_, change, model).json);
  EXPECT_TRUE(json["changed"]);
  EXPECT_EQ(json["matches"]["added"], 2);  // loss.loss and loss.total
  EXPECT_EQ(json["matches"]["operators"], 0);
  EXPECT_FALSE(Json::parse(policy_edit(file_, change, model).json)["changed"]);
}

}  // namespace
}  // namespace tandem::api

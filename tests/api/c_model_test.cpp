// Models and plans of the C library: what the C++ library says about them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "tandem/model.h"
#include "tandem/plan.h"
#include "tests/api/c_calls.h"
#include "tests/api/digits.h"

namespace tandem {
namespace {

using testing::digits_model;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::sized;
using testing::texts_in;

TEST(CModelTest, HasTheNetworkOfDigits) {
  TandemModel* model = nullptr;
  ASSERT_OK(tandem_model_open(digits_model.c_str(), nullptr, &model));
  auto info = sized<TandemModelInfo>();
  ASSERT_OK(tandem_model_info(model, &info));
  EXPECT_EQ(info.inputs, 1u);
  EXPECT_EQ(info.outputs, 1u);
  EXPECT_EQ(info.parameters, 8u);
  EXPECT_EQ(info.problems, 0u);
  const api::Model expected(digits_model);
  EXPECT_EQ(info.text, expected.text());
  EXPECT_EQ(info.json, expected.json());

  auto image = sized<TandemPort>(), logits = sized<TandemPort>();
  ASSERT_OK(tandem_model_input(model, 0, &image));
  EXPECT_STREQ(image.name, "image");
  EXPECT_EQ(image.dtype, TANDEM_FLOAT32);
  ASSERT_EQ(image.rank, 4);
  EXPECT_THAT(std::vector<std::int64_t>(image.shape, image.shape + 4), ElementsAre(-1, 1, 8, 8));
  EXPECT_STREQ(image.dimensions[0], "batch");
  EXPECT_EQ(image.dimensions[1], nullptr);
  ASSERT_OK(tandem_model_output(model, 0, &logits));
  EXPECT_STREQ(logits.name, "logits");
  EXPECT_EQ(logits.shape[1], 10);

  auto parameter = sized<TandemParameter>();
  ASSERT_OK(tandem_model_parameter(model, 0, &parameter));
  EXPECT_STREQ(parameter.name, "conv1.weight");
  EXPECT_STREQ(parameter.path, "conv1:weight");
  EXPECT_THAT(std::vector<std::int64_t>(parameter.shape, parameter.shape + parameter.rank),
              ElementsAre(16, 1, 3, 3));
  EXPECT_EQ(parameter.trains, 1);
  EXPECT_EQ(parameter.is_buffer, 0);
  EXPECT_EQ(tandem_model_parameter(model, 8, &parameter), TANDEM_USAGE);
  EXPECT_STREQ(tandem_error_message(),
               "index: there is no such parameter: expected less than 8, got 8");
  auto problem = sized<TandemDiagnostic>();
  EXPECT_EQ(tandem_model_problem(model, 0, &problem), TANDEM_USAGE);
  tandem_model_close(&model);
  EXPECT_EQ(model, nullptr);
}

TEST(CModelTest, BindsDimensions) {
  const std::vector<const char*> bind{"batch=4"};
  auto options = sized<TandemModelOptions>();
  options.bind = texts_in(bind);
  TandemModel* model = nullptr;
  ASSERT_OK(tandem_model_open(digits_model.c_str(), &options, &model));
  auto info = sized<TandemModelInfo>();
  ASSERT_OK(tandem_model_info(model, &info));
  const auto json = nlohmann::json::parse(info.json);
  EXPECT_EQ(json["inputs"][0]["bound"][0], 4);
  tandem_model_close(&model);

  const std::vector<const char*> wrong{"batch", "=4", "batch=four", "batch=4.5", "batch="};
  options.bind = texts_in(wrong);
  EXPECT_EQ(tandem_model_open(digits_model.c_str(), &options, &model), TANDEM_USAGE);
  EXPECT_EQ(tandem_error_count(), wrong.size());
  for (const char* text : wrong)
    EXPECT_THAT(tandem_error_message(), HasSubstr("got \"" + std::string(text) + "\""));
}

TEST(CPlanTest, FitsOrNot) {
  const std::vector<const char*> bind{"batch=32"}, devices{"gpu=emulated:0,memory=64KiB"};
  auto options = sized<TandemPlanOptions>();
  options.model = digits_model.c_str();
  options.bind = texts_in(bind);
  TandemPlan* plan = nullptr;
  auto info = sized<TandemPlanInfo>();
  ASSERT_OK(tandem_plan_make(&options, &plan));
  ASSERT_OK(tandem_plan_info(plan, &info));
  EXPECT_EQ(info.fits, 1);
  EXPECT_EQ(info.ranks, 1);
  EXPECT_GT(info.seconds, 0);
  api::PolicyOptions same;
  same.model = digits_model;
  same.bind = {{"batch", 32}};
  const api::Plan expected = api::policy_plan(same);
  EXPECT_EQ(info.json, expected.json);
  EXPECT_EQ(info.text, expected.text);
  tandem_plan_close(&plan);
  EXPECT_EQ(plan, nullptr);

  options.devices = texts_in(devices);
  options.policy_text = "policy = 1\nrules = [ { at = \"**\", on = \"gpu\" } ]";
  ASSERT_OK(tandem_plan_make(&options, &plan));
  ASSERT_OK(tandem_plan_info(plan, &info));
  EXPECT_EQ(info.fits, 0);
  tandem_plan_close(&plan);

  options.policy_text = "policy = 1\nrules = [ { at = \"**\", on = \"gpuu\" } ]";
  EXPECT_EQ(tandem_plan_make(&options, &plan), TANDEM_USAGE);
  EXPECT_THAT(tandem_error_message(), HasSubstr("policy.toml:2:"));
  options.policy = "policy.toml";
  EXPECT_EQ(tandem_plan_make(&options, &plan), TANDEM_USAGE);
  EXPECT_THAT(tandem_error_message(), HasSubstr("options.policy_text"));
}

}  // namespace
}  // namespace tandem

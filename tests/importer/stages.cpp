#include "tests/importer/stages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tandem/tandem.h"
#include "tests/importer/support.h"

namespace tandem::testing {
namespace {

struct Diagnosis {
  std::string error;        // what it throws
  nlohmann::json problems;  // what it lists
  bool blocks_training = false;
  std::string text;
};

Diagnosis diagnose(const std::string& path, const std::string& stage) {
  Diagnosis found;
  api::InspectOptions options;
  options.stage = stage;
  try {
    const api::InspectReport report = api::inspect(path, options);
    found.problems = nlohmann::json::parse(report.json)["problems"];
    found.blocks_training = report.blocks_training;
    found.text = report.text;
  } catch (const Error& error) {
    found.error = error.what();
  }
  return found;
}

}  // namespace

void expect_same_diagnosis(const std::string& model_bytes) {
  const ScratchFolder folder;
  const std::string path = folder.write("model.onnx", model_bytes).string();
  const Diagnosis plain = diagnose(path, "");
  EXPECT_TRUE(!plain.error.empty() || plain.blocks_training) << plain.text;
  for (const char* stage : {"graph", "training", "placement", "lowered", "plan"}) {
    const Diagnosis of = diagnose(path, stage);
    EXPECT_EQ(of.error, plain.error) << stage;
    EXPECT_EQ(of.problems, plain.problems) << stage;
    EXPECT_EQ(of.blocks_training, plain.blocks_training) << stage;
    for (const auto& problem : plain.problems)
      EXPECT_THAT(of.text, ::testing::HasSubstr(problem["reason"].get<std::string>())) << stage;
  }
}

}  // namespace tandem::testing

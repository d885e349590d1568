// [parameters] shape: what a rule may say, and that it is written as it was read.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/graph/error.h"
#include "engine/training/config/run_config.h"
#include "tests/training/support.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;

RunConfig parse_shapes(const std::string& rules) {
  return parse_run_config("model = \"m.onnx\"\nsteps = 1\n[optimizer]\nkind = \"sgd\"\n",
                          "/folder/train.toml", {"parameters.shape=" + rules});
}

TEST(ShapeRules, AreNumbersOrVocabularies) {
  const RunConfig config = parse_shapes(
      R"x([{at="{wide,deep}:weight", rows=184968}, {at="x", rows="vocabulary(ids)"}])x");
  const std::vector<ShapeRule>& rules = config.parameters.shape;
  ASSERT_EQ(rules.size(), 2u);
  EXPECT_EQ(rules[0].at, "{wide,deep}:weight");
  EXPECT_EQ(rules[0].rows, 184968);
  EXPECT_EQ(rules[0].vocabulary, "");
  EXPECT_EQ(rules[1].vocabulary, "ids");
  EXPECT_EQ(parse_run_config(to_toml(config), "/folder/train.resolved.toml").parameters,
            config.parameters);
}

TEST(ShapeRules, OthersAreRefused) {
  const auto text = [](const std::string& rules) {
    return testing::error_text([&] { parse_shapes(rules); });
  };
  EXPECT_THAT(text(R"x([{at="x", rows="hash(ids)"}])x"), HasSubstr("\"vocabulary(FIELD)\""));
  EXPECT_THAT(text(R"x([{at="x", rows="vocabulary()"}])x"), HasSubstr("not a number of rows"));
  EXPECT_THAT(text(R"x([{at="x", rows=0}])x"), HasSubstr("rows"));
  EXPECT_THAT(text(R"x([{at="x"}])x"), HasSubstr("rows"));
  EXPECT_THAT(text(R"x([{rows=3}])x"), HasSubstr("at"));
}

}  // namespace
}  // namespace tandem

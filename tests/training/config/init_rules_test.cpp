// parameters.init: which keys a rule takes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/graph/error.h"
#include "engine/training/config/run_config.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;

RunConfig parse_rule(const std::string& rule) {
  return parse_run_config("model = \"m.onnx\"\nsteps = 1\n[optimizer]\nkind = \"sgd\"\n",
                          "/folder/train.toml", {rule});
}

std::string first_error_of_rule(const std::string& rule) {
  try {
    parse_rule(rule);
  } catch (const Error& error) {
    return to_string(error.diagnostics()[0]);
  }
  return "no error";
}

// Resolved files of earlier versions give every rule the numbers of all distributions; what a user
// writes must belong to the rule's own distribution.
TEST(InitRules, PassOverNumbersOfOthersWhereAllAreThere) {
  const RunConfig c = parse_rule(
      "parameters.init=[{at='a', kind='uniform', mean=1.0, std=2.0,"
      " low=-1, high=3, value=0.0}]");
  EXPECT_EQ(c.parameters.init[0].kind, InitKind(UniformInit{-1, 3}));
  EXPECT_THAT(to_toml(c), HasSubstr("{ at = \"a\", kind = \"uniform\", low = -1.0, high = 3.0 }"));
  EXPECT_EQ(parse_run_config(to_toml(c), "/folder/train.toml"), c);
  EXPECT_THAT(first_error_of_rule("parameters.init=[{at='a', kind='uniform', low=3, high=1}]"),
              HasSubstr("low is above high"));
  EXPECT_THAT(first_error_of_rule("parameters.init=[{at='a', kind='ones', sd=3}]"),
              HasSubstr("unknown key"));
  EXPECT_THAT(first_error_of_rule("parameters.init=[{at='a', kind='normal', std=-1}]"),
              HasSubstr("std: out of range"));
  EXPECT_THAT(first_error_of_rule("parameters.init=[{at='a', kind='uniform', std=1}]"),
              HasSubstr("std: not an option of uniform"));
  EXPECT_THAT(first_error_of_rule("parameters.init=[{at='a', kind='xavier_normal', value=1, "
                                  "mean=0, std=1, low=0}]"),
              HasSubstr("not an option of xavier_normal"));
}

}  // namespace
}  // namespace tandem

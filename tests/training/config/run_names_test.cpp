// Names and paths of a configuration that no folder or file can have.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/graph/error.h"
#include "engine/training/config/run_config.h"
#include "tests/training/error_text.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr const char* run_text = "model = 'm.onnx'\nsteps = 1\n[optimizer]\nkind = 'sgd'\n";

std::string refused_run(const std::vector<std::string>& overrides) {
  return testing::error_of([&] { parse_run_config(run_text, "/folder/train.toml", overrides); });
}

TEST(RunNames, ANameIsThatOfAFolder) {
  EXPECT_EQ(parse_run_config(run_text, "/folder/train.toml", {"name=\"über 5\""}).name, "über 5");
  for (const char* name : {"a/b", "a\\u0000b", "a\\nb", "\\u007f"}) {
    EXPECT_THAT(refused_run({"name=\"" + std::string(name) + "\""}),
                AllOf(HasSubstr("command line: name: not the name of a folder"),
                      HasSubstr("control characters")))
        << name;
  }
  EXPECT_THAT(
      refused_run({"name=" + std::string(300, 'n')}),
      AllOf(HasSubstr("name: too long"), HasSubstr("at most 200 bytes"), HasSubstr("got 300")));
}

TEST(RunNames, PathsHoldNoNul) {
  for (const char* key : {"run_dir", "policy", "model.file"}) {
    EXPECT_THAT(
        refused_run({std::string(key) + "=\"a\\u0000b\""}),
        AllOf(HasSubstr("a path cannot hold the character NUL"), HasSubstr("got \"a\\u0000b\"")))
        << key;
  }
}

}  // namespace
}  // namespace tandem

// What train.toml says, as tests/expected/config has it: the keys that change, or the errors.
#include <gtest/gtest.h>

#include <sstream>

#include "engine/config/keys/changed_keys.h"
#include "engine/config/run_config.h"
#include "engine/graph/error.h"
#include "tests/harness/expected_output.h"

namespace tandem {
namespace {

/// The keys that differ from the resolved file `before`, then notes; or the errors. Lines of
/// `input` are overrides after "--set", else they follow `base`.
std::string said_of_config(const std::string& base, const std::string& before,
                           const std::string& input) {
  std::string text = base;
  std::vector<std::string> overrides;
  std::istringstream lines(input);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("--set "))
      overrides.push_back(line.substr(6));
    else if (line.starts_with("--escaped "))
      text += testing::unescaped(line.substr(10)) + "\n";
    else
      text += line + "\n";
  }
  try {
    const RunConfig config = parse_run_config(text, "/folder/train.toml", overrides);
    const std::string resolved = to_toml(config);
    EXPECT_EQ(parse_run_config(resolved, "/other/train.resolved.toml"), config) << resolved;
    std::string said;
    for (const std::string& key : changed_keys(before, resolved)) said += key + "\n";
    for (const Diagnostic& note : config.notes) said += "note: " + to_string(note) + "\n";
    return said.empty() ? "nothing changes" : said;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    return error.what();
  }
}

class ConfigText : public ::testing::TestWithParam<testing::ExpectedCase> {};

TEST_P(ConfigText, IsAsExpected) {
  const std::string base = GetParam().text("base");
  std::string before;
  try {
    before = to_toml(parse_run_config(base, "/folder/train.toml"));
  } catch (const Error&) {  // completed by each input
  }
  GetParam().check([&](const std::string& input) { return said_of_config(base, before, input); });
}

INSTANTIATE_TEST_SUITE_P(, ConfigText, ::testing::ValuesIn(testing::expected_cases("config")),
                         testing::name_of_case);

}  // namespace
}  // namespace tandem

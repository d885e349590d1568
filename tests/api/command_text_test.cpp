// What commands report and write, as tests/expected/commands has it.
#include <gtest/gtest.h>

#include "tests/api/case_folder.h"
#include "tests/training/formats/tokenizer_cases.h"

namespace tandem::testing {
namespace {

class CommandText : public ::testing::TestWithParam<ExpectedCase> {};

TEST_P(CommandText, IsAsExpected) {
  if (!GetParam().text("_needs_tokenizers").empty() && lacks_text_libraries())
    GTEST_SKIP() << "this build lacks PCRE2 or utf8proc";
  const CaseFolder folder(GetParam());
  GetParam().check([&](const std::string& input) { return folder.output_of(input); });
}

INSTANTIATE_TEST_SUITE_P(, CommandText, ::testing::ValuesIn(expected_cases("commands")),
                         name_of_case);

}  // namespace
}  // namespace tandem::testing

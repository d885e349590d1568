// The public headers: tandem/tandem.h can be included first, and all use only standard types.
#include "tandem/tandem.h"
#include "tests/harness/folders.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <type_traits>

namespace tandem {
namespace {

TEST(HeadersTest, IncludeNothingButTheStandardLibraryAndEachOther) {
  const std::set<std::string> standard{"atomic",     "cstddef", "cstdint",     "exception",
                                       "functional", "map",     "memory",      "optional",
                                       "span",       "string",  "string_view", "type_traits",
                                       "utility",    "variant", "vector"};
  int headers = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(source_folder() + "/include/tandem")) {
    ++headers;
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line);) {
      std::smatch match;
      if (!std::regex_match(line, match, std::regex(R"(\s*#\s*include\s*[<"]([^>"]+)[>"].*)")))
        continue;
      const std::string included = match[1];
      if (included == "stddef.h" || included == "stdint.h") continue;  // headers for C
      EXPECT_TRUE(standard.count(included) || included.rfind("tandem/", 0) == 0)
          << entry.path() << ": " << included;
    }
  }
  EXPECT_GE(headers, 2);
}

TEST(HeadersTest, HandlesMoveAndErrorsAreExceptions) {
  static_assert(std::is_nothrow_move_constructible_v<api::Session>);
  static_assert(std::is_nothrow_move_constructible_v<api::Trainer>);
  static_assert(std::is_base_of_v<std::exception, Error>);
  const std::string version = api::version();
  EXPECT_EQ(std::count(version.begin(), version.end(), '.'), 2);
}

}  // namespace
}  // namespace tandem

// Names with braces expand to every name in order, up to a limit.
#include <gtest/gtest.h>

#include "engine/config/keys/config_check.h"

namespace tandem {
namespace {

TEST(ExpandBraces, GivesEveryNameInOrderAndNotTooMany) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(expand_braces("day.gz"), Names({"day.gz"}));
  EXPECT_EQ(expand_braces("d{08..10}.{a,b}z"),
            Names({"d08.az", "d08.bz", "d09.az", "d09.bz", "d10.az", "d10.bz"}));
  EXPECT_EQ(expand_braces("{x,}"), Names({"x", ""}));
  std::string many, deep;
  for (int i = 0; i < 17; ++i) many += "{a,b}";
  for (int i = 0; i < 300'000; ++i) deep += "{a}";
  for (const std::string& text :
       {std::string("{1..2"), std::string("{2..1}"), std::string("{x..2}"),
        std::string("{0..999999999}"), std::string("{0..999}{0..999}"), many, deep})
    EXPECT_EQ(expand_braces(text), std::nullopt) << text.substr(0, 40);
}

}  // namespace
}  // namespace tandem

// The table of what rules may name.
#include "placement/names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "placement/quantities.h"
#include "placement/selectors/policy_schema.h"
#include "tests/placement/support.h"

namespace tandem::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(PolicyNames, OperatorsThenParametersWithSizes) {
  const auto rows =
      policy_names(shared_graph(), {.raw_names = {{"embed.Gather", "/embed/Gather"}}});
  ASSERT_EQ(rows.size(), 13u + 9u);
  EXPECT_EQ(rows[0].path, "embed.Gather");
  EXPECT_EQ(rows[0].op, "Gather");
  EXPECT_EQ(rows[0].shape, (Shape{4, 8}));
  EXPECT_EQ(rows[0].bytes, 128u);
  EXPECT_EQ(rows[0].raw_name, "/embed/Gather");
  EXPECT_EQ(rows[13].path, "embed:weight");
  EXPECT_EQ(rows[13].raw_name, "embed.weight");
  EXPECT_EQ(rows[13].bytes, 3200u);
  EXPECT_EQ(rows.back().path, "head:weight");
}

TEST(PolicyNames, SortedAndSelected) {
  const auto largest = policy_names(shared_graph(), {.order = NameOrder::bytes});
  EXPECT_EQ(largest[0].path, "embed:weight");
  const auto some = policy_names(
      shared_graph(), {.at = "layers.1.**", .order = NameOrder::path, .operators = false});
  ASSERT_EQ(some.size(), 2u);
  EXPECT_EQ(some[0].path, "layers.1:bias");
  EXPECT_THROW(policy_names(shared_graph(), {.at = "a**"}), Error);
  EXPECT_THAT(names_text(largest), HasSubstr("embed:weight       parameter  [100, 8]"));
  EXPECT_THAT(names_text(largest), HasSubstr("norm.running_mean  buffer"));
}

TEST(PolicyNames, AreSuggestedWithTheirModules) {
  std::vector<NameRow> rows(4);
  rows[0].path = "blocks.3.attention.MatMul";
  rows[1].path = "blocks.3.Add";
  rows[2].path = "re:head";
  rows[3].path = "blocks.3:weight";
  EXPECT_THAT(
      suggested_selectors(rows),
      ElementsAre("**", "blocks.**", "blocks.3.**", "blocks.3.attention.**",
                  "blocks.3.attention.MatMul", "blocks.3.Add", "?e:head", "blocks.3:weight"));
}

TEST(PolicyNames, AreInTheSchema) {
  const std::string schema = policy_json_schema(policy_names(shared_graph()));
  EXPECT_THAT(schema, AllOf(HasSubstr("\"layers.1:bias\""), HasSubstr("\"layers.1.**\""),
                            HasSubstr("\"Gather\""), HasSubstr("\"emulated:0\"")));
  EXPECT_THAT(policy_json_schema(), Not(HasSubstr("\"Gather\"")));
}

TEST(Quantities, AreReadAndWritten) {
  EXPECT_EQ(parse_size("64MiB"), 64u << 20);
  EXPECT_EQ(parse_size(" 1.5 kB "), 1500u);
  for (const char* bad : {"", "64", "MiB", "-1MiB", "1e30GB", "1Mib"})
    EXPECT_FALSE(parse_size(bad));
  EXPECT_EQ(parse_rate("25GB/s"), 25e9);
  EXPECT_EQ(parse_rate("100Gb/s"), 12.5e9);
  for (const char* bad : {"25GB", "0GB/s", "/s", "b/s", "1Gib/s"})
    EXPECT_FALSE(parse_rate(bad)) << bad;
  EXPECT_DOUBLE_EQ(*parse_time("2.5 ms"), 0.0025);
  EXPECT_EQ(parse_time("0us"), 0.0);
  EXPECT_FALSE(parse_time("10"));
  EXPECT_DOUBLE_EQ(*parse_percent("90%"), 0.9);
  for (const char* bad : {"0%", "101%", "0.9"}) EXPECT_FALSE(parse_percent(bad)) << bad;
  EXPECT_EQ(size_text(1023), "1023 B");
  EXPECT_EQ(size_text(200704), "196.0 KiB");
}

}  // namespace
}  // namespace tandem::testing

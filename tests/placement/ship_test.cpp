// What crosses for lookups in a table on the host: rows or results, by rules, counts and bounds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/graph/builder.h"
#include "placement/resolve.h"
#include "tests/placement/support.h"

namespace tandem::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::int64_t shipped_table_rows = 100, shipped_ids = 8;

// ids [8] -> embed.Gather (embed:weight [100, columns]) -> rows; head.Add and tail.Mul read them.
Graph lookup_to_ship(std::int64_t columns) {
  GraphBuilder b(shared_operators());
  const ValueId indices = b.input("ids", {DType::int64, {shipped_ids}});
  b.set_scope({"embed.Gather", Phase::forward, {}});
  const ValueId rows =
      b.add_node("Gather", {add_weight(b, "embed", {shipped_table_rows, columns}), indices},
                 {{"axis", std::int64_t{0}}});
  b.set_scope({"head.Add", Phase::forward, {}});
  const ValueId sum = b.add(rows, add_weight(b, "head", {columns}));
  b.set_scope({"tail.Mul", Phase::forward, {}});
  b.output("logits", b.mul(rows, sum));
  Graph graph = b.finish();
  verify(graph);
  return graph;
}

struct AskedRows {
  std::optional<std::int64_t> answer;
  int times = 0;
};

const std::string embed_on_host =
    "rules = [\n{ at = \"**\", on = \"gpu\" },\n{ at = \"embed.**\", on = \"cpu\" },\n";

ResolvedPolicy resolved_of(std::int64_t columns, const std::string& rules, AskedRows& asked) {
  ResolveOptions options;
  options.bindings = parse_device_arguments({"gpu=emulated:0"});
  const Policy policy =
      parse_policy("policy = 1\n" + rules + "]\n", "policy.toml", {}, &options.earlier);
  const Graph graph = lookup_to_ship(columns);
  const ResolvedPolicy open = resolve(policy, graph, options);
  if (!open.questions.unique_rows) return open;
  ++asked.times;
  PlacementFacts facts;
  facts.unique_rows.emplace();
  if (asked.answer) facts.unique_rows->emplace("embed.weight", *asked.answer);
  return resolve(policy, graph, options, facts);
}

ParameterAttributes table_of(std::int64_t columns, const std::string& rules, AskedRows& asked) {
  return *resolved_of(columns, rules, asked).find_parameter("embed.weight");
}

TEST(Ship, TheBoundCountsWhereNothingIsKnown) {
  AskedRows asked;
  const ParameterAttributes table = table_of(16, embed_on_host, asked);
  EXPECT_TRUE(table.table);
  EXPECT_TRUE(table.traffic.crosses);
  EXPECT_FALSE(table.traffic.counted);
  EXPECT_EQ(table.traffic.ids, shipped_ids);
  EXPECT_EQ(table.traffic.rows, shipped_ids);
  EXPECT_EQ(table.traffic.bytes_rows, 2 * shipped_ids * 64 + 4 * shipped_ids);
  EXPECT_EQ(table.traffic.bytes_results, 2 * shipped_ids * 64);
  EXPECT_EQ(table.ship.value, Ship::results);
  EXPECT_THAT(table.ship.reason.text, HasSubstr("auto: at most 8 rows for 8 ids"));
  EXPECT_EQ(asked.times, 1);
}

TEST(Ship, FewRowsAreSentOnce) {
  AskedRows asked{5};
  const ParameterAttributes table = table_of(16, embed_on_host, asked);
  EXPECT_TRUE(table.traffic.counted);
  EXPECT_EQ(table.traffic.rows, 5);
  EXPECT_EQ(table.traffic.most_rows, 8);
  EXPECT_EQ(table.traffic.bytes_rows, 2 * 5 * 64 + 4 * shipped_ids);
  EXPECT_EQ(table.ship.value, Ship::rows);
  EXPECT_EQ(table.ship.reason.text, "default: auto: about 5 rows for 8 ids, counted in the data");
}

TEST(Ship, ManyRowsAreNotWorthAnIndex) {
  AskedRows asked{8};
  EXPECT_EQ(table_of(16, embed_on_host, asked).ship.value, Ship::results);
}

// A table of one column: 8 bytes a row there and back, 4 bytes an id.
TEST(Ship, EqualBytesTakeTheResults) {
  AskedRows half{4}, fewer{3};
  const ParameterAttributes table = table_of(1, embed_on_host, half);
  EXPECT_EQ(table.traffic.bytes_rows, table.traffic.bytes_results);
  EXPECT_EQ(table.ship.value, Ship::results);
  EXPECT_EQ(table_of(1, embed_on_host, fewer).ship.value, Ship::rows);
}

TEST(Ship, CountsAreNeverAboveTheBound) {
  AskedRows asked{1000};
  EXPECT_EQ(table_of(16, embed_on_host, asked).traffic.rows, shipped_ids);
}

TEST(Ship, RulesDecide) {
  AskedRows asked{2};
  const ParameterAttributes results =
      table_of(16, embed_on_host + "{ at = \"embed.**\", ship = \"results\" },\n", asked);
  EXPECT_EQ(results.ship.value, Ship::results);
  EXPECT_EQ(results.ship.reason.text, "policy.toml:5");
  EXPECT_EQ(asked.times, 0) << "nobody needs the count";
  asked.answer = 8;
  const ParameterAttributes rows =
      table_of(16, embed_on_host + "{ at = \"embed.**\", ship = \"rows\" },\n", asked);
  EXPECT_EQ(rows.ship.value, Ship::rows);
  EXPECT_EQ(rows.ship.reason.text, "policy.toml:5");
  EXPECT_EQ(asked.times, 1) << "plans tell the bytes to expect";
}

// What is to be fetched more than a step ahead is fetched one step ahead, with a warning at the
// rule's line.
TEST(Ship, ALookaheadAboveOneIsWarnedOf) {
  const auto warnings = [](const std::string& ship, const std::string& lookahead) {
    AskedRows asked;
    std::string text;
    for (const Diagnostic& d :
         resolved_of(16,
                     embed_on_host + "{ at = \"embed\", ship = \"" + ship + "\" },\n" +
                         "{ at = \"**\", lookahead = " + lookahead + " },\n",
                     asked)
             .warnings)
      text += to_string(d) + "\n";
    return text;
  };
  EXPECT_THAT(warnings("rows", "3"),
              AllOf(HasSubstr("policy.toml:6:"),
                    HasSubstr("**: lookahead = 3 acts as 1 for 1 table: rows that cross further "
                              "ahead could change before they are read (set lookahead = 1)")));
  EXPECT_THAT(warnings("rows", "1"), Not(HasSubstr("acts as 1")));
  EXPECT_THAT(warnings("rows", "0"), Not(HasSubstr("acts as 1")));
  EXPECT_THAT(warnings("results", "3"), Not(HasSubstr("acts as 1")));
}

TEST(Ship, ARuleThatShipsNothingIsWarnedOf) {
  const auto warnings = [](const std::string& rules) {
    AskedRows asked;
    std::string text;
    for (const Diagnostic& d : resolved_of(16, rules, asked).warnings) text += to_string(d) + "\n";
    return text;
  };
  EXPECT_THAT(
      warnings("rules = [\n{ at = \"**\", on = \"gpu\" },\n"
               "{ at = \"embed.**\", ship = \"rows\" },\n"),
      AllOf(HasSubstr("policy.toml:4:"),
            HasSubstr("embed.**: ship does nothing for 1 parameter: it applies to tables on cpu "
                      "whose lookups an accelerator reads")));
  EXPECT_THAT(warnings(embed_on_host + "{ at = \"head.**\", ship = \"rows\" },\n"),
              HasSubstr("head.**: ship does nothing for"));
  // One parameter to which the rule applies is enough.
  EXPECT_THAT(warnings(embed_on_host + "{ at = \"**\", ship = \"rows\" },\n"),
              Not(HasSubstr("does nothing")));
}

TEST(Ship, NobodyIsAskedWhereNothingCrosses) {
  AskedRows asked{5};
  for (const char* rules :
       {"rules = [\n", "rules = [\n{ at = \"**\", on = \"gpu\" },\n",
        // The lookup runs on the accelerator: the whole table crosses.
        "rules = [\n{ at = \"**\", on = \"gpu\" },\n{ at = \"embed:weight\", state = \"cpu\" },\n",
        // Results are read here, too, or on two accelerators: they cross as they are.
        "rules = [\n{ at = \"**\", on = \"gpu\" },\n{ at = \"{embed,tail}.**\", on = \"cpu\" },\n",
        "rules = [\n{ at = \"**\", on = \"gpu\" },\n{ at = \"embed.**\", on = \"cpu\" },\n"
        "{ at = \"tail.**\", on = \"emulated:1\" },\n"}) {
    EXPECT_FALSE(table_of(16, rules, asked).traffic.crosses) << rules;
    EXPECT_EQ(asked.times, 0) << rules;
  }
}

}  // namespace
}  // namespace tandem::testing

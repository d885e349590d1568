// `cache` of a rule: when a table gets one, what is asked, what rules it out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/graph/builder.h"
#include "engine/passes/tables/cached_tables.h"
#include "placement/derive.h"
#include "placement/resolve.h"
#include "tests/placement/support.h"

namespace tandem::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::int64_t table_rows = 100, ids = 8, columns = 16, row_bytes = 64;

// ids [8] -> embed.Gather (embed:weight [100, 16]) -> rows; head.Add and tail.Mul read them.
Graph lookup_to_cache(bool tied = false) {
  GraphBuilder b(shared_operators());
  const ValueId indices = b.input("ids", {DType::int64, {ids}});
  b.set_scope({"embed.Gather", Phase::forward, {}});
  const ValueId table = add_weight(b, "embed", {table_rows, columns});
  const ValueId rows = b.add_node("Gather", {table, indices}, {{"axis", std::int64_t{0}}});
  b.set_scope({"head.Add", Phase::forward, {}});
  const ValueId sum = b.add(rows, add_weight(b, "head", {columns}));
  b.set_scope({"tail.Mul", Phase::forward, {}});
  b.output("logits", b.mul(rows, sum));
  if (tied) {
    b.set_scope({"tied.MatMul", Phase::forward, {}});
    b.output("tied", b.matmul(sum, b.transpose_last_two(table)));
  }
  return b.finish();
}

struct AskedCaches {
  std::vector<CacheRequest> constraints;
  bool answers = true;
  std::string off;
};

ResolvedPolicy resolved(const std::string& rules, AskedCaches& asked,
                        const Graph& graph = lookup_to_cache(), const std::string& refused = "") {
  ResolveOptions options;
  options.bindings = parse_device_arguments({"gpu=emulated:0"});
  PlacementFacts facts;
  facts.unique_rows = {{"embed.weight", 6}};
  if (!refused.empty()) facts.refusals[{1, refused}] = "no kernel is listed";
  const Policy policy =
      parse_policy("policy = 1\nrules = [\n" + rules + "]\n", "policy.toml", {}, &options.earlier);
  const ResolvedPolicy open = resolve(policy, graph, options, facts);
  EXPECT_FALSE(open.questions.unique_rows);
  if (!asked.answers) return open;
  facts.constraints = asked.constraints = open.questions.constraints;
  for (std::size_t i = 0; i < facts.constraints.size(); ++i) {
    TableCache& cache = facts.caches.emplace_back();
    cache.off = asked.off;
    if (!asked.off.empty()) continue;
    cache.rows = std::make_shared<const std::vector<std::int64_t>>(std::vector<std::int64_t>{3, 5});
    cache.bytes = 2 * row_bytes;
    cache.hit_rate = 0.75;
    cache.cold_rows = 2;
  }
  const ResolvedPolicy answered = resolve(policy, graph, options, facts);
  EXPECT_FALSE(answered.questions.any());
  return answered;
}

const std::string host_table =
    "{ at = \"**\", on = \"gpu\" },\n{ at = \"embed.**\", on = \"cpu\" },\n";
std::string cache_of(const std::string& size) {
  return "{ at = \"embed.**\", cache = \"" + size + "\" },\n";
}

TEST(Cache, TheDataIsAskedForRows) {
  AskedCaches asked;
  const ResolvedPolicy policy = resolved(host_table + cache_of("2GiB"), asked);
  ASSERT_EQ(asked.constraints.size(), 1u);
  EXPECT_EQ(asked.constraints[0].parameter, "embed.weight");
  EXPECT_EQ(asked.constraints[0].size.bytes, std::uint64_t{2} << 30);
  EXPECT_EQ(policy.devices[static_cast<std::size_t>(asked.constraints[0].device)].name, "gpu");
  const ParameterAttributes& table = *policy.find_parameter("embed.weight");
  EXPECT_THAT(*table.cached.rows, ElementsAre(3, 5));
  EXPECT_EQ(table.cached.device, 1);
  EXPECT_EQ(table.cache.reason.text, "policy.toml:5: 2 rows on gpu for 75.0% of the ids");
  EXPECT_THAT(policy.notes, IsEmpty());
  EXPECT_THAT(policy.warnings, IsEmpty());
}

// Two rows outside of the cache, an index for each of them and one for each that is inside.
TEST(Cache, CountsWhatCrosses) {
  AskedCaches asked;
  const ResolvedPolicy policy = resolved(host_table + cache_of("128B"), asked);
  const ParameterAttributes& table = *policy.find_parameter("embed.weight");
  EXPECT_EQ(table.traffic.rows, 2);
  EXPECT_TRUE(table.traffic.counted);
  EXPECT_EQ(table.traffic.bytes_rows, 2 * 2 * row_bytes + 8 * ids);
  EXPECT_EQ(table.traffic.bytes_results, 2 * ids * row_bytes + 4 * ids);
  EXPECT_EQ(table.traffic.bytes_uncached, 2 * 6 * row_bytes + 4 * ids);
  EXPECT_EQ(table.ship.value, Ship::rows);
  EXPECT_THAT(table.ship.reason.text, HasSubstr("about 2 rows outside the cache for 8 ids"));
  AskedCaches results;
  const ResolvedPolicy by_results = resolved(
      host_table + "{ at = \"embed.**\", cache = \"1MiB\", ship = \"results\" },\n", results);
  EXPECT_EQ(by_results.find_parameter("embed.weight")->ship.value, Ship::results);
  EXPECT_EQ(by_results.find_parameter("embed.weight")->traffic.bytes_uncached, 2 * ids * row_bytes);
}

TEST(Cache, APartOfTheTable) {
  AskedCaches asked;
  const ResolvedPolicy policy = resolved(host_table + cache_of("12.5%"), asked);
  ASSERT_EQ(asked.constraints.size(), 1u);
  EXPECT_EQ(asked.constraints[0].size.bytes, 0u);
  EXPECT_DOUBLE_EQ(asked.constraints[0].size.part, 0.125);
  EXPECT_EQ(cache_text(asked.constraints[0].size), "12.5%");
  EXPECT_EQ(cache_text({.bytes = std::uint64_t{2} << 30}), "2.0 GiB");
  EXPECT_EQ(cache_text({.part = 0.1}), "10%");
}

TEST(Cache, LaterRulesWin) {
  AskedCaches asked;
  const ResolvedPolicy policy = resolved(host_table + cache_of("1MiB") + cache_of("2MiB"), asked);
  EXPECT_EQ(asked.constraints.at(0).size.bytes, std::uint64_t{2} << 20);
  ASSERT_EQ(policy.warnings.size(), 1u);
  EXPECT_THAT(policy.warnings[0].message, HasSubstr("overridden by policy.toml:6"));
}

TEST(Cache, PlacesTheCachesParts) {
  AskedCaches asked;
  const ResolvedPolicy policy = resolved(host_table + cache_of("1KiB"), asked);
  const ForwardPlacement placement = forward_placement(policy);
  EXPECT_EQ(placement.nodes.at(cached_name("embed.Gather")).device, 1);
  EXPECT_EQ(placement.nodes.at("embed.Gather").device, 0);
  const PlacedState& cache = placement.parameters.at(cached_name("embed.weight"));
  EXPECT_EQ(cache.state, 1);
  EXPECT_EQ(cache.param, 1);
  EXPECT_EQ(cache.reason, "cache policy.toml:5: 2 rows on gpu for 75.0% of the ids");
  EXPECT_EQ(placement.parameters.at("embed.weight").state, 0);
}

TEST(Cache, NobodyIsAskedWhereThereCanBeNone) {
  const auto note = [](const std::string& rules, const Graph& graph = lookup_to_cache(),
                       const std::string& refused = "") {
    AskedCaches asked;
    const ResolvedPolicy policy = resolved(rules, asked, graph, refused);
    EXPECT_THAT(asked.constraints, IsEmpty());
    EXPECT_EQ(policy.find_parameter("embed.weight")->cached.rows, nullptr);
    return policy.notes.size() == 1 ? policy.notes[0].message : "no note";
  };
  const std::string cache = cache_of("1KiB");
  EXPECT_EQ(note("{ at = \"**\", on = \"gpu\" },\n" + cache),
            "embed:weight has no cache: it is on gpu already");
  EXPECT_EQ(note(host_table + "{ at = \"embed:weight\", state = \"gpu\" },\n" + cache),
            "embed:weight has no cache: it is on gpu already");
  EXPECT_EQ(
      note("{ at = \"**\", on = \"gpu\" },\n{ at = \"embed:weight\", on = \"cpu\" },\n" + cache),
      "embed:weight has no cache: its lookup embed.Gather runs on gpu");
  EXPECT_EQ(note(cache), "embed:weight has no cache: what embed.Gather looks up is read on cpu");
  EXPECT_EQ(note(host_table + "{ at = \"tail.**\", on = \"emulated:1\" },\n" + cache),
            "embed:weight has no cache: what is looked up is read on more than one device");
  EXPECT_EQ(
      note(host_table + "{ at = \"tied.**\", run = \"cpu\" },\n" + cache, lookup_to_cache(true)),
      "embed:weight has no cache: not only lookups of rows read it");
  EXPECT_EQ(note(host_table + cache, lookup_to_cache(), "embed.Gather"),
            "embed:weight has no cache: no kernel is listed");
  EXPECT_EQ(note(host_table + cache, lookup_to_cache(), "optimizer.embed.weight"),
            "embed:weight has no cache: no kernel is listed");
}

TEST(Cache, WhatTheDataDoesNotTellIsNoted) {
  AskedCaches asked;
  asked.off = "no data shows which of its rows are looked up";
  const ResolvedPolicy policy = resolved(host_table + cache_of("1KiB"), asked);
  EXPECT_EQ(policy.find_parameter("embed.weight")->cached.rows, nullptr);
  ASSERT_EQ(policy.notes.size(), 1u);
  EXPECT_EQ(policy.notes[0].line, 5);
  EXPECT_EQ(policy.notes[0].column, 28);
  EXPECT_THAT(policy.notes[0].message, HasSubstr("no data shows"));
  AskedCaches nobody{.answers = false};
  EXPECT_THAT(resolved(host_table + cache_of("1KiB"), nobody).notes, IsEmpty());
}

TEST(Cache, RulesThatCoverNoTableAreNoted) {
  AskedCaches asked;
  const ResolvedPolicy policy =
      resolved(host_table + "{ at = \"head.**\", cache = \"1KiB\" },\n", asked);
  ASSERT_EQ(policy.notes.size(), 1u);
  EXPECT_THAT(policy.notes[0].message, HasSubstr("covers no table"));
  EXPECT_THAT(resolved(host_table + "{ at = \"**\", cache = \"1KiB\" },\n", asked).notes, IsEmpty())
      << "parameters beside the table are not meant";
}

TEST(Cache, SizesThatMakeNoSense) {
  for (const std::string size : {"0B", "0%", "120%", "2 GPUs", "-1MiB", ""}) {
    std::vector<Diagnostic> errors;
    parse_policy("policy = 1\nrules = [\n{ at = \"**\", cache = \"" + size + "\" },\n]\n", "p.toml",
                 {}, &errors);
    ASSERT_EQ(errors.size(), 1u) << size;
    EXPECT_EQ(errors[0].line, 3);
    EXPECT_EQ(errors[0].column, 22);
    EXPECT_THAT(errors[0].message, HasSubstr("not the size of a cache")) << size;
    EXPECT_THAT(errors[0].expected, AllOf(HasSubstr("2GiB"), HasSubstr("10%")));
  }
}

}  // namespace
}  // namespace tandem::testing

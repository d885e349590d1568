// `policy auto --ranks`: what ranks shard besides the batch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "placement/report/network.h"
#include "tandem/tandem.h"
#include "tests/harness/folders.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::api {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

class PolicyAutoRanksTest : public ::testing::Test {
 protected:
  PolicyOptions options(const std::string& model, std::int64_t batch) const {
    PolicyOptions options;
    options.model = source_folder() + "/models/" + model + "/model.onnx";
    options.bind = {{"batch", batch}};
    options.policy = folder_ / "new.toml";
    options.ranks = 8;
    options.network = "10Gb/s,5us";
    return options;
  }
  PolicyOptions tables(std::int64_t rows) const {
    PolicyOptions result = options("wide_deep", 4096);
    const std::string count = std::to_string(rows);
    result.overrides = {
        "optimizer.kind=\"adam\"",
        "optimizer.groups=[{at=\"wide:*\", kind=\"ftrl\"}, {at=\"deep:*\", kind=\"lazy_adam\"}]",
        "parameters.shape=[{at=\"{wide,deep}:weight\", rows=" + count + "}]",
        "loss.terms=[{name=\"loss\", kind=\"binary_cross_entropy\", logits=\"logits\", "
        "labels=\"label\"}]"};
    return result;
  }
  Json run(const PolicyOptions& options, const PolicyAutoOptions& automatic = {}) const {
    const Report report = policy_auto(options, automatic);
    text_ = report.text;
    return Json::parse(report.json);
  }
  std::string written() const {
    std::ifstream file(folder_ / "new.toml");
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static const Json* find(const Json& found, const std::string& name) {
    for (const Json& way : found["shardings"]) {
      if (way["name"] == name) return &way;
    }
    return nullptr;
  }

  testing::TemporaryFolder folder_;
  mutable std::string text_;
};

// Otherwise every rank would update the rows of all ranks.
TEST_F(PolicyAutoRanksTest, LargeTablesAreSharedOutByRows) {
  const Json found = run(tables(200'000));
  EXPECT_THAT(found["sharding"].get<std::string>(), HasSubstr("tables by rows"));
  EXPECT_THAT(written(), HasSubstr("shard = \"rows\""));
  EXPECT_THAT(text_, HasSubstr("ranks     8: data parallel"));
  const Json *plain = find(found, "data parallel"),
             *rows = find(found, "data parallel, tables by rows");
  ASSERT_NE(plain, nullptr);
  ASSERT_NE(rows, nullptr);
  EXPECT_LT((*rows)["step_ms"], (*plain)["step_ms"]);
  EXPECT_LT((*rows)["devices"]["cpu"]["peak"], (*plain)["devices"]["cpu"]["peak"]);
  // The deep table has four columns, the wide one has one and stays by rows.
  const std::string by_columns = "data parallel, large tables by columns, the others by rows";
  const Json* columns = find(found, by_columns);
  ASSERT_NE(columns, nullptr);
  EXPECT_EQ((*columns)["possible"], false);
  EXPECT_THAT((*columns)["refusal"].get<std::string>(),
              AllOf(HasSubstr("deep:weight: its columns cannot be sharded over the ranks"),
                    HasSubstr("some of 8 ranks would have none")));
  EXPECT_THAT(text_, HasSubstr("\n  " + by_columns + ": left out: "));
  // There, one rank updates the whole deep table.
  const Json* whole = find(found, "data parallel, whole tables with one rank each");
  ASSERT_NE(whole, nullptr);
  EXPECT_LT((*rows)["step_ms"], (*whole)["step_ms"]);
  // The written policy has the plan that was compared.
  PolicyOptions again = tables(200'000);
  const Json plan = Json::parse(policy_plan(again).json);
  EXPECT_NEAR(plan["time"]["step_ms"].get<double>(), found["after"]["step_ms"].get<double>(), 1e-6);
}

// Tables of two GiB on each rank do not fit; an eighth of them does.
TEST_F(PolicyAutoRanksTest, ABudgetDecides) {
  PolicyAutoOptions automatic;
  automatic.budgets = {"cpu=100MiB"};
  const Json found = run(tables(2'000'000), automatic);
  EXPECT_EQ((*find(found, "data parallel"))["fits"], false);
  EXPECT_THAT(found["sharding"].get<std::string>(), HasSubstr("tables by rows"));
  EXPECT_EQ(found["after"]["fits"], true);
}

TEST_F(PolicyAutoRanksTest, SmallNetworksAreDataParallel) {
  PolicyOptions digits = options("digits", 1024);
  digits.overrides = {
      "loss.terms=[{name=\"loss\", kind=\"softmax_cross_entropy\", "
      "logits=\"logits\", labels=\"labels\"}]"};
  const Json found = run(digits);
  EXPECT_EQ(found["sharding"], "data parallel");
  EXPECT_THAT(written(), Not(HasSubstr("shard")));
}

// By hand: 24 messages of 5 us and one that says what a rank runs, and 2 * 4095 / 4096 * 149.5 KiB
// at 12.5 GB/s. A ring would take 41 ms.
TEST_F(PolicyAutoRanksTest, ThousandsOfRanksExchangeInPairs) {
  PolicyOptions digits = options("digits", 4096);
  digits.policy.clear();
  digits.ranks = 4096;
  digits.network = "100Gb/s,5us";
  digits.overrides = {
      "loss.terms=[{name=\"loss\", kind=\"softmax_cross_entropy\", "
      "logits=\"logits\", labels=\"labels\"}]"};
  const Json exchange = Json::parse(policy_plan(digits).json)["exchange"];
  EXPECT_NEAR(exchange["ms"].get<double>(), 0.1495, 5e-4);
  for (const Json& one : exchange["exchanges"])
    EXPECT_THAT(one["algorithm"].get<std::string>(), AnyOf("halving", "doubling"));
}

TEST(Networks, AreReadAndRefused) {
  const Network network = parse_network("100Gb/s,5us");
  EXPECT_EQ(network.bytes_per_second, 12.5e9);
  EXPECT_DOUBLE_EQ(network.latency, 5e-6);
  EXPECT_EQ(parse_network("1ms").latency, 1e-3);
  for (const char* bad : {"fast", "10Gb/s,fast", ",", "10", "", "1us,", "1e30s"}) {
    EXPECT_THROW(parse_network(bad), Error) << bad;
  }
}

}  // namespace
}  // namespace tandem::api

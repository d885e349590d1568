// Metrics of many numbers as JSON and as lines for people.
#include "engine/metrics/metric_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tandem {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(MetricTableTest, NumbersByName) {
  const MetricTable table{"auc_by_country",
                          {"-1", "7", "12"},
                          {0.5, std::nan(""), -std::numeric_limits<double>::infinity()}};
  EXPECT_EQ(table_json(table), R"({"-1":0.5,"7":"nan","12":"-inf"})");
  EXPECT_EQ(table_text(table), "auc_by_country\n  -1  0.5\n   7  nan\n  12  -inf\n");
  EXPECT_EQ(table_text(table, 2),
            "auc_by_country\n  -1  0.5\n   7  nan\n  and 1 more, in metrics.jsonl\n");
  EXPECT_EQ(table_json({"none", {}, {}}), "{}");
}

TEST(MetricTableTest, Matrices) {
  const MetricTable table{"confusion", {"0", "1"}, {1234, 0, 5, 67}, true};
  EXPECT_EQ(table_json(table), "[[1234,0],[5,67]]");
  EXPECT_EQ(table_text(table),
            "confusion (rows: labels, columns: predictions)\n"
            "        0     1\n"
            "  0  1234     0\n"
            "  1     5    67\n");
  MetricTable large{"confusion", std::vector<std::string>(21, "0"), std::vector<double>(441), true};
  EXPECT_EQ(table_text(large), "confusion: 21 by 21 numbers, in metrics.jsonl\n");
  large.names.pop_back();
  large.numbers.resize(400);
  EXPECT_THAT(table_text(large), Not(HasSubstr("metrics.jsonl")));
  EXPECT_EQ(table_json({"confusion", {}, {}, true}), "[]");
}

TEST(MetricTableTest, ClassesWithWordsStandBesideTheirRows) {
  const MetricTable table{"confusion", {"cat", "dog"}, {3, 1, 0, 12}, true};
  EXPECT_EQ(table_json(table), R"({"classes":["cat","dog"],"rows":[[3,1],[0,12]]})");
  EXPECT_EQ(table_text(table),
            "confusion (rows: labels, columns: predictions)\n"
            "       cat  dog\n"
            "  cat    3    1\n"
            "  dog    0   12\n");
  EXPECT_EQ(table_json({"f1", {"cat", "d\xff"}, {0.5, 1}}), "{\"cat\":0.5,\"d\xef\xbf\xbd\":1}");
}

}  // namespace
}  // namespace tandem

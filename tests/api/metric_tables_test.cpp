// Metrics with many numbers as text and JSON, for a training and for `eval`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/api/trained_runs.h"

namespace tandem::api {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;

TEST(MetricTablesTest, TrainingAndEvaluationTellThem) {
  const testing::TemporaryFolder folder;
  testing::write_digits(folder);
  TrainOptions options;
  options.run_dir = folder / "run";
  // The graph does not read the field `digit`.
  options.overrides = {"steps=5", "data.fields.digit=\"labels\"",
                       "eval.metrics=[\"accuracy\", \"top_5\", \"confusion\", {kind=\"recall\", "
                       "average=\"none\"}, {kind=\"accuracy\", by=\"digit\"}]",
                       "eval.best=\"top_5\""};
  const TrainResult result = Trainer(folder / "train.toml", options).run();
  EXPECT_EQ(result.evaluation.size(), 3u);  // loss, accuracy, top_5
  ASSERT_EQ(result.tables.size(), 3u);
  const MetricTable &confusion = result.tables[0], &recall = result.tables[1],
                    &by_digit = result.tables[2];
  EXPECT_TRUE(confusion.is_matrix);
  EXPECT_EQ(confusion.names.size(), 10u);
  EXPECT_EQ(confusion.numbers.size(), 100u);
  EXPECT_EQ(by_digit.metric, "accuracy_by_digit");
  // The fraction of correct predictions among the images of a digit.
  EXPECT_EQ(by_digit.names, recall.names);
  EXPECT_EQ(by_digit.numbers, recall.numbers);
  EXPECT_THAT(to_text(confusion), HasSubstr("rows: labels, columns: predictions"));

  const EvaluationReport report = evaluate_run(options.run_dir, {});
  EXPECT_TRUE(report.problems.empty());
  const Json metrics = Json::parse(report.json)["metrics"];
  ASSERT_EQ(metrics["confusion"].size(), 10u);
  for (std::size_t i = 0; i < 100; ++i)
    EXPECT_EQ(metrics["confusion"][i / 10][i % 10].get<double>(), confusion.numbers[i]) << i;
  for (std::size_t i = 0; i < 10; ++i) {
    EXPECT_EQ(metrics["accuracy_by_digit"][by_digit.names[i]].get<double>(), by_digit.numbers[i]);
  }
  EXPECT_THAT(report.text, HasSubstr("accuracy_by_digit\n"));
}

}  // namespace
}  // namespace tandem::api

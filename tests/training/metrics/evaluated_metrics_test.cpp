// Metrics of whole evaluations: numbers, tables by class and by a data field, over ranks, after a
// resume; which data and models have no such metric.
#include "engine/train/evaluation/evaluated_metrics.h"

#include <filesystem>

#include "engine/train/evaluation/evaluation.h"
#include "tests/harness/rank_threads.h"
#include "tests/training/training_run.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Json = nlohmann::json;
using testing::Trained;

/// small_data with a country (-2, 0, 5) and an age in years for each sample, and a number of its
/// own.
std::shared_ptr<const DataSource> data_with_countries(std::int64_t samples) {
  const std::shared_ptr<const DataSource> small = testing::small_data(samples, 9);
  std::vector<std::int64_t> order(static_cast<std::size_t>(samples));
  std::vector<std::int64_t> countries, numbers;
  std::vector<float> ages;
  for (std::int64_t i = 0; i < samples; ++i) {
    order[static_cast<std::size_t>(i)] = i;
    countries.push_back(i % 3 == 0 ? -2 : i % 3 == 1 ? 0 : 5);
    numbers.push_back(i);
    ages.push_back(static_cast<float>(i) / 2);
  }
  std::vector<std::pair<std::string, HostTensor>> arrays;
  for (const DataField& field : small->fields()) {
    TensorType type = field.sample;
    type.shape.insert(type.shape.begin(), samples);
    HostTensor array(type);
    small->fill(small->find_field(field.name), order, nullptr, array.data());
    arrays.emplace_back(field.name, array);
  }
  arrays.emplace_back("country", HostTensor::from<std::int64_t>({samples}, countries));
  arrays.emplace_back("number", HostTensor::from<std::int64_t>({samples}, numbers));
  arrays.emplace_back("age", HostTensor::from<float>({samples}, ages));
  return make_array_source(arrays);
}

const std::string tables =
    "eval.metrics=['accuracy', 'confusion', {kind='recall', average='none'}, {kind='accuracy', "
    "by='country'}]";

class EvaluatedMetricsTest : public testing::TrainingRun {
 protected:
  std::string refusal(const std::string& metrics, const std::string& more = "seed=1") {
    return testing::error_text([&] { run({"steps=1", "eval.metrics=[" + metrics + "]", more}); });
  }
};

TEST_F(EvaluatedMetricsTest, TablesAgreeWithTheNumber) {
  eval_ = data_with_countries(31);
  const Trained run = this->run(
      {"steps=4", "eval.every=\"2 steps\"", tables, "optimizer.lr=0.01", "eval.best=\"accuracy\""});
  const Json line = testing::metrics_of(run.result.run_dir).back();
  ASSERT_EQ(line["phase"], "eval");
  const auto counts = line["confusion"].get<std::vector<std::vector<double>>>();
  ASSERT_EQ(counts.size(), 3u);
  double all = 0, right = 0;
  for (std::size_t label = 0; label < 3; ++label) {
    double labels = 0;
    for (const double count : counts[label]) labels += count;
    if (labels > 0) {
      EXPECT_DOUBLE_EQ(line["recall_none"][std::to_string(label)].get<double>(),
                       counts[label][label] / labels);
    }
    all += labels;
    right += counts[label][label];
  }
  EXPECT_EQ(all, 31);
  EXPECT_DOUBLE_EQ(line["accuracy"].get<double>(), right / 31);
  const Json& slices = line["accuracy_by_country"];
  ASSERT_EQ(slices.size(), 3u);
  const double of_slices = 11 * slices["-2"].get<double>() + 10 * slices["0"].get<double>() +
                           10 * slices["5"].get<double>();
  EXPECT_NEAR(of_slices / 31, right / 31, 1e-14);
  ASSERT_EQ(run.result.tables.size(), 3u);
  EXPECT_EQ(run.result.tables[0].metric, "confusion");
  EXPECT_EQ(Json::parse(table_json(run.result.tables[2])), slices);
  // Tables are not among the numbers of the progress, nor of the summary.
  EXPECT_EQ(run.evaluations.back().values.size(), 2u);
}

TEST_F(EvaluatedMetricsTest, ARunWithTablesGoesOn) {
  eval_ = data_with_countries(17);
  const std::vector<std::string> keys{"eval.every=\"2 steps\"", tables, "optimizer.lr=0.01",
                                      "eval.best=\"accuracy\"", "checkpoint.every=\"1 steps\""};
  std::vector<std::string> four = keys, eight = keys;
  four.push_back("steps=4");
  eight.push_back("steps=8");
  const std::string path = this->run(four).result.run_dir;
  ASSERT_EQ(testing::metrics_of(path).size(), 6u);
  this->run(eight, 0, path);
  const std::vector<Json> resumed = testing::metrics_of(path);
  const std::vector<Json> whole = testing::metrics_of(this->run(eight).result.run_dir);
  ASSERT_EQ(resumed.size(), 12u);
  EXPECT_EQ(resumed, whole);
}

TEST_F(EvaluatedMetricsTest, ASliceWithoutSuchAMetricIsNoError) {
  const std::vector<std::string> keys{
      "steps=2",
      "loss.terms=[{kind=\"binary_cross_entropy\", logits=\"logits\", labels=\"labels\"}]",
      "eval.metrics=['auc', {kind='auc', by='part'}, {kind='gauc', group='part'}]"};
  HostTensor x(TensorType{DType::float32, {8, 6}}), labels(TensorType{DType::float32, {8, 3}});
  for (std::int64_t i = 0; i < 48; ++i) x.as<float>()[i] = static_cast<float>(i % 7) / 7;
  for (const std::int64_t i : {0, 4, 8, 9}) labels.as<float>()[i] = 1;
  const HostTensor part = HostTensor::from<std::int64_t>({8}, {0, 0, 0, 0, 1, 1, 1, 1});
  train_ = eval_ = make_array_source({{"x", x}, {"labels", labels}, {"part", part}});
  const Trained run = this->run(keys);
  const Json line = testing::metrics_of(run.result.run_dir).back();
  EXPECT_EQ(line["auc_by_part"]["1"], "nan");  // no positive label there
  EXPECT_DOUBLE_EQ(line["auc_by_part"]["0"].get<double>(), line["gauc"].get<double>());
  EXPECT_TRUE(line["auc"].is_number());
}

TEST_F(EvaluatedMetricsTest, WhatTheDataDoesNotHaveIsRefusedBeforeTheFirstStep) {
  eval_ = data_with_countries(1002);
  EXPECT_THAT(refusal("{kind='accuracy', by='county'}"),
              AllOf(HasSubstr("there is no data field \"county\""), HasSubstr("country")));
  EXPECT_THAT(refusal("{kind='accuracy', by='age'}"), HasSubstr("an integer for each sample"));
  EXPECT_THAT(refusal("{kind='accuracy', by='x'}"), HasSubstr("an integer for each sample"));
  EXPECT_THAT(refusal("{kind='accuracy', by='number'}"),
              AllOf(HasSubstr("at most 1000"), HasSubstr("got 1002")));
  EXPECT_THAT(refusal("'f1'"), HasSubstr("average"));
  EXPECT_THAT(refusal("'top_5'"), HasSubstr("more than 5 classes"));
  EXPECT_THAT(refusal("{kind='gauc', group='country'}"), HasSubstr("a term of kind"));
  EXPECT_THAT(refusal("'confusion'", "eval.best=\"confusion\""), HasSubstr("more than one number"));
  EXPECT_THAT(refusal("{kind='accuracy', by='country'}", "eval.best=\"accuracy_by_country\""),
              HasSubstr("more than one number"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "runs"));
  eval_ = data_with_countries(1000);
  EXPECT_EQ(refusal("{kind='accuracy', by='number'}"), "no error");
}

TEST_F(EvaluatedMetricsTest, RanksHaveTheTablesOfOneProcess) {
  struct Found {
    Evaluation::Values values;
    std::vector<MetricTable> tables;
  };
  const RunConfig config = testing::small_config(folder_.path(), {tables});
  const auto evaluate = [&](std::shared_ptr<Rendezvous> ranks, std::int64_t samples) {
    testing::SmallEngine engine;
    RunParts parts = engine.parts();
    parts.ranks = std::move(ranks);
    StateStore states;
    Evaluation evaluation(config, parts, data_with_countries(samples), states, make_arenas());
    return Found{*evaluation.run(), evaluation.tables()};
  };
  for (const std::int64_t samples : {21, 3}) {
    const Found whole = evaluate(one_rank(), samples);
    for (const int ranks : {2, 5}) {  // with 3 samples, some of 5 ranks have none
      std::vector<Found> found(static_cast<std::size_t>(ranks));
      testing::on_rank_threads(ranks, [&](RankGroup& group) {
        found[static_cast<std::size_t>(group.rank())] = evaluate(group.rendezvous(), samples);
      });
      for (const Found& one : found) {
        EXPECT_EQ(one.values.back(), whole.values.back());  // accuracy counts
        ASSERT_EQ(one.tables.size(), whole.tables.size());
        for (std::size_t i = 0; i < one.tables.size(); ++i)
          EXPECT_EQ(table_json(one.tables[i]), table_json(whole.tables[i])) << samples;
      }
    }
  }
}

TEST_F(EvaluatedMetricsTest, ClassesAndValuesAreCalledByTheirWords) {
  const RunConfig config = testing::small_config(folder_.path(), {tables});
  const auto names_with = [&](const FieldWords& words) {
    testing::SmallEngine engine;
    RunParts parts = engine.parts();
    parts.words = words;
    StateStore states;
    Evaluation evaluation(config, parts, data_with_countries(9), states, make_arenas());
    evaluation.run();
    std::vector<std::vector<std::string>> names;
    for (const MetricTable& table : evaluation.tables()) names.push_back(table.names);
    return names;
  };
  using Names = std::vector<std::vector<std::string>>;
  EXPECT_EQ(names_with({}), (Names{{"0", "1", "2"}, {"0", "1", "2"}, {"-2", "0", "5"}}));
  // Label 1 has no word, and neither have countries -2 and 5.
  EXPECT_EQ(names_with({{"labels", {"ant", "", "cow"}}, {"country", {"chad"}}}),
            (Names{{"ant", "1", "cow"}, {"ant", "1", "cow"}, {"-2", "chad", "5"}}));
  // A word that would be the name of two.
  EXPECT_EQ(names_with({{"labels", {"ant", "", "1"}}})[0],
            (std::vector<std::string>{"0", "1", "2"}));
}

}  // namespace
}  // namespace tandem

// Labels that are words: guessed from a table, used in metrics, predictions and reports, kept by
// exported models.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "api/trained/class_words.h"
#include "engine/formats/files.h"
#include "tandem/init.h"
#include "tandem/runs.h"
#include "tandem/tandem.h"
#include "tests/api/error_of.h"
#include "tests/api/small_model.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::api {
namespace {

namespace fs = std::filesystem;
using tandem::testing::error_of;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Json = nlohmann::json;

/// Three species of flowers, each with a column that is 1 for it.
class ClassWords : public ::testing::Test {
 protected:
  void SetUp() override {
    std::ofstream(folder_ / "net.onnx", std::ios::binary)
        << testing::SmallModel()
               .input("x", {8, 3})
               .weight("w", {3, 3}, 0.1f)
               .node("MatMul", "fc", {"x", "w"}, "logits")
               .output("logits", {8, 3})
               .bytes();
    fs::create_directories(folder_ / "data");
    write_file(folder_ / "data/flowers.csv", rows(60));
  }
  /// The names are not in sorted order.
  static std::string rows(int count, bool with_species = true) {
    const char* const names[] = {"rose", "aster", "it's a lily"};
    std::string text = std::string("p,q,r") + (with_species ? ",species" : "") + "\n";
    for (int i = 0; i < count; ++i) {
      const int kind = i % 3;
      text += std::to_string(kind == 0) + "," + std::to_string(kind == 1) + "," +
              std::to_string(kind == 2);
      text += with_species ? std::string(",") + names[kind] + "\n" : "\n";
    }
    return text;
  }
  void train() {
    const InitReport report = init(folder_ / "net.onnx", {.data = folder_ / "data"});
    ASSERT_THAT(report.open, IsEmpty()) << report.text;
    TrainOptions options;
    options.overrides = {"steps=200", "optimizer.lr=0.1",
                         "eval.metrics=['accuracy', 'confusion', {kind='f1', average='none'}]"};
    options.run_dir = folder_ / "run";
    result_ = Trainer(folder_ / "train.toml", options).run();
  }
  std::string predicted(const std::string& model, PredictOptions options,
                        const std::string& name = "p.csv") {
    if (options.data.empty()) {
      write_file(folder_ / "new.csv", rows(3, false));
      options.data = {folder_ / "new.csv"};
    }
    options.to = folder_ / name;
    if (options.as.empty()) options.as = "class";
    predict_run(folder_ / model, options);
    return read_file(options.to);
  }

  tandem::testing::TemporaryFolder folder_;
  TrainResult result_;
};

TEST_F(ClassWords, AreGuessedAndNamedInMetrics) {
  train();
  EXPECT_THAT(read_file(folder_ / "train.toml"),
              HasSubstr("classes('aster', \\\"it's a lily\\\", 'rose')"));
  EXPECT_EQ(result_.evaluation.at("accuracy"), 1);
  ASSERT_EQ(result_.tables.size(), 2u);
  for (const MetricTable& table : result_.tables)
    EXPECT_THAT(table.names, ElementsAre("aster", "it's a lily", "rose"));
  EXPECT_THAT(read_file(folder_ / "run/metrics.jsonl"),
              AllOf(HasSubstr(R"("confusion":{"classes":["aster","it's a lily","rose"],"rows":[[)"),
                    HasSubstr(R"("f1_none":{"aster":)")));
  const EvaluationReport report = evaluate_run(folder_ / "run", {});
  EXPECT_THAT(report.text, HasSubstr("it's a lily"));
  EXPECT_EQ(Json::parse(report.json)["metrics"]["confusion"]["classes"][2], "rose");
  write_report({folder_ / "run"}, folder_ / "report.html");
  EXPECT_THAT(read_file(folder_ / "report.html"), HasSubstr("<th scope=\"row\">aster</th>"));
}

TEST_F(ClassWords, ArePredictedUnlessNumbersAreAskedFor) {
  train();
  PredictOptions options;
  EXPECT_EQ(predicted("run", options), "rose\naster\nit's a lily\n");
  EXPECT_EQ(predicted("run", options, "p.jsonl"),
            "{\"class\": \"rose\"}\n{\"class\": \"aster\"}\n{\"class\": \"it's a lily\"}\n");
  options.class_names = false;
  EXPECT_EQ(predicted("run", options), "2\n0\n1\n");
  options.class_names = true;
  EXPECT_EQ(predicted("run", options), "rose\naster\nit's a lily\n");
  EXPECT_THAT(error_of([&] { predicted("run", options, "p.npy"); }), HasSubstr("--class-names"));
}

TEST_F(ClassWords, StayWithTheExportedModel) {
  train();
  export_run(folder_ / "run", folder_ / "out.onnx");
  PredictOptions configured;
  configured.config = folder_ / "train.toml";
  EXPECT_EQ(predicted("out.onnx", configured), "rose\naster\nit's a lily\n");
  // Without the configuration, data that lacks a word still has the numbers of the training.
  const std::string head = "p,q,r,species\n";
  std::string many = head;
  for (int i = 0; i < 40; ++i) many += "1,0,0,rose\n0,1,0,aster\n";
  write_file(folder_ / "many.csv", many);
  TrainedOptions bare;
  bare.data = {folder_ / "many.csv"};
  EXPECT_EQ(Json::parse(evaluate_run(folder_ / "out.onnx", bare).json)["metrics"]["accuracy"], 1);
  write_file(folder_ / "two.csv", head + "1,0,0,rose\n0,1,0,aster\n1,0,0,rose\n");
  PredictOptions guessed;
  guessed.data = {folder_ / "two.csv"};
  EXPECT_EQ(predicted("out.onnx", guessed), "rose\naster\nrose\n");
}

TEST_F(ClassWords, AWordThatTrainingDidNotHaveIsABadRow) {
  train();
  write_file(folder_ / "more.csv", rows(3) + "1,0,0,tulip\n");
  TrainedOptions options;
  options.data = {folder_ / "more.csv"};
  EXPECT_THAT(error_of([&] { evaluate_run(folder_ / "run", options); }, ErrorKind::data),
              AllOf(HasSubstr("more.csv:5:4"), HasSubstr("none of the classes"),
                    HasSubstr("got \"tulip\"")));
}

TEST(ExportedWords, OtherMetadataIsNone) {
  EXPECT_THAT(exported_words({{"class_names.label", R"(["a","b"])"}}).at("label"),
              ElementsAre("a", "b"));
  for (const char* text : {"", "7", "[]", "[1,2]", "[\"a\",1]", "{\"a\":\"b\"}", "[\"a\""})
    EXPECT_THAT(exported_words({{"class_names.label", text}}), IsEmpty()) << text;
}

}  // namespace
}  // namespace tandem::api

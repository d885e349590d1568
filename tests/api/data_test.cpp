// Training on a text table through the library and the tool: vocabularies, `tandem data`. Ids and
// labels that do not fit: tests/expected/commands/data.txt.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "api/trained/vocabularies.h"
#include "engine/formats/files.h"
#include "tandem/tandem.h"
#include "tests/api/small_model.h"
#include "tests/harness/folders.h"
#include "tests/harness/program.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::api {
namespace {

using tandem::testing::Ended;
using tandem::testing::run_program;
using ::testing::Contains;
using ::testing::HasSubstr;
using Json = nlohmann::json;

// Two ids per sample look up a table of 5 rows, followed by three classes.
class DataTest : public ::testing::Test {
 protected:
  DataTest() {
    std::ofstream(folder_ / "model.onnx")
        << tandem::testing::SmallModel()
               .input("ids", {4, 2}, 7)
               .weight("table", {5, 3}, 0.5f)
               .weight("w", {6, 3}, 0.5f)
               .node("Gather", "embedding", {"table", "ids"}, "rows")
               .node("Flatten", "flatten", {"rows"}, "flat")
               .node("MatMul", "classes", {"flat", "w"}, "logits")
               .output("logits", {4, 3})
               .bytes();
    write("u\tv\tno\nu\tw\tyes\nv\tw\tno\nu\tv\tno\nw\tu\tyes\nu\tu\tno\nv\tv\tyes\nu\tw\tno\n");
  }

  void write(const std::string& rows) { write_file(folder_ / "rows.tsv", rows); }
  // `as`: functions of the ids.
  void configure(const std::string& as, const std::string& more = "") {
    std::ofstream(folder_ / "train.toml") << R"(model = "model.onnx"
batch_size = 4
steps = 4
[loss]
terms = [ { kind = "softmax_cross_entropy", logits = "logits", labels = "labels" } ]
[optimizer]
kind = "sgd"
[data]
kind = "tsv"
columns = [ "a", "b", "class" ]
[data.train]
files = [ "rows.tsv" ]
[data.fields]
labels = { from = "class", as = [ "vocabulary" ] }
ids = { from = [ "a", "b" ], as = [ )" << as
                                          << " ]" << more << " }\n";
  }
  TrainOptions options(const std::string& run, bool resume = false) {
    TrainOptions options;
    options.run_dir = folder_ / run;
    options.resume = resume;
    options.on_message = [this](const std::string& text) { messages_.push_back(text); };
    return options;
  }
  std::string train(const std::string& run, bool resume = false,
                    std::vector<std::string> overrides = {}) {
    try {
      TrainOptions how = options(run, resume);
      how.overrides = std::move(overrides);
      Trainer(folder_ / "train.toml", how).run();
    } catch (const Error& error) {
      kind_ = error.kind();
      return error.what();
    }
    return "no error";
  }

  tandem::testing::TemporaryFolder folder_;
  std::vector<std::string> messages_;
  ErrorKind kind_ = ErrorKind::runtime;
};

TEST_F(DataTest, TheVocabularyStaysWithTheRun) {
  configure("'vocabulary(name=\"words\")'");
  EXPECT_EQ(train("run"), "no error");
  EXPECT_THAT(messages_, Contains(HasSubstr("preparing 1 file")));
  EXPECT_EQ(read_file(folder_ / "run/vocabulary.words.tsv"),
            "column\tvalue\tcount\n\tu\t7\n\tv\t5\n\tw\t4\n");
  EXPECT_TRUE(path_exists(folder_ / "run/vocabulary.labels.tsv"));
  EXPECT_THAT(export_run(folder_ / "run", folder_ / "out.onnx"),
              HasSubstr("out.vocabulary.words.tsv"));
  EXPECT_EQ(read_file(folder_ / "out.vocabulary.words.tsv"),
            read_file(folder_ / "run/vocabulary.words.tsv"));

  messages_.clear();
  EXPECT_EQ(train("run", true, {"steps=6"}), "no error");
  EXPECT_THAT(messages_, Contains("resumed at step 4"));
  EXPECT_THAT(messages_, ::testing::Not(Contains(HasSubstr("preparing"))));

  const std::string rows = read_file(folder_ / "rows.tsv");
  write(rows + "w\tw\tno\nw\tw\tno\n");
  EXPECT_THAT(train("run", true, {"steps=8"}), HasSubstr("ids would mean other rows"));
  EXPECT_EQ(kind_, ErrorKind::data);
  write(rows);
  EXPECT_EQ(train("run", true, {"steps=8"}), "no error");
  configure("'hash(5)'");
  EXPECT_THAT(train("run", true, {"steps=9"}), HasSubstr("no vocabulary of that name"));
  EXPECT_EQ(train("other"), "no error");
  configure("'vocabulary(name=\"words\")'");
  EXPECT_THAT(train("other", true, {"steps=9"}), HasSubstr("trained without a vocabulary"));
}

TEST_F(DataTest, PrepareIsDoneOnce) {
  configure("'vocabulary(by=\"value\")'");
  const std::string toml = folder_ / "train.toml";
  const Ended first = run_program("data prepare " + toml + " 2>/dev/null");
  EXPECT_EQ(first.code, 0);
  EXPECT_THAT(first.text, HasSubstr("prepared 8 rows"));
  const Ended second = run_program("data prepare " + toml + " --json 2>/dev/null");
  const Json json = Json::parse(second.text);
  EXPECT_EQ(json["up_to_date"], true);
  EXPECT_EQ(json["train"]["samples"], 8);
  EXPECT_EQ(json["vocabularies"][1]["rows"], 4);  // u, v, w and one for unknown words
  EXPECT_THAT(run_program("data prepare " + toml + " 2>/dev/null").text, HasSubstr("up to date"));
  EXPECT_EQ(train("run"), "no error");
  EXPECT_THAT(messages_, ::testing::Not(Contains(HasSubstr("preparing"))));
}

// The table has a row for each word, so the data is prepared before the model is read.
TEST_F(DataTest, PreparingForTheRowsOfATableIsSaidOnce) {
  configure("'vocabulary(by=\"value\")'");
  write("u\tv\tno\nu\tw\tyes\nv\tw\nw\tu\tyes\nu\tu\tno\n");
  const std::string rows = "parameters.shape=[{at=\"table\",rows=\"vocabulary(ids)\"}]";
  const auto said = [&](const std::string& what) {
    return std::count_if(messages_.begin(), messages_.end(), [&](const std::string& message) {
      return message.find(what) != std::string::npos;
    });
  };
  EXPECT_EQ(train("run", false, {rows, "data.on_bad=\"skip\""}), "no error");
  EXPECT_EQ(said("preparing 1 file"), 1);
  EXPECT_EQ(said("1 of 5 rows were left out"), 1);

  const Ended dry =
      run_program("train " + (folder_ / "train.toml") + " '" + rows +
                  "' data.on_bad=skip 'data.cache=\"" + (folder_ / "other") + "\"' --dry-run 2>&1");
  EXPECT_EQ(dry.code, 0);
  EXPECT_THAT(dry.text, HasSubstr("preparing 1 file"));
  EXPECT_THAT(dry.text, HasSubstr("nothing was trained, no run directory was written"));
  EXPECT_TRUE(path_exists(folder_ / "other"));
  EXPECT_FALSE(path_exists(folder_ / "runs/train-0001"));
}

TEST_F(DataTest, CheckShowsWhatIsThere) {
  configure("'int64'");
  std::string config = read_file(folder_ / "train.toml");
  config.replace(config.find("\"vocabulary\""), 12, "\"missing('no')\", \"vocabulary\"");
  write_file(folder_ / "train.toml", config);
  write("0\t1\tno\n4\t\tyes\n4\t4\n2\t4\tyes\n3\t0\t\n");
  const std::string toml = folder_ / "train.toml";
  const Ended bad = run_program("data check " + toml + " --json 2>/dev/null");
  EXPECT_EQ(bad.code, 4);
  const Json json = Json::parse(bad.text);
  EXPECT_TRUE(json["notes"].empty());
  EXPECT_EQ(json["train"]["samples"], 3);
  EXPECT_EQ(json["train"]["bad"], 2);
  EXPECT_EQ(json["problems"].size(), 2u);
  EXPECT_EQ(json["problems"][0]["line"], 2);
  EXPECT_EQ(json["problems"][0]["column"], 2);
  const Json& ids = json["train"]["fields"][1];
  EXPECT_EQ(ids["columns"][0]["least"], 0);
  EXPECT_EQ(ids["columns"][1]["greatest"], 4);
  EXPECT_EQ(json["train"]["fields"][0]["columns"][0]["missing"], 1);
  EXPECT_EQ(json["train"]["fields"][0]["columns"][0]["distinct"], 2);
  EXPECT_FALSE(path_exists(folder_ / "runs"));
  const Ended skipped = run_program("data check " + toml + " data.on_bad=skip 2>/dev/null");
  EXPECT_EQ(skipped.code, 0);
  EXPECT_THAT(skipped.text, HasSubstr("train: 3 samples, 2 bad rows"));
  EXPECT_THAT(skipped.text, HasSubstr("rows.tsv:3:3: the field of `class`"));

  for (const char* rows : {"", "0\t1\n4\n"}) {  // nothing that training could take
    write(rows);
    const Ended none = run_program("data check " + toml + " data.on_bad=skip 2>/dev/null");
    EXPECT_EQ(none.code, 4);
    EXPECT_THAT(none.text, HasSubstr("rows.tsv: there are no samples"));
    EXPECT_THAT(train("none", false, {"data.on_bad=\"skip\""}), HasSubstr("there are no samples"));
    EXPECT_EQ(kind_, ErrorKind::data);
  }

  const std::string digits = source_folder() + "/models/digits/train.toml";
  const Ended arrays = run_program("data check " + digits + " --json 2>/dev/null");
  EXPECT_EQ(arrays.code, 0);
  EXPECT_GT(Json::parse(arrays.text)["train"]["samples"], 100);
}

}  // namespace
}  // namespace tandem::api

// How the open question which columns of a table are a row of numbers is answered; identifiers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "api/init/facts.h"
#include "api/program/init.h"
#include "engine/formats/files.h"
#include "tests/api/error_of.h"
#include "tests/api/small_model.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::api {
namespace {

using tandem::testing::error_of;
using tandem::testing::SmallModel;
using tandem::testing::TemporaryFolder;
using ::testing::AllOf;
using ::testing::HasSubstr;

class InitColumns : public ::testing::Test {
 protected:
  /// Guesses for a score of four numbers: a date, an age, a large number, calls; and a label whose
  /// name is not that of a target.
  InitColumns() {
    std::string rows = "signup,age,last,calls,gone\n";
    for (int i = 0; i < 60; ++i)
      rows += "2020-0" + std::to_string(1 + i % 9) + "-01," + std::to_string(20 + i % 9) + "," +
              std::to_string(1716548752 + 1000 * i) + "," + std::to_string(i % 4) + "," +
              std::to_string(i % 2) + "\n";
    write_file(folder_ / "net.onnx", SmallModel()
                                         .input("numbers", {8, 4})
                                         .weight("w", {4, 1}, 0.5f)
                                         .node("MatMul", "fc", {"numbers", "w"}, "y_hat")
                                         .output("y_hat", {8, 1})
                                         .bytes());
    write_file(folder_ / "rows.csv", rows);
    init(folder_ / "net.onnx", {.data = folder_ / "rows.csv"});
  }

  TemporaryFolder folder_;
};

// The advice also works for dates: a target with its usual name leaves the right columns.
TEST_F(InitColumns, ATodoOfTrainingNamesTheLineToAddAndItWorks) {
  TrainOptions options;
  options.overrides = {"steps=2", "data=" + (folder_ / "rows.csv")};
  const std::string refusal = error_of([&] { Trainer(folder_ / "net.onnx", options); });
  EXPECT_THAT(refusal, AllOf(HasSubstr("name it \"target\""),
                             HasSubstr("add 'data.fields.numbers={ from = [ \"signup\", ")));
  const std::size_t from = refusal.find("add '") + 5, to = refusal.find("' to the line", from);
  ASSERT_NE(to, std::string::npos) << refusal;
  options.overrides.push_back(refusal.substr(from, to - from));
  options.run_dir = folder_ / "run";
  EXPECT_EQ(Trainer(folder_ / "net.onnx", options).run().steps, 2u);
}

TEST_F(InitColumns, ADryRunNamesTheLineOfATodo) {
  const std::string config = read_file(folder_ / "train.toml");
  const std::size_t at = config.find("# TODO numbers");
  ASSERT_NE(at, std::string::npos) << config;
  const auto line =
      1 + std::count(config.begin(), config.begin() + static_cast<std::ptrdiff_t>(at), '\n');
  TrainOptions options;
  options.dry_run = true;
  EXPECT_THAT(
      error_of([&] { Trainer(folder_ / "train.toml", options).run(); }),
      AllOf(HasSubstr("train.toml:" + std::to_string(line)), HasSubstr("it is still a TODO here")));
}

TEST_F(InitColumns, IdentifiersAreWholeNumbersOrTextsThatAreThereOnce) {
  std::string table = "id,word,share,often,gap,label\n", lines;
  for (int i = 0; i < 30; ++i) {
    const std::string n = std::to_string(i);
    table +=
        n + ",w" + n + "," + n + ".5," + std::to_string(i % 29) + "," + (i == 4 ? "" : n) + ",0\n";
    lines += "{\"id\": " + n + ", \"word\": \"w" + n + "\", \"share\": " + n +
             ".5, \"often\": " + std::to_string(i % 29) + ", \"gap\": " + (i == 4 ? "null" : n) +
             ", \"label\": 0}\n";
  }
  write_file(folder_ / "rows.csv", table);
  write_file(folder_ / "rows.jsonl", lines);
  for (const std::string name : {"rows.csv", "rows.jsonl"}) {
    SCOPED_TRACE(name);
    const DataFacts facts = look_into_data(folder_ / name);
    EXPECT_TRUE(facts.find("id")->is_identifier);
    EXPECT_TRUE(facts.find("word")->is_identifier);
    EXPECT_FALSE(facts.find("share")->is_identifier);
    EXPECT_FALSE(facts.find("often")->is_identifier);
    EXPECT_FALSE(facts.find("gap")->is_identifier);
  }
}

}  // namespace
}  // namespace tandem::api

// Which files `init` trains on and which it holds out, and how it reports that.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/init/data/data_look.h"
#include "engine/formats/files.h"
#include "tandem/init.h"
#include "tests/api/error_of.h"
#include "tests/api/small_model.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::api {
namespace {

using namespace tandem::testing;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class InitFiles : public ::testing::Test {
 protected:
  InitFiles() {
    write_file(folder_ / "net.onnx", SmallModel()
                                         .input("x", {8, 2})
                                         .weight("w", {2, 1}, 0.5f)
                                         .node("MatMul", "fc", {"x", "w"}, "y_hat")
                                         .output("y_hat", {8, 1})
                                         .bytes());
    make_directories(folder_ / "rows");
  }
  void write_rows(const std::string& name, char separator = ',') {
    std::string text = "a,b,target\n";
    for (int i = 0; i < 30; ++i)
      text +=
          std::to_string(i % 7) + "," + std::to_string(i % 5) + "," + std::to_string(i % 2) + "\n";
    for (char& c : text) c = c == ',' ? separator : c;
    write_file(folder_ / name, text);
  }
  InitReport guess(const std::string& data, const std::string& eval = "") {
    return init(folder_ / "net.onnx",
                {.data = folder_ / data, .eval = eval.empty() ? "" : folder_ / eval});
  }
  std::string text() const { return read_file(folder_ / "train.toml"); }
  /// The path as it is shown from another folder.
  std::string at(const std::string& name) const { return folder_ / name; }
  TemporaryFolder folder_;
};

TEST_F(InitFiles, NamesSayWhatIsHeldOut) {
  for (const char* name : {"hold_out.csv", "rows-hold-out.csv", "held_out.csv", "holdout.csv",
                           "x_oot.csv", "valid.csv", "validation.csv", "dev.csv", "test2.csv"})
    EXPECT_TRUE(names_held_out(name)) << name;
  for (const char* name : {"household.csv", "hold.csv", "out.csv", "2024q4.csv", "latest.csv"})
    EXPECT_FALSE(names_held_out(name)) << name;
  EXPECT_TRUE(names_training("train1.csv"));
  EXPECT_FALSE(names_training("trains.csv"));
}

TEST_F(InitFiles, TheTerminalNamesTheFiles) {
  for (const char* name : {"rows/1.csv", "rows/2.csv", "rows/3.csv", "rows/4.csv"})
    write_rows(name);
  write_rows("rows/hold_out.csv");
  EXPECT_THAT(guess("rows").text,
              AllOf(HasSubstr("train      " + at("rows/1.csv") + ", " + at("rows/2.csv") + ", " +
                              at("rows/3.csv") + " and 1 more\n"),
                    HasSubstr("held out   " + at("rows/hold_out.csv") + "\n")));
}

TEST_F(InitFiles, APartIsHeldOutWhereNoFileIs) {
  write_rows("rows.csv");
  EXPECT_THAT(guess("rows.csv").text, AllOf(HasSubstr("train      " + at("rows.csv") + "\n"),
                                            HasSubstr("held out   a tenth of the "
                                                      "samples")));
}

TEST_F(InitFiles, BesideATrainingFileOthersAreLeftOutByName) {
  write_rows("rows/train.csv");
  write_rows("rows/extra.csv");
  EXPECT_THAT(guess("rows").text, AllOf(HasSubstr("train      " + at("rows/train.csv") + "\n"),
                                        HasSubstr("\"extra.csv\" left out")));
  EXPECT_THAT(text(), Not(HasSubstr("rows/extra.csv")));
}

TEST_F(InitFiles, TheHeldOutTableCanBeNamed) {
  write_rows("rows.csv");
  write_rows("later.csv", ';');
  EXPECT_THAT(guess("rows.csv", "later.csv").text,
              HasSubstr("held out   " + at("later.csv") + "\n"));
  EXPECT_THAT(text(), AllOf(HasSubstr("held out, as --eval says"), Not(HasSubstr("fraction"))));
  TrainOptions options;
  options.overrides = {"steps=2"};
  options.run_dir = folder_ / "run";
  EXPECT_EQ(Trainer(folder_ / "train.toml", options).run().steps, 2u);
}

TEST_F(InitFiles, OneOfTheFolderIsHeldOutByName) {
  write_rows("rows/2023.csv");
  write_rows("rows/2024.csv");
  const std::string told = guess("rows", "rows/2024.csv").text;
  EXPECT_THAT(told, AllOf(HasSubstr("train      " + at("rows/2023.csv") + "\n"),
                          HasSubstr("held out   " + at("rows/2024.csv") + "\n")));
}

TEST_F(InitFiles, HeldOutDataIsRefused) {
  write_rows("rows.csv");
  write_file(folder_ / "later.jsonl", "{\"a\": 1}\n");
  EXPECT_THAT(tandem::testing::error_of([&] { guess("rows.csv", "later.jsonl"); }),
              HasSubstr("of another kind"));
  EXPECT_THAT(tandem::testing::error_of([&] { guess("rows.csv", "rows.csv"); }),
              HasSubstr("all of the data is held out"));
  EXPECT_THAT(tandem::testing::error_of([&] { guess("rows.csv", "none.csv"); }),
              HasSubstr("no such file"));
}

// A held-out file with another separator is read with its own.
TEST_F(InitFiles, SeparatorsAreFoundInEachFile) {
  write_rows("rows/train.csv", ';');
  write_rows("rows/test.csv");
  EXPECT_THAT(guess("rows").text, HasSubstr("cells are separated by semicolons"));
  EXPECT_THAT(text(), Not(HasSubstr("separator =")));
  TrainOptions options;
  options.overrides = {"steps=2"};
  options.run_dir = folder_ / "run";
  EXPECT_EQ(Trainer(folder_ / "train.toml", options).run().steps, 2u);
}

}  // namespace
}  // namespace tandem::api

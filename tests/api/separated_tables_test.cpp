// Tables whose numbers and separators are written in several ways, from init on. Words that
// training lacks: tests/expected/commands/unknown_words.txt.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "api/program/init.h"
#include "engine/formats/files.h"
#include "tandem/tandem.h"
#include "tests/api/small_model.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::api {
namespace {

using tandem::testing::SmallModel;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Json = nlohmann::json;

// Equal numbers written with other separators: init, training and its losses must be equal.
TEST(SeparatedTables, TrainAlikeFromInitOn) {
  const auto losses = [](const std::string& separator, const std::string& point,
                         std::string* written) {
    const tandem::testing::TemporaryFolder folder;
    std::ofstream(folder / "net.onnx", std::ios::binary)
        << SmallModel()
               .input("x", {8, 3})
               .weight("w", {3, 1}, 0.1f)
               .node("MatMul", "fc", {"x", "w"}, "out")
               .output("out", {8, 1})
               .bytes();
    std::filesystem::create_directories(folder / "data");
    std::string text = separator + "a" + separator + "b" + separator + "c" + separator + "y\n";
    for (int i = 0; i < 64; ++i) {
      text += std::to_string(i);
      for (const int quarter : {i % 5 - 2, i % 7 - 3, i % 3 - 1, i % 5 + i % 3 - 3}) {
        const std::string sign = quarter < 0 ? "-" : "";
        text += separator + sign + std::to_string(std::abs(quarter) / 4) + point +
                (std::abs(quarter) % 4 == 0 ? "0" : std::to_string(25 * (std::abs(quarter) % 4)));
      }
      text += "\n";
    }
    write_file(folder / "data/rows.csv", text);
    const InitReport report = init(folder / "net.onnx", {.data = folder / "data"});
    EXPECT_THAT(report.open, IsEmpty()) << report.text;
    *written = read_file(folder / "train.toml");
    TrainOptions options;
    options.overrides = {"steps=6", "log.every='1 steps'"};
    options.run_dir = folder / "run";
    Trainer(folder / "train.toml", options).run();
    std::vector<double> result;
    std::istringstream lines(read_file(folder / "run/metrics.jsonl"));
    for (std::string line; std::getline(lines, line);) result.push_back(Json::parse(line)["loss"]);
    return result;
  };
  std::string commas, semicolons, tabs, bars;
  const std::vector<double> wanted = losses(",", ".", &commas);
  EXPECT_GE(wanted.size(), 6u);
  EXPECT_EQ(losses(";", ",", &semicolons), wanted);
  EXPECT_EQ(losses("\t", ".", &tabs), wanted);
  EXPECT_EQ(losses("|", ",", &bars), wanted);
  for (const std::string& config : {commas, semicolons, tabs, bars})
    EXPECT_THAT(config, Not(HasSubstr("separator ="))) << "each file's own rows show it";
  EXPECT_THAT(semicolons, HasSubstr("decimal = \",\""));
}

}  // namespace
}  // namespace tandem::api

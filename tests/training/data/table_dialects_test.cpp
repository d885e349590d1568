// Large tables in another dialect than csv, whose dates are read as Python reads them. The others:
// tests/expected/data/csv.txt.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <numeric>

#include "engine/data/data_source.h"
#include "engine/formats/files.h"
#include "tests/harness/folders.h"
#include "tests/training/data/data_config_text.h"

namespace tandem {
namespace {

using testing::data_config;
using testing::TemporaryFolder;

/// The field x of a table in csv.
std::vector<double> read_table(const std::string& text, const std::string& field) {
  const TemporaryFolder folder;
  write_file(folder / "t.csv", text);
  const DataSets sets = open_data(data_config(
      folder, "kind = 'csv'\ntrain = { files = ['t.csv'] }\nfields = { x = " + field + " }\n"));
  const DataSource& source = *sets.train;
  TensorType type = source.fields()[0].sample;
  type.shape.insert(type.shape.begin(), source.samples());
  HostTensor result(type);
  std::vector<std::int64_t> all(static_cast<std::size_t>(source.samples()));
  std::iota(all.begin(), all.end(), 0);
  source.fill(0, all, nullptr, result.data());
  std::vector<double> numbers;
  for (std::int64_t i = 0; i < type.elements(); ++i) numbers.push_back(result.number(i));
  return numbers;
}

// Blocks of a file are read by several threads, which all know its separator.
TEST(TableDialects, SeparatorOfALargeFile) {
  std::string text = "a;b\n";
  std::vector<double> wanted;
  for (int i = 0; i < 300'000; ++i) {
    text += std::to_string(i % 1000) + ";1\n";
    wanted.push_back(i % 1000);
  }
  EXPECT_EQ(read_table(text, "'a'"), wanted);
}

// Python's datetime reads the same dates (tests/scripts/field_numbers.py).
TEST(TableDialects, DatesAsPythonReadsThem) {
  const auto expected =
      nlohmann::json::parse(read_file(source_folder() + "/tests/data/field_numbers.json"))["dates"];
  for (const auto& [name, value] : expected[0]["parts"].items()) {
    SCOPED_TRACE(name);
    std::string text = "a,b\n";
    std::vector<double> wanted;
    for (const auto& date : expected) {
      text += date["cell"].get<std::string>() + ",0\n";
      wanted.push_back(date["parts"][name].get<double>());
    }
    EXPECT_EQ(read_table(text, "{ from = 'a', as = ['" + name + "', 'float64'] }"), wanted);
  }
}

}  // namespace
}  // namespace tandem

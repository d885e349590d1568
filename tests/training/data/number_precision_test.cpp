// Functions of numbers compute in double from the value as read and round once, in tables and in
// arrays. Expected values: tests/scripts/field_numbers.py.
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <numeric>

#include "engine/data/data_source.h"
#include "engine/data/functions/field_function.h"
#include "engine/formats/files.h"
#include "tests/harness/folders.h"
#include "tests/training/data/data_config_text.h"

namespace tandem {
namespace {

using Json = nlohmann::json;
using testing::TemporaryFolder;
using Texts = std::vector<std::string>;

Json expected_numbers() {
  return Json::parse(read_file(source_folder() + "/tests/data/field_numbers.json"));
}

std::vector<double> numbers_of_source(const DataSource& source) {
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

std::vector<double> of_array(const HostTensor& array, const Texts& functions) {
  FieldConfig field{.name = "x", .from = "a"};
  for (const std::string& text : functions) field.as.push_back(parse_transform(text));
  return numbers_of_source(*make_array_source({{"a", array}}, {field}));
}

std::string toml_list(const Texts& texts) {
  std::string list;
  for (const std::string& text : texts) list += (list.empty() ? "'" : ", '") + text + "'";
  return list;
}

TEST(NumberPrecision, TablesRoundOnce) {
  const Json expected = expected_numbers();
  for (const Json& each : expected["cases"]) {
    SCOPED_TRACE(each["functions"].dump());
    const TemporaryFolder folder;
    std::string rows = "a\n";
    for (const std::string cell : each["cells"]) rows += cell + "\n";
    write_file(folder / "train.csv", rows);
    const DataConfig config = testing::data_config(
        folder,
        "kind = 'csv'\ntrain = { files = ['train.csv'] }\nfields = { x = { from = 'a', as = [" +
            toml_list(each["functions"].get<Texts>()) + "] } }\n");
    const auto wanted = each["values"].get<std::vector<double>>();
    EXPECT_EQ(numbers_of_source(*open_data(config).train), wanted);
    // The second time from the arrays that were prepared.
    EXPECT_EQ(numbers_of_source(*open_data(config).train), wanted);
  }
}

TEST(NumberPrecision, ArraysRoundOnce) {
  const Json expected = expected_numbers();
  for (const Json& each : expected["cases"]) {
    SCOPED_TRACE(each["functions"].dump());
    std::vector<double> values;
    for (const std::string cell : each["cells"])
      values.push_back(std::strtod(cell.c_str(), nullptr));
    const auto count = static_cast<std::int64_t>(values.size());
    const auto wanted = each["values"].get<std::vector<double>>();
    EXPECT_EQ(of_array(HostTensor::from<double>({count}, values), each["functions"].get<Texts>()),
              wanted);
    EXPECT_EQ(
        of_array(HostTensor::from<double>({count, 1}, values), {"flatten", each["functions"][0]})
            .size(),
        wanted.size());
  }
}

// 2^24 + 1 is no float32, but its difference to 2^24 is.
TEST(NumberPrecision, WholeNumbersAboveFloat32) {
  const HostTensor ids = HostTensor::from<std::int64_t>({3}, {16777216, 16777217, 16777219});
  EXPECT_EQ(of_array(ids, {"normalize(16777216, 1)"}), (std::vector<double>{0, 1, 3}));
  EXPECT_EQ(of_array(ids, {"reshape(1)", "float32", "reshape(-1)", "normalize(16777216, 1)"}),
            (std::vector<double>{0, 1, 3}));
  EXPECT_EQ(of_array(ids, {"float32"}), (std::vector<double>{16777216, 16777216, 16777220}));
}

// By the table of all bytes and one by one.
TEST(NumberPrecision, PixelsRoundOnce) {
  const Json expected = expected_numbers();
  const auto wanted = expected["pixels"].get<std::vector<double>>();
  std::vector<std::uint8_t> bytes(std::size_t{4} * 256);
  std::iota(bytes.begin(), bytes.end(), std::uint8_t{0});
  const Texts functions{"scale(1/255)", "normalize(0.485, 0.229)"};
  for (const std::int64_t samples : {1, 1024}) {
    const std::vector<double> got =
        of_array(HostTensor::from<std::uint8_t>({samples, 1024 / samples}, bytes), functions);
    ASSERT_EQ(got.size(), bytes.size());
    for (std::size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i], wanted[i % 256]) << i;
  }
}

}  // namespace
}  // namespace tandem

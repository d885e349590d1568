// What `init` finds in binary files of token ids.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/init/facts.h"
#include "api/init/fields.h"
#include "api/program/init.h"
#include "engine/formats/files.h"
#include "tests/harness/folders.h"
#include "tests/training/error_text.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::api {
namespace {

using tandem::testing::TemporaryFolder;
using ::testing::AllOf;
using ::testing::HasSubstr;

template <class Element>
void put_ids(const std::string& path, std::size_t count, Element most,
             const std::string& before = "") {
  std::string bytes = before;
  for (std::size_t i = 0; i < count; ++i) {
    const auto id = static_cast<Element>(i * 7919 % (std::size_t{most} + 1));
    bytes.append(reinterpret_cast<const char*>(&id), sizeof id);
  }
  write_file(path, bytes);
}

std::string key_of(const DataFacts& facts, const std::string& name) {
  for (const GuessedKey& key : facts.keys) {
    if (key.name == name) return key.value + (key.todo.empty() ? "" : " # TODO");
  }
  return "";
}

TEST(InitTokens, TrainAndValAreSeenWithTheLengthThatTheModelTakes) {
  const TemporaryFolder folder;
  put_ids<std::uint16_t>(folder / "train.bin", 10'000, 50'256);
  put_ids<std::uint16_t>(folder / "val.bin", 1'001, 50'256);
  DataFacts facts = look_into_data(folder.path());
  EXPECT_EQ(facts.kind, "tokens");
  EXPECT_THAT(facts.train.at(0).paths.at(0), HasSubstr("train.bin"));
  EXPECT_THAT(facts.eval.at(0).paths.at(0), HasSubstr("val.bin"));
  fit_data({{"input_ids", {DType::int64, {64}}, {"batch", "64"}, 50'257}}, facts);
  EXPECT_EQ(key_of(facts, "element"), "\"uint16\"");
  EXPECT_EQ(key_of(facts, "length"), "64");
  EXPECT_EQ(key_of(facts, "header_bytes"), "");
  const ArrayFacts* tokens = facts.find("tokens");
  ASSERT_NE(tokens, nullptr);
  ASSERT_NE(facts.find("targets"), nullptr);
  EXPECT_EQ(tokens->sample, (TensorType{DType::int64, {64}}));
  EXPECT_LT(tokens->numbers.most, 50'257);
  EXPECT_GT(tokens->numbers.most, 40'000);
}

TEST(InitTokens, AMaskOfTheModelIsTheirOwn) {
  const TemporaryFolder folder;
  put_ids<std::uint16_t>(folder / "train.bin", 1'000, 99);
  DataFacts facts = look_into_data(folder.path());
  const std::vector<InputFacts> inputs = {
      {"input_ids", {DType::int64, {12}}, {"batch", "12"}, 100},
      {"attention_mask", {DType::int64, {12}}, {"batch", "12"}, 0}};
  fit_data(inputs, facts);
  EXPECT_EQ(key_of(facts, "length"), "12");
  const FieldGuesses fields = guess_fields(inputs, facts);
  ASSERT_NE(fields.fields[0].from, nullptr) << fields.fields[0].todo;
  ASSERT_NE(fields.fields[1].from, nullptr) << fields.fields[1].todo;
  EXPECT_EQ(source_toml(*fields.fields[0].from), "\"tokens\"");
  EXPECT_EQ(source_toml(*fields.fields[1].from), "\"mask\"");
}

TEST(InitTokens, WideIdsAndHeadersAreSeen) {
  const TemporaryFolder folder;
  std::string header(1024, '\0');
  const std::uint32_t magic = 20240520;
  header.replace(0, 4, reinterpret_cast<const char*>(&magic), 4);
  put_ids<std::uint32_t>(folder / "train.bin", 5'000, 128'255, header);
  DataFacts facts = look_into_data(folder.path());
  fit_data({{"input_ids", {DType::int64, {-1}}, {"batch", "length"}, 0}}, facts);
  EXPECT_EQ(key_of(facts, "element"), "\"uint32\"");
  EXPECT_EQ(key_of(facts, "header_bytes"), "1024");
  EXPECT_EQ(key_of(facts, "length"), "256") << "free in the model";
  EXPECT_TRUE(facts.chose_length);
  facts = look_into_data(folder.path());
  fit_data({{"input_ids", {DType::int64, {-1}}, {"batch", "length"}, 0},
            {"others", {DType::int64, {7}}, {"batch", "7"}, 0}},
           facts);
  EXPECT_EQ(key_of(facts, "length"), "256 # TODO");
}

TEST(InitTokens, FilesOfIdsAreInTheConfiguration) {
  const TemporaryFolder folder;
  for (const char* name : {"data/train.bin", "data/val.bin"}) {
    make_directories(folder / "data");
    put_ids<std::uint16_t>(folder / name, 1'000, 64);
  }
  init(source_folder() + "/tests/data/parity/gpt_torchscript.onnx",
       {.data = folder / "data", .to = folder.path()});
  EXPECT_THAT(read_file(folder / "train.toml"),
              AllOf(HasSubstr("\"tokens\""), HasSubstr("\"uint16\""), HasSubstr("length"),
                    HasSubstr("data/train.bin"), HasSubstr("data/val.bin")));
}

TEST(InitTokens, OtherBinaryFilesAreNoTokens) {
  const TemporaryFolder folder;
  write_file(folder / "pytorch_model.bin", std::string(1000, 'x'));
  EXPECT_THAT(tandem::testing::error_of([&] { look_into_data(folder.path()); }),
              HasSubstr("no file of a known kind"));
}

}  // namespace
}  // namespace tandem::api

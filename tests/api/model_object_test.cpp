// A model as data: its parts equal those that `inspect` prints.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "tandem/tandem.h"
#include "tests/api/small_model.h"
#include "tests/harness/folders.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::api {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Json = nlohmann::json;

const std::string digits_file = source_folder() + "/models/digits/model.onnx";

TEST(ModelObject, HasTheNetworkOfDigits) {
  const Model model(digits_file);
  ASSERT_THAT(model.inputs(), SizeIs(1));
  EXPECT_EQ(model.inputs()[0].name, "image");
  EXPECT_EQ(model.inputs()[0].dtype, DType::float32);
  ASSERT_THAT(model.inputs()[0].dims, SizeIs(4));
  EXPECT_EQ(std::get<std::string>(model.inputs()[0].dims[0]), "batch");
  EXPECT_EQ(std::get<std::int64_t>(model.inputs()[0].dims[3]), 8);
  ASSERT_THAT(model.outputs(), SizeIs(1));
  EXPECT_EQ(std::get<std::int64_t>(model.outputs()[0].dims[1]), 10);
  std::int64_t elements = 0;
  for (const ModelParameter& parameter : model.parameters()) {
    EXPECT_TRUE(parameter.trains) << parameter.name;
    EXPECT_FALSE(parameter.is_buffer) << parameter.name;
    elements += parameter.elements;
  }
  // Convolutions of 3 by 3 with 1 to 16 and 16 to 32 channels, products of 512 to 64 and 64 to 10.
  EXPECT_EQ(elements, (9 + 1) * 16 + (9 * 16 + 1) * 32 + (512 + 1) * 64 + (64 + 1) * 10);
  const ModelParameter& first = model.parameters()[0];
  EXPECT_EQ(first.name, "conv1.weight");
  EXPECT_EQ(first.path, "conv1:weight");
  EXPECT_THAT(first.shape, ElementsAre(16, 1, 3, 3));
  EXPECT_THAT(first.read_by, ElementsAre("conv1.Conv"));
  EXPECT_TRUE(model.trains());
  EXPECT_THAT(model.problems(), IsEmpty());
}

TEST(ModelObject, EqualsWhatInspectPrints) {
  InspectOptions options;
  options.bind = {{"batch", 32}};
  const InspectReport counted = inspect(digits_file, options);
  options.parameters = true;
  const InspectReport listed = inspect(digits_file, options);
  const Model model(digits_file, options);
  EXPECT_EQ(model.text(), counted.text);
  EXPECT_EQ(model.text(true), listed.text);
  EXPECT_EQ(model.json(), listed.json);
  const Json json = Json::parse(listed.json);
  ASSERT_EQ(json["parameters"].size(), model.parameters().size());
  for (std::size_t i = 0; i < model.parameters().size(); ++i) {
    const ModelParameter& parameter = model.parameters()[i];
    const Json& printed = json["parameters"][i];
    EXPECT_EQ(printed["name"], parameter.name);
    EXPECT_EQ(printed["path"], parameter.path);
    EXPECT_EQ(printed["dtype"], name(parameter.dtype));
    EXPECT_EQ(printed["shape"], parameter.shape);
    EXPECT_EQ(printed["trainable"], parameter.trains);
    EXPECT_EQ(printed["read_by"], parameter.read_by);
  }
}

TEST(ModelObject, ListsWhatBlocksTraining) {
  const tandem::testing::TemporaryFolder folder;
  std::ofstream(folder / "model.onnx", std::ios::binary)
      << tandem::testing::SmallModel()
             .input("x", {2, 3})
             .weight("w", {3, 3}, 0.5f)
             .node("Nonsense", "first", {"x"}, "a")
             .node("MatMul", "product", {"a", "w"}, "b")
             .output("b", {2, 3})
             .bytes();
  const Model model(folder / "model.onnx");
  EXPECT_FALSE(model.trains());
  ASSERT_FALSE(model.problems().empty());
  EXPECT_THAT(model.problems()[0].message, HasSubstr("Nonsense"));
  const Json printed = Json::parse(model.json())["problems"];
  ASSERT_EQ(printed.size(), model.problems().size());
  EXPECT_EQ(printed[0]["path"], model.problems()[0].path);
  EXPECT_EQ(printed[0]["fix"], model.problems()[0].fix);
}

TEST(ModelObject, RefusesOtherFilesAndUnknownPasses) {
  EXPECT_THROW(Model(source_folder() + "/models/digits/README.md"), Error);
  ModelOptions options;
  options.without = {"no_such_pass", "nor_this_one"};
  try {
    Model(digits_file, options);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_THAT(error.diagnostics(), SizeIs(2));
  }
}

TEST(ModelObject, CopiesShareOneState) {
  static_assert(std::is_copy_constructible_v<Model> && std::is_nothrow_move_constructible_v<Model>);
  const Model model(digits_file);
  const Model copy = model;
  EXPECT_EQ(&copy.parameters(), &model.parameters());
}

}  // namespace
}  // namespace tandem::api

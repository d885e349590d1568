// The bytes of .onnx_adapter files, read back as the FlatBuffers documentation says, and what an
// export writes for them; tests/end_to_end/onnx_adapter_test.py loads such files in onnxruntime.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "api/export/adapter_form.h"
#include "api/export/onnx_adapter_file.h"
#include "engine/formats/files.h"
#include "tests/api/digits.h"
#include "tests/api/error_of.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::api {
namespace {

using namespace tandem::testing;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A table in the bytes of a FlatBuffer.
class FlatTable {
 public:
  FlatTable(const std::string& bytes, std::size_t place) : bytes_(bytes), place_(place) {}

  static FlatTable root(const std::string& bytes) {
    return {bytes, read_at<std::uint32_t>(bytes, 0)};
  }
  std::int32_t number(std::size_t field) const {
    return read_at<std::int32_t>(bytes_, place_of(field));
  }
  /// Where the list or text of this field begins: behind its length.
  std::size_t begin(std::size_t field) const { return target(field) + 4; }
  std::size_t length(std::size_t field) const {
    return read_at<std::uint32_t>(bytes_, target(field));
  }
  std::string text(std::size_t field) const {
    EXPECT_EQ(bytes_[begin(field) + length(field)], '\0');
    return bytes_.substr(begin(field), length(field));
  }
  template <class Number>
  std::vector<Number> numbers(std::size_t field, std::size_t count) const {
    EXPECT_EQ(begin(field) % 8, 0u);
    std::vector<Number> all(count);
    std::memcpy(all.data(), bytes_.data() + begin(field), count * sizeof(Number));
    return all;
  }
  FlatTable item(std::size_t field, std::size_t index) const {
    const std::size_t place = begin(field) + 4 * index;
    return {bytes_, place + read_at<std::uint32_t>(bytes_, place)};
  }

 private:
  template <class Number>
  static Number read_at(const std::string& bytes, std::size_t place) {
    Number number;
    EXPECT_EQ(place % sizeof number, 0u);
    std::memcpy(&number, bytes.data() + place, sizeof number);
    return number;
  }
  std::size_t place_of(std::size_t field) const {
    const auto to_fields = read_at<std::int32_t>(bytes_, place_);
    const std::size_t fields = place_ - static_cast<std::size_t>(to_fields);
    EXPECT_LT(4 + 2 * field, read_at<std::uint16_t>(bytes_, fields));
    return place_ + read_at<std::uint16_t>(bytes_, fields + 4 + 2 * field);
  }
  std::size_t target(std::size_t field) const {
    const std::size_t place = place_of(field);
    return place + read_at<std::uint32_t>(bytes_, place);
  }

  const std::string& bytes_;
  std::size_t place_;
};

// Fields of a parameter, and of the adapter.
constexpr std::size_t name = 0, dims = 1, data_type = 2, raw_data = 3;
constexpr std::size_t parameters = 3;

TEST(OnnxAdapterFile, HoldsNamesShapesTypesAndNumbers) {
  const std::string bytes = onnx_adapter_bytes(
      {{"w/lora_a", HostTensor::from<float>({3, 2}, {1, 2, 3, 4, 5, 6})},
       {"conv", HostTensor::from<float>({1, 1, 1, 3}, {7, 8, 9}).converted(DType::float16)},
       {"none", HostTensor(TensorType{DType::float64, {0, 4}})}});
  EXPECT_EQ(bytes.substr(4, 4), "TORT");
  EXPECT_EQ(bytes.size() % 8, 0u);
  const FlatTable adapter = FlatTable::root(bytes);
  EXPECT_EQ(adapter.number(0), 1);  // format_version
  ASSERT_EQ(adapter.length(parameters), 3u);
  const FlatTable first = adapter.item(parameters, 0), second = adapter.item(parameters, 1),
                  third = adapter.item(parameters, 2);
  EXPECT_EQ(first.text(name), "w/lora_a");
  EXPECT_THAT(first.numbers<std::int64_t>(dims, 2), ElementsAre(3, 2));
  EXPECT_EQ(first.number(data_type), 1);
  EXPECT_EQ(first.length(raw_data), 24u);
  EXPECT_THAT(first.numbers<float>(raw_data, 6), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_EQ(second.text(name), "conv");
  EXPECT_EQ(second.length(dims), 4u);
  EXPECT_EQ(second.number(data_type), 10);
  EXPECT_EQ(second.length(raw_data), 6u);
  EXPECT_EQ(third.number(data_type), 11);
  EXPECT_EQ(third.length(raw_data), 0u);
}

TEST(OnnxAdapterExport, WritesTheAdaptersAloneAndTheModelThatTakesThem) {
  const TemporaryFolder folder;
  TrainOptions options;
  options.overrides = {
      "steps=6", "eval.every=6 steps",
      "parameters.lora=[{at='conv2:weight', rank=4}, {at='fc1', rank=2, alpha=6}]"};
  options.run_dir = folder / "run";
  Trainer(digits + "train.toml", options).run();
  const std::string to = folder / "x.onnx_adapter", base = folder / "base.onnx";
  EXPECT_THAT(export_run(options.run_dir, to, {.checkpoint = "latest"}), HasSubstr("wrote"));
  const std::string bytes = read_file(to);
  const FlatTable adapter = FlatTable::root(bytes);
  ASSERT_EQ(adapter.length(parameters), 4u);
  std::map<std::string, std::vector<std::int64_t>> shapes;
  for (std::size_t i = 0; i < 4; ++i) {
    const FlatTable each = adapter.item(parameters, i);
    shapes[each.text(name)] = each.numbers<std::int64_t>(dims, each.length(dims));
  }
  // fc1 is stored as [out, in]; operators read [in, r] and [r, out].
  EXPECT_THAT(shapes.at("fc1.weight/lora_a"), ElementsAre(512, 2));
  EXPECT_THAT(shapes.at("fc1.weight/lora_b"), ElementsAre(2, 64));
  EXPECT_THAT(shapes.at("conv2.weight/lora_a"), ElementsAre(4, 16, 3, 3));
  EXPECT_THAT(shapes.at("conv2.weight/lora_b"), ElementsAre(32, 4, 1, 1));

  export_run(options.run_dir, base,
             {.checkpoint = "latest", .adapters = {.lora = "inputs", .format = ""}});
  const auto logits_of = [](const std::string& model) {
    Session session(model, 8, {cross_entropy, "optimizer.kind=sgd"});
    return session.predict(training_digits().image(0, 8)).at("logits").floats();
  };
  const std::vector<float> got = logits_of(base), want = logits_of(digits + "model.onnx");
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], want[i], 1e-4) << i;
}

TEST(OnnxAdapterExport, ChoicesThatDoNotFitAreNamed) {
  const auto refusal = [](const std::string& to, const ExportSettings& settings) {
    return error_of([&] { adapter_form(settings, to); });
  };
  EXPECT_THAT(refusal("x.onnx", {.adapters = {.lora = "apart"}}),
              AllOf(HasSubstr("--lora"), HasSubstr("merged, separate or inputs")));
  EXPECT_THAT(refusal("x", {.adapters = {.format = "keras"}}),
              AllOf(HasSubstr("--format"), HasSubstr("onnx-adapter")));
  EXPECT_THAT(refusal("x.bin", {.adapters = {.format = "onnx-adapter"}}),
              AllOf(HasSubstr("--to"), HasSubstr(".onnx_adapter")));
  EXPECT_THAT(refusal("x.onnx_adapter", {.adapters = {.format = "peft"}}), HasSubstr("--to"));
  EXPECT_THAT(refusal("x.npz", {.adapters = {.lora = "inputs"}}),
              AllOf(HasSubstr("--to"), HasSubstr(".onnx")));
  EXPECT_THAT(refusal("x.onnx", {.adapters = {.lora = "inputs"}, .form = {.fp16 = true}}),
              HasSubstr("--fp16"));
  EXPECT_EQ(adapter_form({}, "x.onnx_adapter"), AdapterForm::onnx_adapter);
  EXPECT_EQ(adapter_form({.adapters = {.lora = "inputs"}}, "x.onnx"), AdapterForm::inputs);
}

}  // namespace
}  // namespace tandem::api

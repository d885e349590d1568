// Operands that hold the file's batch: under another batch the rows are those that the file's own
// batch gives; operands that differ between samples, or are parameters, stay errors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <string>

#include "engine/graph/error.h"
#include "importer/export_graph.h"
#include "tests/importer/support.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;
using namespace testing;

HostTensor sample_rows(const Shape& sample, std::int64_t first, std::int64_t count) {
  Shape shape = sample;
  shape.insert(shape.begin(), count);
  std::vector<float> values(static_cast<std::size_t>(element_count(shape)));
  const std::int64_t skipped = first * element_count(sample);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(
        std::sin(0.7 * static_cast<double>(skipped) + 0.7 * static_cast<double>(i)));
  return HostTensor::from<float>(shape, values);
}

// For a file with a batch of 2: the rows with a batch of 4 are those of two runs with 2.
void expect_rows(const ModelMaker& m, const Shape& sample) {
  ImportOptions options = with_evaluator();
  const ImportResult own = import_graph(m.file(), engine_operators(), options);
  EXPECT_TRUE(own.rewrites.empty());
  options.batch = 4;
  const ImportResult other = import_graph(m.file(), engine_operators(), options);
  EXPECT_FALSE(other.rewrites.empty());
  const HostTensor got = run_graph(other.graph, {{"x", sample_rows(sample, 0, 4)}}).at(0).second;
  ASSERT_EQ(got.shape()[0], 4);
  const std::int64_t half = got.type().elements() / 2;
  for (std::int64_t part = 0; part < 2; ++part) {
    const HostTensor want =
        run_graph(own.graph, {{"x", sample_rows(sample, 2 * part, 2)}}).at(0).second;
    ASSERT_EQ(want.type().elements(), half);
    for (std::int64_t i = 0; i < half; ++i)
      EXPECT_NEAR(got.number(part * half + i), want.number(i), 1e-6) << part << " " << i;
  }
}

// As many directions as samples: the batch is the axis of the layer's input.
TEST(FixedBatch, InitialStates) {
  ModelMaker m;
  m.input("x", {2, 3, 4}).output("y").integers("size", {2, 2, 5});
  m.weight("w", {2, 20, 4}, 0.01f).weight("r", {2, 20, 5}, 0.01f);
  set(m.node("Transpose", {"x"}, {"t"}), "perm", std::vector<std::int64_t>{1, 0, 2});
  m.node("ConstantOfShape", {"size"}, {"zeros"});
  onnx::NodeProto& lstm = m.node("LSTM", {"t", "w", "r", "", "", "zeros", "zeros"}, {"all"});
  set(lstm, "direction", std::string("bidirectional"));
  set(lstm, "hidden_size", std::int64_t{5});
  set(m.node("Transpose", {"all"}, {"y"}), "perm", std::vector<std::int64_t>{2, 0, 1, 3});
  expect_rows(m, {3, 4});
}

// A parameter expanded to the file's batch is a class token in front of each sample.
TEST(FixedBatch, ClassToken) {
  ModelMaker m;
  m.input("x", {2, 3, 4}).output("y").weight("token", {1, 1, 4}).integers("size", {2, 1, 4});
  m.node("Expand", {"token", "size"}, {"tokens"});
  set(m.node("Concat", {"tokens", "x"}, {"y"}), "axis", std::int64_t{1});
  expect_rows(m, {3, 4});
}

TEST(FixedBatch, TiledClassToken) {
  ModelMaker m;
  m.input("x", {2, 3, 4}).output("y").weight("token", {1, 1, 4}).integers("times", {2, 1, 1});
  m.node("Tile", {"token", "times"}, {"tokens"});
  set(m.node("Concat", {"tokens", "x"}, {"y"}), "axis", std::int64_t{1});
  expect_rows(m, {3, 4});
}

ModelMaker positions(const std::vector<std::int64_t>& ids) {
  ModelMaker m;
  m.input("x", {2, 3, 4}).output("y").weight("table", {6, 4}).integers("flat", ids);
  m.integers("shape", {2, 3});
  m.node("Reshape", {"flat", "shape"}, {"ids"});
  m.node("Gather", {"table", "ids"}, {"embedded"});
  m.node("Add", {"x", "embedded"}, {"y"});
  return m;
}

TEST(FixedBatch, PositionIds) { expect_rows(positions({0, 1, 2, 0, 1, 2}), {3, 4}); }

TEST(FixedBatch, Mask) {
  ModelMaker m;
  m.input("x", {2, 3, 3}).output("y").integers("size", {2, 1, 3});
  m.node("ConstantOfShape", {"size"}, {"mask"});
  m.node("Add", {"x", "mask"}, {"y"});
  expect_rows(m, {3, 3});
}

// Sizes that name all axes: those of a grid, of what MaxPool reduced, of a cut.
TEST(FixedBatch, SizesOfOperators) {
  ModelMaker grid;
  grid.input("x", {2, 2, 3}).output("y").integers("size", {2, 1, 3, 4});
  grid.node("AffineGrid", {"x", "size"}, {"y"});
  expect_rows(grid, {2, 3});

  ModelMaker unpooled;
  unpooled.input("x", {2, 1, 4, 4}).output("y").integers("size", {2, 1, 5, 4});
  const std::vector<std::int64_t> twos{2, 2};
  onnx::NodeProto& pool = unpooled.node("MaxPool", {"x"}, {"p", "places"});
  set(pool, "kernel_shape", twos);
  set(pool, "strides", twos);
  onnx::NodeProto& back = unpooled.node("MaxUnpool", {"p", "places", "size"}, {"y"});
  set(back, "kernel_shape", twos);
  set(back, "strides", twos);
  expect_rows(unpooled, {1, 4, 4});

  ModelMaker cut;
  cut.input("x", {2, 3, 5}).output("y").integers("size", {2, 3, 3});
  cut.node("CenterCropPad", {"x", "size"}, {"y"});
  expect_rows(cut, {3, 5});
}

// Attention over positions first: [T, B, heads, d] becomes [T B, heads d] before a product, and [T,
// B, ...] after it. T is a multiple of the file's batch.
TEST(FixedBatch, BatchBehindPositions) {
  for (const std::int64_t t : {3, 4}) {
    ModelMaker m;
    m.input("x", {2, t, 6}).output("y").weight("w", {6, 6}, 0.1f).weight("b", {6}, 0.1f);
    m.integers("flat", {2 * t, 6}).integers("apart", {t, 2, 3, 2}).integers("whole", {t, 2, 6});
    set(m.node("Transpose", {"x"}, {"first"}), "perm", std::vector<std::int64_t>{1, 0, 2});
    m.node("Reshape", {"first", "apart"}, {"heads"});
    m.node("Sigmoid", {"heads"}, {"s"});
    m.node("Reshape", {"s", "flat"}, {"rows"});
    m.node("Gemm", {"rows", "w", "b"}, {"z"});
    m.node("Reshape", {"z", "whole"}, {"back"});
    m.node("Add", {"back", "first"}, {"sum"});
    set(m.node("Transpose", {"sum"}, {"y"}), "perm", std::vector<std::int64_t>{1, 0, 2});
    expect_rows(m, {t, 6});
  }
}

// As above, for a file with a batch of 1, by which no axis can be recognised.
TEST(FixedBatch, OneSampleBehindPositions) {
  ModelMaker m;
  m.input("x", {1, 3, 6}).output("y").weight("w", {6, 6}, 0.1f).weight("b", {6}, 0.1f);
  m.integers("flat", {3, 6}).integers("apart", {3, 1, 3, 2}).integers("whole", {3, 1, 6});
  set(m.node("Transpose", {"x"}, {"first"}), "perm", std::vector<std::int64_t>{1, 0, 2});
  m.node("Reshape", {"first", "apart"}, {"heads"});
  m.node("Reshape", {"heads", "flat"}, {"rows"});
  m.node("Gemm", {"rows", "w", "b"}, {"z"});
  m.node("Reshape", {"z", "whole"}, {"back"});
  set(m.node("Transpose", {"back"}, {"y"}), "perm", std::vector<std::int64_t>{1, 0, 2});
  ImportOptions options = with_evaluator();
  const ImportResult own = import_graph(m.file(), engine_operators(), options);
  options.batch = 4;
  const ImportResult other = import_graph(m.file(), engine_operators(), options);
  const HostTensor got = run_graph(other.graph, {{"x", sample_rows({3, 6}, 0, 4)}}).at(0).second;
  ASSERT_EQ(got.shape(), (Shape{4, 3, 6}));
  for (std::int64_t b = 0; b < 4; ++b) {
    const HostTensor want = run_graph(own.graph, {{"x", sample_rows({3, 6}, b, 1)}}).at(0).second;
    for (std::int64_t i = 0; i < 18; ++i)
      EXPECT_NEAR(got.number(b * 18 + i), want.number(i), 1e-6) << b << " " << i;
  }
}

// A mask that is looked up by constant numbers of samples and places, in the two forms of
// exporters.
TEST(FixedBatch, IndicesOfSamples) {
  ModelMaker m;
  m.input("x", {2, 3}).output("y").integers("all", {-1}).integers("shape", {2, 1, 3});
  m.integers("numbers", {2, 1, 0, 5, 4, 3}).integers("form", {2, 1, 3});
  m.node("Reshape", {"numbers", "form"}, {"indices"});  // each sample's places from the end
  m.node("Reshape", {"x", "all"}, {"flat"});
  m.node("Gather", {"flat", "indices"}, {"turned"});
  m.node("Reshape", {"turned", "shape"}, {"y"});
  expect_rows(m, {3});

  ModelMaker pairs;
  pairs.input("x", {2, 3}).output("y").integers("numbers", {0, 0, 0, 2, 1, 0, 1, 2});
  pairs.integers("form", {2, 2, 2});
  pairs.node("Reshape", {"numbers", "form"}, {"indices"});
  pairs.node("GatherND", {"x", "indices"}, {"y"});
  expect_rows(pairs, {3});
}

TEST(FixedBatch, IndicesWithinSamples) {
  ModelMaker m;
  m.input("x", {2, 3}).output("y").integers("numbers", {0, 2, 0, 2}).integers("form", {2, 2, 1});
  m.node("Reshape", {"numbers", "form"}, {"indices"});
  set(m.node("GatherND", {"x", "indices"}, {"y"}), "batch_dims", std::int64_t{1});
  expect_rows(m, {3});
}

// Token types that a model keeps for the file's batch, looked up by positions.
TEST(FixedBatch, GatheredElements) {
  ModelMaker m;
  m.input("x", {2, 3}).output("y").integers("size", {2, 5}).integers("places", {0, 1, 4, 0, 1, 4});
  m.integers("form", {2, 3});
  m.node("ConstantOfShape", {"size"}, {"types"});
  m.node("Reshape", {"places", "form"}, {"at"});
  set(m.node("Cast", {"x"}, {"zeros"}), "to", std::int64_t{onnx::TensorProto::INT64});
  m.node("Add", {"zeros", "at"}, {"tokens"});
  set(m.node("GatherElements", {"types", "tokens"}, {"found"}), "axis", std::int64_t{1});
  m.node("Add", {"x", "found"}, {"y"});
  expect_rows(m, {3});
}

// y[arange(B), 2] = 0.5, and the same with an index for each element.
TEST(FixedBatch, ScatteredIntoEachSample) {
  ModelMaker m;
  m.input("x", {2, 3}).output("y").integers("numbers", {0, 2, 1, 2}).integers("form", {2, 2});
  m.integers("size", {2});
  m.node("Reshape", {"numbers", "form"}, {"indices"});
  m.node("ConstantOfShape", {"size"}, {"zeros"});
  m.node("ScatterND", {"x", "indices", "zeros"}, {"y"});
  expect_rows(m, {3});

  ModelMaker each;
  each.input("x", {2, 3}).output("y").integers("numbers", {2, 2}).integers("form", {2, 1});
  each.integers("size", {2, 1});
  each.node("Reshape", {"numbers", "form"}, {"indices"});
  each.node("ConstantOfShape", {"size"}, {"zeros"});
  set(each.node("ScatterElements", {"x", "indices", "zeros"}, {"y"}), "axis", std::int64_t{1});
  expect_rows(each, {3});
}

void expect_refused(const ModelMaker& m, const std::string& why) {
  ImportOptions options = with_evaluator();
  import_graph(m.file(), engine_operators(), options);
  options.batch = 4;
  EXPECT_THAT(error_of([&] { import_graph(m.file(), engine_operators(), options); }),
              HasSubstr(why));
}

TEST(FixedBatch, PartsOfTheBatchAreRefused) {
  ModelMaker scattered;  // other places in each sample
  scattered.input("x", {2, 3}).output("y").integers("numbers", {0, 2, 1, 1});
  scattered.integers("form", {2, 2}).integers("size", {2});
  scattered.node("Reshape", {"numbers", "form"}, {"indices"});
  scattered.node("ConstantOfShape", {"size"}, {"zeros"});
  scattered.node("ScatterND", {"x", "indices", "zeros"}, {"y"});
  expect_refused(scattered, "the indices hold the batch of 2");

  ModelMaker rolled;  // the last sample first
  rolled.input("x", {2, 3}).output("y").integers("zero", {0}).integers("one", {1});
  rolled.integers("end", {1 << 30});
  rolled.node("Slice", {"x", "one", "end", "zero"}, {"last"});
  rolled.node("Slice", {"x", "zero", "one", "zero"}, {"first"});
  set(rolled.node("Concat", {"last", "first"}, {"y"}), "axis", std::int64_t{0});
  expect_refused(rolled, "a range counts samples of the batch of 2");
}

// x of 4 samples, joined by `join`, and scaled by a number.
std::string error_of_scaled(const std::function<void(ModelMaker&)>& join, const std::string& op,
                            float number) {
  ModelMaker m;
  m.input("x", {4, 3}).output("y").integers("zero", {0}).integers("four", {4});
  join(m);
  set(m.node("Constant", {}, {"number"}), "value_float", double{number});
  m.node(op, {"joined", "number"}, {"y"});
  ImportOptions options = with_evaluator();
  options.batch = 8;
  try {
    import_graph(m.file(), engine_operators(), options);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(FixedBatch, NumbersThatCountSamplesAreRefused) {
  const auto product = [](ModelMaker& m) {  // X^T X
    m.node("Transpose", {"x"}, {"t"});
    m.node("MatMul", {"t", "x"}, {"joined"});
  };
  const auto mean = [](ModelMaker& m) { m.node("ReduceMean", {"x", "zero"}, {"joined"}); };
  EXPECT_THAT(error_of_scaled(product, "Div", 4),
              HasSubstr("a sum over the samples is divided by 4"));
  EXPECT_THAT(error_of_scaled(product, "Div", 3),
              HasSubstr("a sum over the samples is divided by 3"));
  EXPECT_EQ(error_of_scaled(product, "Mul", 0.5f), "");
  EXPECT_THAT(error_of_scaled(mean, "Mul", 4),
              HasSubstr("a mean over the samples is multiplied by 4"));
  EXPECT_EQ(error_of_scaled(mean, "Mul", 1), "");
  EXPECT_EQ(error_of_scaled(mean, "Mul", 0.5f), "");
  const auto sorted = [](ModelMaker& m) {
    set(m.node("TopK", {"x", "four"}, {"joined", "order"}), "axis", std::int64_t{0});
  };
  EXPECT_THAT(error_of_scaled(sorted, "Mul", 2),
              HasSubstr("it takes the largest 4 along the samples"));
}

// An index that names no place: the step reports it, instead of a constant that was clamped.
TEST(FixedBatch, IndicesOutOfRangeAreNotFolded) {
  ModelMaker m;
  m.input("x", {2, 3}).output("y").integers("numbers", {7}).integers("form", {2, 1});
  m.integers("size", {2, 1});
  m.node("Expand", {"numbers", "form"}, {"indices"});
  m.node("ConstantOfShape", {"size"}, {"zeros"});
  set(m.node("ScatterElements", {"x", "indices", "zeros"}, {"y"}), "axis", std::int64_t{1});
  const ImportResult result = import_graph(m.file(), engine_operators(), with_evaluator());
  const auto is_flat = [](const Node& node) { return node.op->name == "FlatIndices"; };
  EXPECT_TRUE(std::any_of(result.graph.nodes.begin(), result.graph.nodes.end(), is_flat));
}

TEST(FixedBatch, WhatDiffersFromSampleToSampleStays) {
  ImportOptions options = with_evaluator();
  options.batch = 4;
  const ModelMaker m = positions({0, 1, 2, 3, 4, 5});
  EXPECT_THAT(error_of([&] { import_graph(m.file(), engine_operators(), options); }),
              HasSubstr("exported with a batch of 2"));
}

TEST(FixedBatch, ParametersStay) {
  ModelMaker m;
  m.input("x", {2, 3}).output("y").weight("state", {2, 3}, 0);
  m.node("Add", {"x", "state"}, {"y"});
  ImportOptions options = with_evaluator();
  options.batch = 4;
  EXPECT_THAT(error_of([&] { import_graph(m.file(), engine_operators(), options); }),
              HasSubstr("exported with a batch of 2"));
}

// An export keeps the file's batch, and its constants.
TEST(FixedBatch, ExportLeavesTheFile) {
  const ModelMaker m = positions({0, 1, 2, 0, 1, 2});
  ScratchFolder folder;
  ExportOptions options;
  options.import = with_evaluator();
  const ExportResult written =
      export_graph(m.file(), engine_operators(), {}, folder.path() / "same.onnx", options);
  EXPECT_FALSE(written.batch_is_free);
  EXPECT_THAT(written.note, HasSubstr("the batch stays 2"));
}

}  // namespace
}  // namespace tandem

// What parameters.load does with a file of weights: names, shapes, what does not fit.
#include "engine/train/loading/load_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/formats/arrays/npy.h"
#include "engine/formats/safetensors.h"
#include "engine/graph/builder.h"
#include "engine/graph/shard_conversion.h"
#include "engine/train/loading/initialise.h"
#include "tests/harness/folders.h"
#include "tests/training/error_text.h"
#include "tests/training/formats/temporary_folder.h"
#include "tests/training/support.h"

namespace tandem {
namespace {

using namespace tandem::testing;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

NamedTensor floats(const std::string& name, Shape shape, float first = 0) {
  HostTensor tensor(TensorType{DType::float32, std::move(shape)});
  for (float& x : tensor.as<float>()) x = first++;
  return {name, tensor};
}

class LoadWeights : public ::testing::Test {
 protected:
  LoadWeights() {
    rule_.from = folder_ / "w.safetensors";
    parameters_ = {{"encoder.0.weight", {2, 3}}, {"encoder.0.bias", {2}}, {"head.weight", {4, 2}}};
  }
  Graph graph(const std::function<void(State&)>& change = {}) const {
    GraphBuilder g(engine_.operators);
    for (const auto& [name, shape] : parameters_) {
      State state;
      state.name = name;
      const std::size_t dot = name.rfind('.');
      state.path = name.substr(0, dot) + ":" + name.substr(dot + 1);
      state.start = HostTensor(TensorType{DType::float32, shape});
      if (change) change(state);
      g.output(name, g.add_node("Neg", {g.state(std::move(state))}));
    }
    return g.finish();
  }
  std::map<std::string, HostTensor> load(const std::vector<NamedTensor>& tensors,
                                         const std::map<std::string, std::string>& metadata = {}) {
    write_safetensors(folder_ / "w.safetensors", tensors, metadata);
    return load();
  }
  std::map<std::string, HostTensor> load() {
    const Graph model = graph();
    std::map<std::string, HostTensor> values;
    std::vector<Diagnostic> problems;
    notes_ = load_weights(
        rule_, model, parts_,
        [&](const std::string& name, const HostTensor& value) { values[name] = value.clone(); },
        problems);
    if (!problems.empty()) throw Error(ErrorKind::usage, std::move(problems));
    return values;
  }
  std::string refusal(const std::vector<NamedTensor>& tensors) {
    return error_of([&] { load(tensors); });
  }
  static std::vector<NamedTensor> whole(const std::string& prefix = "") {
    return {floats(prefix + "encoder.0.weight", {2, 3}, 10),
            floats(prefix + "encoder.0.bias", {2}, 20), floats(prefix + "head.weight", {4, 2}, 30)};
  }
  void expect_whole(const std::map<std::string, HostTensor>& values) {
    ASSERT_EQ(values.size(), 3u);
    for (const NamedTensor& t : whole())
      EXPECT_TRUE(same_bytes(values.at(t.name), t.tensor)) << t.name;
  }

  const TemporaryFolder folder_;
  SmallEngine engine_;
  std::vector<std::pair<std::string, Shape>> parameters_;
  LoadRule rule_;
  LoadingParts parts_;
  std::vector<std::string> notes_;
};

TEST_F(LoadWeights, NamesAsTheyAreAndRenamed) {
  expect_whole(load(whole()));
  EXPECT_THAT(notes_, ElementsAre("loaded 3 parameters from " + rule_.from));
  rule_.strip = "model.";
  expect_whole(load(whole("model.")));
  rule_.strip = "";
  rule_.rename = {{"m.head.*", "head.*"}, {"m.encoder.**", "encoder.**"}};
  expect_whole(load(whole("m.")));
  rule_.rename = {{"0.*", "0.*"}};
  rule_.add = "encoder.";
  rule_.at = "encoder.**";
  const auto encoder = load({floats("0.weight", {2, 3}, 10), floats("0.bias", {2}, 20)});
  EXPECT_EQ(encoder.size(), 2u);
}

TEST_F(LoadWeights, NumbersAreConverted) {
  auto tensors = whole();
  tensors[0].tensor = tensors[0].tensor.converted(DType::bfloat16);
  tensors[1].tensor = tensors[1].tensor.converted(DType::float64);
  expect_whole(load(tensors));
}

// 21 is the middle between two numbers, of which 20 has the even mantissa.
TEST_F(LoadWeights, EightBitFloatsAreTakenAsTheyStand) {
  auto tensors = whole();
  for (NamedTensor& tensor : tensors) {
    if (tensor.name == "encoder.0.bias")
      tensor.tensor = tensor.tensor.converted(DType::float8_e4m3fn);
  }
  EXPECT_THAT(load(tensors).at("encoder.0.bias").as<float>(), ElementsAre(20, 20));
  EXPECT_THAT(notes_, Contains(HasSubstr("1 tensor is of 8-bit floats")));
}

TEST_F(LoadWeights, MatricesAreTransposedWhereTheRuleSaysSo) {
  auto tensors = whole();
  tensors[0] = floats("encoder.0.weight", {3, 2}, 10);
  EXPECT_THAT(refusal(tensors), HasSubstr("another shape; its transpose fits: see transpose"));
  rule_.transpose = "encoder.**";
  const auto values = load(tensors);
  EXPECT_THAT(values.at("encoder.0.weight").as<float>(), ElementsAre(10, 12, 14, 11, 13, 15));
  EXPECT_THAT(values.at("encoder.0.bias").as<float>(), ElementsAre(20, 21));
  EXPECT_THAT(refusal(whole()), HasSubstr("another shape; it fits without transpose"));
  // Larger than a tile, with a rest.
  parameters_[0].second = {70, 45};
  tensors[0] = floats("encoder.0.weight", {45, 70});
  const HostTensor large = load(tensors).at("encoder.0.weight");
  for (std::int64_t i = 0; i < 70; ++i) {
    for (std::int64_t j = 0; j < 45; ++j) ASSERT_EQ(large.as<float>()[i * 45 + j], j * 70 + i);
  }
}

// A rank takes its part of a sharded parameter, which the file may hold transposed.
TEST_F(LoadWeights, RanksTakeTheirPart) {
  parameters_ = {{"table.weight", {7, 4}}};
  for (const bool transposed : {false, true}) {
    rule_.transpose = transposed ? "table" : "";
    const HostTensor whole = floats("", {7, 4}).tensor;
    HostTensor in_file = whole;
    if (transposed) {
      in_file = HostTensor(TensorType{DType::float32, {4, 7}});
      for (std::int64_t i = 0; i < 28; ++i)
        in_file.as<float>()[i % 4 * 7 + i / 4] = whole.as<float>()[i];
    }
    write_safetensors(rule_.from, {{"table.weight", in_file}});
    for (const ShardKind kind :
         {ShardKind::rows, ShardKind::row_blocks, ShardKind::column_blocks}) {
      for (int rank = 0; rank < 3; ++rank) {
        std::optional<StateShard> shard;
        const Graph part = graph([&](State& state) {
          keep_part(state, kind, rank, 3);
          shard = state.shard;
        });
        std::vector<Diagnostic> problems;
        HostTensor value;
        load_weights(
            rule_, part, parts_,
            [&](const std::string&, const HostTensor& v) { value = v.clone(); }, problems);
        EXPECT_TRUE(problems.empty());
        EXPECT_TRUE(same_bytes(value, part_of(whole, *shard))) << rank << " " << transposed;
      }
    }
  }
}

TEST_F(LoadWeights, WhatDoesNotFitIsOneTable) {
  const std::string text =
      refusal({floats("encoder.0.wieght", {2, 3}), floats("encoder.0.bias", {3}),
               floats("head.weight", {4, 2}), floats("extra.weight", {5})});
  EXPECT_EQ(
      text,
      rule_.from +
          " does not fit the model in 4 places:\n"
          "name in file     | shape  | parameter        | shape  | what\n"
          "-                | -      | encoder.0.weight | [2, 3] | missing in the file; the file "
          "has "
          "encoder.0.wieght\n"
          "encoder.0.bias   | [3]    | encoder.0.bias   | [2]    | another shape\n"
          "encoder.0.wieght | [2, 3] | -                | -      | not in the model; the model has "
          "encoder.0.weight\n"
          "extra.weight     | [5]    | -                | -      | not in the model\n"
          " (rename, strip and add match the file's names; missing, unexpected and other_shape say "
          "what may differ)");
}

TEST_F(LoadWeights, NothingIsWrittenThen) {
  write_safetensors(rule_.from, {floats("encoder.0.weight", {2, 3})});
  const Graph model = graph();
  std::vector<Diagnostic> problems;
  load_weights(
      rule_, model, parts_,
      [](const std::string& name, const HostTensor&) { ADD_FAILURE() << name; }, problems);
  EXPECT_EQ(problems.size(), 1u);
}

TEST_F(LoadWeights, PrefixesAreFound) {
  EXPECT_THAT(refusal(whole("model.")), HasSubstr("(strip = \"model.\" takes the prefix off"));
  for (auto& [name, shape] : parameters_) name.insert(0, "net.body.");
  EXPECT_THAT(refusal(whole()), HasSubstr("(add = \"net.body.\" puts the prefix before"));
}

TEST_F(LoadWeights, RulesMayAllowDifferences) {
  const auto with_others = [] {
    auto tensors = whole();
    tensors[2] = floats("head.weight", {9, 2});
    tensors.erase(tensors.begin() + 1);
    tensors.push_back(floats("more", {2}));
    return tensors;
  };
  rule_.missing_is_error = false;
  EXPECT_THAT(refusal(with_others()), AllOf(HasSubstr("2 places"), Not(HasSubstr("0.bias"))));
  rule_.unexpected_is_error = false;
  EXPECT_THAT(refusal(with_others()), AllOf(HasSubstr("1 place:"), HasSubstr("another shape")));
  rule_.other_shape_is_error = false;
  EXPECT_EQ(load(with_others()).size(), 1u);
  EXPECT_THAT(notes_, Contains(HasSubstr("head.weight keeps its values: the file has another "
                                         "shape, [9, 2]")));
}

TEST_F(LoadWeights, OnlyWhatTheRuleCoversIsLookedAt) {
  rule_.at = "encoder.**";
  EXPECT_EQ(load(whole()).size(), 2u);
  auto tensors = whole();
  tensors.push_back(floats("encoder.1.weight", {2}));
  EXPECT_THAT(refusal(tensors), AllOf(HasSubstr("encoder.1.weight"), HasSubstr("1 place:")));
  rule_.at = "decoder.**";
  EXPECT_THAT(refusal(whole()), HasSubstr("\"decoder.**\" matches no parameter"));
}

TEST_F(LoadWeights, CountersAndWeightsThatNobodyNeedsArePassedOver) {
  auto tensors = whole();
  tensors.push_back({"norm.num_batches_tracked", HostTensor::from<std::int64_t>({}, {7})});
  tensors.push_back(floats("unused.weight", {3}));
  EXPECT_THAT(refusal(tensors), AllOf(HasSubstr("unused.weight"), Not(HasSubstr("tracked"))));
  parts_.other_names = {"unused.weight"};
  expect_whole(load(tensors));
  EXPECT_THAT(notes_, Contains(HasSubstr("left out: 1 tensors of integers")));
}

TEST_F(LoadWeights, TiedWeightsHaveSeveralNames) {
  // The model's other name, first without and then with the first one.
  parts_.aliases = {{"tied.weight", "head.weight"}};
  auto tensors = whole();
  tensors[2].name = "tied.weight";
  EXPECT_EQ(load(tensors).at("head.weight").as<float>()[0], 30);
  tensors.push_back(floats("head.weight", {4, 2}, 50));
  EXPECT_EQ(load(tensors).at("head.weight").as<float>()[0], 50);
  // The file's, which the model does not know.
  parts_.aliases = {};
  tensors = whole();
  tensors[2].name = "first.weight";
  EXPECT_EQ(load(tensors, {{"alias:head.weight", "first.weight"}}).at("head.weight").as<float>()[0],
            30);
  expect_whole(load(whole(), {{"alias:tied.weight", "head.weight"}}));
}

TEST_F(LoadWeights, TwoTensorsOfOneNameAreRefused) {
  rule_.strip = "m.";
  auto tensors = whole();
  tensors.push_back(floats("m.head.weight", {4, 2}));
  EXPECT_THAT(refusal(tensors),
              AllOf(HasSubstr("a name twice; \"head.weight\" is given this name, too"),
                    HasSubstr("m.head.weight")));
}

TEST_F(LoadWeights, LongTablesAreCut) {
  parameters_.clear();
  for (int i = 0; i < 25; ++i) parameters_.push_back({"layer." + std::to_string(i) + ".w", {1}});
  const std::string text = refusal({floats("x", {1}), floats("y", {1})});
  EXPECT_THAT(text,
              AllOf(HasSubstr("27 places"), HasSubstr("layer.19.w"), Not(HasSubstr("layer.20.w")),
                    HasSubstr("and 7 more: 5 missing in the file, 2 not in the model")));
}

TEST_F(LoadWeights, ShardsAreFoundByTheirIndex) {
  const auto tensors = whole();
  write_safetensors(folder_ / "model-1.safetensors", {tensors[0], floats("not.listed", {1})});
  write_safetensors(folder_ / "model-2.safetensors", {tensors[1], tensors[2]});
  rule_.from = folder_ / "model.safetensors.index.json";
  const auto index = [&](const std::string& second) {
    write_file(rule_.from, R"({"metadata": {"total_size": 64}, "weight_map": {
      "encoder.0.weight": "model-1.safetensors", "encoder.0.bias": ")" +
                               second + R"(", "head.weight": "model-2.safetensors"}})");
  };
  index("model-2.safetensors");
  expect_whole(load());
  EXPECT_THAT(notes_, Contains(HasSubstr("3 tensors in 2 files")));
  const auto refused = [&](const std::string& second) {
    index(second);
    return error_of([&] { load(); });
  };
  EXPECT_THAT(refused("model-1.safetensors"),
              AllOf(HasSubstr("encoder.0.bias: the shard model-1.safetensors lacks a tensor")));
  EXPECT_THAT(refused("model-3.safetensors"), HasSubstr("model-3.safetensors"));
  for (const char* other : {"../w.safetensors", "/w.safetensors", ".safetensors", "w.npz",
                            "model.safetensors.index.json", ""}) {
    EXPECT_THAT(refused(other), HasSubstr("not the name of a shard")) << other;
  }
  write_file(rule_.from, "{}");
  EXPECT_THAT(error_of([&] { load(); }), HasSubstr("weight_map"));
}

TEST_F(LoadWeights, PyTorchsOwnFilesAreLoaded) {
  parameters_ = {{"fc.weight", {2, 3}}, {"fc.bias", {2}},           {"norm.weight", {2}},
                 {"norm.bias", {2}},    {"norm.running_mean", {2}}, {"norm.running_var", {2}}};
  rule_.from = source_folder() + "/tests/data/torch_weights/nested.pt";
  EXPECT_EQ(load().size(), 6u);
  EXPECT_THAT(notes_, Contains(HasSubstr("those under \"state_dict\"")));
}

TEST(WeightsFormats, AreToldByNames) {
  const auto name = [](const char* path) {
    const WeightsFormat* format = weights_format_of(path);
    return format == nullptr ? std::string("none") : std::string(format->name);
  };
  EXPECT_EQ(name("/a/w.safetensors"), "safetensors");
  EXPECT_EQ(name("/a/model.safetensors.index.json"), "index of shards");
  EXPECT_EQ(name("/a/pytorch_model.bin"), "PyTorch");
  EXPECT_EQ(name("/a/w.pth"), "PyTorch");
  EXPECT_EQ(name("/a/w.npz"), "NumPy");
  EXPECT_EQ(name("/a/model.onnx"), "ONNX");
  for (const char* run : {"/runs/a-0001", "/runs/lr0.1", "/runs.x/a", "/runs/a.b/", "/runs/.a"})
    EXPECT_EQ(name(run), "run") << run;
  for (const char* other : {"/a/w.h5", "/a/w.ckpt", "/a/config.json"})
    EXPECT_EQ(name(other), "none") << other;
  EXPECT_THAT(error_of([] { open_weights("/a/w.h5"); }),
              AllOf(HasSubstr("not loaded here"), HasSubstr(".pt, .pth, .bin, .onnx, or a run")));
  EXPECT_THAT(error_of([] { open_weights("/a/m.onnx"); }), HasSubstr("not loaded here"));
}

std::string parse_error(const std::string& rule) {
  return error_of([&] {
    parse_run_config("model = 'm.onnx'\nsteps = 4\noptimizer = { kind = 'sgd' }\n",
                     "/folder/train.toml", {"parameters.load=[{from='w.pt', " + rule + "}]"});
  });
}

TEST(LoadKeys, PairsAreChecked) {
  EXPECT_EQ(parse_error("rename=[['a.**', 'b.**'], ['c', 'd']]"), "no error");
  EXPECT_THAT(parse_error("rename=[['a']]"),
              AllOf(HasSubstr("not a pair of names"), HasSubstr("got 1 texts")));
  EXPECT_THAT(parse_error("rename=[['a.*', 'b']]"), HasSubstr("needs the wildcards"));
  EXPECT_THAT(parse_error("rename=[['a', 1]]"), HasSubstr("wrong type"));
  EXPECT_THAT(parse_error("rename=['a', 'b']"), HasSubstr("wrong type"));
}

TEST(LoadKeys, OtherKindsOfFilesAreRefused) {
  const std::string text = error_of([&] {
    parse_run_config("model = 'm.onnx'\nsteps = 4\noptimizer = { kind = 'sgd' }\n",
                     "/folder/train.toml", {"parameters.load=[{from='w.h5'}]"});
  });
  EXPECT_THAT(text, AllOf(HasSubstr("unknown kind of file"), HasSubstr("or a run directory")));
}

TEST_F(LoadWeights, WhatWasAddedToTheModelMayBeMissingOrOfAnotherShape) {
  parameters_.push_back({"head.weight/lora_a", {2, 2}});
  std::vector<NamedTensor> tensors = whole();
  tensors[2] = floats("head.weight", {9, 2});
  EXPECT_THAT(refusal(tensors), AllOf(HasSubstr("head.weight/lora_a"), HasSubstr("in 2 places")));
  parts_.added = {"head.weight", "head.weight/lora_a"};
  const auto values = load(tensors);
  EXPECT_EQ(values.size(), 2u);
  EXPECT_TRUE(same_bytes(values.at("encoder.0.weight"), tensors[0].tensor));
  EXPECT_FALSE(values.contains("head.weight"));
  EXPECT_THAT(notes_, Contains(HasSubstr("head.weight keeps its values")));
}

TEST_F(LoadWeights, ATeacherIsLeftAlone) {
  const Graph model = graph([](State& state) {
    if (state.name == "head.weight") state.held_by = HeldBy::teacher;
  });
  write_safetensors(folder_ / "w.safetensors", whole());
  const WeightsMatch match = match_weights(*open_weights(rule_.from), rule_, model, parts_);
  EXPECT_EQ(match.pairs.size(), 2u);
  EXPECT_EQ(match.covered, 2);
}

}  // namespace
}  // namespace tandem

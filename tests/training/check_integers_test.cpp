// Ids of the data that name no row of a table are refused, or give zeros if the field says so; and
// labels that are invalid.
#include "engine/train/divergence/check_integers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <numeric>

#include "engine/graph/builder.h"
#include "engine/operators/tables/rows.h"
#include "tests/training/error_text.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::int64_t none = absent_id<std::int64_t>, narrow_none = absent_id<std::int32_t>;

/// Lookups of `ids` [4]: one in tables of each count of rows, each after these casts.
Graph lookups(DType ids, const std::vector<std::pair<std::int64_t, std::vector<DType>>>& tables) {
  static const OperatorSet operators = all_operators();
  GraphBuilder b(operators);
  const ValueId input = b.input("ids", {ids, {4}});
  for (const auto& [rows, casts] : tables) {
    const std::string name = "table" + std::to_string(rows);
    State table;
    table.name = name;
    table.trainable = true;
    table.start = HostTensor(TensorType{DType::float32, {rows, 2}});
    const ValueId weights = b.state(std::move(table));
    ValueId indices = input;
    for (const DType cast : casts)
      indices = b.add_node("Cast", {indices}, {{"to", std::string(name_of(cast))}});
    b.set_scope({"embedding" + std::to_string(rows)});
    b.output(name, b.add_node("Gather", {weights, indices}));
  }
  return b.finish();
}

RunConfig config_of(const std::string& field, const std::vector<std::string>& overrides = {}) {
  return parse_run_config(
      "model = 'm.onnx'\nsteps = 1\n[optimizer]\nkind = 'sgd'\n[data]\nkind = 'npz'\n"
      "[data.train]\nfiles = ['a.npz']\n[data.fields]\n" +
          field + "\n",
      "/folder/train.toml", overrides);
}
const char* const zero = "ids = { from = 'ids', out_of_range = 'zero' }";

std::shared_ptr<const DataSource> source_of(DType type, const std::vector<std::int64_t>& ids) {
  const auto count = static_cast<std::int64_t>(ids.size());
  return make_array_source({{"ids", HostTensor::from<std::int64_t>({count}, ids).converted(type)}});
}

std::vector<std::int64_t> read(const DataSource& source) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(source.samples()));
  std::iota(all.begin(), all.end(), 0);
  HostTensor values(TensorType{source.fields()[0].sample.dtype, {source.samples()}});
  source.fill(0, all, nullptr, values.data());
  return values.integers();
}

TEST(OutOfRange, ZeroGivesTheIdOfNoRow) {
  const std::vector<std::int64_t> ids{0, 4, 5, -1, 3, 1 << 20};
  const auto wide = zero_out_of_range(config_of(zero), lookups(DType::int64, {{5, {}}}),
                                      source_of(DType::int64, ids));
  EXPECT_THAT(read(*wide), ElementsAre(0, 4, none, none, 3, none));
  const auto narrow = zero_out_of_range(config_of(zero), lookups(DType::int32, {{5, {}}}),
                                        source_of(DType::int32, ids));
  EXPECT_THAT(read(*narrow), ElementsAre(0, 4, narrow_none, narrow_none, 3, narrow_none));
  const auto kept = zero_out_of_range(config_of("ids = 'ids'"), lookups(DType::int64, {{5, {}}}),
                                      source_of(DType::int64, ids));
  EXPECT_EQ(read(*kept), ids);
}

// Id 7 would be a row of one table and none of the other, but one number has to serve both.
TEST(OutOfRange, ZeroIsRefusedForTablesOfDifferentLengths) {
  const Graph graph = lookups(DType::int64, {{5, {}}, {9, {}}});
  const auto source = source_of(DType::int64, {0, 4, 7});
  EXPECT_THAT(error_of([&] { zero_out_of_range(config_of(zero), graph, source); }),
              AllOf(HasSubstr("train.toml:10"), HasSubstr("data.fields.ids"),
                    HasSubstr("tables of different lengths"),
                    HasSubstr("got 5 in \"table5\" and 9 in \"table9\""),
                    HasSubstr("(give the model an input, and the data a field, for each table")));
  const std::string text =
      error_of([&] { check_integer_fields(config_of("ids = 'ids'"), graph, *source); });
  EXPECT_THAT(text,
              HasSubstr("memory:3: data.fields.ids: out of range: an index of embedding5 into "
                        "\"table5\", which has 5 rows: expected 0 to 4, got 7"));
  EXPECT_THAT(text, AllOf(Not(HasSubstr("out_of_range")),
                          HasSubstr("(parameters.shape = [ { at = \"table5\", rows = 8 } ]")));
}

// A cast to int32 keeps the least int32, and no value of an int32 becomes the least int64.
TEST(OutOfRange, TheIdOfNoRowIsThatOfTheLookup) {
  const std::vector<std::int64_t> ids{0, 9};
  const Graph narrowed = lookups(DType::int64, {{5, {DType::int32}}});
  const auto source = zero_out_of_range(config_of(zero), narrowed, source_of(DType::int64, ids));
  EXPECT_THAT(read(*source), ElementsAre(0, narrow_none));
  check_integer_fields(config_of(zero), narrowed, *source);

  const auto refusal = [&](DType type, const Graph& graph) {
    return error_of([&] { zero_out_of_range(config_of(zero), graph, source_of(type, ids)); });
  };
  EXPECT_THAT(refusal(DType::int32, lookups(DType::int32, {{5, {DType::int64}}})),
              AllOf(HasSubstr("train.toml:10"), HasSubstr("data.fields.ids"),
                    HasSubstr("out_of_range is not possible here"),
                    HasSubstr("expected int64 ids, as embedding5 takes them, got int32")));
  EXPECT_THAT(refusal(DType::int64, lookups(DType::int64, {{5, {DType::int32, DType::int64}}})),
              HasSubstr("out_of_range is not possible here"));
  EXPECT_THAT(refusal(DType::int64, lookups(DType::int64, {{5, {}}, {6, {DType::int32}}})),
              HasSubstr("expected int32 ids, as embedding6 takes them, got int64"));
  EXPECT_THAT(refusal(DType::int16, lookups(DType::int64, {{5, {}}})), HasSubstr("got int16"));
}

TEST(OutOfRange, TheIdOfNoRowIsOutOfRangeUnlessTheFieldSaysZero) {
  const auto checked = [](DType type, const Graph& graph, const std::vector<std::int64_t>& ids) {
    return error_of(
        [&] { check_integer_fields(config_of("ids = 'ids'"), graph, *source_of(type, ids)); });
  };
  const Graph wide = lookups(DType::int64, {{5, {}}}), narrow = lookups(DType::int32, {{5, {}}});
  EXPECT_THAT(checked(DType::int64, wide, {0, none, 4}),
              AllOf(HasSubstr("memory:2: data.fields.ids: out of range"),
                    HasSubstr("got -9223372036854775808"),
                    HasSubstr("data.fields.ids.out_of_range = \"zero\" looks up zeros instead)")));
  EXPECT_THAT(checked(DType::int32, narrow, {0, narrow_none, 4}), HasSubstr("got -2147483648"));
  const auto zeros =
      zero_out_of_range(config_of(zero), narrow, source_of(DType::int32, {0, narrow_none, 4}));
  check_integer_fields(config_of(zero), narrow, *zeros);
  EXPECT_THAT(read(*zeros), ElementsAre(0, narrow_none, 4));
  EXPECT_THAT(checked(DType::int64, wide, {0, none + 1, 4}), HasSubstr("out of range"));
  EXPECT_THAT(checked(DType::int64, wide, {0, narrow_none, 4}), HasSubstr("got -2147483648"));
  EXPECT_THAT(
      checked(DType::int32, lookups(DType::int32, {{5, {DType::int64}}}), {0, narrow_none, 4}),
      HasSubstr("got -2147483648"));
}

// A bounded field is checked within its bound, and the id of no row is no class.
TEST(OutOfRange, ABoundedFieldIsCheckedByWhatItGives) {
  const auto source = zero_out_of_range(config_of(zero), lookups(DType::int64, {{5, {}}}),
                                        source_of(DType::int64, {0, 4, 5}));
  source->check_range(0, 5, &none);
  EXPECT_THAT(error_of([&] { source->check_range(0, 9, nullptr); }), HasSubstr("got 5"));
  EXPECT_THAT(error_of([&] { source->check_range(0, 3, &none); }), HasSubstr("got 4"));
  check_integer_fields(config_of(zero), lookups(DType::int64, {{5, {}}}), *source);
}

/// What is wrong with float ids of a model that converts them itself.
std::string float_ids(const std::vector<float>& ids) {
  const auto count = static_cast<std::int64_t>(ids.size());
  const auto source = make_array_source({{"ids", HostTensor::from<float>({count}, ids)}});
  const Graph graph = lookups(DType::float32, {{5, {DType::int64}}});
  return error_of([&] { check_integer_fields(config_of("ids = 'ids'"), graph, *source); });
}

TEST(OutOfRange, FloatIdsThatTheModelConverts) {
  EXPECT_EQ(float_ids({0, 4, 3.5f}), "no error");
  EXPECT_THAT(float_ids({0, 5}), HasSubstr("memory:2: data.fields.ids: out of range: an index of "
                                           "embedding5 into \"table5\", which has 5 rows: expected "
                                           "from 0 to below 5, got 5"));
  EXPECT_THAT(float_ids({-0.5f}), HasSubstr("got -0.5"));
  EXPECT_THAT(float_ids({1e30f}), HasSubstr("got 1e+30"));
  EXPECT_THAT(float_ids({std::numeric_limits<float>::quiet_NaN()}), HasSubstr("got nan"));
}

/// What is wrong with labels of a binary cross entropy.
std::string binary_labels(const HostTensor& labels) {
  const RunConfig config =
      config_of("label = 'label'", {"loss.terms=[{name=\"click\", kind=\"binary_cross_entropy\", "
                                    "logits=\"logits\", labels=\"label\"}]"});
  const auto source = make_array_source({{"label", labels}});
  const Graph graph = lookups(DType::int64, {{5, {}}});
  try {
    check_integer_fields(config, graph, *source);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::data);
    return error.what();
  }
  return "no error";
}

TEST(BinaryLabels, AreZeroOneOrBetween) {
  EXPECT_EQ(binary_labels(HostTensor::from<float>({5}, {0, 1, 0.25f, 1, 0})), "no error");
  EXPECT_EQ(binary_labels(HostTensor::from<std::uint8_t>({2, 2}, {0, 1, 1, 0})), "no error");
  EXPECT_EQ(
      binary_labels(HostTensor::from<float>({3}, {1, -1, 1})),
      "memory:2: data.fields.label: out of range: a label of the loss term \"click\" "
      "(binary_cross_entropy): expected 0 to 1, got -1 (labels are 0 for no and 1 for yes, or "
      "a probability between)");
  EXPECT_THAT(binary_labels(HostTensor::from<std::int64_t>({4}, {0, 2, 0, 2})),
              AllOf(HasSubstr("memory:2: data.fields.label: out of range (and 1 row more): "),
                    Not(HasSubstr("memory:4: ")), HasSubstr("got 2")));
  EXPECT_THAT(binary_labels(HostTensor::from<double>({1}, {1.0000001})),
              HasSubstr("got 1.0000001"));
  EXPECT_THAT(
      binary_labels(HostTensor::from<float>({1}, {std::numeric_limits<float>::quiet_NaN()})),
      HasSubstr("got nan"));
  const std::string many = binary_labels(HostTensor::from<float>({60}, std::vector<float>(60, 2)));
  EXPECT_THAT(
      many,
      AllOf(
          HasSubstr(
              "memory:1: data.fields.label: out of range (and 59 rows more): a label of the loss"),
          Not(HasSubstr("memory:2: "))));
}

/// What is wrong with the labels of a term; `scores`: the shape of the value "s" that it reads.
std::string labels_of(const std::string& term, const HostTensor& labels, const Shape& scores) {
  static const OperatorSet operators = all_operators();
  GraphBuilder b(operators);
  const ValueId x = b.input("x", {DType::float32, scores});
  b.rename(b.add_node("Identity", {x}), "s");
  b.output("y", b.add_node("Relu", {b.graph().find_value("s")}));
  const RunConfig config =
      config_of("label = 'label'", {"loss.terms=[{name='t', labels='label', " + term + "}]"});
  try {
    check_integer_fields(config, b.finish(), *make_array_source({{"label", labels}}));
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

// PyTorch's cosine_embedding_loss takes 1 and -1; a 0 would make neither a loss nor an error.
TEST(SignLabels, AreOneOrMinusOneAndNothingBetween) {
  const std::string term = "kind='cosine_embedding', input1='s', input2='s'";
  const Shape scores{1, 4};
  EXPECT_EQ(labels_of(term, HostTensor::from<float>({3}, {1, -1, 1}), scores), "no error");
  EXPECT_EQ(labels_of(term, HostTensor::from<std::int64_t>({2}, {1, -1}), scores), "no error");
  EXPECT_THAT(labels_of(term, HostTensor::from<std::int64_t>({3}, {1, 0, 0}), scores),
              AllOf(HasSubstr("memory:2: data.fields.label"), HasSubstr("memory:3: "),
                    HasSubstr("expected -1 or 1, got 0")));
  EXPECT_THAT(labels_of(term, HostTensor::from<float>({2}, {0.5f, 1}), scores),
              HasSubstr("got 0.5"));
  EXPECT_THAT(labels_of(term, HostTensor::from<float>({2}, {1, 2}), scores), HasSubstr("got 2"));
}

// F.kl_div of a negative target is nan, since it takes the target's logarithm.
TEST(KlDivTargets, AreNotNegative) {
  const std::string term = "kind='kl_div', log_probabilities='s'";
  // The key of the labels is `targets` there.
  const auto error = [&](const std::string& more, std::vector<float> values) {
    const RunConfig config = config_of(
        "label = 'label'", {"loss.terms=[{name='t', targets='label', " + term + more + "}]"});
    const auto source = make_array_source({{"label", HostTensor::from<float>({1, 2}, values)}});
    return error_of([&] {
      check_integer_fields(config, lookups(DType::int64, {{5, {}}}), *source);
    });
  };
  EXPECT_THAT(error("", {0.5f, -0.5f}), HasSubstr("got -0.5"));
  const RunConfig logs =
      config_of("label = 'label'",
                {"loss.terms=[{name='t', targets='label', log_target=true, " + term + "}]"});
  check_integer_fields(logs, lookups(DType::int64, {{5, {}}}),
                       *make_array_source({{"label", HostTensor::from<float>({1, 2}, {-1, -2})}}));
}

// F.cross_entropy's mean is nan where every target is ignored.
TEST(ClassLabels, OneOfThemHasToCount) {
  const std::string term = "kind='softmax_cross_entropy', logits='s', ";
  const Shape scores{1, 3};
  const HostTensor ignored = HostTensor::from<std::int64_t>({3}, {-100, -100, -100});
  EXPECT_THAT(labels_of(term + "ignore_index=-100", ignored, scores),
              AllOf(HasSubstr("no label of the loss term \"t\" counts"), HasSubstr("nan")));
  EXPECT_EQ(labels_of(term + "ignore_index=-100",
                      HostTensor::from<std::int64_t>({3}, {-100, 2, -100}), scores),
            "no error");
  EXPECT_EQ(labels_of(term + "ignore_index=-100, reduction='sum'", ignored, scores), "no error");
  const HostTensor ones = HostTensor::from<std::int64_t>({2}, {1, 1});
  EXPECT_THAT(labels_of(term + "class_weights=[1.0, 0.0, 1.0]", ones, scores),
              HasSubstr("no label"));
}

// Even if the scores are a value inside the graph that is not an output.
TEST(ClassLabels, HaveToBeClassesOfInnerValues) {
  EXPECT_THAT(labels_of("kind='softmax_cross_entropy', logits='s'",
                        HostTensor::from<std::int64_t>({2}, {1, 3}), {1, 3}),
              AllOf(HasSubstr("memory:2"), HasSubstr("not a class of \"s\""), HasSubstr("got 3")));
}

// torch.nn.utils.rnn.pack_padded_sequence: "Length of all samples has to be greater than 0".
TEST(LengthsOfSequences, AreOneToTheNumberOfSteps) {
  static const OperatorSet operators = all_operators();
  GraphBuilder b(operators);
  const ValueId x = b.input("x", {DType::float32, {5, 2, 1, 8}});
  const ValueId lengths = b.input("lengths", {DType::int32, {2}});
  const ValueId r = b.constant(HostTensor({DType::float32, {1, 8, 2}}));
  b.set_scope({"rnn.LSTM", Phase::forward, {}});
  b.output("y", b.node("RnnScan", {x, r, {}, lengths},
                       {{"kind", std::string("lstm")},
                        {"activations", std::string("Sigmoid,Tanh,Tanh")},
                        {"alphas", Floats(3)},
                        {"betas", Floats(3)}})[0]);
  const Graph graph = b.finish();
  const RunConfig config = config_of("lengths = 'lengths'");
  const auto error = [&](const std::vector<std::int32_t>& values) {
    const auto count = static_cast<std::int64_t>(values.size());
    const auto source =
        make_array_source({{"lengths", HostTensor::from<std::int32_t>({count}, values)}});
    return error_of([&] { check_integer_fields(config, graph, *source); });
  };
  EXPECT_EQ(error({1, 5, 3}), "no error");
  EXPECT_THAT(error({2, 0}), AllOf(HasSubstr("memory:2"), HasSubstr("expected 1 to 5, got 0")));
  EXPECT_THAT(error({6}), HasSubstr("a length of rnn.LSTM, which has 5 steps"));
}

}  // namespace
}  // namespace tandem

// Every loss term against PyTorch's numbers (tests/scripts/loss_expectations.py), whole and in
// micro-batches.
#include "engine/train/graph/add_losses.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "engine/gradient/gradient.h"
#include "engine/graph/error.h"
#include "tests/harness/folders.h"
#include "tests/harness/operator_case.h"
#include "tests/training/support.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

const OperatorSet& operators() {
  static const OperatorSet set = all_operators();
  return set;
}

/// The [loss] of a configuration with these terms.
LossConfig loss_of(const std::string& terms) {
  const std::string text = "model = \"m.onnx\"\nsteps = 1\n[loss]\nterms = [" + terms +
                           "]\n[optimizer]\nkind = \"sgd\"\n";
  return parse_run_config(text, "/folder/train.toml").loss;
}

std::string value_name(std::size_t index) {
  return index == 0 ? "value" : "value" + std::to_string(index);
}

/// A term with the names that its kind reads: "value" (then "value1", ..) and "labels".
std::string term_text(const std::string& kind, const std::string& options = "") {
  const LossKind& loss = *find_loss(kind);
  std::string text = "{ name = \"loss\", kind = \"" + kind + "\"" + options;
  for (std::size_t i = 0; i < loss.values.size(); ++i)
    text += ", " + std::string(loss.values[i].key) + " = \"" + value_name(i) + "\"";
  if (loss.labels.form != LabelForm::none)
    text += ", " + std::string(loss.labels.key) + " = \"labels\"";
  return text + " }";
}

HostTensor tensor_of(const Json& json) {
  const DType dtype =
      json.contains("dtype") ? *dtype_from_name(json["dtype"].get<std::string>()) : DType::float32;
  return HostTensor::from<double>(json["shape"].get<Shape>(),
                                  json["numbers"].get<std::vector<double>>())
      .converted(dtype);
}

HostTensor rows_from(const HostTensor& tensor, std::int64_t begin, std::int64_t count) {
  TensorType type = tensor.type();
  const std::size_t row = tensor.bytes() / static_cast<std::size_t>(type.shape[0]);
  type.shape[0] = count;
  HostTensor part(type);
  std::memcpy(part.data(), static_cast<const std::byte*>(tensor.data()) + begin * row,
              part.bytes());
  return part;
}

/// What a term reads. Axis 0 of fields is the batch; so is axis 0 of values that are divided.
struct Operands {
  std::vector<HostTensor> values;
  std::vector<std::pair<std::string, HostTensor>> fields;  // labels, weights, lengths

  std::int64_t samples() const {
    return (fields.empty() ? values[0] : fields[0].second).shape()[0];
  }
  Operands part(std::int64_t begin, std::int64_t count) const {
    Operands result;
    for (const HostTensor& value : values) result.values.push_back(rows_from(value, begin, count));
    for (const auto& [name, field] : fields)
      result.fields.emplace_back(name, rows_from(field, begin, count));
    return result;
  }
  const HostTensor* find(const std::string& field) const {
    for (const auto& [name, tensor] : fields) {
      if (name == field) return &tensor;
    }
    return nullptr;
  }
};

struct LossGraph {
  Graph graph;
  Loss loss;
  std::vector<ValueId> gradients;  // with respect to the values
};

LossGraph loss_graph(const LossConfig& config, const Operands& operands,
                     const StepSamples& samples) {
  GraphBuilder g(operators());
  std::vector<ValueId> values;
  for (std::size_t i = 0; i < operands.values.size(); ++i) {
    values.push_back(g.input(value_name(i), operands.values[i].type()));
    g.output(value_name(i), values.back());
  }
  FieldTypes fields;
  for (const auto& [name, tensor] : operands.fields) fields[name] = tensor.type();
  LossGraph made;
  made.loss = add_loss(g, config, fields, samples);
  const GradientSeed seed{made.loss.total, g.scalar(1, DType::float32)};
  made.gradients = add_gradients(g, {&seed, 1}, values);
  made.graph = g.finish();
  verify(made.graph);
  return made;
}

struct Computed {
  double loss = 0;
  std::vector<std::vector<float>> gradients;  // with respect to the values
};

/// One optimizer step in micro-batches of `micro_batch` samples; denominators are fed where the
/// graph asks for them.
Computed compute(const LossConfig& config, const Operands& operands, std::int64_t micro_batch) {
  const std::int64_t step = operands.samples();
  Computed result;
  result.gradients.resize(operands.values.size());
  for (std::int64_t done = 0; done < step; done += micro_batch) {
    const std::int64_t count = std::min(micro_batch, step - done);
    const Operands part = count == step ? operands : operands.part(done, count);
    const LossGraph made = loss_graph(config, part, {count, step});
    std::vector<std::pair<std::string, HostTensor>> feeds = part.fields;
    for (std::size_t i = 0; i < part.values.size(); ++i)
      feeds.emplace_back(value_name(i), part.values[i]);
    for (const FedDenominator& fed : made.loss.denominators) {
      EXPECT_EQ(fed.term, "loss");
      const double sum =
          weight_sum(config.terms[0], operands.find("labels"), operands.find("weights"));
      feeds.emplace_back(fed.input, HostTensor::from<float>({}, {static_cast<float>(sum)}));
    }
    std::vector<ValueId> wanted = made.gradients;
    wanted.push_back(made.loss.total);
    const auto found = testing::evaluate(made.graph, feeds, wanted);
    result.loss += found.back().as<float>()[0];
    for (std::size_t i = 0; i < part.values.size(); ++i) {
      const auto dx = found[i].as<float>();
      result.gradients[i].insert(result.gradients[i].end(), dx.begin(), dx.end());
    }
  }
  return result;
}

std::vector<Json> loss_cases() {
  std::ifstream file(source_folder() + "/tests/data/losses.json");
  return Json::parse(file).get<std::vector<Json>>();
}

/// Those whose samples are along axis 0, and do not need each other.
std::vector<Json> divisible_cases() {
  std::vector<Json> cases = loss_cases();
  std::erase_if(cases, [](const Json& c) { return c.value("whole", false); });
  return cases;
}

class LossTest : public ::testing::TestWithParam<Json> {
 protected:
  void expect(std::int64_t micro_batch) {
    const Json& c = GetParam();
    const LossConfig config = loss_of(term_text(c["kind"], c["options"]));
    Operands operands;
    for (const Json& value : c["values"]) operands.values.push_back(tensor_of(value));
    for (const char* field : {"labels", "weights"}) {
      if (c.contains(field)) operands.fields.emplace_back(field, tensor_of(c[field]));
    }
    const Json fields = c.value("fields", Json::object());
    for (const auto& [key, field] : fields.items())
      operands.fields.emplace_back(key, tensor_of(field));
    const Computed found =
        compute(config, operands, micro_batch > 0 ? micro_batch : operands.samples());
    const double loss = c["loss"];
    EXPECT_NEAR(found.loss, loss, 2e-6 * std::max(1.0, std::abs(loss)));
    for (std::size_t v = 0; v < operands.values.size(); ++v) {
      const auto gradient = c["values"][v]["gradient"].get<std::vector<double>>();
      ASSERT_EQ(found.gradients[v].size(), gradient.size());
      for (std::size_t i = 0; i < gradient.size(); ++i) {
        EXPECT_NEAR(found.gradients[v][i], gradient[i], 2e-6 * std::max(1.0, std::abs(gradient[i])))
            << v << ", " << i;
      }
    }
  }
};

class DividedLossTest : public LossTest {};

TEST_P(LossTest, IsThatOfPyTorch) { expect(0); }
TEST_P(DividedLossTest, SumsOverMicroBatchesOfOne) { expect(1); }
TEST_P(DividedLossTest, SumsOverUnequalMicroBatches) { expect(2); }

constexpr auto name_of_case = [](const auto& info) {
  return info.param["name"].template get<std::string>();
};
INSTANTIATE_TEST_SUITE_P(Terms, LossTest, ::testing::ValuesIn(loss_cases()), name_of_case);
INSTANTIATE_TEST_SUITE_P(Terms, DividedLossTest, ::testing::ValuesIn(divisible_cases()),
                         name_of_case);

TEST(LossTermsTest, TheLossIsTheWeightedSumOfItsTerms) {
  const LossConfig config = loss_of(
      R"({ name = "a", kind = "mse", predictions = "value", targets = "labels", weight = 2.0 },
         { name = "b", kind = "mse", predictions = "value", targets = "labels", reduction = "sum" })");
  GraphBuilder g(operators());
  const TensorType type{DType::float32, {4}};
  g.output("value", g.input("value", type));
  const Loss loss = add_loss(g, config, {{"labels", type}}, {4, 4});
  ASSERT_EQ(loss.terms.size(), 2u);
  const auto found = testing::evaluate(g.finish(),
                                       {{"value", HostTensor::from<float>({4}, {1, 2, 3, 4})},
                                        {"labels", HostTensor::from<float>({4}, {0, 0, 0, 0})}},
                                       {loss.total, loss.terms[0].second, loss.terms[1].second});
  EXPECT_FLOAT_EQ(found[1].as<float>()[0], 15);
  EXPECT_FLOAT_EQ(found[2].as<float>()[0], 30);
  EXPECT_FLOAT_EQ(found[0].as<float>()[0], 45);
}

TEST(LossTermsTest, LabelsMayBeAnInputOfTheModel) {
  GraphBuilder g(operators());
  g.output("value", g.input("value", {DType::float32, {2, 3}}));
  const ValueId labels = g.input("labels", {DType::int64, {2}});
  g.output("labels_again", labels);
  add_loss(g, loss_of(term_text("softmax_cross_entropy")), {}, {2, 2});
  EXPECT_EQ(g.graph().inputs.size(), 2u);
}

// ---------------------------------------------------------------- a loss inside the model

Graph ends_in(const std::string& reduction, std::int64_t batch) {
  GraphBuilder g(operators());
  g.set_scope({"reduce", Phase::forward, {}});
  const ValueId x = g.input("x", {DType::float32, {batch}});
  const ValueId square = g.mul(x, x);
  g.output("squares", square);
  g.output("cost",
           g.add_node(reduction, {square}, {{"axes", Ints{0}}, {"keepdims", std::int64_t{0}}}));
  return g.finish();
}

TEST(OwnLossTest, TheOnlyScalarOutputIsTheLoss) {
  GraphBuilder g(operators(), ends_in("ReduceMean", 4));
  const Loss loss = add_loss(g, {}, {}, {4, 4});
  EXPECT_TRUE(loss.terms.empty());
  const auto found = testing::evaluate(
      g.finish(), {{"x", HostTensor::from<float>({4}, {1, 2, 3, 4})}}, {loss.total});
  EXPECT_FLOAT_EQ(found[0].as<float>()[0], 7.5);
}

TEST(OwnLossTest, MeansAndSumsSplitIntoMicroBatches) {
  for (const auto& [reduction, expected] : {std::pair{"ReduceMean", 7.5}, {"ReduceSum", 30.0}}) {
    double sum = 0;
    for (const std::int64_t begin : {0, 2}) {
      GraphBuilder g(operators(), ends_in(reduction, 2));
      const Loss loss = add_loss(g, {}, {}, {2, 4});
      const HostTensor x = HostTensor::from<float>({2}, {begin + 1.0f, begin + 2.0f});
      sum += testing::evaluate(g.finish(), {{"x", x}}, {loss.total})[0].as<float>()[0];
    }
    EXPECT_FLOAT_EQ(sum, expected) << reduction;
  }
}

TEST(OwnLossTest, AMeanOverWhatAPassCountsIsRefusedWithTheReason) {
  GraphBuilder g(operators(), ends_in("ReduceSum", 2));
  g.set_scope({"criterion.Div", Phase::forward, {}});
  const ValueId mean =
      g.node("Div", {g.graph().outputs[1].value, g.input("n", {DType::float32, {}})})[0];
  g.graph().outputs = {{"cost", mean}};
  try {
    add_loss(g, {}, {}, {2, 4});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("micro_batch: the model's own loss \"cost\" cannot be split"));
    EXPECT_THAT(error.what(), HasSubstr("divided by what one micro-batch counts"));
    EXPECT_THAT(error.what(), HasSubstr("got Div at criterion.Div"));
    EXPECT_THAT(error.what(), HasSubstr("leave micro_batch out"));
  }
}

// ---------------------------------------------------------------- mistakes

/// Diagnostics of add_loss on a model with logits -> Softmax "probabilities", hidden value
/// "scores".
std::vector<Diagnostic> problems(const std::string& terms, const FieldTypes& fields,
                                 const Shape& logits = {4, 3}) {
  GraphBuilder g(operators());
  g.set_scope({"head", Phase::forward, {}});
  const ValueId x = g.input("x", {DType::float32, logits});
  const ValueId scores = g.add(x, x);
  g.rename(scores, "scores");
  const ValueId p = g.add_node("Softmax", {scores}, {{"axis", std::int64_t{1}}});
  g.output("logits", scores);
  g.output("probabilities", p);
  g.output("chances", g.add_node("Sigmoid", {scores}));
  g.output("log_probabilities", g.add_node("LogSoftmax", {scores}, {{"axis", std::int64_t{1}}}));
  try {
    add_loss(g, terms.empty() ? LossConfig{} : loss_of(terms), fields, {logits[0], logits[0]});
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    return error.diagnostics();
  }
  return {};
}

std::string problem(const std::string& terms, const FieldTypes& fields,
                    const Shape& logits = {4, 3}) {
  const auto found = problems(terms, fields, logits);
  return found.empty() ? "no error" : to_string(found[0]);
}

const FieldTypes labels_only{{"labels", {DType::int64, {4}}}};
const FieldTypes some_fields{{"labels", {DType::int64, {4}}}, {"weights", {DType::float32, {4}}}};

TEST(LossErrorsTest, UnknownNamesComeWithTheNearest) {
  const std::string value = problem(
      R"({ kind = "softmax_cross_entropy", logits = "logit", labels = "labels" })", some_fields);
  EXPECT_THAT(value, HasSubstr("/folder/train.toml:4:"));
  EXPECT_THAT(value, HasSubstr("no value \"logit\""));
  EXPECT_THAT(value, HasSubstr("did you mean \"logits\"?"));
  const std::string field = problem(
      R"({ kind = "softmax_cross_entropy", logits = "logits", labels = "lables" })", some_fields);
  EXPECT_THAT(field, HasSubstr("no data field \"lables\""));
  EXPECT_THAT(field, HasSubstr("did you mean \"labels\"?"));
}

TEST(LossErrorsTest, AllTermsAreCheckedAtOnce) {
  EXPECT_EQ(
      problems(
          R"({ name = "a", kind = "softmax_cross_entropy", logits = "logit", labels = "lable" },
                        { name = "b", kind = "mse", predictions = "scores", targets = "weight" })",
          some_fields)
          .size(),
      3u);
}

TEST(LossErrorsTest, LogitsBehindASoftmaxNameTheRightValue) {
  for (const auto& [name, op] : {std::pair<std::string, std::string>{"probabilities", "Softmax"},
                                 {"log_probabilities", "LogSoftmax"},
                                 {"chances", "Sigmoid"}}) {
    const std::string text = problem(
        R"({ kind = "softmax_cross_entropy", logits = ")" + name + R"(", labels = "labels" })",
        labels_only);
    EXPECT_THAT(text, HasSubstr("output of " + op));
    EXPECT_THAT(text, HasSubstr("name its input \"scores\""));
  }
  EXPECT_THAT(problem(R"({ kind = "binary_cross_entropy", logits = "chances", labels = "labels" })",
                      {{"labels", {DType::int64, {4, 3}}}}),
              HasSubstr("output of Sigmoid"));
}

TEST(LossErrorsTest, SquaredErrorsOfProbabilitiesAreFine) {
  EXPECT_EQ(problem(R"({ kind = "mse", predictions = "probabilities", targets = "labels" })",
                    {{"labels", {DType::float32, {4, 3}}}}),
            "no error");
}

TEST(LossErrorsTest, ShapesThatDoNotFit) {
  const std::string cross =
      R"({ kind = "softmax_cross_entropy", logits = "logits", labels = "labels" })";
  EXPECT_THAT(problem(cross, {{"labels", {DType::int64, {4, 2}}}}), HasSubstr("[4, 3]"));
  EXPECT_THAT(problem(cross, {{"labels", {DType::int64, {4, 2}}}}), HasSubstr("got [4, 2]"));
  EXPECT_THAT(problem(cross, {{"labels", {DType::float32, {4}}}}), HasSubstr("got float32[4]"));
  const std::string squares = R"({ kind = "mse", predictions = "logits", targets = "labels" })";
  EXPECT_THAT(problem(squares, {{"labels", {DType::float32, {4}}}}), HasSubstr("does not fit"));
  const std::string binary =
      R"({ kind = "binary_cross_entropy", logits = "logits", labels = "labels" })";
  EXPECT_THAT(problem(binary, {{"labels", {DType::int64, {12}}}}),
              HasSubstr("expected [4, 3], got [12]"));
}

TEST(LossErrorsTest, WeightsOfAnotherNumberOfClasses) {
  EXPECT_THAT(
      problem(
          R"({ kind = "softmax_cross_entropy", logits = "logits", labels = "labels", class_weights = [1.0, 2.0] })",
          labels_only),
      HasSubstr("expected 3 numbers, one per class, got 2"));
  EXPECT_THAT(
      problem(
          R"({ kind = "binary_cross_entropy", logits = "logits", labels = "labels", pos_weight = [1.0, 2.0] })",
          {{"labels", {DType::int64, {4, 3}}}}),
      HasSubstr("pos_weight"));
  EXPECT_THAT(
      problem(
          R"({ kind = "softmax_cross_entropy", logits = "logits", labels = "labels", ignore_index = 0 })",
          {{"labels", {DType::float32, {4, 3}}}}),
      HasSubstr("need integer labels"));
}

TEST(LossErrorsTest, AModelWithoutALossNeedsTerms) {
  const std::string text = problem("", {});
  EXPECT_THAT(text, HasSubstr("does not end in one scalar"));
  EXPECT_THAT(text, HasSubstr("add [loss] terms"));
}

}  // namespace
}  // namespace tandem

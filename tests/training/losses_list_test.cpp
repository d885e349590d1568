// The list of losses: every kind is read, checked, written and documented, and has cases.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/config/keys/config_value.h"
#include "engine/formats/files.h"
#include "engine/graph/error.h"
#include "engine/losses/loss_weights.h"
#include "engine/train/graph/add_losses.h"
#include "tests/harness/folders.h"
#include "tests/training/error_text.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using testing::error_of;
using ::testing::HasSubstr;

RunConfig parse(const std::string& terms) {
  return parse_run_config("model = \"m.onnx\"\nsteps = 1\n[loss]\nterms = [" + terms +
                              "]\n[optimizer]\nkind = \"sgd\"\n",
                          "/folder/train.toml");
}

/// A term with all that its kind needs, and `more`.
std::string term_of(const LossKind& kind, const std::string& more = "") {
  std::string text = "{ kind = \"" + std::string(kind.name) + "\"";
  for (const LossValue& value : kind.values) text += ", " + std::string(value.key) + " = \"x\"";
  if (kind.labels.form != LabelForm::none) text += ", " + std::string(kind.labels.key) + " = \"y\"";
  return text + more + " }";
}

/// A value of the option that is not its default.
std::string other_value(const KeyInfo& option) {
  if ((option.type & list_value) != 0) return "[0.5, 2.0]";
  if ((option.type & boolean_value) != 0) return option.fallback == "true" ? "false" : "true";
  if ((option.type & string_value) != 0)
    return toml_string(option.allowed.substr(option.allowed.rfind('|') + 1));
  if ((option.type & integer_value) != 0)
    return std::to_string(static_cast<std::int64_t>(std::max(option.low, -8.0)) + 1);
  return option.high < 1e300 ? toml_number((std::max(option.low, 0.0) + option.high) / 2) : "3.5";
}

TEST(ListOfLosses, HasEachNameOnce) {
  std::set<std::string_view> names;
  for (const LossKind& kind : all_losses()) {
    EXPECT_TRUE(names.insert(kind.name).second) << kind.name;
    EXPECT_EQ(find_loss(kind.name), &kind);
    EXPECT_FALSE(kind.values.empty() || kind.help.empty() || kind.source.empty()) << kind.name;
    EXPECT_EQ(kind.labels.form == LabelForm::none, kind.labels.key.empty()) << kind.name;
    EXPECT_TRUE(kind.build) << kind.name;
  }
  EXPECT_EQ(find_loss("cross_entropy"), nullptr);
}

TEST(ListOfLosses, EachHasNumbersOfAnotherLibrary) {
  std::ifstream file(source_folder() + "/tests/data/losses.json");
  std::set<std::string> with_cases{"sum_of_squares"};  // its cases are in end_to_end/
  std::set<std::string> set_options;
  for (const auto& c : nlohmann::json::parse(file)) {
    with_cases.insert(c["kind"].get<std::string>());
    set_options.insert(c["kind"].get<std::string>() + c["options"].get<std::string>());
  }
  for (const LossKind& kind : all_losses()) {
    EXPECT_TRUE(with_cases.contains(std::string(kind.name))) << kind.name;
    for (const KeyInfo& option : kind.options.keys()) {
      EXPECT_TRUE(std::any_of(set_options.begin(), set_options.end(),
                              [&](const std::string& set) {
                                return set.starts_with(kind.name) &&
                                       set.find(option.path) != std::string::npos;
                              }))
          << kind.name << " has no case with " << option.path;
    }
  }
}

// The table of keys has one row for each key, whichever kind it belongs to: only a range, a default
// or a meaning may differ by kind.
TEST(ListOfLosses, AKeyAllowsTheSameForAllKinds) {
  std::map<std::string_view, KeyInfo> first;
  for (const LossKind& kind : all_losses()) {
    AnyOptions options = kind.options;
    for (const KeyInfo& key : list_keys([&](KeyVisitor& v) { options.visit(v); })) {
      const KeyInfo& known = first.emplace(key.path, key).first->second;
      EXPECT_EQ(key.allowed, known.allowed) << kind.name << " " << key.path;
      if (key.path.ends_with("[]")) {
        EXPECT_EQ(key.help, known.help) << kind.name << " " << key.path;
      }
    }
  }
}

TEST(ListOfLosses, DefaultsAndOptionsSurviveTheResolvedFile) {
  for (const LossKind& kind : all_losses()) {
    std::string set;
    for (const KeyInfo& option : kind.options.keys())
      set += ", " + std::string(option.path) + " = " + other_value(option);
    for (const LossField& field : kind.fields)
      set += ", " + std::string(field.key) + " = \"" + std::string(field.key) + "_field\"";
    const std::string common = ", name = \"n\", weight = 0.5, reduction = \"batchmean\"" +
                               std::string(kind.sample_weights ? ", sample_weights = \"w\"" : "");
    for (const std::string& more : {std::string(), set + common}) {
      const RunConfig config = parse(term_of(kind, more));
      const std::string resolved = to_toml(config);
      EXPECT_EQ(parse_run_config(resolved, "/other/train.toml"), config) << resolved;
      const LossTerm& term = config.loss.terms[0];
      EXPECT_EQ(term.kind, &kind);
      EXPECT_EQ(term.values, std::vector<std::string>(kind.values.size(), "x"));
      for (std::size_t i = 0; i < kind.fields.size(); ++i)
        EXPECT_EQ(term.other_fields[i],
                  more.empty() ? "" : std::string(kind.fields[i].key) + "_field");
      for (const KeyInfo& option : kind.options.keys()) {
        const bool has_default = !option.fallback.empty() && !option.fallback.starts_with('(');
        const bool is_written =
            resolved.find(", " + std::string(option.path) + " = ") != std::string::npos;
        EXPECT_EQ(is_written, has_default || !more.empty()) << kind.name << " " << option.path;
      }
    }
    if (!kind.options.keys().empty()) {
      EXPECT_NE(parse(term_of(kind, set)), parse(term_of(kind)));
    }
  }
}

TEST(ListOfLosses, AKindTakesNoKeysOfOthers) {
  std::set<std::string> keys{"sample_weights = \"w\""};
  for (const LossKind& kind : all_losses()) {
    for (const LossValue& value : kind.values) keys.insert(std::string(value.key) + " = \"x\"");
    for (const LossField& field : kind.fields) keys.insert(std::string(field.key) + " = \"x\"");
    for (const KeyInfo& option : kind.options.keys())
      keys.insert(std::string(option.path) + " = " + other_value(option));
  }
  for (const LossKind& kind : all_losses()) {
    const std::vector<KeyInfo> options = kind.options.keys();
    for (const std::string& key : keys) {
      const std::string name = key.substr(0, key.find(' '));
      const bool own = (name == "sample_weights" && kind.sample_weights) ||
                       name == kind.labels.key ||
                       std::any_of(kind.values.begin(), kind.values.end(),
                                   [&](const LossValue& value) { return value.key == name; }) ||
                       std::any_of(kind.fields.begin(), kind.fields.end(),
                                   [&](const LossField& field) { return field.key == name; }) ||
                       std::any_of(options.begin(), options.end(),
                                   [&](const KeyInfo& option) { return option.path == name; });
      if (own) continue;
      EXPECT_THAT(
          error_of([&] { parse(term_of(kind, ", " + key)); }),
          HasSubstr("loss.terms.0." + name + ": not an option of " + std::string(kind.name)))
          << key;
    }
  }
}

// The table of keys has the widest range of all kinds.
TEST(ListOfLosses, ARangeIsThatOfTheKind) {
  const std::string margin = ", margin = 2.0";
  const auto resolved = [](const char* kind, const std::string& more = "") {
    return to_toml(parse(term_of(*find_loss(kind), more)));
  };
  EXPECT_THAT(resolved("triplet_margin", margin), HasSubstr("margin = 2.0"));
  EXPECT_THAT(resolved("triplet_margin"), HasSubstr("margin = 1.0"));
  EXPECT_THAT(resolved("cosine_embedding"), HasSubstr("margin = 0.0"));
}

/// What adding the loss reports, with values "x" [4, 3] and "p", the Softmax of it.
std::string mistake(const std::string& term, const FieldTypes& fields) {
  static const OperatorSet operators = all_operators();
  GraphBuilder g(operators);
  g.set_scope({"head", Phase::forward, {}});
  const ValueId x = g.input("x", {DType::float32, {4, 3}});
  g.output("x", x);
  g.output("p", g.add_node("Softmax", {x}, {{"axis", std::int64_t{1}}}));
  g.output("row", g.reduce_sum(x, {1}, false));
  return error_of([&] { add_loss(g, parse(term).loss, fields, {4, 4}); });
}

const FieldTypes fields{{"y", {DType::int64, {4}}},
                        {"t", {DType::float32, {4, 3}}},
                        {"w", {DType::float32, {4}}},
                        {"each", {DType::float32, {4, 3}}},
                        {"flags", {DType::boolean, {4}}}};

TEST(LossMistakes, WeightsHaveToFitTheLosses) {
  const std::string entropy =
      R"({ kind = "softmax_cross_entropy", logits = "x", labels = "y", sample_weights = )";
  EXPECT_EQ(mistake(entropy + "\"w\" }", fields), "no error");
  EXPECT_THAT(mistake(entropy + "\"each\" }", fields),
              AllOf(HasSubstr("sample_weights: \"each\" does not fit the losses"),
                    HasSubstr("one for each sample or position of [4]"), HasSubstr("[4, 3]")));
  EXPECT_THAT(mistake(entropy + "\"flags\" }", fields), HasSubstr("does not fit the losses"));
  EXPECT_THAT(mistake(entropy + "\"v\" }", fields), HasSubstr("there is no data field \"v\""));
  EXPECT_EQ(
      mistake(R"({ kind = "mse", predictions = "x", targets = "t", sample_weights = "each" })",
              fields),
      "no error");
}

TEST(LossMistakes, ClassNumbersAreIntegers) {
  for (const std::string kind :
       {"nll\", log_probabilities", "softmax_focal\", logits", "multi_margin\", predictions"}) {
    EXPECT_THAT(mistake("{ kind = \"" + kind + " = \"x\", labels = \"w\" }", fields),
                AllOf(HasSubstr("\"w\" holds no class numbers"), HasSubstr("got float32")));
  }
}

TEST(LossMistakes, BatchmeanCountsSamplesAlone) {
  const std::string term =
      R"({ kind = "nll", log_probabilities = "x", labels = "y", reduction = "batchmean")";
  EXPECT_EQ(mistake(term + " }", fields), "no error");
  EXPECT_THAT(mistake(term + ", ignore_index = 0 }", fields),
              HasSubstr("divides by the number of samples"));
}

TEST(LossMistakes, LogarithmsOfProbabilitiesAreNoProbabilities) {
  EXPECT_THAT(mistake(R"({ kind = "nll", log_probabilities = "p", labels = "y" })", fields),
              AllOf(HasSubstr("\"p\" is the output of Softmax, but this loss takes its logarithm"),
                    HasSubstr("LogSoftmax")));
}

TEST(LossMistakes, ValuesHaveOneShape) {
  EXPECT_THAT(
      mistake(R"({ kind = "gaussian_kl", mu = "x", log_var = "row" })", fields),
      AllOf(HasSubstr("\"row\" does not fit \"x\""), HasSubstr("expected [4, 3], got [4]")));
  EXPECT_THAT(mistake(R"({ kind = "gaussian_kl", mu = "row", log_var = "row" })", fields),
              HasSubstr("too few axes"));
  EXPECT_THAT(mistake(R"({ kind = "dice", logits = "x", labels = "t" })", fields),
              HasSubstr("logits as [batch, channels, ..]"));
}

TEST(LossMistakes, FloatsAreNoClassNumbers) {
  EXPECT_THAT(mistake(R"({ kind = "softmax_cross_entropy", logits = "x", labels = "w" })", fields),
              AllOf(HasSubstr("the logits' shape [4, 3], got float32[4]"),
                    HasSubstr("end the field's `as` with \"int64\"")));
}

// Labels [2, 3] with class weights, label 9 ignored; weights a sample and a position.
TEST(WeightSum, IsOfClassesAndSamples) {
  const LossTerm term =
      parse(term_of(*find_loss("nll"), ", class_weights = [0.5, 2.0], ignore_index = 9"))
          .loss.terms[0];
  const HostTensor labels = HostTensor::from<std::int64_t>({2, 3}, {0, 1, 9, 1, 1, 0});
  const HostTensor by_sample = HostTensor::from<float>({2}, {1, 10});
  const HostTensor by_position = HostTensor::from<float>({2, 3}, {1, 10, 100, 1000, 1e4, 1e5});
  EXPECT_DOUBLE_EQ(weight_sum(term, &labels, nullptr), 7);
  EXPECT_DOUBLE_EQ(weight_sum(term, &labels, &by_sample), 2.5 + 45);
  EXPECT_DOUBLE_EQ(weight_sum(term, &labels, &by_position), 0.5 + 20 + 2000 + 2e4 + 5e4);
  const LossTerm unweighted = parse(term_of(*find_loss("nll"))).loss.terms[0];
  EXPECT_DOUBLE_EQ(weight_sum(unweighted, &labels, &by_sample), 11);
}

// TANDEM_LOSSES_PAGE=docs/losses.md writes the page instead.
TEST(ListOfLosses, ThePageInDocsIsCurrent) {
  if (const char* page = std::getenv("TANDEM_LOSSES_PAGE")) write_file(page, losses_markdown());
  EXPECT_EQ(read_file(source_folder() + "/docs/losses.md"), losses_markdown());
}

}  // namespace
}  // namespace tandem

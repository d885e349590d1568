// PyTorch's ctc_loss: -log of the probability that the frames of a sample spell its labels, after
// runs of one class became one and blanks were left out. As there, the mean divides the loss of
// each sample by the number of its labels, or by 1 where it has none.
#include <algorithm>

#include "engine/data/number_text.h"
#include "engine/losses/loss_builder.h"

namespace tandem::losses {
namespace {

enum Field : std::uint8_t { input_lengths, target_lengths };

struct CtcOptions final : KindOptions {
  std::int64_t blank = 0, ignore_index = -100;
  bool time_first = false, zero_infinity = false;
  void visit(KeyVisitor& v) override {
    v.key("blank", blank, at_least(0), "the class that stands for no label");
    v.key("ignore_index", ignore_index,
          "padding behind the labels of a sample; not read with target_lengths");
    v.key("time_first", time_first, "the logits are [time, batch, classes]");
    v.key("zero_infinity", zero_infinity,
          "a sample with too few frames for its labels has loss and gradient 0 instead of inf");
  }
};

/// Logarithms of probabilities [batch, time, classes]; for logits and for such logarithms alike.
std::optional<ValueId> log_probs(LossBuilder& b) {
  GraphBuilder& g = b.g;
  const bool time_first = b.options<CtcOptions>().time_first;
  ValueId x = b.values[0];
  if (g.shape(x).size() != 3) {
    b.fail("\"" + b.term.values[0] + "\" has no axes of frames and classes",
           time_first ? "[time, batch, classes]" : "[batch, time, classes]", to_string(g.shape(x)));
    return std::nullopt;
  }
  if (time_first) x = g.transpose(x, Ints{1, 0, 2});
  if (b.options<CtcOptions>().blank >= g.shape(x)[2]) {
    b.fail("blank is no class of \"" + b.term.values[0] + "\"",
           "0 to " + std::to_string(g.shape(x)[2] - 1),
           std::to_string(b.options<CtcOptions>().blank));
    return std::nullopt;
  }
  return g.add_node("LogSoftmax", {x}, {{"axis", std::int64_t{2}}});
}

/// The labels as [batch, most labels].
std::optional<ValueId> label_rows(LossBuilder& b, std::int64_t batch) {
  const TensorType& type = b.g.type(b.labels);
  if (is_integer(type.dtype) && type.rank() == 2 && type.shape[0] == batch) {
    const bool is_index = type.dtype == DType::int64 || type.dtype == DType::int32;
    return is_index ? b.labels : b.g.cast(b.labels, DType::int64);
  }
  b.fail("\"" + b.term.labels + "\" holds no list of class numbers for each sample",
         "integers, [" + std::to_string(batch) + ", labels]", to_string(type),
         is_integer(type.dtype) ? "with time_first the logits are [time, batch, classes]"
                                : "end the field's `as` with \"int64\"");
  return std::nullopt;
}

/// A field with a length for each sample; an unset value where the term names none.
std::optional<ValueId> lengths(LossBuilder& b, Field field, std::int64_t batch) {
  const ValueId named = b.fields[field];
  if (!named) return named;
  const TensorType& type = b.g.type(named);
  if (is_integer(type.dtype) && type.elements() == batch)
    return b.g.cast(b.g.reshape(named, {batch}), DType::int64);
  b.fail("\"" + b.term.other_fields[field] + "\" holds no lengths",
         "one integer for each of " + std::to_string(batch) + " samples", to_string(type));
  return std::nullopt;
}

/// How many labels each sample has before its padding.
ValueId counted_labels(LossBuilder& b, ValueId labels, std::int64_t classes) {
  const ValueId counts = b.g.add_node("LabelWeights", {labels, ValueId{}},
                                      {{"ignore_index", b.options<CtcOptions>().ignore_index},
                                       {"ignore", std::int64_t{1}},
                                       {"classes", classes}});
  return b.g.cast(b.g.reduce_sum(counts, {1}, false), DType::int64);
}

std::optional<Losses> build_ctc(LossBuilder& b) {
  GraphBuilder& g = b.g;
  const auto& options = b.options<CtcOptions>();
  const auto log_p = log_probs(b);
  if (!log_p) return std::nullopt;
  const std::int64_t batch = g.shape(*log_p)[0];
  const auto labels = label_rows(b, batch);
  const auto frames = lengths(b, input_lengths, batch);
  auto counts = lengths(b, target_lengths, batch);
  if (!labels || !frames || !counts) return std::nullopt;
  if (!*counts) counts = counted_labels(b, *labels, g.shape(*log_p)[2]);
  const ValueId losses = g.add_node(
      "CtcLoss", {*log_p, *labels, *counts, *frames},
      {{"blank", options.blank}, {"zero_infinity", std::int64_t{options.zero_infinity}}});
  if (b.term.reduction != LossReduction::mean) return Losses{losses, {}};
  return Losses{g.div(losses, b.clip(g.cast(*counts, g.dtype(losses)), 1, 1e9)), {}};
}

SampleProblem bad_length(const std::string& field, std::size_t most, double got) {
  return {field, "a length is out of range", "0 to " + std::to_string(most), number_text(got), ""};
}

/// Why the labels of a sample cannot be spelled in its frames, whatever the model says.
std::optional<SampleProblem> refuse_sample(const LossTerm& term, const LossSample& sample) {
  const auto& options = term.options.as<CtcOptions>();
  const std::vector<std::int64_t>& labels = sample.labels;
  if (sample.scores.size() != 3) return std::nullopt;
  const auto all = static_cast<std::size_t>(sample.scores[options.time_first ? 0 : 1]);
  std::size_t frames = all;
  if (const auto length = sample.fields[input_lengths]) {
    if (!(*length >= 0 && *length <= static_cast<double>(all)))
      return bad_length(term.other_fields[input_lengths], all, *length);
    frames = static_cast<std::size_t>(*length);
  }
  const auto padding = std::find(labels.begin(), labels.end(), options.ignore_index);
  auto count = static_cast<std::size_t>(padding - labels.begin());
  if (const auto length = sample.fields[target_lengths]) {
    if (!(*length >= 0 && *length <= static_cast<double>(labels.size())))
      return bad_length(term.other_fields[target_lengths], labels.size(), *length);
    count = static_cast<std::size_t>(*length);
  } else {
    const auto behind = std::find_if(
        padding, labels.end(), [&](std::int64_t label) { return label != options.ignore_index; });
    if (behind != labels.end()) {
      return SampleProblem{term.labels, "a label follows the padding",
                           "only " + std::to_string(options.ignore_index) + " behind the first",
                           std::to_string(*behind),
                           "pad at the end, or set ignore_index or target_lengths"};
    }
  }
  std::size_t needed = count;
  for (std::size_t i = 0; i < count; ++i) {
    if (i > 0 && labels[i] == labels[i - 1]) ++needed;
    if (labels[i] >= 0 && labels[i] < sample.scores[2] && labels[i] != options.blank) continue;
    return SampleProblem{
        term.labels, labels[i] == options.blank ? "a label is the blank" : "a label is not a class",
        "0 to " + std::to_string(sample.scores[2] - 1) + " but not blank, " +
            std::to_string(options.blank) + ", or padding, " + std::to_string(options.ignore_index),
        std::to_string(labels[i]),
        "classes are counted from 0; set blank and ignore_index as the data "
        "has them"};
  }
  if (needed <= frames || options.zero_infinity) return std::nullopt;
  return SampleProblem{term.labels, "the sample has too few frames for its labels: its loss is inf",
                       std::to_string(needed) +
                           " frames, one for each label and between two equal "
                           "ones",
                       std::to_string(frames),
                       "leave such samples out, or set zero_infinity = true, so that they do not "
                       "count"};
}

}  // namespace

LossKind ctc() {
  return {.name = "ctc",
          .source = "PyTorch: ctc_loss",
          .help =
              "-log of the probability that the frames spell the labels, after runs of one class "
              "became one and blanks were left out; the mean divides the loss of a sample by the "
              "number of its labels first",
          .values = {{"logits",
                      "value of the graph: [batch, time, classes], also logarithms of "
                      "probabilities",
                      ValueForm::any_logits}},
          .labels = {LabelForm::sequences, "labels",
                     "data field: class numbers of each sample, padded"},
          .fields = {{"input_lengths", "data field: frames of each sample; default: all"},
                     {"target_lengths",
                      "data field: labels of each sample; default: those before "
                      "ignore_index"}},
          .options = CtcOptions{},
          .refuse_sample = refuse_sample,
          .build = build_ctc};
}

}  // namespace tandem::losses

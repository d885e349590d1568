#include "api/generate/text_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "engine/data/functions/field_function.h"
#include "engine/graph/error.h"
#include "engine/operators/tables/table_nodes.h"
#include "engine/train/tables/column_lookups.h"
#include "importer/inputs/declared_inputs.h"

namespace tandem::api {
namespace {

constexpr std::int64_t least_length = 2;  // so that a length is no number of anything else

/// Throws where a prompt has more than `most` tokens.
void refuse_longer(const std::string& file, std::string message, std::int64_t most,
                   const TextLengths& lengths) {
  if (lengths.longest_prompt <= most) return;
  throw Error(ErrorKind::usage, Diagnostic{.message = std::move(message),
                                           .file = file,
                                           .expected = std::to_string(most) + " tokens or fewer",
                                           .got = std::to_string(lengths.longest_prompt),
                                           .fix = "shorten the prompt"});
}

/// The error with what may help where the length may be its cause.
Error with_shorter(const Error& error, std::int64_t length) {
  std::vector<Diagnostic> all = error.diagnostics();
  all.back().fix = fmt::format(
      "if the model has no positions for texts of {} tokens, ask for fewer: --max-tokens", length);
  return {error.kind(), std::move(all)};
}

/// Whether a field counts the places of a text.
bool are_positions(const FieldConfig& field) {
  return field.from == text_arrays::positions ||
         std::any_of(field.as.begin(), field.as.end(),
                     [](const Transform& function) { return function.kind->name == "positions"; });
}

/// The length of all passes.
std::int64_t length_of(const TextInputs& inputs, const TextLengths& lengths,
                       const std::string& file) {
  if (inputs.only_length == 0)
    return std::max({lengths.longest_text, lengths.longest_prompt + 1, least_length});
  refuse_longer(file,
                "a prompt is longer than the texts that the model takes: " + inputs.fixed_by +
                    " fixes their length",
                inputs.only_length, lengths);
  return inputs.only_length;
}

/// The run's configuration for one text of this length.
void bind_length(RunConfig& config, const TextInputs& inputs, std::int64_t length) {
  config.batch_size = 1;
  config.micro_batch = 0;
  config.batch_choice = {};
  if (config.data) config.data->forget_training();
  config.model.bind.clear();
  for (const auto& [name, extent] : inputs.bind) config.model.bind.emplace(name, extent);
  for (const std::string& name : inputs.lengths) config.model.bind[name] = length;
}

bool are_logits(const TensorType& type, std::int64_t length) {
  return type.rank() == 3 && is_float(type.dtype) && type.shape[0] == 1 && type.shape[1] == length;
}

}  // namespace

TextModel::TextModel(TrainedRun run, const TextLengths& lengths, std::int64_t tokens) {
  const OnnxFile file =
      run.exported() ? OnnxFile::open(run.config.model.file) : open_model_file(run.config);
  inputs_ = text_inputs(run.config, declared_inputs(file));
  const std::int64_t trained = inputs_.trained_length;
  const std::int64_t wanted = length_of(inputs_, lengths, run.config.model.file);
  try {
    open(run, wanted, tokens);
  } catch (const Error& error) {
    // Positions that the file computes may end: then a shorter text has another outcome.
    const bool may_be_shorter = trained >= lengths.longest_prompt && trained >= least_length;
    if (trained == 0 && error.diagnostics().back().fix.empty()) throw with_shorter(error, wanted);
    if (wanted <= trained || !may_be_shorter) throw;
    open(run, trained, tokens);
  }
  if (const std::int64_t known = known_positions(); known < length_) {
    refuse_longer(run.config.model.file, "the model has no positions for a prompt of this length",
                  known, lengths);
    open(run, known, tokens);
  }
  const std::uint32_t first = 0;
  const SampleRange any = samples(std::span(&first, 1), 1);
  prediction_->prepare(*any.source, any.count);
  trained_->load();
  std::vector<Diagnostic> problems = trained_->not_finite();
  if (!problems.empty()) throw Error(ErrorKind::diverged, std::move(problems));
}

void TextModel::open(TrainedRun run, std::int64_t length, std::int64_t tokens) {
  length_ = length;
  bind_length(run.config, inputs_, length_);
  prediction_.reset();
  trained_.emplace(std::move(run), std::vector<std::string>());
  if (trained_->in_stages()) {
    throw Error(ErrorKind::usage,
                Diagnostic{.message = "data decides extents of this model, which texts cannot be "
                                      "written with",
                           .file = trained_->config().model.file,
                           .fix = "`tandem predict` runs it"});
  }
  choose_logits(tokens);
  prediction_.emplace(trained_->config(), trained_->parts(), std::vector<std::string>{logits_},
                      trained_->states(), trained_->arenas());
  take_needed_inputs();
}

/// What the loss compares with labels; else the output "logits", or one that is as wide as the
/// tokenizer at least.
void TextModel::choose_logits(std::int64_t tokens) {
  const Graph& graph = trained_->forward();
  std::vector<std::string> names;
  for (const LossTerm& term : trained_->config().loss.terms)
    names.insert(names.end(), term.values.begin(), term.values.end());
  names.emplace_back("logits");
  std::string others;
  const std::size_t named = names.size();
  for (const NamedValue& output : graph.outputs) {
    names.push_back(output.name);
    others += (others.empty() ? "" : ", ") + output.name + " " +
              to_string(graph.type(output.value).shape);
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    const NamedValue* const output = graph.find_output(names[i]);
    if (output == nullptr) continue;
    const TensorType& type = graph.type(output->value);
    if (!are_logits(type, length_) || (i >= named && type.shape[2] < tokens)) continue;
    logits_ = names[i];
    vocabulary_ = type.shape[2];
    return;
  }
  throw Error(
      ErrorKind::usage,
      Diagnostic{.message = "the model has no logits of tokens: it does not say what follows",
                 .file = trained_->config().model.file,
                 .expected = fmt::format("an output [1, {}, {}], one row of logits a token",
                                         length_, tokens),
                 .got = others,
                 .fix = "generate takes decoders of text, exported with their language model "
                        "head"});
}

/// Leaves out the inputs that the logits do not depend on.
void TextModel::take_needed_inputs() {
  std::vector<Diagnostic> problems;
  const std::vector<std::string> names = prediction_->inputs();
  const auto is_needed = [&](const std::string& input) {
    return std::find(names.begin(), names.end(), input) != names.end();
  };
  for (const Diagnostic& d : inputs_.unfilled) {
    if (is_needed(d.path)) problems.push_back(d);
  }
  std::erase_if(inputs_.fields, [&](const FieldConfig& field) { return !is_needed(field.name); });
  if (!problems.empty()) throw Error(ErrorKind::usage, std::move(problems));
}

/// The number of places whose positions are rows of the model's tables, fed or computed.
std::int64_t TextModel::known_positions() {
  std::int64_t known = length_;
  const auto limit = [&](const std::vector<std::int64_t>& ids, auto rows_at) {
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const std::int64_t rows = rows_at(i);
      if (rows > 0 && ids[i] >= rows) known = std::min(known, static_cast<std::int64_t>(i));
    }
  };
  const Graph& graph = trained_->forward();
  const auto lookups = column_lookups(graph, trained_->engine().evaluate);
  const std::uint32_t first = 0;
  const SampleRange sample = samples(std::span(&first, 1), 1);
  for (const FieldConfig& field : inputs_.fields) {
    if (!are_positions(field)) continue;
    const int index = sample.source->find_field(field.name);
    HostTensor values(sample.source->fields().at(static_cast<std::size_t>(index)).sample);
    const std::int64_t only = 0;
    sample.source->fill(index, std::span(&only, 1), nullptr, values.data());
    const auto rows = rows_of_elements(lookups, field.name, length_);
    if (is_integer(values.dtype()) && rows.size() == static_cast<std::size_t>(length_))
      limit(values.integers(), [&](std::size_t i) { return rows[i]; });
  }
  for (const Node& node : graph.nodes) {
    if (!is_row_lookup(node)) continue;
    const Value& ids = graph.value(node.inputs[1]);
    if (ids.kind != ValueKind::constant || !ids.constant || !is_integer(ids.constant->dtype()) ||
        ids.constant->type().elements() != length_)
      continue;
    const std::int64_t rows = graph.type(node.inputs[0]).shape.at(0);
    limit(ids.constant->integers(), [&](std::size_t) { return rows; });
  }
  return known;
}

/// One sample: `ids`, of which the first `real` are tokens for the mask, and zeros behind.
SampleRange TextModel::samples(std::span<const std::uint32_t> ids, std::size_t real) const {
  const auto length = static_cast<std::size_t>(length_);
  std::vector<std::int64_t> tokens(length, 0), mask(length, 0), positions(length);
  std::copy(ids.begin(), ids.end(), tokens.begin());
  std::fill_n(mask.begin(), real, 1);
  std::iota(positions.begin(), positions.end(), 0);
  std::vector<std::pair<std::string, HostTensor>> arrays;
  const Shape row{1, length_};
  arrays.emplace_back(text_arrays::tokens, HostTensor::from<std::int64_t>(row, tokens));
  arrays.emplace_back(text_arrays::mask, HostTensor::from<std::int64_t>(row, mask));
  arrays.emplace_back(text_arrays::positions, HostTensor::from<std::int64_t>(row, positions));
  const bool has_attention =
      std::any_of(inputs_.fields.begin(), inputs_.fields.end(),
                  [](const FieldConfig& field) { return field.from == text_arrays::attention; });
  if (has_attention) {
    HostTensor attention(TensorType{DType::boolean, {1, length_, length_}});
    auto* to = static_cast<bool*>(attention.data());
    for (std::size_t i = 0; i < length; ++i) std::fill_n(to + i * length, i + 1, true);
    arrays.emplace_back(text_arrays::attention, std::move(attention));
  }
  return {.source = make_array_source(arrays, inputs_.fields), .first = 0, .count = 1, .rows = {0}};
}

std::vector<float> TextModel::logits_at(std::size_t place, const SampleRange& samples) {
  const HostTensor& all = prediction_->run(samples).at(0);
  const TensorType row{all.dtype(), {vocabulary_}};
  const auto* const bytes = static_cast<const std::uint8_t*>(all.data()) + place * row.bytes();
  const HostTensor found =
      HostTensor(row, const_cast<std::uint8_t*>(bytes), nullptr).converted(DType::float32);
  return {found.as<float>().begin(), found.as<float>().end()};
}

std::vector<float> TextModel::next(std::span<const std::uint32_t> ids) {
  return logits_at(ids.size() - 1, samples(ids, ids.size()));
}

void TextModel::check_causal(std::span<const std::uint32_t> ids) {
  const auto length = static_cast<std::size_t>(length_);
  if (ids.size() >= length || vocabulary_ < 2) return;
  std::vector<std::uint32_t> one(ids.begin(), ids.end()), other = one;
  one.resize(length, 0);
  other.resize(length, 1);
  const std::vector<float> a = logits_at(ids.size() - 1, samples(one, length)),
                           b = logits_at(ids.size() - 1, samples(other, length));
  double greatest = 0, difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    greatest = std::max<double>(greatest, std::abs(a[i]));
    difference = std::max<double>(difference, std::abs(a[i] - b[i]));
  }
  // What is hidden has no share in any sum, so that equal numbers are added.
  if (!(difference > 1e-5 * greatest)) return;
  throw Error(
      ErrorKind::usage,
      Diagnostic{
          .message = "the logits at a token depend on the tokens after it: the model is an "
                     "encoder, or it quantizes all tokens of a text together",
          .file = trained_->config().model.file,
          .path = logits_,
          .expected = "a decoder, in which a token sees only those before it",
          .got = fmt::format("logits that differ by {:.2g} for other tokens behind", difference)});
}

}  // namespace tandem::api

#include "engine/train/divergence/divergence_cause.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "engine/config/keys/config_value.h"
#include "engine/graph/finiteness.h"
#include "engine/train/evaluation/evaluation.h"
#include "engine/train/graph/add_losses.h"
#include "engine/train/graph/weight_sums.h"

namespace tandem {
namespace {

constexpr std::size_t most_shown = 5;
constexpr std::size_t piece = 256;  // samples

/// The samples of a field that hold what `wanted` names.
std::vector<std::int64_t> bad_samples(const DataSource& source, int field,
                                      std::span<const std::int64_t> samples,
                                      const Augmentation* augmentation, Finiteness wanted) {
  const TensorType& type = source.fields()[static_cast<std::size_t>(field)].sample;
  std::vector<std::int64_t> found;
  for (std::size_t at = 0; at < samples.size(); at += piece) {
    const std::span<const std::int64_t> some =
        samples.subspan(at, std::min(piece, samples.size() - at));
    HostTensor values(
        TensorType{type.dtype, {static_cast<std::int64_t>(some.size()), type.elements()}});
    const Augmentation of_some =
        augmentation != nullptr ? augmentation->part(at, some.size()) : Augmentation{};
    try {
      source.fill(field, some, augmentation != nullptr ? &of_some : nullptr, values.data());
    } catch (const Error&) {
      continue;
    }
    if (finiteness_of(values) != wanted) continue;
    const auto* row = static_cast<const std::uint8_t*>(values.data());
    for (const std::int64_t sample : some) {
      if (finiteness_of(type.dtype, row, type.elements()) == wanted) found.push_back(sample);
      row += type.bytes();
    }
  }
  return found;
}

void report(const DataSource& source, int field, const std::vector<std::int64_t>& bad,
            Finiteness what, std::size_t most, std::vector<Diagnostic>& to) {
  const bool is_nan = what == Finiteness::nan;
  for (std::size_t i = 0; i < std::min(bad.size(), most); ++i) {
    Diagnostic& d = to.emplace_back();
    set_place(d, source.describe(field, bad[i]));
    d.path = "data.fields." + source.fields()[static_cast<std::size_t>(field)].name;
    d.message = is_nan ? "nan in the data" : "an infinity in the data";
    if (i == 0 && bad.size() > most)
      d.message += " (and in " + std::to_string(bad.size() - 1) + " more samples)";
    d.expected = "numbers";
    d.got = is_nan ? "nan" : "inf";
  }
}

double sum_of_weights(const LossTerm& term, const DataSource& source,
                      std::span<const std::int64_t> samples) {
  double sum = 0;
  for (std::size_t at = 0; at < samples.size() && sum == 0; at += piece) {
    const auto some = samples.subspan(at, std::min(piece, samples.size() - at));
    try {
      sum += weight_sum(term, source, some);
    } catch (const Error&) {
      continue;
    }
  }
  return sum;
}

/// A key that may be why all weights of a mean are 0.
struct ZeroWeights {
  std::string key, why, expected, got;
  LossTerm alone = {};  // the term with no other weights
};

/// One for each of a term's weights that the data have. What ignore_index leaves out counts for
/// nothing, whatever class it is: it comes before classes.
std::vector<ZeroWeights> possible_reasons(const LossTerm& term, const DataSource& source) {
  std::vector<ZeroWeights> found;
  if (!term.sample_weights.empty() && source.find_field(term.sample_weights) >= 0) {
    found.push_back({"sample_weights", "the sample weights of all of them are 0",
                     "a sample that counts", "sample_weights with zeros"});
  }
  const auto& [ignored, class_weights] = class_options(term);
  if (ignored) {
    found.push_back({"ignore_index", "ignore_index leaves out all of them", "a label that counts",
                     "ignore_index = " + std::to_string(*ignored)});
  }
  if (!class_weights.empty()) {
    found.push_back({"class_weights", "the class weights of all of them are 0",
                     "a label that counts", "class_weights with zeros"});
  }
  for (ZeroWeights& reason : found) {
    reason.alone = term;
    if (reason.key != "sample_weights") reason.alone.sample_weights.clear();
    auto* const alone = reason.alone.options.find<ClassOptions>();
    if (alone != nullptr && reason.key != "ignore_index") alone->ignore_index.reset();
    if (alone != nullptr && reason.key != "class_weights") alone->class_weights.clear();
  }
  return found;
}

/// The reason that makes all weights 0 by itself; all of them where it takes more than one.
ZeroWeights reason_of(const LossTerm& term, const DataSource& source,
                      std::span<const std::int64_t> samples) {
  const std::vector<ZeroWeights> possible = possible_reasons(term, source);
  ZeroWeights all;
  for (const ZeroWeights& reason : possible) {
    if (possible.size() == 1 || sum_of_weights(reason.alone, source, samples) == 0) return reason;
    const char* const separator = all.key.empty() ? "" : " and ";
    all.key += separator + reason.key;
    all.got += separator + reason.got;
  }
  all.expected = "a label that counts";
  all.why = all.key + " together leave none of them a weight";
  return all;
}

}  // namespace

void set_place(Diagnostic& d, const std::string& place) {
  const std::size_t colon = place.rfind(':');
  d.file = place.substr(0, colon);
  if (colon != std::string::npos)
    std::from_chars(place.data() + colon + 1, place.data() + place.size(), d.line);
}

std::vector<Diagnostic> not_finite_samples(const DataSource& source, const std::vector<int>& fields,
                                           std::span<const std::int64_t> samples,
                                           const Augmentation* augmentation) {
  std::vector<Diagnostic> found;
  for (const Finiteness wanted : {Finiteness::nan, Finiteness::infinite}) {
    for (const int field : fields) {
      if (!is_float(source.fields()[static_cast<std::size_t>(field)].sample.dtype)) continue;
      report(source, field, bad_samples(source, field, samples, augmentation, wanted), wanted,
             most_shown, found);
    }
    if (!found.empty()) break;
  }
  if (!found.empty())
    found[0].fix = "correct or leave out these samples, or give the graph a number in their place";
  return found;
}

std::vector<Diagnostic> nan_diagnostics(const DataSource& source, int field,
                                        const std::vector<std::int64_t>& samples,
                                        std::size_t most) {
  std::vector<Diagnostic> found;
  report(source, field, samples, Finiteness::nan, most, found);
  return found;
}

std::vector<Diagnostic> weightless_means(const RunConfig& config, const DataSource& source,
                                         std::span<const std::int64_t> samples,
                                         const std::string& what) {
  std::vector<Diagnostic> found;
  for (const LossTerm& term : config.loss.terms) {
    // A term reads its weights off labels, sample weights, or both; of the model's inputs, none.
    const bool of_labels = weighs_labels(term);
    const std::string& first = of_labels ? term.labels : term.sample_weights;
    if (!has_weights(term) || source.find_field(first) < 0) continue;
    if (term.reduction != LossReduction::mean || samples.empty()) continue;
    if (sum_of_weights(term, source, samples) != 0) continue;
    const ZeroWeights reason = reason_of(term, source, samples);
    found.push_back(at(term.where, "loss." + term.name,
                       "the weighted mean over " + what + " is 0 / 0: " + reason.why,
                       reason.expected, reason.got,
                       "use a larger batch_size, reduction = \"sum\", or other " + reason.key));
  }
  return found;
}

}  // namespace tandem

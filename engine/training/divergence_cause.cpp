#include "engine/training/divergence_cause.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "engine/graph/finiteness.h"
#include "engine/training/config/config_value.h"
#include "engine/training/evaluation.h"
#include "engine/training/losses.h"
#include "engine/training/weight_sums.h"

namespace tandem {
namespace {

constexpr std::size_t most_shown = 5;
constexpr std::size_t piece = 256;  // samples

/// "train.npz:17" as file and row.
void set_place(Diagnostic& d, const std::string& place) {
  const std::size_t colon = place.rfind(':');
  d.file = place.substr(0, colon);
  if (colon != std::string::npos)
    std::from_chars(place.data() + colon + 1, place.data() + place.size(), d.line);
}

/// The samples of a field that are as bad as `wanted`.
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
    try {
      source.fill(field, some, augmentation, values.data());
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
      d.message += " (and in " + std::to_string(bad.size() - 1) + " samples more)";
    d.expected = "numbers";
    d.got = is_nan ? "nan" : "inf";
  }
}

}  // namespace

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
    found[0].fix = "mend or leave out these samples, or give the graph a number in their place";
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
    if (term.reduction == Reduction::sum || samples.empty()) continue;
    double sum = 0;
    for (std::size_t at = 0; at < samples.size() && sum == 0; at += piece) {
      const auto some = samples.subspan(at, std::min(piece, samples.size() - at));
      try {
        sum += weight_sum(term, source, some);
      } catch (const Error&) {
        continue;
      }
    }
    if (sum != 0) continue;
    const bool of_classes = term.options.contains("class_weights");
    const std::string key = of_classes  ? "class_weights"
                            : of_labels ? "ignore_index"
                                        : "sample_weights";
    const std::string why = of_classes  ? "the class weights of all of them are 0"
                            : of_labels ? "ignore_index leaves out all of them"
                                        : "the sample weights of all of them are 0";
    Diagnostic d =
        at(term.where, "loss." + term.name, "the weighted mean over " + what + " is 0 / 0: " + why);
    d.expected = of_labels ? "a label that counts" : "a sample that counts";
    d.got = key + (!of_classes && of_labels ? " = " + std::to_string(*term.integer("ignore_index"))
                                            : " with zeros");
    d.fix = "use a larger batch_size, reduction = \"sum\", or other " + key;
    found.push_back(std::move(d));
  }
  return found;
}

}  // namespace tandem

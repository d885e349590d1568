#include "api/init/buckets.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/init/data/data_look.h"
#include "engine/graph/text.h"
#include "engine/training/config/config_value.h"

namespace tandem::api {
namespace {

constexpr std::int64_t least_samples = 32;
constexpr std::int64_t step = 8;  // lengths are multiples of it, which kernels like

/// The length that this part of all samples does not exceed.
std::int64_t length_of(const std::map<std::int64_t, std::int64_t>& lengths, double part) {
  std::int64_t all = 0, seen = 0;
  for (const auto& [length, count] : lengths) all += count;
  for (const auto& [length, count] : lengths) {
    seen += count;
    if (static_cast<double>(seen) >= part * static_cast<double>(all)) return length;
  }
  return 0;
}

/// Half of the samples fit the first bucket, four fifths the second.
std::vector<std::int64_t> bucket_lengths(const ArrayFacts& array) {
  const std::int64_t longest = array.sample.shape.at(0);
  std::vector<std::int64_t> lengths;
  for (const double part : {0.5, 0.8}) {
    const std::int64_t length = (length_of(array.lengths, part) + step - 1) / step * step;
    const bool is_new = lengths.empty() || length > lengths.back();
    if (length > 0 && is_new && 4 * length <= 3 * longest) lengths.push_back(length);
  }
  if (!lengths.empty()) lengths.push_back(longest);
  return lengths;
}

/// What goes with ids and says nothing of its own of how long a text is.
bool goes_with_ids(const std::string& input) { return names_mask(input) || names_segments(input); }

}  // namespace

std::optional<BucketGuess> guess_buckets(const std::vector<InputFacts>& inputs,
                                         const FieldGuesses& fields) {
  if (fields.bind.size() != 1) return std::nullopt;
  BucketGuess guess;
  guess.dimension = fields.bind.begin()->first;
  const ArrayFacts* array = nullptr;
  std::string measured;  // the field whose values tell how long a sample is
  std::vector<std::string> cut;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::vector<std::string>& dims = inputs[i].dims;
    const ArrayFacts* const from = fields.fields[i].from;
    if (std::find(dims.begin(), dims.end(), guess.dimension) == dims.end()) continue;
    if (from == nullptr || from->lengths.empty() || dims.size() != 2) return std::nullopt;
    cut.push_back(inputs[i].name);
    if (array != nullptr && !goes_with_ids(measured)) continue;
    array = from;
    measured = inputs[i].name;
  }
  if (array == nullptr || array->rows < least_samples) return std::nullopt;
  guess.lengths = bucket_lengths(*array);
  if (guess.lengths.empty()) return std::nullopt;
  const std::string pad = array->pad == 0 ? "" : fmt::format(", pad = {}", array->pad);
  guess.toml = fmt::format("{{ field = {}{}, lengths = [ {} ], dimension = {}, fields = [ {} ] }}",
                           toml_string(measured), pad, fmt::join(guess.lengths, ", "),
                           toml_string(guess.dimension), joined(cut, ", ", toml_string));
  guess.why = fmt::format(
      "half of the samples are at most {} long, the longest {}: batches are as long as theirs",
      length_of(array->lengths, 0.5), array->lengths.rbegin()->first);
  return guess;
}

}  // namespace tandem::api

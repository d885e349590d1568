#include "api/init/buckets.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/init/data/data_look.h"
#include "api/init/roles.h"
#include "engine/config/keys/config_value.h"
#include "engine/graph/text.h"

namespace tandem::api {
namespace {

constexpr std::int64_t least_samples = 32;
constexpr std::int64_t step = 8;  // lengths are multiples of it, which kernels prefer

/// The length that this fraction of all samples does not exceed.
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

/// Whether an input only accompanies ids, so that it does not show how long a text is.
bool goes_with_ids(const std::string& input) {
  const Role role = role_named(input);
  return role == Role::mask || role == Role::segments || role == Role::positions;
}

}  // namespace

std::string BucketGuess::toml() const {
  const std::string filled = pad == 0 ? "" : fmt::format(", pad = {}", pad);
  return fmt::format("{{ field = {}{}, lengths = [ {} ], dimension = {}, fields = [ {} ] }}",
                     toml_string(measured), filled, fmt::join(lengths, ", "),
                     toml_string(dimension), joined(cut, ", ", toml_string));
}

std::optional<BucketGuess> guess_buckets(const std::vector<InputFacts>& inputs,
                                         const FieldGuesses& fields) {
  const auto is_length = [](const auto& bound) { return bound.second > 0; };
  if (std::count_if(fields.bind.begin(), fields.bind.end(), is_length) != 1) return std::nullopt;
  BucketGuess guess;
  guess.dimension = std::find_if(fields.bind.begin(), fields.bind.end(), is_length)->first;
  const ArrayFacts* array = nullptr;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::vector<std::string>& dims = inputs[i].dims;
    const ArrayFacts* const from = fields.fields[i].from;
    if (std::find(dims.begin(), dims.end(), guess.dimension) == dims.end()) continue;
    if (from == nullptr || from->lengths.empty() || dims.size() != 2) return std::nullopt;
    guess.cut.push_back(inputs[i].name);
    if (array != nullptr && !goes_with_ids(guess.measured)) continue;
    array = from;
    guess.measured = inputs[i].name;
  }
  if (array == nullptr || array->rows < least_samples) return std::nullopt;
  guess.lengths = bucket_lengths(*array);
  if (guess.lengths.empty()) return std::nullopt;
  guess.pad = array->pad;
  guess.why = fmt::format(
      "half of the samples are at most {} long, the longest {}: batches are as long as theirs",
      length_of(array->lengths, 0.5), array->lengths.rbegin()->first);
  return guess;
}

}  // namespace tandem::api

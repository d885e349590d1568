// Finds out whether an array fits an input, and the functions that turn one into the other: shape,
// element type, range of values.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "api/init/data/data_look.h"
#include "api/init/fields.h"
#include "api/init/losses/loss_form.h"
#include "api/init/roles.h"
#include "api/init/text_functions.h"
#include "engine/config/keys/config_value.h"
#include "engine/graph/text.h"

namespace tandem::api {
namespace {

bool has_free(const Shape& shape) {
  return std::any_of(shape.begin(), shape.end(), [](std::int64_t extent) { return extent < 0; });
}

/// Whether the shapes are equal in all known extents.
bool agrees(const Shape& wanted, const Shape& given) {
  return wanted.size() == given.size() &&
         std::equal(wanted.begin(), wanted.end(), given.begin(),
                    [](std::int64_t w, std::int64_t g) { return w < 0 || w == g; });
}

std::string numbers_text(const Numbers& numbers) {
  return fmt::format("{:g} to {:g}", numbers.least, numbers.most);
}

/// The function that fits images which differ only in height and width.
std::string resize_hint(const Shape& wanted, const Shape& given) {
  const std::size_t rank = wanted.size();
  if (rank < 2 || given.size() != rank || has_free(wanted) ||
      !std::equal(wanted.begin(), wanted.end() - 2, given.begin()))
    return "";
  return fmt::format("; as = [ \"resize({}, {})\", … ] makes one of the other", wanted[rank - 2],
                     wanted[rank - 1]);
}

/// For a flat row as an image of several channels, or an image with its channels on another axis:
/// says that the order of the elements is unknown.
std::string unclear_order(const Shape& wanted, const Shape& given) {
  const Shape w = squeezed(wanted), g = squeezed(given);
  if (w == g || w.size() <= 1) return "";
  if (g.size() <= 1) {
    const bool has_planes = wanted.size() >= 3 && wanted[wanted.size() - 3] > 1;
    if (!has_planes) return "";
    return fmt::format(
        "rows of {} numbers may hold the elements of {} in several orders; if they have this "
        "order, write as = [ \"reshape({})\", … ]",
        element_count(given), to_string(wanted), fmt::join(wanted, ", "));
  }
  return fmt::format("the axes of {} have another order than those of {}: transpose the array",
                     to_string(given), to_string(wanted));
}

void add_shape(const Shape& wanted, const ArrayFacts& array, Functions& to) {
  const Shape& given = array.sample.shape;
  if (agrees(wanted, given) || has_free(wanted)) return;
  to.why_not = unclear_order(wanted, given);
  if (!to.why_not.empty() || wanted.empty()) return;
  if (wanted.size() == 1) {
    to.as.emplace_back(given.empty() ? "reshape(1)" : "flatten");
  } else {
    to.as.push_back(fmt::format("reshape({})", fmt::join(wanted, ", ")));
  }
}

// 0 and 1, which mean no and yes, stay unchanged. A constant becomes 0.
double center_of(const Numbers& numbers) { return numbers.binary() ? 0 : numbers.mean(); }
double scale_of(const Numbers& numbers) {
  const bool varies = !numbers.binary() && numbers.least < numbers.most;
  return varies ? std::max(numbers.deviation(), 1e-30) : 1;
}

/// Whether numbers need scaling: those of a network should be of the order of 1. Arrays of small
/// numbers, such as pixels, stay unchanged.
bool is_far_from_one(const Numbers& numbers, bool is_column) {
  if (std::max(std::abs(numbers.least), std::abs(numbers.most)) > 10) return true;
  return is_column && !numbers.binary() && numbers.least < numbers.most &&
         numbers.deviation() < 0.1;
}

/// Whether the columns differ too much for one common mean and deviation.
bool differ(const std::vector<Numbers>& parts, const Numbers& all) {
  double least = 0, most = 0;
  bool are_apart = false;
  for (const Numbers& part : parts) {
    if (part.binary() || part.least == part.most) continue;
    const double deviation = part.deviation();
    least = least == 0 ? deviation : std::min(least, deviation);
    most = std::max(most, deviation);
    are_apart = are_apart || std::abs(part.mean() - all.mean()) > 3 * deviation;
  }
  return are_apart || most > 3 * least;
}

void add_range(const InputFacts& input, const ArrayFacts& array, Functions& to) {
  const Numbers& numbers = array.numbers;
  const bool is_bytes = array.sample.dtype == DType::uint8;
  const bool is_pixels = numbers.least >= 0 && numbers.most <= 255 && numbers.whole &&
                         (is_bytes || numbers.most > 16) && element_count(array.sample.shape) >= 16;
  if (is_pixels && numbers.most > 1) {
    const double most = numbers.most > 16 ? 255 : numbers.most;
    to.as.push_back(fmt::format("scale(1/{:g})", most));
    to.why = fmt::format("values from {} become 0 to 1", numbers_text(numbers));
    return;
  }
  const bool is_table = !array.columns.empty();
  const bool by_part = array.stacked || (input.sample.shape.size() == 1 && !array.by_part.empty() &&
                                         differ(array.by_part, numbers));
  const std::span<const Numbers> parts =
      by_part ? std::span<const Numbers>(array.by_part) : std::span(&numbers, 1);
  if (std::any_of(parts.begin(), parts.end(),
                  [&](const Numbers& part) { return is_far_from_one(part, is_table); })) {
    const auto center = [](const Numbers& part) { return fmt::format("{:.9g}", center_of(part)); };
    const auto scale = [](const Numbers& part) { return fmt::format("{:.6g}", scale_of(part)); };
    const bool has_flags =
        std::any_of(parts.begin(), parts.end(), [](const Numbers& part) { return part.binary(); });
    to.as.push_back(by_part ? fmt::format("normalize([{}], [{}])", joined(parts, ", ", center),
                                          joined(parts, ", ", scale))
                            : fmt::format("normalize({}, {})", center(numbers), scale(numbers)));
    to.why = fmt::format("values from {} get mean 0 and deviation 1{}{}", numbers_text(numbers),
                         by_part ? ", each column for itself" : "",
                         has_flags ? ", columns of only 0 and 1 stay as they are" : "");
    return;
  }
  if (!is_table && array.sample.dtype != DType::float32) to.as.emplace_back("float32");
}

/// Fills empty fields with the mean of the only column that has gaps; with several columns, a list
/// of means.
void add_missing(const ArrayFacts& array, Functions& to) {
  const auto mean_of = [](const Numbers& numbers) { return fmt::format("{:.6g}", numbers.mean()); };
  // Columns without empty fields in the rows read may have some in others.
  const bool are_many = array.stacked && array.by_part.size() > 1;
  const std::string value =
      are_many ? "[" + joined(array.by_part, ", ", mean_of) + "]" : mean_of(array.numbers);
  to.as.insert(to.as.begin(), "missing(" + value + ")");
  to.why += fmt::format("{}an empty field counts as {}, the mean{}", to.why.empty() ? "" : "; ",
                        value, are_many ? " of its column" : "");
}

/// The reason why columns do not fit, where each looks up rows of its own table.
std::string misfit_of_columns(const InputFacts& input, const ArrayFacts& array) {
  for (std::size_t c = 0; c < input.element_rows.size(); ++c) {
    const Numbers& numbers = array.by_part[c];
    const std::int64_t rows = input.element_rows[c];
    if (numbers.count == 0 || (numbers.least >= 0 && numbers.most < static_cast<double>(rows)))
      continue;
    const std::string name = c < array.columns.size() ? " of \"" + array.columns[c] + "\"" : "";
    return fmt::format("the values{} at element {} go from {}, its table has the rows 0 to {}",
                       name, c, numbers_text(numbers), rows - 1);
  }
  return "";
}

}  // namespace

std::vector<std::string> integer_casts(const ArrayFacts& array, DType dtype) {
  constexpr double most = 1 << 24;  // float32 holds every whole number up to it
  std::vector<std::string> casts;
  if (array.has_points)
    casts.emplace_back(std::abs(array.numbers.largest()) <= most ? "float32" : "float64");
  casts.emplace_back(name_of(dtype));
  return casts;
}

std::string misfit(const InputFacts& input, const ArrayFacts& array) {
  if (is_float(input.sample.dtype) && is_one_hot(input, array)) return "";
  const Shape& wanted = input.sample.shape;
  const Shape& given = array.sample.shape;
  if (has_free(wanted) ? !agrees(wanted, given) : element_count(wanted) != element_count(given))
    return fmt::format("a sample has the shape {}, the input takes {}", to_string(given),
                       to_string(wanted)) +
           resize_hint(wanted, given);
  const bool takes_floats = is_float(input.sample.dtype);
  if (array.is_text && (takes_floats || input.table_rows < 2))
    return "it holds " + (mixes_text(array) ? array.first_text : "text");
  if (array.is_text) return "";
  if (array.numbers.count == 0) return "it holds no numbers";
  // Where a dimension is free, it is not yet known whether padding is harmless.
  const bool may_fill = input.table_rows > 0 || has_free(wanted) || role_of(input) == Role::mask;
  if (array.is_ragged && (takes_floats || !may_fill))
    return "its lists have different lengths, and 0, the padding, may be one of their numbers";
  if (!array.numbers.finite && !takes_floats) return "it holds values that are no numbers";
  if (takes_floats) return "";
  if (!array.numbers.whole) return "it holds fractions, the input takes whole numbers";
  if (!input.element_rows.empty() && array.by_part.size() == input.element_rows.size())
    return misfit_of_columns(input, array);
  if (input.table_rows > 0 &&
      (array.numbers.least < 0 || array.numbers.most >= static_cast<double>(input.table_rows)))
    return fmt::format("its values go from {}, the table has the rows 0 to {}",
                       numbers_text(array.numbers), input.table_rows - 1);
  return "";
}

Functions functions_for(const InputFacts& input, const ArrayFacts& array) {
  Functions result;
  const bool takes_floats = is_float(input.sample.dtype);
  if (array.is_text) {
    result = functions_of_words(input, array);
    if (!takes_floats) add_shape(input.sample.shape, array, result);
    return result;
  }
  result.as = array.made_by;
  if (array.has_commas) result.as.emplace_back("decimal(',')");
  if (array.has_gaps() && !takes_floats) {
    std::vector<std::string> as{"missing(0)"};
    const std::vector<std::string> casts = integer_casts(array, input.sample.dtype);
    as.insert(as.end(), casts.begin(), casts.end());
    result.why_not = "it has empty fields: as = [ " + joined(as, ", ", toml_string) +
                     " ] makes 0 of them, if 0 means that there is none";
    return result;
  }
  if (!takes_floats) {
    const bool is_typed = !array.made_by.empty() && array.made_by.back().starts_with("tokens");
    if ((!array.columns.empty() && !is_typed) || array.sample.dtype != input.sample.dtype) {
      const std::vector<std::string> casts = integer_casts(array, input.sample.dtype);
      result.as.insert(result.as.end(), casts.begin(), casts.end());
    }
    add_shape(input.sample.shape, array, result);
    return result;
  }
  if (!array.columns.empty()) result.as.emplace_back("float32");
  add_range(input, array, result);
  add_shape(input.sample.shape, array, result);
  // Reshapes an image first, so that random functions may follow.
  const bool reshapes = !result.as.empty() &&
                        (result.as.back().starts_with("reshape") || result.as.back() == "flatten");
  if (reshapes && array.columns.empty())
    std::rotate(result.as.begin(), result.as.end() - 1, result.as.end());
  if (array.has_gaps()) add_missing(array, result);
  if (!array.numbers.finite)
    result.why_not = "it holds values that are no numbers (nan or infinite)";
  else if (std::string beyond = beyond_float32(array); !beyond.empty())
    result.why_not = std::move(beyond);
  return result;
}

}  // namespace tandem::api

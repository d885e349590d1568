// What of an array fits an input, and the functions that make one of the other: shape, element
// type, range of values.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "api/init/data/data_look.h"
#include "api/init/fields.h"
#include "api/init/losses/loss_form.h"
#include "engine/graph/text.h"

namespace tandem::api {
namespace {

bool has_free(const Shape& shape) {
  return std::any_of(shape.begin(), shape.end(), [](std::int64_t extent) { return extent < 0; });
}

/// Equal where extents are known.
bool agrees(const Shape& wanted, const Shape& given) {
  return wanted.size() == given.size() &&
         std::equal(wanted.begin(), wanted.end(), given.begin(),
                    [](std::int64_t w, std::int64_t g) { return w < 0 || w == g; });
}

std::string numbers_text(const Numbers& numbers) {
  return fmt::format("{:g} to {:g}", numbers.least, numbers.most);
}

/// Images that differ in height and width alone.
std::string resize_hint(const Shape& wanted, const Shape& given) {
  const std::size_t rank = wanted.size();
  if (rank < 2 || given.size() != rank || has_free(wanted) ||
      !std::equal(wanted.begin(), wanted.end() - 2, given.begin()))
    return "";
  return fmt::format("; as = [ \"resize({}, {})\", … ] makes one of the other", wanted[rank - 2],
                     wanted[rank - 1]);
}

/// A flat row as an image of several channels, or an image with its channels elsewhere: the order
/// of the elements cannot be told.
std::string unclear_order(const Shape& wanted, const Shape& given) {
  const Shape w = squeezed(wanted), g = squeezed(given);
  if (w == g || w.size() <= 1) return "";
  if (g.size() <= 1) {
    const bool has_planes = wanted.size() >= 3 && wanted[wanted.size() - 3] > 1;
    if (!has_planes) return "";
    return fmt::format(
        "rows of {} numbers may hold the elements of {} in several orders; where they lie as that "
        "says, write as = [ \"reshape({})\", … ]",
        element_count(given), to_string(wanted), fmt::join(wanted, ", "));
  }
  return fmt::format("the axes of {} stand in another order than those of {}: transpose the array",
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

/// One number, or one for each column.
std::string per_part(const ArrayFacts& array, double (Numbers::*number)() const, double at_least) {
  const auto text = [&](const Numbers& numbers) {
    return fmt::format("{:.6g}", std::max((numbers.*number)(), at_least));
  };
  if (array.by_part.empty()) return text(array.numbers);
  return "[" + joined(array.by_part, ", ", text) + "]";
}

constexpr double no_limit = -1e300;

/// Numbers for a network are of the order of 1.
void add_range(const ArrayFacts& array, Functions& to) {
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
  double largest = std::max(std::abs(numbers.least), std::abs(numbers.most));
  if (largest > 10) {
    // A part whose deviation is 0 is constant: any number does.
    to.as.push_back(fmt::format("normalize({}, {})", per_part(array, &Numbers::mean, no_limit),
                                per_part(array, &Numbers::deviation, 1e-6)));
    to.why = fmt::format("values from {} get mean 0 and deviation 1{}", numbers_text(numbers),
                         array.by_part.empty() ? "" : ", each column for itself");
    return;
  }
  if (array.sample.dtype != DType::float32) to.as.emplace_back("float32");
}

}  // namespace

std::string misfit(const InputFacts& input, const ArrayFacts& array) {
  const Shape& wanted = input.sample.shape;
  const Shape& given = array.sample.shape;
  if (has_free(wanted) ? !agrees(wanted, given) : element_count(wanted) != element_count(given))
    return fmt::format("a sample has the shape {}, the input takes {}", to_string(given),
                       to_string(wanted)) +
           resize_hint(wanted, given);
  const bool takes_floats = is_float(input.sample.dtype);
  if (array.is_text) return takes_floats || input.table_rows < 2 ? "it holds text" : "";
  if (array.numbers.count == 0) return "it holds no numbers";
  // Where a dimension is free nothing is known yet of what becomes of the input.
  const bool may_fill = input.table_rows > 0 || has_free(wanted) || names_mask(input.name);
  if (array.is_ragged && (takes_floats || !may_fill))
    return "its lists have different lengths, and 0, which fills them up, may be a number of "
           "theirs";
  if (!array.numbers.finite && !takes_floats) return "it holds values that are no numbers";
  if (takes_floats) return "";
  if (!array.numbers.whole) return "it holds fractions, the input takes whole numbers";
  if (input.table_rows > 0 &&
      (array.numbers.least < 0 || array.numbers.most >= static_cast<double>(input.table_rows)))
    return fmt::format("its values go from {}, the table has the rows 0 to {}",
                       numbers_text(array.numbers), input.table_rows - 1);
  return "";
}

Functions functions_for(const InputFacts& input, const ArrayFacts& array) {
  Functions result;
  const bool takes_floats = is_float(input.sample.dtype);
  result.as = array.made_by;
  if (array.is_text) {
    result.as.push_back(fmt::format("hash({})", input.table_rows));
    result.why = fmt::format("text becomes one of the table's {} rows by a hash", input.table_rows);
    add_shape(input.sample.shape, array, result);
    return result;
  }
  if (array.has_gaps) {
    if (!takes_floats) {
      result.why_not = "it has empty fields: missing(…) says what they stand for";
      return result;
    }
    result.as.insert(result.as.begin(), "missing(0)");
  }
  if (!takes_floats) {
    const bool is_typed = !array.made_by.empty() && array.made_by.back().starts_with("tokens");
    if ((!array.columns.empty() && !is_typed) || array.sample.dtype != input.sample.dtype)
      result.as.emplace_back(name_of(input.sample.dtype));
    add_shape(input.sample.shape, array, result);
    return result;
  }
  if (!array.columns.empty()) result.as.emplace_back("float32");
  Functions range;
  ArrayFacts typed = array;
  if (!array.columns.empty()) typed.sample.dtype = DType::float32;
  add_range(typed, range);
  result.as.insert(result.as.end(), range.as.begin(), range.as.end());
  result.why = range.why;
  add_shape(input.sample.shape, array, result);
  // An image is cut to its shape first, so that random functions may follow.
  const bool reshapes = !result.as.empty() &&
                        (result.as.back().starts_with("reshape") || result.as.back() == "flatten");
  if (reshapes && array.columns.empty() && array.by_part.empty())
    std::rotate(result.as.begin(), result.as.end() - 1, result.as.end());
  if (array.has_gaps)
    result.why += (result.why.empty() ? "" : "; ") + std::string("an empty field counts as 0");
  if (!array.numbers.finite)
    result.why_not = "it holds values that are no numbers (nan or infinite)";
  return result;
}

}  // namespace tandem::api

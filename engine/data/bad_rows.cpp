#include "engine/data/bad_rows.h"

#include <utility>

#include "engine/data/data_source.h"
#include "engine/data/number_text.h"
#include "engine/formats/count_text.h"

namespace tandem {

void BadRows::take_value(double value) {
  ++values_;
  least_ = value < least_ ? value : least_;
  greatest_ = value > greatest_ ? value : greatest_;
}

void BadRows::refuse(const char* what) {
  Diagnostic d = std::move(first_).value();
  if (rows_ > 1) d.message += " (and " + count_text(rows_ - 1, what) + " more)";
  if (values_ > 1 && least_ < greatest_)
    d.got += "; all that are out of range: " + number_text(least_) + " to " + number_text(greatest_);
  BadValues error(ErrorKind::data, std::move(d));
  error.greatest = greatest_;
  throw error;
}

}  // namespace tandem

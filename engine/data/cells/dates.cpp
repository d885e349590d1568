#include "engine/data/cells/dates.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>

#include "engine/data/cells/cell_number.h"
#include "engine/graph/text.h"

namespace tandem {
namespace {

constexpr double seconds_a_day = 86400;

struct Clock {
  int year = 1970, month = 1, day = 1, hour = 0, minute = 0;
  double second = 0;
};

std::optional<DateTime> time_of(const Clock& clock, double zone) {
  const std::chrono::year_month_day date{std::chrono::year(clock.year),
                                         std::chrono::month(static_cast<unsigned>(clock.month)),
                                         std::chrono::day(static_cast<unsigned>(clock.day))};
  const bool is_midnight = clock.hour == 24 && clock.minute == 0 && clock.second == 0;
  if (!date.ok() || (clock.hour > 23 && !is_midnight) || clock.minute > 59 || clock.second >= 61)
    return std::nullopt;
  const auto days = std::chrono::sys_days(date).time_since_epoch().count();
  const double seconds = static_cast<double>(days) * seconds_a_day + clock.hour * 3600.0 +
                         clock.minute * 60.0 + clock.second;
  return DateTime{seconds - zone, zone};
}

/// What is left of a text, taken from its front.
class Rest {
 public:
  explicit Rest(std::string_view text) : text_(text) {}
  bool is_over() const { return text_.empty(); }
  char front() const { return text_.empty() ? '\0' : text_.front(); }
  bool take(char c) {
    if (front() != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  /// A number of `least` to `most` digits.
  bool take(std::size_t least, std::size_t most, int& number) {
    std::size_t count = 0;
    number = 0;
    while (count < most && count < text_.size() && text_[count] >= '0' && text_[count] <= '9')
      number = 10 * number + (text_[count++] - '0');
    if (count < least) return false;
    text_.remove_prefix(count);
    return true;
  }
  /// Two digits, and a fraction where there is one.
  bool take_seconds(double& seconds) {
    int whole = 0;
    if (!take(2, 2, whole)) return false;
    seconds = whole;
    if (front() != '.' && front() != ',') return true;
    text_.remove_prefix(1);
    std::size_t count = 0;
    while (count < text_.size() && text_[count] >= '0' && text_[count] <= '9') ++count;
    if (count == 0) return false;
    const std::string digits = "0." + std::string(text_.substr(0, count));
    double fraction = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), fraction);
    seconds += fraction;
    text_.remove_prefix(count);
    return true;
  }

 private:
  std::string_view text_;
};

/// "Z", "+02:00", "+0200", "+02", or nothing.
bool take_zone(Rest& rest, double& zone) {
  if (rest.is_over() || rest.take('Z') || rest.take('z')) return true;
  if (rest.take(' ')) return take_zone(rest, zone);
  const bool is_behind = rest.front() == '-';
  if (!rest.take('+') && !rest.take('-')) return false;
  int hours = 0, minutes = 0;
  if (!rest.take(2, 2, hours)) return false;
  const bool has_minutes = rest.take(':') || !rest.is_over();
  if (has_minutes && !rest.take(2, 2, minutes)) return false;
  if (hours > 14 || minutes > 59) return false;
  zone = (is_behind ? -1 : 1) * (hours * 3600.0 + minutes * 60.0);
  return true;
}

std::optional<DateTime> by_format(std::string_view cell, const std::string& format) {
  Rest rest(trimmed(cell));
  Clock clock;
  for (std::size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%' || i + 1 == format.size()) {
      if (!rest.take(format[i])) return std::nullopt;
      continue;
    }
    bool is_read = false;
    int two = 0;
    switch (format[++i]) {
      case 'Y':
        is_read = rest.take(4, 4, clock.year);
        break;
      case 'y':
        is_read = rest.take(2, 2, two);
        clock.year = two + (two < 69 ? 2000 : 1900);
        break;
      case 'm':
        is_read = rest.take(1, 2, clock.month);
        break;
      case 'd':
        is_read = rest.take(1, 2, clock.day);
        break;
      case 'H':
        is_read = rest.take(1, 2, clock.hour);
        break;
      case 'M':
        is_read = rest.take(2, 2, clock.minute);
        break;
      case 'S':
        is_read = rest.take_seconds(clock.second);
        break;
      default:
        break;
    }
    if (!is_read) return std::nullopt;
  }
  return rest.is_over() ? time_of(clock, 0) : std::nullopt;
}

constexpr double first_milliseconds = 1e11, first_microseconds = 1e14, first_nanoseconds = 1e17;

std::optional<DateTime> by_number(std::string_view cell, const CellText& cells) {
  std::string buffer;
  const std::optional<std::string_view> number = plain_number(cell, cells, buffer);
  if (!number) return std::nullopt;
  const std::string_view text = *number;
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size() ||
      !std::isfinite(value))
    return std::nullopt;
  constexpr std::size_t digits_of_a_date = 8;
  if (text.size() == digits_of_a_date && by_format(text, "%Y%m%d")) return std::nullopt;
  const double size = std::abs(value);
  const double unit = size < first_milliseconds   ? 1
                      : size < first_microseconds ? 1e3
                      : size < first_nanoseconds  ? 1e6
                                                  : 1e9;
  return DateTime{value / unit, 0};
}

}  // namespace

std::optional<DateTime> read_date(std::string_view cell) {
  Rest rest(trimmed(cell));
  Clock clock;
  double zone = 0;
  if (!rest.take(4, 4, clock.year) || !rest.take('-') || !rest.take(2, 2, clock.month) ||
      !rest.take('-') || !rest.take(2, 2, clock.day))
    return std::nullopt;
  if (rest.is_over()) return time_of(clock, 0);
  if (!rest.take('T') && !rest.take('t') && !rest.take(' ')) return std::nullopt;
  if (!rest.take(2, 2, clock.hour) || !rest.take(':') || !rest.take(2, 2, clock.minute))
    return std::nullopt;
  if (rest.take(':') && !rest.take_seconds(clock.second)) return std::nullopt;
  if (!take_zone(rest, zone) || !rest.is_over()) return std::nullopt;
  return time_of(clock, zone);
}

std::optional<DateTime> read_time(std::string_view cell, const std::string& format,
                                  const CellText& cells) {
  if (!format.empty()) {
    if (const std::optional<DateTime> date = by_format(cell, format)) return date;
  }
  const std::string_view text = trimmed(cell);
  if (const std::optional<DateTime> date = read_date(text)) return date;
  return by_number(text, cells);
}

bool are_seconds(double least, double most) {
  constexpr double eight_digits = 1e7, nine_digits = 1e8;
  const double largest = std::max(std::abs(least), std::abs(most));
  return largest < eight_digits || (least >= nine_digits && largest < first_milliseconds);
}

std::vector<std::string> formats_of_date(std::string_view cell) {
  std::vector<std::string> found;
  for (const char* const day :
       {"%d.%m.%Y", "%d.%m.%y", "%Y.%m.%d", "%Y/%m/%d", "%Y%m%d", "%d/%m/%Y", "%m/%d/%Y",
        "%d-%m-%Y", "%m-%d-%Y", "%d/%m/%y", "%m/%d/%y"}) {
    for (const char* const clock : {"", " %H:%M", " %H:%M:%S", "T%H:%M:%S"}) {
      if (by_format(cell, std::string(day) + clock)) found.push_back(std::string(day) + clock);
    }
  }
  return found;
}

double part_of(const DateTime& time, TimePart part) {
  if (part == TimePart::unix_time) return time.seconds;
  const double local = time.seconds + time.zone;
  const double days = std::floor(local / seconds_a_day);
  const double of_day = local - days * seconds_a_day;
  const std::chrono::sys_days date{std::chrono::days(static_cast<int>(days))};
  const std::chrono::year_month_day calendar{date};
  switch (part) {
    case TimePart::year:
      return static_cast<int>(calendar.year());
    case TimePart::month:
      return static_cast<unsigned>(calendar.month());
    case TimePart::day:
      return static_cast<unsigned>(calendar.day());
    case TimePart::weekday:
      return static_cast<double>(std::chrono::weekday(date).iso_encoding() - 1);
    case TimePart::yearday:
      return static_cast<double>(
          (date - std::chrono::sys_days(calendar.year() / std::chrono::January / 1)).count() + 1);
    case TimePart::hour:
      return std::floor(of_day / 3600);
    case TimePart::minute:
      return std::floor(std::fmod(of_day, 3600) / 60);
    default:
      return time.seconds;
  }
}

}  // namespace tandem

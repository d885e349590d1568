// Dates and times in cells of text tables.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/config/data_config.h"

namespace tandem {

struct DateTime {
  double seconds = 0;  // since 1970-01-01T00:00:00Z, without leap seconds
  double zone = 0;     // seconds that the clock it was written by is ahead of UTC
};

/// ISO 8601: 2024-03-01, 2024-03-01T12:30:05.25+02:00, with T or a blank, also 2024-03-01T12:30Z or
/// +0200. Without a zone it is UTC. Unset where the cell is no such date.
std::optional<DateTime> read_date(std::string_view cell);

/// A time written as `format` says, with %Y %m %d %H %M %S %y (1969 to 2068) and any other
/// characters as they are; else a date by ISO 8601; else the time as a number: seconds since 1970,
/// from 1e11 on milliseconds, from 1e14 microseconds, from 1e17 nanoseconds. Eight digits that are
/// a date without its hyphens are none of these. `format`: "" allows only the other two. `cells`:
/// the marks of such a number.
std::optional<DateTime> read_time(std::string_view cell, const std::string& format,
                                  const CellText& cells = {});

/// Whether read_time takes all plain numbers from `least` to `most` as seconds: eight digits may be
/// a date, and from 1e11 on the unit is another one.
bool are_seconds(double least, double most);

/// Forms that read a date which is not written by ISO 8601: several where it is not clear whether
/// the day or the month comes first.
std::vector<std::string> formats_of_date(std::string_view cell);

enum class TimePart : std::uint8_t {
  unix_time,
  year,
  month,    // 1 to 12
  day,      // 1 to 31
  weekday,  // 0: Monday
  yearday,  // 1 to 366
  hour,
  minute
};
/// By the clock that the date was written by, but for `unix_time`.
double part_of(const DateTime& time, TimePart part);

}  // namespace tandem

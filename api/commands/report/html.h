// Pieces of a page: texts that cannot become markup, numbers as people write them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tandem::api {

/// A text inside of elements and of quoted attributes. Bytes that are no UTF-8 and control
/// characters become U+FFFD.
std::string html(std::string_view text);
/// A text inside of a JavaScript Object Notation string in a <script> element, with its quotes.
std::string script_text(std::string_view text);
/// A number for JavaScript; null where it is not finite.
std::string script_number(double value);

/// At most `digits` digits that count: "0.0123", "1,234,567", "3.2e-7"; "nan", "inf".
std::string number_text(double value, int digits = 4);
/// "1.5 GiB"
std::string bytes_text_of(double bytes);
/// "3 h 12 min", "12.3 s"
std::string duration_text(double seconds);

}  // namespace tandem::api

// Sizes, rates and short times as people write them: "64MiB", "25GB/s", "10us".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tandem {

/// Bytes of "64MiB", "1.5 GiB", "200 MB", "512B"; nothing where the text is no size.
std::optional<std::uint64_t> parse_size(std::string_view text);
/// Bytes per second of "25GB/s", "400MiB/s", or of bits, "100Gb/s"; above 0.
std::optional<double> parse_rate(std::string_view text);
/// Seconds of "10us", "1.5 ms", "200ns", "2s"; 0 or more.
std::optional<double> parse_time(std::string_view text);
/// A part of the whole: 0.9 of "90%"; above 0, at most 1.
std::optional<double> parse_percent(std::string_view text);

/// "512 B", "2.6 KiB", "1.2 GiB".
std::string size_text(std::uint64_t bytes);
/// "4KiB", "1500B": to the byte, as `parse_size` reads it.
std::string exact_size(std::uint64_t bytes);
/// "3.4 MiB", "1.25 GiB".
std::string bytes_text(double bytes);

}  // namespace tandem

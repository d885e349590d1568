#include "placement/report/network.h"

#include <sstream>

#include "engine/graph/error.h"
#include "placement/quantities.h"

namespace tandem {

namespace {

constexpr double longest_latency = 10;  // seconds

}  // namespace

Network parse_network(const std::string& text) {
  Network network;
  bool is_valid = !text.empty() && !text.ends_with(',');
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    if (!is_valid) break;
    if (const auto rate = parse_rate(part)) {
      network.bytes_per_second = *rate;
    } else if (const auto time = parse_time(part); time && *time <= longest_latency) {
      network.latency = *time;
    } else {
      is_valid = false;
    }
  }
  if (is_valid) return network;
  throw Error(ErrorKind::usage,
              Diagnostic{.message = "the network between ranks",
                         .file = "--network",
                         .expected = "a rate and the time of a message, such as 100Gb/s,5us",
                         .got = text});
}

}  // namespace tandem

#include "placement/report/network.h"

#include <sstream>

#include "engine/graph/error.h"
#include "placement/quantities.h"

namespace tandem {

Network parse_network(const std::string& text) {
  Network network;
  bool any = false;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    any = true;
    if (const auto rate = parse_rate(part)) {
      network.bytes_per_second = *rate;
    } else if (const auto time = parse_time(part)) {
      network.latency = *time;
    } else {
      any = false;
      break;
    }
  }
  if (any) return network;
  throw Error(ErrorKind::usage,
              Diagnostic{.message = "the network between ranks",
                         .file = "--network",
                         .expected = "a rate and the time of a message, such as 100Gb/s,5us",
                         .got = text});
}

}  // namespace tandem

#include "api/timing/network_rate.h"

#include <algorithm>
#include <chrono>
#include <vector>

namespace tandem::api {
namespace {

constexpr std::size_t elements = std::size_t{8} << 20;

// Median of the seconds that an all-reduce takes.
double seconds_of(Communicator& communicator, Stream& stream, std::vector<float>& values,
                  std::size_t count, int times) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> seconds;
  for (int i = 0; i < times + 2; ++i) {
    const auto start = Clock::now();
    communicator.all_reduce(stream, "measured", {values.data(), values.data(), count},
                            Reduction::maximum);
    communicator.wait(stream);
    seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
  }
  seconds.erase(seconds.begin(), seconds.begin() + 2);  // buffers and connections are made then
  std::nth_element(seconds.begin(), seconds.begin() + times / 2, seconds.end());
  return seconds[static_cast<std::size_t>(times / 2)];
}

}  // namespace

Network measure_network(const Engine& engine, RankGroup& group) {
  engine.cpu->join(group.make_communicator());
  Communicator& communicator = *engine.cpu->communicator();
  const auto stream = engine.cpu->make_stream(StreamKind::collective, "network");
  std::vector<float> values(elements, 1.0f);
  const double ranks = group.ranks();
  const double small = seconds_of(communicator, *stream, values, 1, 100);
  const double large = seconds_of(communicator, *stream, values, elements, 10);
  Network network;
  network.latency = small / (2 * (ranks - 1));
  network.bytes_per_second = 2 * (ranks - 1) / ranks * static_cast<double>(elements) *
                             sizeof(float) / std::max(large - small, 1e-9);
  return network;
}

}  // namespace tandem::api

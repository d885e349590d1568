#include "api/timing/network_rate.h"

#include <algorithm>
#include <chrono>
#include <random>
#include <vector>

#include "engine/operators/collectives/collective_cost.h"

namespace tandem::api {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

constexpr std::size_t most_elements = std::size_t{8} << 20;

Seconds median(std::vector<Seconds> all) {
  const auto middle = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
  std::nth_element(all.begin(), middle, all.end());
  return *middle;
}

class Exchanges {
 public:
  Exchanges(const Engine& engine, const RankGroup& group)
      : rank_(group.rank()),
        ranks_(group.ranks()),
        communicator_(*engine.cpu->communicator()),
        stream_(engine.cpu->make_stream(StreamKind::collective, "network")) {}

  /// Seconds of an all-reduce of all elements.
  Seconds of_many() {
    constexpr int times = 10;
    std::vector<Seconds> seconds;
    for (int i = 0; i < first_ + times; ++i) {
      const auto start = Clock::now();
      all_reduce(most_elements);
      if (i >= first_) seconds.push_back(Clock::now() - start);
    }
    return median(seconds);
  }

  /// The time that an all-reduce of one element adds to a step whose ranks compute and arrive at
  /// different times: the time of the step without that of the slowest rank's work.
  Seconds of_one() {
    constexpr int steps = 500;
    constexpr Seconds least{100e-6}, varying{100e-6};
    std::mt19937 random(1);  // yields the same numbers on all ranks
    std::vector<Seconds> added;
    for (int i = 0; i < first_ + steps; ++i) {
      Seconds own{0}, slowest{0};
      for (int rank = 0; rank < ranks_; ++rank) {
        const Seconds work = least + varying * (static_cast<double>(random()) / random.max());
        slowest = std::max(slowest, work);
        if (rank == rank_) own = work;
      }
      const auto start = Clock::now();
      while (Clock::now() - start < own) {
      }
      all_reduce(1);
      if (i >= first_) added.push_back(Clock::now() - start - slowest);
    }
    return std::max(median(added), Seconds(1e-7));
  }

 private:
  void all_reduce(std::size_t count) {
    communicator_.all_reduce(*stream_, "measured", {values_.data(), values_.data(), count},
                             Reduction::maximum);
    communicator_.wait(*stream_);
  }

  static constexpr int first_ = 2;  // these make buffers and connections
  int rank_, ranks_;
  Communicator& communicator_;
  std::unique_ptr<Stream> stream_;
  std::vector<float> values_ = std::vector<float>(most_elements, 1.0f);
};

}  // namespace

Network measure_network(const Engine& engine, RankGroup& group) {
  engine.cpu->join(group.make_communicator());
  Exchanges exchanges(engine, group);
  const auto cost = [&](std::size_t elements) {
    const CollectiveWork work{CollectiveKind::all_reduce, static_cast<double>(group.ranks()),
                              static_cast<double>(elements * sizeof(float))};
    return choose_collective(CollectiveLibrary::messages, work, assumed_bytes_a_message).cost;
  };
  const Seconds one = exchanges.of_one(), many = exchanges.of_many();
  const CollectiveCost of_one = cost(1), of_many = cost(most_elements);
  Network network;
  network.latency = one.count() / of_one.messages;
  network.bytes_per_second =
      of_many.bytes / std::max(many.count() - of_many.messages * network.latency, 1e-9);
  return network;
}

}  // namespace tandem::api

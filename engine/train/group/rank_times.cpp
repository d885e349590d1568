#include "engine/train/group/rank_times.h"

#include <unistd.h>

#include <algorithm>
#include <sstream>

#include <fmt/format.h>

#include "engine/ranks/communicator.h"
#include "engine/train/group/gathered.h"

namespace tandem {
namespace {

double waited_for_ranks(const std::vector<Device*>& devices) {
  double seconds = 0;
  for (const Device* device : devices) {
    if (const Communicator* communicator = device->communicator())
      seconds += communicator->waited();
  }
  return seconds;
}

std::string machine_name() {
  char name[256] = {};
  return gethostname(name, sizeof name - 1) == 0 ? name : "";
}

}  // namespace

std::string SlowestRank::text() const {
  return fmt::format(
      "rank {} ({}) is the slowest: {:.3f} s a step, the median {:.3f} s; the others wait for it",
      rank, machine.empty() ? "unnamed" : machine, seconds, median);
}

void RankTimes::begin(const std::vector<Device*>& devices) {
  mark_ = Clock::now();
  waited_mark_ = waited_for_ranks(devices);
}

void RankTimes::end(const std::vector<Device*>& devices) {
  const Clock::time_point now = Clock::now();
  const double waited = waited_for_ranks(devices);
  seconds_ += std::chrono::duration<double>(now - mark_).count();
  waited_ += waited - waited_mark_;
  ++steps_;
  mark_ = now;
  waited_mark_ = waited;
}

std::optional<SlowestRank> RankTimes::take(Rendezvous& ranks) {
  const double own =
      steps_ > 0 ? std::max(0.0, seconds_ - waited_) / static_cast<double>(steps_) : 0;
  const std::vector<std::string> all = gathered(
      ranks, "times of steps", fmt::format("{:.9g} {:.9g} {}", own, waited_, machine_name()));
  seconds_ = waited_ = 0;
  steps_ = 0;
  std::vector<double> seconds;
  std::vector<std::string> machines;
  bool is_known = false;
  for (const std::string& text : all) {
    std::istringstream words(text);
    double of_rank = 0, waited = 0;
    std::string machine;
    words >> of_rank >> waited >> machine;
    seconds.push_back(of_rank);
    machines.push_back(std::move(machine));
    is_known = is_known || waited > 0;
  }
  if (!is_known) return std::nullopt;
  return slowest_of(seconds, machines);
}

SlowestRank slowest_of(const std::vector<double>& seconds,
                       const std::vector<std::string>& machines) {
  const auto most = std::max_element(seconds.begin(), seconds.end());
  SlowestRank slowest;
  slowest.rank = static_cast<int>(most - seconds.begin());
  slowest.seconds = *most;
  slowest.machine = machines[static_cast<std::size_t>(slowest.rank)];
  std::vector<double> sorted = seconds;
  std::sort(sorted.begin(), sorted.end());
  slowest.median = sorted[(sorted.size() - 1) / 2];
  return slowest;
}

}  // namespace tandem

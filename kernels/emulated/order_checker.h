// Watches all lanes of a run: vector clocks turn a missing event into an error text, whatever the
// real timing was; declared durations give every operation its time on a virtual clock.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/device/lane_monitor.h"
#include "kernels/emulated/access_history.h"

namespace tandem {

/// Shared by the devices and host lanes of one run. Its memory does not grow with the steps.
class OrderChecker final : public LaneMonitor {
 public:
  /// Without `check_order` it keeps virtual times (and traces) only, and allocates nothing in a
  /// step.
  explicit OrderChecker(bool check_order = true);

  /// Texts of what was out of order, each pair of operations once, at most 100; empty: all is well.
  std::vector<std::string> order_errors() const;
  /// Keeps the first `capacity` operations from now on; 0 stops.
  void start_trace(std::size_t capacity);
  /// To be called before the run's devices are made.
  void set_check_order(bool check_order) { check_order_ = check_order; }
  bool checks_order() const override { return check_order_; }
  bool keeps_trace() const override;
  /// Complete once all devices are synchronized. Spans are in the order of enqueueing.
  std::vector<TraceSpan> trace() const;
  std::string lane_name(int lane) const;
  /// The latest end on any lane, in virtual seconds.
  double virtual_time() const;

  int add_lane(std::string_view name, int time_of = -1) override;
  void remove_lane(int lane) override;
  int add_event() override;
  void remove_event(int event) override;
  TraceSpan* operation(int lane, const Operation& operation, std::size_t bytes) override;
  void record(int lane, int event, std::uint64_t count) override;
  void wait(int lane, int event, std::uint64_t count) override;
  void join(int lane, int earlier) override;
  void forget(const void* address, std::size_t bytes) override;
  void report(std::string_view text) override;
  double virtual_time(int lane) const override;
  double real_time() const override;

 private:
  struct Lane {
    std::string name;
    int time_of = -1;  // the lane whose `time` it uses
    bool ended = false;
    double time = 0;
    std::uint64_t tick = 0;
    VectorClock clock;
  };
  struct Record {
    std::uint64_t count = 0;
    double time = 0;
    VectorClock clock;
  };
  struct Recorded {
    std::array<Record, 32> last;  // a ring
    std::uint64_t records = 0;
    std::uint64_t dropped = 0;  // the greatest count that left the ring
    bool used = false;
  };
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>()(text);
    }
  };

  double& time_of(int lane);
  int name_number(std::string_view name);
  void add_error(std::string text);
  std::string who(const OperationMark& mark, bool write) const;

  bool check_order_;
  const std::chrono::steady_clock::time_point start_;
  mutable std::mutex mutex_;
  std::deque<Lane> lanes_;
  std::deque<Recorded> events_;
  AccessHistory history_;
  std::deque<std::string> names_;
  std::unordered_map<std::string, int, Hash, std::equal_to<>> number_of_name_;
  std::vector<std::string> errors_;
  std::set<std::string, std::less<>> known_errors_;
  std::vector<TraceSpan> trace_;  // never grows beyond what was reserved: addresses are handed out
  std::size_t trace_capacity_ = 0;
};

}  // namespace tandem

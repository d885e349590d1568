#include "kernels/emulated/order_checker.h"

#include <algorithm>
#include <cassert>

namespace tandem {
namespace {

constexpr std::size_t most_errors = 100;

}  // namespace

OrderChecker::OrderChecker(bool check_order)
    : check_order_(check_order), start_(std::chrono::steady_clock::now()) {
  add_lane("host");
}

double& OrderChecker::time_of(int lane) {
  const int owner = lanes_[lane].time_of;
  return lanes_[owner < 0 ? lane : owner].time;
}

int OrderChecker::name_number(std::string_view name) {
  const auto known = number_of_name_.find(name);
  if (known != number_of_name_.end()) return known->second;
  const int number = static_cast<int>(names_.size());
  names_.emplace_back(name);
  number_of_name_.emplace(names_.back(), number);
  return number;
}

void OrderChecker::add_error(std::string text) {
  if (errors_.size() < most_errors && known_errors_.insert(text).second)
    errors_.push_back(std::move(text));
}

std::string OrderChecker::who(const OperationMark& mark, bool write) const {
  return "'" + names_[mark.name] + "' (" + lanes_[mark.lane].name +
         (write ? ", writes)" : ", reads)");
}

int OrderChecker::add_lane(std::string_view name, int time_of) {
  const std::lock_guard lock(mutex_);
  // A lane of the same name continues an ended one's number, in order.
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    Lane& lane = lanes_[i];
    if (!lane.ended || lane.name != name) continue;
    lane.ended = false;
    lane.time_of = time_of;
    if (check_order_) join_clocks(lane.clock, lanes_[host_lane].clock);
    return static_cast<int>(i);
  }
  Lane& lane = lanes_.emplace_back();
  lane.name = name;
  lane.time_of = time_of;
  return static_cast<int>(lanes_.size()) - 1;
}

void OrderChecker::remove_lane(int lane) {
  join(host_lane, lane);
  const std::lock_guard lock(mutex_);
  lanes_[lane].ended = true;
}

int OrderChecker::add_event() {
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < events_.size(); ++i) {
    Recorded& event = events_[i];
    if (event.used) continue;
    event.used = true;
    event.records = event.dropped = 0;
    return static_cast<int>(i);
  }
  events_.emplace_back().used = true;
  return static_cast<int>(events_.size()) - 1;
}

void OrderChecker::remove_event(int event) {
  const std::lock_guard lock(mutex_);
  events_[event].used = false;
}

TraceSpan* OrderChecker::operation(int number, const Operation& operation, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  Lane& lane = lanes_[number];
  double& time = time_of(number);
  const double start = time;
  time += operation.seconds;

  if (check_order_ && !operation.accesses.empty()) {
    const OperationMark mark{number, ++lane.tick, name_number(operation.name)};
    if (lane.clock.size() <= static_cast<std::size_t>(number)) lane.clock.resize(number + 1, 0);
    lane.clock[number] = mark.tick;
    for (const ByteAccess& access : operation.accesses) {
      const auto begin = reinterpret_cast<std::uintptr_t>(access.address);
      for (const AccessHistory::Conflict& conflict :
           history_.touch(begin, begin + access.bytes, access.write, mark, lane.clock)) {
        std::string first = who(conflict.earlier, conflict.earlier_writes);
        std::string second = who(mark, access.write);
        if (conflict.earlier.lane > number)
          std::swap(first, second);  // by lane, whichever happened to be first
        add_error(first + " and " + second + " touch the same bytes, and no event orders them");
      }
    }
  }
  if (trace_.size() >= trace_capacity_) return nullptr;
  TraceSpan& span = trace_.emplace_back();
  span.lane = number;
  span.name = names_[name_number(operation.name)];
  span.bytes = bytes;
  span.start = start;
  span.end = time;
  return &span;
}

void OrderChecker::record(int lane, int event, std::uint64_t count) {
  const std::lock_guard lock(mutex_);
  Recorded& recorded = events_[event];
  const std::size_t size = recorded.last.size();
  if (recorded.records > 0 && recorded.last[(recorded.records - 1) % size].count >= count)
    add_error("an event was recorded by " + lanes_[lane].name + " with a count that did not grow");
  Record& record = recorded.last[recorded.records % size];
  if (recorded.records >= size) recorded.dropped = record.count;
  ++recorded.records;
  record.count = count;
  record.time = time_of(lane);
  if (check_order_) record.clock = lanes_[lane].clock;
}

void OrderChecker::wait(int lane, int event, std::uint64_t count) {
  if (count == 0) return;
  const std::lock_guard lock(mutex_);
  const Recorded& recorded = events_[event];
  const std::uint64_t size = recorded.last.size();
  const std::uint64_t oldest = recorded.records > size ? recorded.records - size : 0;
  std::uint64_t i = oldest;
  while (i < recorded.records && recorded.last[i % size].count < count) ++i;
  if (i == recorded.records) {
    add_error(lanes_[lane].name + " waits for record " + std::to_string(count) +
              " of an event, which has not been enqueued yet");
    return;
  }
  if (i == oldest && recorded.dropped >= count) {
    add_error(lanes_[lane].name + " waits for an event's record " + std::to_string(count) +
              ", more than " + std::to_string(size) + " records late");
    return;
  }
  const Record& record = recorded.last[i % size];
  time_of(lane) = std::max(time_of(lane), record.time);
  if (check_order_) join_clocks(lanes_[lane].clock, record.clock);
}

void OrderChecker::join(int lane, int earlier) {
  const std::lock_guard lock(mutex_);
  time_of(lane) = std::max(time_of(lane), time_of(earlier));
  if (check_order_) join_clocks(lanes_[lane].clock, lanes_[earlier].clock);
}

void OrderChecker::forget(const void* address, std::size_t bytes) {
  if (!check_order_) return;
  const std::lock_guard lock(mutex_);
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  history_.forget(begin, begin + bytes);
}

void OrderChecker::report(std::string_view text) {
  const std::lock_guard lock(mutex_);
  add_error(std::string(text));
}

double OrderChecker::virtual_time(int lane) const {
  const std::lock_guard lock(mutex_);
  const int owner = lanes_[lane].time_of;
  return lanes_[owner < 0 ? lane : owner].time;
}

double OrderChecker::virtual_time() const {
  const std::lock_guard lock(mutex_);
  double latest = 0;
  for (const Lane& lane : lanes_) latest = std::max(latest, lane.time);
  return latest;
}

double OrderChecker::real_time() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

std::vector<std::string> OrderChecker::order_errors() const {
  const std::lock_guard lock(mutex_);
  return errors_;
}

void OrderChecker::start_trace(std::size_t capacity) {
  const std::lock_guard lock(mutex_);
  trace_.clear();
  trace_.reserve(capacity);
  trace_capacity_ = capacity;
}

bool OrderChecker::keeps_trace() const {
  const std::lock_guard lock(mutex_);
  return trace_.size() < trace_capacity_;
}

std::vector<TraceSpan> OrderChecker::trace() const {
  const std::lock_guard lock(mutex_);
  return trace_;
}

std::string OrderChecker::lane_name(int lane) const {
  const std::lock_guard lock(mutex_);
  return lanes_[lane].name;
}

}  // namespace tandem

// Where segments begin and end. Waits that move to the front and records that move to the back make
// the order stricter, never looser.
#include "engine/runtime/segments.h"

#include <algorithm>

namespace tandem {
namespace {

// What a plan's events mean, one flag per event.
struct Events {
  std::vector<char> fed;     // only copies of input slots precede the record in its queue
  std::vector<char> urgent;  // work of this step waits for it

  explicit Events(const Plan& plan);

 private:
  void read_queue(const Plan& plan, const Queue& queue);
};

bool reads_input_slot(const Plan& plan, const Instruction& copy) {
  return std::all_of(copy.accesses.begin(), copy.accesses.end(), [&](const Access& access) {
    return access.write || plan.buffers[access.buffer].kind == BufferKind::input;
  });
}

bool writes_output_slot(const Plan& plan, const Instruction& copy) {
  return std::all_of(copy.accesses.begin(), copy.accesses.end(), [&](const Access& access) {
    return !access.write || plan.buffers[access.buffer].kind == BufferKind::output;
  });
}

Events::Events(const Plan& plan) : fed(plan.events, 0), urgent(plan.events, 0) {
  for (const Queue& queue : plan.queues) read_queue(plan, queue);
}

void Events::read_queue(const Plan& plan, const Queue& queue) {
  bool only_fed = queue.role == Queue::Role::copy_in;
  for (std::size_t i = 0; i < queue.instructions.size(); ++i) {
    const Instruction& instruction = queue.instructions[i];
    if (instruction.kind == Instruction::Kind::record) {
      fed[instruction.event] = only_fed;
    } else if (instruction.kind == Instruction::Kind::copy) {
      only_fed = only_fed && reads_input_slot(plan, instruction);
    } else if (instruction.kind == Instruction::Kind::wait && instruction.steps_back == 0) {
      const auto waiting = std::find_if(
          queue.instructions.begin() + static_cast<std::ptrdiff_t>(i), queue.instructions.end(),
          [](const Instruction& next) { return next.kind != Instruction::Kind::wait; });
      const bool serves_the_end =
          waiting == queue.instructions.end() || waiting->kind == Instruction::Kind::read ||
          (waiting->kind == Instruction::Kind::copy && writes_output_slot(plan, *waiting));
      if (!serves_the_end) urgent[instruction.event] = 1;
    }
  }
}

// The segment that grows along the launches; waits and records after its last kernel are no part of
// it yet.
class Growing {
 public:
  Growing(const Plan& plan, const Lowered& lowered) : plan_(plan), lowered_(lowered) {}

  bool is_open() const { return !segment_.kernels.empty(); }
  int queue() const { return segment_.queue; }

  void add_kernel(std::size_t at, const Launch& launch, const Instruction& kernel) {
    if (!is_open()) {
      segment_.queue = launch.queue;
      segment_.begin = at;
    }
    segment_.end = at + 1;
    segment_.kernels.push_back(at);
    segment_.waits.insert(segment_.waits.end(), waits_.begin(), waits_.end());
    segment_.records.insert(segment_.records.end(), records_.begin(), records_.end());
    waits_.clear();
    records_.clear();
    const Node& node = lowered_.graph.node(kernel.node);
    for (const std::vector<ValueId>* values : {&node.inputs, &node.outputs}) {
      for (const ValueId value : *values) add_slot(value);
    }
  }
  void add_wait(std::size_t at) { waits_.push_back(at); }
  void add_record(std::size_t at) { records_.push_back(at); }
  void close(std::vector<Segment>& to) {
    if (segment_.kernels.size() >= least_kernels_of_segment) to.push_back(std::move(segment_));
    segment_ = {};
    waits_.clear();
    records_.clear();
  }

 private:
  void add_slot(ValueId value) {
    const int buffer = value ? plan_.buffer_of[value.index] : -1;
    if (buffer < 0) return;
    const Buffer& b = plan_.buffers[buffer];
    if (b.copies == 1 && b.kind != BufferKind::input && b.kind != BufferKind::output) return;
    std::vector<int>& slots = segment_.slots;
    if (std::find(slots.begin(), slots.end(), buffer) == slots.end()) slots.push_back(buffer);
  }

  const Plan& plan_;
  const Lowered& lowered_;
  Segment segment_;
  std::vector<std::size_t> waits_, records_;
};

}  // namespace

std::vector<Segment> find_segments(const Plan& plan, const Lowered& lowered) {
  const Events events(plan);
  std::vector<Segment> segments;
  Growing segment(plan, lowered);
  for (std::size_t i = 0; i < plan.launches.size(); ++i) {
    const Launch& launch = plan.launches[i];
    const Queue& queue = plan.queues[launch.queue];
    const Instruction& instruction = queue.instructions[launch.index];
    if (segment.is_open() && launch.queue != segment.queue()) segment.close(segments);
    if (queue.device == 0 || queue.role != Queue::Role::compute) continue;
    switch (instruction.kind) {
      case Instruction::Kind::run:
        segment.add_kernel(i, launch, instruction);
        break;
      case Instruction::Kind::wait:
        if (!segment.is_open()) break;
        // What this waits for was recorded before the queue's turn in the launches began, and so
        // before the segment.
        if (instruction.steps_back > 0 || events.fed[instruction.event]) {
          segment.add_wait(i);
        } else {
          segment.close(segments);
        }
        break;
      case Instruction::Kind::record:
        if (!segment.is_open()) break;
        if (events.urgent[instruction.event])
          segment.close(segments);
        else
          segment.add_record(i);
        break;
      default:
        segment.close(segments);
    }
  }
  segment.close(segments);
  return segments;
}

}  // namespace tandem

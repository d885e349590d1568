#include "engine/runtime/mixed_step.h"

#include <algorithm>
#include <cassert>

#include "engine/graph/error.h"
#include "engine/operators/collectives/collective.h"
#include "engine/operators/operator.h"

namespace tandem {

// An instruction with all that does not change from step to step.
struct MixedStep::Launched {
  Stream* stream = nullptr;
  const Instruction* instruction = nullptr;
  Event* event = nullptr;
  NodeCall* call = nullptr;
  const Collective* collective = nullptr;
  std::size_t first_access = 0;
  double seconds = 0;  // on the virtual clock
  /// For a copy of only the first rows: bytes of a row, and the access to the number of rows, which
  /// the host has written into its own memory before it enqueues the copy.
  std::size_t row_bytes = 0, count_access = 0;
  int segment = -1;  // the one that begins with it
  std::string_view name;
  LaneMonitor* monitor = nullptr;

  /// Records a span of no length for a copy of nothing: a trace has one for every instruction.
  void leave_empty_span() const {
    if (monitor == nullptr) return;
    TraceSpan* span = monitor->operation(stream->lane(), {name, 0, {}});
    if (span != nullptr) span->real_start = span->real_end = monitor->real_time();
  }
};

// What a node over all ranks needs from its device's communicator.
struct MixedStep::Collective {
  Communicator* communicator = nullptr;
  CollectiveKind kind = CollectiveKind::all_reduce;
  Reduction reduction = Reduction::sum;
  std::vector<CollectiveCall> calls;
};

namespace {

StreamKind kind_of(const Queue& queue) {
  switch (queue.role) {
    case Queue::Role::copy_in:
      return StreamKind::copy_in;
    case Queue::Role::copy_out:
      return StreamKind::copy_out;
    case Queue::Role::collective:
      return StreamKind::collective;
    default:
      return StreamKind::compute;
  }
}

Reduction reduction_of(const Node& node) {
  const CollectiveKind kind = collective_kind(node);
  if (!reduces(kind)) return Reduction::sum;  // has none
  const std::string& text = node.attributes.text("reduction");
  return text == "mean"      ? Reduction::mean
         : text == "maximum" ? Reduction::maximum
         : text == "minimum" ? Reduction::minimum
                             : Reduction::sum;
}

// Throws where the device cannot do what the node needs.
Communicator& communicator_of(const Device& device, const Node& node) {
  Communicator* communicator = device.communicator();
  const std::int64_t ranks = node.attributes.integer("ranks");
  if (communicator != nullptr && communicator->ranks() == ranks) return *communicator;
  Diagnostic d;
  d.path = node.path;
  d.message = "the step exchanges with other ranks, and " + device.name() + " is joined to " +
              (communicator == nullptr ? "none" : "another number of them");
  d.expected = std::to_string(ranks) + " ranks";
  d.got = communicator == nullptr ? "1" : std::to_string(communicator->ranks());
  d.fix = "start as many ranks as the plan was made for";
  throw Error(ErrorKind::usage, std::move(d));
}

}  // namespace

MixedStep::MixedStep(const Plan& plan, const Lowered& lowered, std::vector<NodeCall> calls,
                     std::vector<std::byte*> base, const std::vector<DeviceProfile>& profiles)
    : plan_(plan), lowered_(lowered), calls_(std::move(calls)), base_(std::move(base)) {
  for (const Queue& queue : plan.queues) {
    streams_.push_back(lowered.devices[queue.device]->make_stream(kind_of(queue), queue.name));
  }
  for (std::size_t d = 1; d < lowered.devices.size(); ++d) {
    accelerators_.push_back(lowered.devices[d]);
  }
  // An event belongs to the device whose queue records it.
  events_.resize(plan.events);
  for (const Queue& queue : plan.queues) {
    for (const Instruction& instruction : queue.instructions) {
      if (instruction.kind == Instruction::Kind::record)
        events_[instruction.event] = lowered.devices[queue.device]->make_event();
    }
  }
  for (const Queue& queue : plan.queues) {
    if (queue.role != Queue::Role::feed) continue;
    for (const Instruction& instruction : queue.instructions) {
      if (instruction.kind == Instruction::Kind::wait && instruction.steps_back > 0)
        slot_readers_.push_back(events_[instruction.event].get());
    }
  }
  std::vector<std::vector<NodeCall*>> call_of(plan.queues.size());  // per instruction
  std::size_t call = 0, total = 0;
  for (std::size_t q = 0; q < plan.queues.size(); ++q) {
    for (const Instruction& instruction : plan.queues[q].instructions) {
      const bool runs = instruction.kind == Instruction::Kind::run;
      call_of[q].push_back(runs ? &calls_[call++] : nullptr);
    }
  }
  assert(call == calls_.size());
  for (const Launch& launch : plan.launches)
    total += plan.queues[launch.queue].instructions[launch.index].accesses.size();
  accesses_.resize(total);
  collectives_.reserve(plan.launches.size());  // `launched_` points to them
  std::size_t next = 0;
  for (const Launch& launch : plan.launches) {
    const Queue& queue = plan.queues[launch.queue];
    const Instruction& instruction = queue.instructions[launch.index];
    Launched launched;
    launched.stream = streams_[launch.queue].get();
    launched.monitor = lowered.devices[queue.device]->monitor();
    launched.instruction = &instruction;
    launched.call = call_of[launch.queue][launch.index];
    if (instruction.event >= 0) launched.event = events_[instruction.event].get();
    launched.first_access = next;
    next += instruction.accesses.size();
    if (instruction.node) {
      const Node& node = lowered.graph.node(instruction.node);
      launched.name = node.path;
      if (instruction.kind == Instruction::Kind::collective) {
        launched.collective = add_collective(*lowered.devices[queue.device], instruction.node);
      } else if (instruction.kind == Instruction::Kind::run) {
        launched.seconds =
            seconds_of(instruction, lowered,
                       profiles.empty() ? assumed_profile(lowered.devices[queue.device]->facts())
                                        : profiles[queue.device]);
      } else {
        launched.name = lowered.graph.value(node.inputs[0]).name;
        if (node.inputs.size() > 2 && node.inputs[2]) {
          const TensorType& type = lowered.graph.type(node.inputs[0]);
          const auto rows = static_cast<std::size_t>(std::max<std::int64_t>(type.shape[0], 1));
          launched.row_bytes = type.bytes() / rows;
          launched.count_access = node.inputs[1] ? 2 : 1;  // after x and `into`
        }
      }
    } else if (instruction.buffer >= 0) {
      launched.name = plan.buffers[instruction.buffer].name;
    }
    launched_.push_back(launched);
  }
  find_reads();
  find_gathering();
  segments_ = find_segments(plan, lowered);
  graphs_.reserve(segments_.size());
  for (const Segment& segment : segments_) {
    launched_[segment.begin].segment = static_cast<int>(graphs_.size());
    graphs_.emplace_back(segment, *streams_[segment.queue]);
  }
}

const MixedStep::Collective* MixedStep::add_collective(const Device& device, NodeId id) {
  const Node& node = lowered_.graph.node(id);
  Communicator& communicator = communicator_of(device, node);
  if (std::find(communicators_.begin(), communicators_.end(), &communicator) ==
      communicators_.end()) {
    communicators_.push_back(&communicator);
  }
  collectives_.push_back({&communicator, collective_kind(node), reduction_of(node),
                          collective_calls(lowered_, plan_, id)});
  for (const CollectiveCall& call : collectives_.back().calls)
    parts_.reserve(std::max(parts_.capacity(), call.operands.size()));
  return &collectives_.back();
}

// Reads come last in a plan's launches, in queues of their own. What writes an output slot waits
// for the read of the step that used the same place before.
void MixedStep::find_reads() {
  std::vector<char> of_read(plan_.events, 0);
  const auto is_read = [&](const Launch& launch) {
    return plan_.queues[launch.queue].role == Queue::Role::read;
  };
  std::size_t first = plan_.launches.size(), accesses = 0;
  while (first > 0 && is_read(plan_.launches[first - 1])) --first;
  for (std::size_t i = first; i < plan_.launches.size(); ++i) {
    const Instruction& instruction = *launched_[i].instruction;
    if (instruction.kind == Instruction::Kind::record) of_read[instruction.event] = 1;
    accesses += instruction.accesses.size();
  }
  reads_.assign(launched_.begin() + static_cast<std::ptrdiff_t>(first), launched_.end());
  launched_.resize(first);
  for (std::vector<ByteAccess>& kept : read_accesses_) kept.resize(accesses);
  steps_in_flight_ = 2;
  for (const Launched& launched : launched_) {
    const Instruction& instruction = *launched.instruction;
    if (instruction.kind == Instruction::Kind::wait && of_read[instruction.event] &&
        instruction.steps_back < 2)
      steps_in_flight_ = 1;
  }
}

// The host may read states in its memory between steps without waiting for a device, so that it has
// to wait for what ranks gather there.
void MixedStep::find_gathering() {
  const auto writes_state = [&](const Instruction& instruction) {
    return std::any_of(
        instruction.accesses.begin(), instruction.accesses.end(), [&](const Access& access) {
          const BufferKind kind = plan_.buffers[access.buffer].kind;
          return access.write && (kind == BufferKind::parameter || kind == BufferKind::state);
        });
  };
  for (std::size_t q = 0; q < plan_.queues.size(); ++q) {
    const Queue& queue = plan_.queues[q];
    if (queue.device != 0 || queue.role != Queue::Role::collective) continue;
    if (std::none_of(queue.instructions.begin(), queue.instructions.end(), writes_state)) continue;
    gathering_ = streams_[q].get();
    gathered_ = lowered_.devices[0]->make_event();
  }
}

MixedStep::~MixedStep() {
  try {
    drain();
  } catch (const Error&) {  // from a device whose failure was reported before
  }
}

std::vector<std::string> MixedStep::graph_problems() const {
  std::vector<std::string> problems;
  for (const SegmentGraphs& graphs : graphs_) {
    if (graphs.problem().empty()) continue;
    const Segment& segment = graphs.segment();
    problems.push_back(plan_.queues[segment.queue].name + ": the " +
                       std::to_string(segment.kernels.size()) + " kernels from " +
                       std::string(launched_[segment.begin].name) + " to " +
                       std::string(launched_[segment.end - 1].name) +
                       " are launched one by one and not as a graph: " + graphs.problem());
  }
  return problems;
}

// The host has also read the outputs of this program's own steps: it finished them before it
// launched the other program's step and this one.
void MixedStep::begin() {
  for (const Launched& read : reads_) {
    if (read.monitor != nullptr) read.monitor->join(LaneMonitor::host_lane, read.stream->lane());
  }
  for (std::size_t q = 0; q < streams_.size(); ++q) {
    LaneMonitor* monitor = lowered_.devices[plan_.queues[q].device]->monitor();
    if (monitor != nullptr) monitor->join(streams_[q]->lane(), LaneMonitor::host_lane);
  }
}

void MixedStep::drain() {
  for (std::size_t q = 0; q < streams_.size(); ++q) {
    Communicator* communicator = lowered_.devices[plan_.queues[q].device]->communicator();
    if (plan_.queues[q].role == Queue::Role::collective && communicator != nullptr)
      communicator->wait(*streams_[q]);  // also where another rank has died
    else
      streams_[q]->synchronize();
  }
  for (Device* device : accelerators_) device->synchronize();
}

bool MixedStep::launch(SegmentGraphs& graphs, std::uint64_t count) {
  graphs.look(base_);
  Captured* graph = graphs.graph();
  if (graph == nullptr && graphs.can_be_captured()) {
    graph = graphs.capture([&] {
      for (const std::size_t kernel : graphs.segment().kernels) enqueue(launched_[kernel], count);
    });
  }
  if (graph == nullptr) return false;
  for (const std::size_t wait : graphs.segment().waits) enqueue(launched_[wait], count);
  graphs.stream().launch(*graph);
  for (const std::size_t record : graphs.segment().records) enqueue(launched_[record], count);
  return true;
}

void MixedStep::launch(const StepContext& context, std::uint64_t count) {
  context_ = context;
  check_ranks();
  for (std::size_t i = 0; i < launched_.size();) {
    const int segment = launched_[i].segment;
    if (segment >= 0 && launch(graphs_[segment], count)) {
      i = segments_[segment].end;
    } else {
      enqueue(launched_[i++], count);
    }
  }
  if (gathering_ != nullptr) gathering_->record(*gathered_, count);
  keep_reads(count);
}

void MixedStep::keep_reads(std::uint64_t count) {
  auto kept = read_accesses_[count % 2].begin();
  for (const Launched& read : reads_) {
    const std::span<const ByteAccess> accesses = accesses_of(read);
    kept = std::copy(accesses.begin(), accesses.end(), kept);
  }
}

void MixedStep::finish(std::uint64_t count) {
  const ByteAccess* kept = read_accesses_[count % 2].data();
  for (const Launched& read : reads_) {
    const Instruction& instruction = *read.instruction;
    if (instruction.kind != Instruction::Kind::read) {
      enqueue(read, count);
      continue;
    }
    read.stream->note({read.name, read.seconds, {kept, instruction.accesses.size()}});
    kept += instruction.accesses.size();
  }
  for (Event* event : slot_readers_) event->synchronize(count);
  if (gathering_ != nullptr) gathered_->synchronize(count);
  check_ranks();
}

// Throws where a rank has failed: unfinished results would be wrong.
void MixedStep::check_ranks() {
  for (Communicator* communicator : communicators_) communicator->check();
}

bool MixedStep::has_read_inputs(std::uint64_t count) const {
  return std::all_of(slot_readers_.begin(), slot_readers_.end(),
                     [&](const Event* event) { return event->reached(count); });
}

std::span<const ByteAccess> MixedStep::accesses_of(const Launched& launched) {
  const std::vector<Access>& accesses = launched.instruction->accesses;
  for (std::size_t i = 0; i < accesses.size(); ++i) {
    const Access& access = accesses[i];
    accesses_[launched.first_access + i] = {base_[access.buffer] + access.begin,
                                            access.end - access.begin, access.write};
  }
  return {accesses_.data() + launched.first_access, accesses.size()};
}

void MixedStep::enqueue(const Launched& launched, std::uint64_t count) {
  const Instruction& instruction = *launched.instruction;
  if (instruction.kind == Instruction::Kind::wait) {
    const auto back = static_cast<std::uint64_t>(instruction.steps_back);
    return launched.stream->wait(*launched.event, count > back ? count - back : 0);
  }
  if (instruction.kind == Instruction::Kind::record)
    return launched.stream->record(*launched.event, count);
  const Operation operation{launched.name, launched.seconds, accesses_of(launched)};
  if (instruction.kind == Instruction::Kind::run) {
    NodeCall& call = *launched.call;
    call.arguments.context = &context_;
    launched.stream->run({call.kernel, call.arguments, call.inputs, call.outputs, operation});
  } else if (instruction.kind == Instruction::Kind::copy) {
    enqueue_copy(launched, operation);
  } else if (instruction.kind == Instruction::Kind::collective) {
    enqueue_collective(launched);
  } else {
    launched.stream->note(operation);
  }
}

void MixedStep::enqueue_collective(const Launched& launched) {
  const Collective& collective = *launched.collective;
  if (collective.calls.empty()) launched.leave_empty_span();
  for (const CollectiveCall& call : collective.calls) {
    const auto at = [&](const CollectiveCall::Place& place) {  // a side without elements has none
      return place.buffer < 0 ? nullptr : base_[place.buffer] + place.offset;
    };
    if (collective.kind == CollectiveKind::all_gather ||
        collective.kind == CollectiveKind::reduce_scatter) {
      parts_.clear();
      for (const CollectiveCall::Operand& operand : call.operands)
        parts_.push_back({at(operand.from),
                          at(operand.to),
                          {static_cast<std::size_t>(operand.elements),
                           static_cast<std::size_t>(operand.whole)}});
      collective.communicator->enqueue(
          *launched.stream, launched.name,
          Communicator::exchange_of(collective.kind, call.dtype, parts_, collective.reduction));
      continue;
    }
    const CollectiveCall::Operand& operand = call.operands[0];
    Exchange exchange{
        collective.kind,
        {at(operand.from), at(operand.to), static_cast<std::size_t>(operand.elements), call.dtype},
        collective.reduction};
    if (collective.kind == CollectiveKind::exchange_rows) {
      const auto counts = [&](const CollectiveCall::Place& place) {
        return reinterpret_cast<const std::int32_t*>(at(place));
      };
      exchange.counts = {counts(call.sent), counts(call.received),
                         static_cast<std::size_t>(call.from_rows),
                         static_cast<std::size_t>(call.to_rows)};
    }
    collective.communicator->enqueue(*launched.stream, launched.name, exchange);
  }
}

void MixedStep::enqueue_copy(const Launched& launched, const Operation& operation) {
  const ByteAccess *from = nullptr, *to = nullptr;
  for (const ByteAccess& access : operation.accesses) {
    if (access.write)
      to = &access;
    else if (from == nullptr)
      from = &access;
  }
  // Null: a tensor without elements.
  if (from == nullptr || to == nullptr) return launched.leave_empty_span();
  assert(from->bytes == to->bytes);
  std::size_t bytes = to->bytes;
  if (launched.row_bytes > 0) {
    const ByteAccess& counted = operation.accesses[launched.count_access];
    const auto rows = *static_cast<const std::int32_t*>(counted.address);
    bytes = std::min(bytes, static_cast<std::size_t>(rows) * launched.row_bytes);
    if (bytes == 0) return launched.leave_empty_span();
  }
  launched.stream->copy(const_cast<void*>(to->address), from->address, bytes, operation);
}

}  // namespace tandem

// A program: everything is decided, prepared and laid out when it is made; a step walks a flat
// list.
#include "engine/runtime/program.h"

#include <array>
#include <cassert>
#include <cstring>

#include "engine/graph/error.h"
#include "engine/plan/planning_steps.h"
#include "engine/plan/ranges.h"
#include "engine/runtime/arenas.h"
#include "engine/runtime/layout_copy.h"
#include "engine/runtime/mixed_step.h"
#include "engine/runtime/named_memory.h"
#include "engine/runtime/state_entry.h"

namespace tandem {
namespace {

// One kernel call.
struct Call {
  PreparedKernel* kernel = nullptr;
  KernelArguments arguments;
  NodeId node;
};

// A pointer argument that depends on the step's slot.
struct Patch {
  void** argument = nullptr;
  std::size_t offset = 0;
};

// Equal slots that an input, an output or a buffer with two copies uses in turn.
struct Ring {
  std::unique_ptr<Memory> memory;  // null: in an arena
  std::byte* first = nullptr;
  std::size_t slot_bytes = 0;
  std::uint64_t slots = 1;
  std::vector<Patch> patches;
  HostPins pins;

  std::byte* slot(std::uint64_t ticket) const { return first + (ticket % slots) * slot_bytes; }
  void point_to(std::uint64_t ticket) const {
    std::byte* base = slot(ticket);
    for (const Patch& patch : patches) *patch.argument = base + patch.offset;
  }
};

Ring make_ring(Device& device, const NamedValue& of, std::size_t slot_bytes, int slots) {
  Ring ring;
  ring.slot_bytes = slot_bytes;
  ring.slots = static_cast<std::uint64_t>(std::max(slots, 1));
  const MemoryPurpose purpose{.path = of.name,
                              .what = std::to_string(ring.slots) + " passes of an input or output",
                              .fix = "use a smaller batch or more micro-batches"};
  ring.memory = allocate_for(purpose, device, ring.slot_bytes * ring.slots);
  ring.first = static_cast<std::byte*>(ring.memory->address());
  return ring;
}

}  // namespace

struct Program::Impl {
  Lowered lowered;
  Plan plan;
  std::shared_ptr<Arenas> arenas;
  std::vector<std::unique_ptr<PreparedKernel>> kernels, last_kernels;  // per node
  std::vector<Call> calls;  // those of the only queue, where all is on one device
  std::unique_ptr<MixedStep> mixed;
  std::uint64_t steps = 0;  // launched so far
  // Tickets of steps that may not be finished yet, by `steps`.
  std::array<std::uint64_t, 2> tickets{};
  std::vector<void*> arguments;  // those of all calls, one after the other
  std::vector<Ring> inputs, outputs;
  std::vector<Ring> doubled;        // buffers with two copies; turns go by `steps`, not tickets
  std::vector<int> ring_of_buffer;  // inputs, then outputs, then doubled; -1
  std::vector<std::unique_ptr<Memory>> constants;
  std::vector<StateStore::Entry*> written;  // states that a step changes
  struct ReadMirror {
    StateStore::Entry *mirror, *master;
  };
  std::vector<ReadMirror> mirrors;
  StepContext context;
  ErrorWord error;
  Probe probe;
  std::atomic<std::uint64_t> finished{0};  // one past the last ticket that has finished

  Ring& ring(int index) {
    auto at = static_cast<std::size_t>(index);
    for (std::vector<Ring>* rings : {&inputs, &outputs}) {
      if (at < rings->size()) return (*rings)[at];
      at -= rings->size();
    }
    return doubled[at];
  }
  // The number that decides which slot a ring's buffer uses in the next step.
  std::uint64_t turn(int index, std::uint64_t ticket) const {
    return static_cast<std::size_t>(index) < inputs.size() + outputs.size() ? ticket : steps;
  }

  void adopt_states(StateStore& states, std::vector<std::byte*>& base);
  void find_mirrors(StateStore& states);
  /// Updates mirrors that are out of date: a program without a Mirror of a parameter, as one that
  /// reads it in float32, may have written it.
  void refresh_mirrors();
  /// Counts the writes of a launched step, which has refreshed the mirrors it reads.
  void note_writes();
  void place(StateStore& states, const ProgramOptions& options, std::vector<std::byte*>& base);
  void place_constants(std::vector<std::byte*>& base);
  void pin_host(StateStore& states);
  void make_calls(const std::vector<std::byte*>& base, const ProgramOptions& options);
  void run_mixed(std::uint64_t ticket);
  std::uint64_t step_of(std::uint64_t ticket) const;
  void run_on_lane(std::uint64_t ticket);
};

// States that no program has made yet get their start value.
void Program::Impl::adopt_states(StateStore& states, std::vector<std::byte*>& base) {
  for (std::size_t s = 0; s < lowered.graph.states.size(); ++s) {
    const State& state = lowered.graph.states[s];
    StateStore::Entry* entry = states.find(state.name);
    if (entry == nullptr) {
      entry = &states.create(state, lowered.states[s], *lowered.devices[lowered.states[s].device]);
    }
    if (!(entry->type == lowered.graph.type(state.initial))) {
      throw Error(ErrorKind::usage,
                  Diagnostic{.message = "two programs disagree on the type of a state",
                             .path = state.name,
                             .expected = to_string(entry->type),
                             .got = to_string(lowered.graph.type(state.initial))});
    }
    if (entry->device != lowered.devices[lowered.states[s].device]) {
      throw Error(ErrorKind::usage,
                  Diagnostic{.message = "two programs disagree on the device of a state",
                             .path = state.name,
                             .expected = entry->device->name(),
                             .got = lowered.devices[lowered.states[s].device]->name()});
    }
    const int buffer = plan.buffer_of[state.initial.index];
    if (buffer >= 0 && entry->memory)
      base[buffer] = static_cast<std::byte*>(entry->memory->address());
  }
  for (State& state : lowered.graph.states) {
    // Halves of a table and parts of a whole are copies of its start, which is not needed any more.
    const bool is_half = states.find(state.name)->tail != nullptr || state.derived.is<LowHalf>();
    if (!is_half && !state.shard) continue;
    state.start = HostTensor(state.start.type());
  }
}

void Program::Impl::find_mirrors(StateStore& states) {
  for (const State& state : lowered.graph.states) {
    StateStore::Entry* entry = states.find(state.name);
    if (!(state.final == state.initial)) written.push_back(entry);
    const auto* mirror = state.derived.as<Mirror>();
    if (mirror != nullptr && states.has(mirror->of))
      mirrors.push_back({entry, states.find(mirror->of)});
  }
}

void Program::Impl::refresh_mirrors() {
  for (const ReadMirror& read : mirrors) {
    if (read.mirror->shown != read.master->writes) read.mirror->follow(*read.master);
  }
}

void Program::Impl::note_writes() {
  for (StateStore::Entry* entry : written) ++entry->writes;
  for (const ReadMirror& read : mirrors) read.mirror->shown = read.master->writes;
}

void Program::Impl::place_constants(std::vector<std::byte*>& base) {
  for (std::size_t d = 0; d < lowered.devices.size(); ++d) {
    std::size_t total = 0;
    for (const Buffer& buffer : plan.buffers) {
      if (buffer.kind == BufferKind::constant && buffer.device == static_cast<int>(d))
        total += aligned(buffer.bytes);
    }
    if (total == 0) continue;
    Device& device = *lowered.devices[d];
    constants.push_back(
        allocate_for({"", "the constants of the model", "take a smaller model"}, device, total));
    auto* next = static_cast<std::byte*>(constants.back()->address());
    for (std::size_t b = 0; b < plan.buffers.size(); ++b) {
      const Buffer& buffer = plan.buffers[b];
      if (buffer.kind != BufferKind::constant || buffer.device != static_cast<int>(d) ||
          buffer.bytes == 0)
        continue;
      const Value& value = lowered.graph.value(buffer.storage);
      HostTensor staging(TensorType{DType::uint8, {static_cast<std::int64_t>(buffer.bytes)}});
      to_layout(staging.data(), lowered.values[buffer.storage.index].layout, value.constant->data(),
                value.type);
      device.to_device(next, staging.data(), buffer.bytes);
      base[b] = next;
      next += aligned(buffer.bytes);
    }
  }
}

void Program::Impl::place(StateStore& states, const ProgramOptions& options,
                          std::vector<std::byte*>& base) {
  const Graph& graph = lowered.graph;
  ring_of_buffer.assign(plan.buffers.size(), -1);
  auto add_ring = [&](const NamedValue& of, int slots, std::vector<Ring>& rings) {
    const int b = plan.buffer_of[of.value.index];
    const Buffer& buffer = plan.buffers[b];
    ring_of_buffer[b] = static_cast<int>(inputs.size() + outputs.size());
    rings.push_back(make_ring(*lowered.devices[buffer.device], of, slot_bytes(buffer), slots));
  };
  for (const NamedValue& input : graph.inputs) add_ring(input, options.input_slots, inputs);
  for (const NamedValue& output : graph.outputs) add_ring(output, options.output_slots, outputs);
  adopt_states(states, base);
  find_mirrors(states);
  place_constants(base);
  for (std::size_t d = 0; d < lowered.devices.size(); ++d) {
    if (plan.memory[d].arena == 0) continue;
    auto* arena =
        static_cast<std::byte*>(arenas->ensure(*lowered.devices[d], plan.memory[d].arena));
    for (std::size_t b = 0; b < plan.buffers.size(); ++b) {
      const Buffer& buffer = plan.buffers[b];
      if (!buffer.in_arena() || buffer.device != static_cast<int>(d)) continue;
      base[b] = arena + buffer.offset;
      if (buffer.copies == 1) continue;
      ring_of_buffer[b] = static_cast<int>(inputs.size() + outputs.size() + doubled.size());
      doubled.push_back(
          {nullptr, base[b], buffer.stride, static_cast<std::uint64_t>(buffer.copies), {}, {}});
    }
  }
}

// Page-locks host memory for copies, which would otherwise block the thread that launches them.
void Program::Impl::pin_host(StateStore& states) {
  const std::vector<Device*> devices(lowered.devices.begin() + 1, lowered.devices.end());
  if (devices.empty()) return;
  const std::vector<char> copied = copied_host_buffers(plan);
  for (std::size_t b = 0; b < plan.buffers.size(); ++b) {
    if (!copied[b]) continue;
    const int index = ring_of_buffer[b];
    if (index >= 0 && ring(index).memory) {
      Ring& own = ring(index);
      own.pins.pin(devices, own.first, own.memory->bytes());
    } else if (plan.buffers[b].in_arena()) {
      arenas->pin(*lowered.devices[0], devices);
    }
  }
  for (const State& state : lowered.graph.states) {
    const int buffer = plan.buffer_of[state.initial.index];
    StateStore::Entry* entry = states.find(state.name);
    if (buffer >= 0 && copied[buffer] && entry->memory)
      entry->pins.pin(devices, entry->memory->address(), entry->memory->bytes());
  }
}

void Program::Impl::make_calls(const std::vector<std::byte*>& base, const ProgramOptions& options) {
  const Graph& graph = lowered.graph;
  const std::vector<char> needed = needed_values(lowered);
  std::size_t total = 0;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const NodeRanges ranges(lowered, NodeId{static_cast<std::int32_t>(n)}, plan.range_of[n]);
    total += static_cast<std::size_t>(ranges.parts()) *
             (graph.nodes[n].inputs.size() + graph.nodes[n].outputs.size());
  }
  arguments.reserve(total);  // calls keep addresses into it

  auto push = [&](ValueId value, bool is_needed, const NodeRanges& ranges, int part) {
    arguments.push_back(nullptr);
    if (!value || !is_needed) return;
    const int buffer = plan.buffer_of[value.index];
    if (buffer < 0) return;
    std::int64_t first = lowered.values[value.index].layout.offset;
    if (ranges.cuts(graph.type(value))) first += ranges.part(part).begin;
    const std::size_t offset = static_cast<std::size_t>(first) * size_of(graph.type(value).dtype);
    if (ring_of_buffer[buffer] >= 0) {
      ring(ring_of_buffer[buffer]).patches.push_back({&arguments.back(), offset});
    } else if (base[buffer] != nullptr) {
      arguments.back() = base[buffer] + offset;
    }
  };
  std::vector<MixedStep::NodeCall> node_calls;
  bool is_mixed = false;
  for (const Queue& queue : plan.queues) {
    is_mixed = is_mixed || queue.device != 0 || queue.role == Queue::Role::collective;
    for (const Instruction& instruction : queue.instructions) {
      if (instruction.kind != Instruction::Kind::run) continue;
      const NodeId id = instruction.node;
      const Node& node = graph.node(id);
      Call call;
      call.node = id;
      const NodeRanges ranges(lowered, id, plan.range_of[id.index]);
      const int part = instruction.part;
      const bool is_last = part + 1 == instruction.parts && last_kernels[id.index] != nullptr;
      call.kernel = (is_last ? last_kernels : kernels)[id.index].get();
      const std::size_t first = arguments.size();
      for (ValueId value : node.inputs) push(value, true, ranges, part);
      for (ValueId value : node.outputs) push(value, needed[value.index] != 0, ranges, part);
      call.arguments.inputs = arguments.data() + first;
      call.arguments.outputs = arguments.data() + first + node.inputs.size();
      const int workspace = plan.workspace_of[id.index];
      call.arguments.workspace = workspace >= 0 ? base[workspace] : nullptr;
      call.arguments.context = &context;
      calls.push_back(call);
      node_calls.push_back({call.kernel, call.arguments, static_cast<int>(node.inputs.size()),
                            static_cast<int>(node.outputs.size())});
    }
  }
  if (is_mixed) {
    mixed =
        std::make_unique<MixedStep>(plan, lowered, std::move(node_calls), base, options.profiles);
  }
  for (const Ring& r : inputs) r.point_to(0);
  for (const Ring& r : outputs) r.point_to(0);
}

namespace {

/// States that exist already keep the layouts that they have.
ProgramOptions with_layouts_of(const StateStore& states, const Graph& graph,
                               ProgramOptions options) {
  for (const State& state : graph.states) {
    const StateStore::Entry* entry = states.find(state.name);
    if (entry != nullptr) options.lower.fixed_layouts.emplace_back(entry->name, entry->layout);
  }
  return options;
}

}  // namespace

Program::Program(const Graph& graph, const Placement& placement, const OperatorSet& operators,
                 const std::vector<Device*>& devices, StateStore& states,
                 std::shared_ptr<Arenas> arenas, const ProgramOptions& options)
    : Program(compile_program(graph, placement, operators, devices,
                              with_layouts_of(states, graph, options)),
              states, std::move(arenas), options) {}

Program::Program(CompiledProgram compiled, StateStore& states, std::shared_ptr<Arenas> arenas,
                 const ProgramOptions& options)
    : impl_(std::make_unique<Impl>()) {
  Impl& impl = *impl_;
  impl.arenas = std::move(arenas);
  impl.lowered = std::move(compiled.lowered);
  impl.plan = std::move(compiled.plan);
  impl.kernels = std::move(compiled.kernels);
  impl.last_kernels = std::move(compiled.last_kernels);
  std::vector<std::byte*> base(impl.plan.buffers.size(), nullptr);
  impl.place(states, options, base);
  impl.pin_host(states);
  impl.make_calls(base, options);
}

Program::~Program() {
  if (!impl_->mixed) return;
  try {
    impl_->mixed->drain();
  } catch (const Error&) {  // from a device whose failure was reported before
  }
  impl_->arenas->leave(impl_->mixed.get());
}

void Program::Impl::run_mixed(std::uint64_t ticket) {
  for (std::size_t b = 0; b < ring_of_buffer.size(); ++b) {
    const int index = ring_of_buffer[b];
    if (index >= 0) mixed->set_slot(static_cast<int>(b), ring(index).slot(turn(index, ticket)));
  }
  // The plan's waits assume that steps use the places of slots in turn. After another program's
  // step, and where a ticket does not follow the last one, all work has to end first.
  const bool is_in_turn = steps == 0 || ticket == tickets[steps % tickets.size()] + 1;
  const bool is_first = arenas->take(mixed.get(), [this] { mixed->drain(); });
  if (!is_first && !is_in_turn) mixed->drain();
  if (is_first || !is_in_turn) mixed->begin();
  ++steps;
  tickets[steps % tickets.size()] = ticket;
  mixed->launch(context, steps);
}

// The number that MixedStep counts the ticket's step by.
std::uint64_t Program::Impl::step_of(std::uint64_t ticket) const {
  const bool is_last = tickets[steps % tickets.size()] == ticket;
  assert(is_last || tickets[(steps - 1) % tickets.size()] == ticket);
  return is_last ? steps : steps - 1;
}

void* Program::input_slot(int input, std::uint64_t ticket) {
  return impl_->inputs[input].slot(ticket);
}

int Program::input_slots() const {
  return impl_->inputs.empty() ? 1 : static_cast<int>(impl_->inputs[0].slots);
}

bool Program::slot_free(std::uint64_t ticket) const {
  const std::uint64_t slots = static_cast<std::uint64_t>(input_slots());
  return ticket < impl_->finished.load(std::memory_order_acquire) + slots;
}

void Program::run(const StepContext& context, std::uint64_t ticket) {
  launch(context, ticket);
  finish(ticket);
}

int Program::steps_in_flight() const { return impl_->mixed ? impl_->mixed->steps_in_flight() : 1; }

void Program::launch(const StepContext& context, std::uint64_t ticket) {
  Impl& impl = *impl_;
  impl.context = context;
  if (impl.context.error == nullptr) impl.context.error = &impl.error;
  impl.refresh_mirrors();
  impl.lowered.devices[0]->on_lane([&impl, ticket] { impl.run_on_lane(ticket); });
  impl.note_writes();
}

void Program::Impl::run_on_lane(std::uint64_t ticket) {
  for (const Ring& ring : inputs) ring.point_to(ticket);
  for (const Ring& ring : outputs) ring.point_to(ticket);
  for (const Ring& ring : doubled) ring.point_to(steps);
  if (mixed) return run_mixed(ticket);
  arenas->take(nullptr, {});
  if (probe) {
    for (const Call& call : calls) {
      probe(call.node, true);
      call.kernel->run(call.arguments);
      probe(call.node, false);
    }
  } else {
    for (const Call& call : calls) call.kernel->run(call.arguments);
  }
}

void Program::finish(std::uint64_t ticket) {
  Impl& impl = *impl_;
  if (impl.mixed) impl.mixed->finish(impl.step_of(ticket));
  impl.finished.store(ticket + 1, std::memory_order_release);
}

bool Program::has_read_inputs(std::uint64_t ticket) const {
  const Impl& impl = *impl_;
  return !impl.mixed || impl.mixed->has_read_inputs(impl.step_of(ticket));
}

const void* Program::output(int output, std::uint64_t ticket) const {
  return impl_->outputs[output].slot(ticket);
}

ErrorWord& Program::errors() { return impl_->error; }

std::optional<Program::StepError> Program::error_in(const ErrorWord& word) const {
  const std::int64_t packed = word.packed.load();
  if (packed == 0) return std::nullopt;
  StepError error;
  error.kind = static_cast<ErrorWord::Kind>(packed >> 32);
  const auto node = static_cast<std::size_t>(packed & 0xffffffff);
  if (node < impl_->lowered.graph.nodes.size()) error.path = impl_->lowered.graph.nodes[node].path;
  error.value = word.value.load();
  return error;
}

const Lowered& Program::lowered() const { return impl_->lowered; }
const Plan& Program::plan() const { return impl_->plan; }
std::vector<std::string> Program::graph_problems() const {
  return impl_->mixed ? impl_->mixed->graph_problems() : std::vector<std::string>();
}
void Program::set_probe(Probe probe) { impl_->probe = std::move(probe); }

}  // namespace tandem

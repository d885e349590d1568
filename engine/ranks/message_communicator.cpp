#include "engine/ranks/message_communicator.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/ranks/reduce_elements.h"

namespace tandem {
namespace {

constexpr std::chrono::milliseconds between_looks{100};  // looks for failures of other ranks

std::string who(const Communicator& communicator) {
  return "rank " + std::to_string(communicator.rank()) + " of " +
         std::to_string(communicator.ranks());
}

// FNV-1a: lists of sizes that differ have other numbers.
std::uint64_t hash_of(std::span<const RankParts> parts) {
  std::uint64_t hash = 14695981039346656037ULL;
  for (const RankParts& one : parts) {
    for (const std::size_t number : {one.sizes.part, one.sizes.whole})
      hash = (hash ^ number) * 1099511628211ULL;
  }
  return hash;
}

MessageTask task_of(std::string_view name, const Exchange& exchange,
                    std::span<const RankParts> parts) {
  MessageTask task;
  if (!parts.empty()) task.sizes = hash_of(parts);
  task.kind = exchange.kind;
  task.dtype = exchange.elements.dtype;
  task.reduction = exchange.reduction;
  task.root = exchange.root;
  task.count = exchange.elements.count;
  task.from_rows = exchange.counts.from_rows;
  task.to_rows = exchange.counts.to_rows;
  std::copy_n(name.data(), std::min(name.size(), task.name.size() - 1), task.name.data());
  return task;
}

[[noreturn]] void refuse(const Communicator& communicator, const MessageTask& task,
                         const std::string& what, const std::string& fix) {
  throw Error(
      ErrorKind::usage,
      Diagnostic{.message = who(communicator) + ": " + to_string(task) + ": " + what, .fix = fix});
}

}  // namespace

class MessageCommunicator::Task final : public PreparedKernel {
 public:
  Task(MessageCommunicator& communicator, const MessageTask& task, std::span<const RankParts> parts)
      : communicator_(communicator), task_(task) {
    for (const RankParts& one : parts) parts_.push_back(one.sizes);
  }
  const MessageTask& task() const { return task_; }
  void run(const KernelArguments& arguments) noexcept override {
    MessageOperands operands{arguments.inputs[0], arguments.outputs[0]};
    operands.parts = parts_;
    operands.froms = arguments.inputs;
    operands.tos = arguments.outputs;
    if (task_.kind == CollectiveKind::exchange_rows) {
      operands.sent = static_cast<const std::int32_t*>(arguments.inputs[1]);
      operands.received = static_cast<const std::int32_t*>(arguments.inputs[2]);
    }
    communicator_.run(task_, operands);
  }

 private:
  MessageCommunicator& communicator_;
  const MessageTask task_;
  std::vector<PartSizes> parts_;
};

std::size_t MessageCommunicator::TaskHash::operator()(const MessageTask& task) const {
  const std::string_view name(task.name.data(), std::strlen(task.name.data()));
  return std::hash<std::string_view>()(name) * 31 + task.count * 8 +
         static_cast<std::size_t>(task.kind) + static_cast<std::size_t>(task.sizes);
}

MessageCommunicator::MessageCommunicator(std::shared_ptr<RankMessages> messages,
                                         std::shared_ptr<Rendezvous> rendezvous,
                                         const MessageCommunicatorOptions& options)
    : messages_(std::move(messages)),
      rendezvous_(std::move(rendezvous)),
      options_(options),
      operations_(*messages_, *rendezvous_, options.number, options.operation_limit, options.sizes,
                  has_failed_) {}

MessageCommunicator::~MessageCommunicator() = default;

void MessageCommunicator::enqueue(Stream& stream, std::string_view name, const Exchange& exchange) {
  RankParts one;
  const std::span<const RankParts> parts = parts_of(exchange, ranks(), one);
  const MessageTask task = task_of(name, exchange, parts);
  if (reduces(task.kind)) {
    if (const std::optional<std::string> why = reduction_problem(task.dtype, task.reduction))
      refuse(*this, task, *why, "");
  }
  if (task.root < 0 || task.root >= ranks())
    refuse(*this, task, "there is no rank " + std::to_string(task.root), "ranks count from 0");
  Task* kernel = nullptr;
  {
    const std::lock_guard lock(mutex_);
    throw_failure();
    if (task.count == 0) return;
    std::unique_ptr<Task>& known = tasks_[task];
    if (!known) known = std::make_unique<Task>(*this, task, parts);
    kernel = known.get();
  }
  if (!parts.empty()) return enqueue_parts(stream, name, task.kind, *kernel, parts);
  const auto [read, written] = bytes_of(exchange, rank(), ranks());
  void* output = exchange.elements.to;
  // Where a broadcast reads nothing, the output takes the place of the input.
  const void* inputs[3] = {read > 0 ? exchange.elements.from : output};
  ByteAccess accesses[4];
  std::size_t count = 0;
  const auto access = [&](const void* at, std::size_t bytes, bool write) {
    if (bytes > 0 || write) accesses[count++] = {at, bytes, write};
  };
  access(output, written, true);
  access(inputs[0], read, false);
  KernelCall call;
  call.inputs = call.outputs = 1;
  if (task.kind == CollectiveKind::exchange_rows) {
    const std::size_t bytes = static_cast<std::size_t>(ranks()) * sizeof(std::int32_t);
    for (const std::int32_t* counts : {exchange.counts.sent, exchange.counts.received}) {
      inputs[call.inputs++] = counts;
      access(counts, bytes, false);
    }
  }
  call.kernel = kernel;
  call.arguments = {inputs, &output, nullptr, nullptr};
  call.operation = {name, 0, {accesses, count}};
  stream.run(call);
}

void MessageCommunicator::enqueue_parts(Stream& stream, std::string_view name, CollectiveKind kind,
                                        Task& task, std::span<const RankParts> parts) {
  const std::lock_guard lock(enqueuing_);
  inputs_.clear();
  outputs_.clear();
  accesses_.clear();
  for (const RankParts& one : parts) {
    inputs_.push_back(one.from);
    outputs_.push_back(one.to);
    const auto [read, written] = bytes_of(kind, one.sizes, task.task().dtype, rank());
    if (written > 0) accesses_.push_back({one.to, written, true});
    if (read > 0) accesses_.push_back({one.from, read, false});
  }
  KernelCall call;
  call.kernel = &task;
  call.arguments = {inputs_.data(), outputs_.data(), nullptr, nullptr};
  call.inputs = call.outputs = static_cast<int>(parts.size());
  call.operation = {name, 0, accesses_};
  stream.run(call);
}

void MessageCommunicator::run(const MessageTask& task, const MessageOperands& operands) noexcept {
  const std::lock_guard running(running_);
  if (has_failed_) return;
  try {
    operations_.run(task, operands);
    return;
  } catch (const MessageFailure& failure) {
    if (!failure.what.empty())
      fail(failure.is_told ? "the run cannot continue" : to_string(task) + " failed", failure.what,
           failure.fix);
  } catch (const std::exception& error) {
    fail(to_string(task) + " failed", error.what(), "look at what the other ranks have printed");
  }
  messages_->abandon();
}

// An operation watches its own time from when it begins.
void MessageCommunicator::watch(Stream&, std::string_view) { check(); }

void MessageCommunicator::throw_failure() {
  if (failure_) throw Error(ErrorKind::runtime, *failure_);
}

void MessageCommunicator::fail(const std::string& what, const std::string& got,
                               const std::string& fix) {
  Diagnostic d;
  d.message = who(*this) + ": " + what;
  d.got = got;
  d.fix = fix;
  {
    const std::lock_guard lock(mutex_);
    if (failure_) return;
    failure_ = std::move(d);
    has_failed_ = true;
  }
  if (!rendezvous_->failure()) rendezvous_->fail(what + ": " + got);
}

void MessageCommunicator::look_for_failure() {
  {
    const std::lock_guard lock(mutex_);
    throw_failure();
    const auto now = std::chrono::steady_clock::now();
    if (now - looked_ < between_looks) return;
    looked_ = now;
  }
  if (const std::optional<std::string> lost = rendezvous_->failure())
    fail("the run cannot continue", *lost, "look at what that rank has printed");
  const std::lock_guard lock(mutex_);
  throw_failure();
}

void MessageCommunicator::check() { look_for_failure(); }

// Operations end when another rank has died, so that the stream always finishes.
void MessageCommunicator::wait(Stream& stream) {
  look_for_failure();
  stream.synchronize();
  look_for_failure();
}

void MessageCommunicator::abort(const std::string& why) {
  {
    const std::lock_guard lock(mutex_);
    if (failure_) return;
    Diagnostic d;
    d.message = who(*this) + ": the communicator was aborted: " + why;
    failure_ = std::move(d);
    has_failed_ = true;
  }
  messages_->abandon();
}

}  // namespace tandem

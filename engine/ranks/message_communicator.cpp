#include "engine/ranks/message_communicator.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/ranks/reduce_elements.h"

namespace tandem {
namespace {

constexpr std::chrono::milliseconds between_looks{100};  // for word of other ranks

std::string who(const Communicator& communicator) {
  return "rank " + std::to_string(communicator.rank()) + " of " +
         std::to_string(communicator.ranks());
}

MessageTask task_of(MessageTask::Kind kind, std::string_view name, const RankElements& elements,
                    Reduction reduction = Reduction::sum, int root = 0) {
  MessageTask task;
  task.kind = kind;
  task.dtype = elements.dtype;
  task.reduction = reduction;
  task.root = root;
  task.count = elements.count;
  std::copy_n(name.data(), std::min(name.size(), task.name.size() - 1), task.name.data());
  return task;
}

[[noreturn]] void refuse(const Communicator& communicator, const MessageTask& task,
                         const std::string& what, const std::string& fix) {
  Diagnostic d;
  d.message = who(communicator) + ": " + to_string(task) + ": " + what;
  d.fix = fix;
  throw Error(ErrorKind::usage, std::move(d));
}

void refuse_reduction(const Communicator& communicator, const MessageTask& task) {
  if (const std::optional<std::string> why = reduction_problem(task.dtype, task.reduction))
    refuse(communicator, task, *why, "");
}

}  // namespace

class MessageCommunicator::Task final : public PreparedKernel {
 public:
  Task(MessageCommunicator& communicator, const MessageTask& task)
      : communicator_(communicator), task_(task) {}
  void run(const KernelArguments& arguments) noexcept override {
    MessageOperands operands{arguments.inputs[0], arguments.outputs[0]};
    if (task_.kind == MessageTask::Kind::exchange_rows) {
      operands.sent = static_cast<const std::int32_t*>(arguments.inputs[1]);
      operands.received = static_cast<const std::int32_t*>(arguments.inputs[2]);
    }
    communicator_.run(task_, operands);
  }

 private:
  MessageCommunicator& communicator_;
  const MessageTask task_;
};

std::size_t MessageCommunicator::TaskHash::operator()(const MessageTask& task) const {
  const std::string_view name(task.name.data(), std::strlen(task.name.data()));
  return std::hash<std::string_view>()(name) * 31 + task.count * 8 +
         static_cast<std::size_t>(task.kind);
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

void MessageCommunicator::enqueue(Stream& stream, std::string_view name,
                                  const RankElements& elements, const MessageTask& task,
                                  std::size_t read, std::size_t written, const RowCounts* counts) {
  Task* kernel = nullptr;
  {
    const std::lock_guard lock(mutex_);
    throw_failure();
    if (elements.count == 0) return;
    std::unique_ptr<Task>& known = tasks_[task];
    if (!known) known = std::make_unique<Task>(*this, task);
    kernel = known.get();
  }
  const void* inputs[3] = {elements.from};
  void* output = elements.to;
  ByteAccess accesses[4];
  std::size_t count = 0;
  const auto access = [&](const void* at, std::size_t bytes, bool write) {
    if (bytes > 0 || write) accesses[count++] = {at, bytes, write};
  };
  access(output, written, true);
  access(elements.from, read, false);
  KernelCall call;
  call.inputs = call.outputs = 1;
  if (counts != nullptr) {
    const std::size_t bytes = static_cast<std::size_t>(ranks()) * sizeof(std::int32_t);
    inputs[call.inputs++] = counts->sent;
    inputs[call.inputs++] = counts->received;
    access(counts->sent, bytes, false);
    access(counts->received, bytes, false);
  }
  call.kernel = kernel;
  call.arguments = {inputs, &output, nullptr, nullptr};
  call.operation = {name, 0, {accesses, count}};
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
      fail(failure.is_told ? "the run cannot go on" : to_string(task) + " failed", failure.what,
           failure.fix);
  } catch (const std::exception& error) {
    fail(to_string(task) + " failed", error.what(), "look at what the other ranks have printed");
  }
  messages_->abandon();
}

void MessageCommunicator::all_reduce(Stream& stream, std::string_view name,
                                     const RankElements& elements, Reduction reduction) {
  const MessageTask task = task_of(MessageTask::Kind::all_reduce, name, elements, reduction);
  refuse_reduction(*this, task);
  const std::size_t bytes = elements.count * size_of(elements.dtype);
  enqueue(stream, name, elements, task, bytes, bytes);
}

void MessageCommunicator::all_gather(Stream& stream, std::string_view name,
                                     const RankElements& elements) {
  const std::size_t bytes = elements.count * size_of(elements.dtype);
  enqueue(stream, name, elements, task_of(MessageTask::Kind::all_gather, name, elements), bytes,
          bytes * static_cast<std::size_t>(ranks()));
}

void MessageCommunicator::reduce_scatter(Stream& stream, std::string_view name,
                                         const RankElements& elements, Reduction reduction) {
  const MessageTask task = task_of(MessageTask::Kind::reduce_scatter, name, elements, reduction);
  refuse_reduction(*this, task);
  const std::size_t bytes = elements.count * size_of(elements.dtype);
  enqueue(stream, name, elements, task, bytes * static_cast<std::size_t>(ranks()), bytes);
}

void MessageCommunicator::all_to_all(Stream& stream, std::string_view name,
                                     const RankElements& elements) {
  const std::size_t bytes =
      elements.count * size_of(elements.dtype) * static_cast<std::size_t>(ranks());
  enqueue(stream, name, elements, task_of(MessageTask::Kind::all_to_all, name, elements), bytes,
          bytes);
}

void MessageCommunicator::exchange_rows(Stream& stream, std::string_view name,
                                        const RankElements& elements, const RowCounts& counts) {
  MessageTask task = task_of(MessageTask::Kind::exchange_rows, name, elements);
  task.from_rows = counts.from_rows;
  task.to_rows = counts.to_rows;
  const std::size_t row = elements.count * size_of(elements.dtype);
  enqueue(stream, name, elements, task, row * counts.from_rows, row * counts.to_rows, &counts);
}

void MessageCommunicator::broadcast(Stream& stream, std::string_view name,
                                    const RankElements& elements, int root) {
  const MessageTask task =
      task_of(MessageTask::Kind::broadcast, name, elements, Reduction::sum, root);
  if (root < 0 || root >= ranks())
    refuse(*this, task, "there is no rank " + std::to_string(root), "ranks count from 0");
  const std::size_t bytes = elements.count * size_of(elements.dtype);
  RankElements own = elements;
  if (rank() != root) own.from = own.to;  // is not looked at
  enqueue(stream, name, own, task, rank() == root ? bytes : 0, bytes);
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
    fail("the run cannot go on", *lost, "look at what that rank has printed");
  const std::lock_guard lock(mutex_);
  throw_failure();
}

void MessageCommunicator::check() { look_for_failure(); }

// No operation runs on when another rank has died, so that the stream always comes to its end.
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

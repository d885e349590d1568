#include "kernels/cuda/collectives/nccl_operations.h"

#include <exception>
#include <thread>

#include "kernels/cuda/device/copied_bytes.h"

namespace tandem::cuda {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds finish_limit{5000};
// Between questions about other ranks: each takes a system call.
constexpr milliseconds between_looks{100};

}  // namespace

std::string who(const NcclOptions& options, const Rendezvous& ranks) {
  return options.device + ": rank " + std::to_string(ranks.rank()) + " of " +
         std::to_string(ranks.ranks());
}

NcclCommunicator::~NcclCommunicator() {
  (void)runtime_->set_gpu(options_.gpu);
  const bool ends_well = !failure_ && std::uncaught_exceptions() == 0 && !rendezvous_->failure();
  if (ends_well) handle_.finish(finish_limit);
  handle_.abort();
  if (waited_ != nullptr) (void)runtime_->destroy_event(waited_);
}

std::optional<NcclProblem> NcclCommunicator::start(const ncclUniqueId& id) {
  cudaError_t error = runtime_->set_gpu(options_.gpu);
  if (error == cudaSuccess) error = watched_.open();
  if (error == cudaSuccess) error = runtime_->make_event(waited_);
  if (error != cudaSuccess) {
    return NcclProblem{runtime_->error_text(error),
                       "see what tandem doctor says about " + options_.device};
  }
  return handle_.start(id, rank(), ranks(), options_.start_limit,
                       [this] { return rendezvous_->failure(); });
}

void NcclCommunicator::throw_failure() const {
  if (failure_) throw Error(ErrorKind::runtime, *failure_);
}

void NcclCommunicator::fail(const std::string& what, const NcclProblem& problem) {
  Diagnostic d;
  d.message = who(options_, *rendezvous_) + ": " + what;
  d.got = problem.what;
  d.fix = problem.fix;
  failure_ = std::move(d);
  handle_.abort();
  throw Error(ErrorKind::runtime, *failure_);
}

void NcclCommunicator::refuse(const char* kind, std::string_view name, const std::string& what,
                              const std::string& fix) const {
  throw Error(ErrorKind::usage, Diagnostic{.message = who(options_, *rendezvous_) + ": " + kind +
                                                      " of '" + std::string(name) + "': " + what,
                                           .fix = fix});
}

CudaStream& NcclCommunicator::of_gpu(Stream& stream, const char* kind,
                                     std::string_view name) const {
  auto* const own = dynamic_cast<CudaStream*>(&stream);
  if (own == nullptr || own->gpu() != options_.gpu)
    refuse(kind, name, "the stream is not one of " + options_.device,
           "enqueue it on a stream of the communicator's own device");
  return *own;
}

NcclReduction NcclCommunicator::reduction_of(const char* kind, std::string_view name, DType dtype,
                                             Reduction reduction) const {
  const std::optional<NcclReduction> known = reduced_as(dtype, reduction);
  if (!known) {
    constexpr const char* names[] = {"sum", "mean", "maximum", "minimum"};
    refuse(kind, name,
           "NCCL has no " + std::string(names[static_cast<int>(reduction)]) + " of " +
               std::string(name_of(dtype)),
           "cast to float32 or int32 before it");
  }
  return *known;
}

void NcclCommunicator::enqueue(Stream& any, std::string_view name, const Exchange& exchange) {
  struct Enqueueing final : PreparedKernel {
    Enqueueing(const NcclCommunicator& on, const Exchange& of, std::span<const RankParts> in,
               const NcclReduction& by)
        : communicator(on), exchange(of), parts(in), as(by) {}
    void run(const KernelArguments& arguments) noexcept override {
      result = communicator.call(exchange, parts, as, static_cast<cudaStream_t>(arguments.queue));
    }
    const NcclCommunicator& communicator;
    const Exchange& exchange;
    const std::span<const RankParts> parts;
    const NcclReduction as;
    ncclResult_t result = ncclSuccess;
  };
  const char* const kind = name_of(exchange.kind);
  const RankElements& elements = exchange.elements;
  // Sends and receives of NCCL's take counts of the host, and these are in the GPU's memory.
  if (exchange.kind == CollectiveKind::exchange_rows)
    refuse(kind, name, "NCCL has no exchange whose counts are only in the memory of the GPU",
           "keep tables whose rows are sharded on the host: on = \"cpu\" at their lookups");
  if (exchange.root < 0 || exchange.root >= ranks())
    refuse(kind, name, "there is no rank " + std::to_string(exchange.root), "ranks count from 0");
  NcclReduction as;
  if (reduces(exchange.kind)) as = reduction_of(kind, name, elements.dtype, exchange.reduction);
  CudaStream& stream = of_gpu(any, kind, name);
  const std::lock_guard lock(mutex_);
  throw_failure();
  if (!stream.is_capturing()) check_locked();
  if (elements.count == 0) return;
  RankParts one;
  const std::span<const RankParts> parts = parts_of(exchange, ranks(), one);
  inputs_.clear();
  outputs_.clear();
  accesses_.clear();
  std::size_t bytes = 0;
  const auto add = [&](const void* from, void* to, const ExchangeBytes& of) {
    outputs_.push_back(to);
    accesses_.push_back({to, of.written, true});
    bytes += of.read + of.written;
    if (of.read == 0) return;
    inputs_.push_back(from);
    accesses_.push_back({from, of.read, false});
  };
  for (const RankParts& each : parts)
    add(each.from, each.to, bytes_of(exchange.kind, each.sizes, elements.dtype, rank()));
  if (parts.empty()) add(elements.from, elements.to, bytes_of(exchange, rank(), ranks()));
  Enqueueing kernel(*this, exchange, parts, as);
  KernelCall enqueued;
  enqueued.kernel = &kernel;
  enqueued.arguments = {inputs_.data(), outputs_.data(), nullptr, nullptr};
  enqueued.inputs = static_cast<int>(inputs_.size());
  enqueued.outputs = static_cast<int>(outputs_.size());
  enqueued.operation = {name, link_seconds(bytes), accesses_};
  stream.run(enqueued);
  std::optional<NcclProblem> problem;
  if (kernel.result != ncclSuccess) {
    problem = handle_.settle(kernel.result, options_.start_limit,
                             [this] { return rendezvous_->failure(); });
  }
  if (problem) fail(kind + (" of '" + std::string(name)) + "' failed", *problem);
  if (!stream.is_capturing())
    check_runtime(watched_.add(name, stream.handle()), "recording an event");
}

ncclResult_t NcclCommunicator::call(const Exchange& exchange, std::span<const RankParts> parts,
                                    const NcclReduction& as, cudaStream_t queue) const {
  const RankElements& e = exchange.elements;
  const NcclElements moved = moved_as(e.dtype);
  switch (exchange.kind) {
    case CollectiveKind::all_reduce:
      return nccl_.ncclAllReduce(e.from, e.to, e.count, as.type, as.operation, handle_.get(),
                                 queue);
    case CollectiveKind::all_gather:
    case CollectiveKind::reduce_scatter:
      return call_parts(exchange, parts, as, queue);
    case CollectiveKind::all_to_all:
      return exchange_parts(e, moved, queue);
    case CollectiveKind::broadcast:
      return nccl_.ncclBroadcast(e.from, e.to, e.count * moved.of_each, moved.type, exchange.root,
                                 handle_.get(), queue);
    case CollectiveKind::exchange_rows:
      break;  // is refused
  }
  return ncclInvalidUsage;
}

ncclResult_t NcclCommunicator::call_parts(const Exchange& exchange,
                                          std::span<const RankParts> parts, const NcclReduction& as,
                                          cudaStream_t queue) const {
  const DType dtype = exchange.elements.dtype;
  const auto one = [&](const RankParts& each) {
    return exchange.kind == CollectiveKind::all_gather ? gather(each, dtype, queue)
                                                       : scatter(each, dtype, as, queue);
  };
  const auto are_full = [&](const RankParts& each) {
    return each.sizes.whole == each.sizes.part * static_cast<std::size_t>(ranks());
  };
  if (exchange.kind == CollectiveKind::reduce_scatter) {
    for (const RankParts& each : parts) {  // clears the rest that the whole does not fill
      const std::size_t filled = each.sizes.filled(rank()), rest = each.sizes.part - filled;
      if (rest == 0) continue;
      const std::size_t size = size_of(dtype);
      if (runtime_->fill(static_cast<char*>(each.to) + filled * size, 0, rest * size, queue) !=
          cudaSuccess)
        return ncclUnhandledCudaError;
    }
  }
  if (parts.size() == 1 && are_full(parts[0])) return one(parts[0]);
  ncclResult_t first = nccl_.ncclGroupStart();
  if (first != ncclSuccess) return first;
  for (const RankParts& each : parts) {
    const ncclResult_t result = one(each);
    if (first == ncclSuccess && result != ncclInProgress) first = result;
  }
  const ncclResult_t end = nccl_.ncclGroupEnd();  // also after an error
  return first != ncclSuccess ? first : end;
}

ncclResult_t NcclCommunicator::gather(const RankParts& parts, DType dtype,
                                      cudaStream_t queue) const {
  const auto [part, whole] = parts.sizes;
  const NcclElements moved = moved_as(dtype);
  if (whole == part * static_cast<std::size_t>(ranks()))
    return nccl_.ncclAllGather(parts.from, parts.to, part * moved.of_each, moved.type,
                               handle_.get(), queue);
  ncclResult_t first = ncclSuccess;
  auto* to = static_cast<char*>(parts.to);
  for (int root = 0; root < ranks(); ++root, to += part * size_of(dtype)) {
    const std::size_t count = parts.sizes.filled(root) * moved.of_each;
    if (count == 0) break;
    const ncclResult_t result = nccl_.ncclBroadcast(root == rank() ? parts.from : to, to, count,
                                                    moved.type, root, handle_.get(), queue);
    if (first == ncclSuccess && result != ncclInProgress) first = result;
  }
  return first;
}

ncclResult_t NcclCommunicator::scatter(const RankParts& parts, DType dtype, const NcclReduction& as,
                                       cudaStream_t queue) const {
  const auto [part, whole] = parts.sizes;
  if (whole == part * static_cast<std::size_t>(ranks()))
    return nccl_.ncclReduceScatter(parts.from, parts.to, part, as.type, as.operation, handle_.get(),
                                   queue);
  ncclResult_t first = ncclSuccess;
  const auto* from = static_cast<const char*>(parts.from);
  for (int root = 0; root < ranks(); ++root, from += part * size_of(dtype)) {
    const std::size_t count = parts.sizes.filled(root);
    if (count == 0) break;
    const ncclResult_t result =
        nccl_.ncclReduce(from, parts.to, count, as.type, as.operation, root, handle_.get(), queue);
    if (first == ncclSuccess && result != ncclInProgress) first = result;
  }
  return first;
}

ncclResult_t NcclCommunicator::exchange_parts(const RankElements& elements, const NcclElements& as,
                                              cudaStream_t queue) const {
  const std::size_t count = elements.count * as.of_each,
                    bytes = elements.count * size_of(elements.dtype);
  const auto* from = static_cast<const char*>(elements.from);
  auto* to = static_cast<char*>(elements.to);
  ncclResult_t first = nccl_.ncclGroupStart();
  const auto note = [&](ncclResult_t result) {
    if (first == ncclSuccess && result != ncclInProgress) first = result;
  };
  if (first != ncclSuccess) return first;
  for (int peer = 0; peer < ranks(); ++peer) {
    note(nccl_.ncclSend(from, count, as.type, peer, handle_.get(), queue));
    note(nccl_.ncclRecv(to, count, as.type, peer, handle_.get(), queue));
    from += bytes;
    to += bytes;
  }
  const ncclResult_t end = nccl_.ncclGroupEnd();  // also after an error
  return first != ncclSuccess ? first : end;
}

void NcclCommunicator::watch(Stream& any, std::string_view name) {
  CudaStream& stream = of_gpu(any, "watching", name);
  if (stream.is_capturing())
    refuse("watching", name, "the stream captures", "watch after each launch of what is captured");
  const std::lock_guard lock(mutex_);
  throw_failure();
  check_runtime(runtime_->set_gpu(options_.gpu), "choosing the GPU");
  check_runtime(watched_.add(name, stream.handle()), "recording an event");
}

void NcclCommunicator::check_runtime(cudaError_t error, const char* what) {
  if (error != cudaSuccess)
    fail(std::string(what) + " failed",
         {runtime_->error_text(error),
          "a GPU reports what goes wrong in a kernel at a later call: CUDA_LAUNCH_BLOCKING=1 "
          "names the operator"});
}

void NcclCommunicator::check_locked() {
  throw_failure();
  if (const std::optional<NcclProblem> problem = handle_.problem())
    fail("the communicator has failed", *problem);
  std::optional<WatchedOperations::Overdue> overdue;
  check_runtime(runtime_->set_gpu(options_.gpu), "choosing the GPU");
  const cudaError_t error = watched_.look(options_.operation_limit, overdue);
  const bool is_time = Clock::now() - looked_ > between_looks;
  if (overdue || is_time) {  // a rank's death explains more than a timeout
    looked_ = Clock::now();
    if (const std::optional<std::string> lost = rendezvous_->failure())
      fail("the run cannot continue", {*lost, "look at what that rank has printed"});
  }
  check_runtime(error, "asking for an event");
  if (overdue) {
    fail("'" + overdue->name + "' was not done within " +
             std::to_string(options_.operation_limit.count()) + " ms",
         {"nothing for " + std::to_string(overdue->after.count()) + " ms",
          "another rank has stopped, has another order of operations, or is slower than that: look "
          "at what the other ranks print; a slow rank needs a longer limit"});
  }
}

void NcclCommunicator::check() {
  const std::lock_guard lock(mutex_);
  check_locked();
}

void NcclCommunicator::wait(Stream& any) {
  CudaStream& stream = of_gpu(any, "waiting", "a stream");
  if (stream.is_capturing())
    refuse("waiting", "a stream", "the stream captures", "wait after the capture");
  {
    const std::lock_guard lock(mutex_);
    check_locked();
    check_runtime(runtime_->record(waited_, stream.handle()), "recording an event");
  }
  const auto begin = Clock::now();
  while (true) {
    {
      const std::lock_guard lock(mutex_);
      check_locked();
      const cudaError_t error = runtime_->query(waited_);
      if (error == cudaSuccess) break;
      if (error != cudaErrorNotReady) check_runtime(error, "asking for an event");
    }
    if (Clock::now() - begin < milliseconds(1)) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
  }
  stream.synchronize();  // done already; reports errors of kernels and times
}

void NcclCommunicator::abort(const std::string& why) {
  const std::lock_guard lock(mutex_);
  if (failure_) return;
  Diagnostic d;
  d.message = who(options_, *rendezvous_) + ": the communicator was aborted: " + why;
  failure_ = std::move(d);
  (void)runtime_->set_gpu(options_.gpu);
  handle_.abort();
}

}  // namespace tandem::cuda

#include "tests/cuda/support/fake_nccl.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "tests/cuda/support/fake_nccl_math.h"
#include "tests/cuda/support/fake_waiting.h"

namespace tandem::testing {
namespace {

/// The settings of one thread.
struct OfThread {
  std::shared_ptr<FakeRuntime> runtime;
  int group_depth = 0;
  int version = NCCL_VERSION_CODE;
};
OfThread& thread() {
  thread_local OfThread own;
  return own;
}

}  // namespace

/// One call, by itself or in a group.
struct FakeNccl::Request {
  enum class Kind : std::uint8_t { reduce, gather, scatter, broadcast, reduce_to, send, receive };
  Kind kind = Kind::reduce;
  const char* function = "";
  const void* from = nullptr;
  void* to = nullptr;
  std::size_t count = 0;
  ncclDataType_t type = ncclUint8;
  ncclRedOp_t operation = ncclSum;
  int other = 0;  // root or peer
  ncclComm_t communicator = nullptr;
  cudaStream_t stream = nullptr;

  std::string description() const {
    std::string text = function;
    text += " of " + std::to_string(count) + " elements of type " + std::to_string(type);
    if (kind == Kind::reduce || kind == Kind::scatter || kind == Kind::reduce_to)
      text += " operation " + std::to_string(operation);
    if (kind == Kind::broadcast || kind == Kind::reduce_to)
      text += " root " + std::to_string(other);
    return text;
  }
  bool is_pair() const { return kind == Kind::send || kind == Kind::receive; }
};

/// The n-th operation of all ranks; a group is one operation.
struct FakeNccl::Operation {
  std::string description;
  std::vector<std::optional<FakeNcclPart>> parts;  // by rank; empty if it has not come
  std::size_t came = 0, left = 0;
};

struct FakeNccl::World {
  int ranks = 0;
  std::vector<std::shared_ptr<Rank>> members;
  std::map<std::uint64_t, Operation> operations;
  int joined = 0;
};

struct FakeNccl::Rank {
  int rank = 0;
  std::shared_ptr<World> world;
  std::shared_ptr<FakeRuntime> runtime;
  int gpu = 0;
  ncclResult_t error = ncclSuccess;
  std::string error_text;
  int polls_left = 0;
  bool is_started = false, is_finalizing = false, is_gone = false;
  std::vector<Request> waiting;  // in progress: the last poll puts them on the stream
  std::uint64_t operations = 0;  // operations that have begun on the GPU
};

FakeNccl* FakeNccl::current_ = nullptr;

std::vector<std::string> FakeNccl::problems() const {
  const std::lock_guard lock(mutex_);
  return problems_;
}

int FakeNccl::live_communicators() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int>(std::count_if(ranks_.begin(), ranks_.end(),
                                        [](const auto& rank) { return !rank.second->is_gone; }));
}

int FakeNccl::aborted() const {
  const std::lock_guard lock(mutex_);
  return aborted_;
}

void FakeNccl::on_this_thread(std::shared_ptr<FakeRuntime> runtime) {
  thread().runtime = std::move(runtime);
}

void FakeNccl::set_version(int version) { thread().version = version; }

void FakeNccl::fail(std::string function, int nth, ncclResult_t result, std::string text) {
  const std::lock_guard lock(mutex_);
  failures_.push_back({std::move(function), nth, result, std::move(text)});
}

void FakeNccl::fail_later(int rank, ncclResult_t result, std::string text) {
  const std::lock_guard lock(mutex_);
  for (auto& [handle, member] : ranks_) {
    if (member->rank != rank) continue;
    member->error = result;
    member->error_text = text;
  }
}

void FakeNccl::set_polls(int polls) {
  const std::lock_guard lock(mutex_);
  polls_ = polls;
}

void FakeNccl::hang_operations(bool hang) {
  const std::lock_guard lock(mutex_);
  hangs_ = hang;
}

void FakeNccl::spoil_results(bool spoil) {
  const std::lock_guard lock(mutex_);
  spoils_ = spoil;
}

void FakeNccl::hang_starts(bool hang) {
  const std::lock_guard lock(mutex_);
  starts_hang_ = hang;
}

ncclResult_t FakeNccl::enter(const char* function) {
  for (std::size_t i = 0; i < failures_.size(); ++i) {
    if (failures_[i].function != function || --failures_[i].calls_left > 0) continue;
    const ncclResult_t result = failures_[i].result;
    last_error_ = failures_[i].text;
    failures_.erase(failures_.begin() + static_cast<std::ptrdiff_t>(i));
    return result;
  }
  return ncclSuccess;
}

ncclResult_t FakeNccl::broken(ncclResult_t result, const std::string& text) {
  problems_.push_back(text);
  last_error_ = text;
  return result;
}

FakeNccl::Rank* FakeNccl::find(ncclComm_t communicator, const char* function) {
  const auto found = ranks_.find(communicator);
  const bool is_alive = found != ranks_.end() && !found->second->is_gone;
  if (!is_alive) {
    (void)broken(ncclInvalidArgument, std::string(function) + " of a communicator that is gone");
    return nullptr;
  }
  return found->second.get();
}

ncclResult_t FakeNccl::state_of(Rank& rank) {
  if (rank.error != ncclSuccess) {
    last_error_ = rank.error_text;
    return rank.error;
  }
  if (!rank.is_started) {
    if (starts_hang_ || rank.world->joined < rank.world->ranks) return ncclInProgress;
    if (rank.polls_left-- > 0) return ncclInProgress;
    rank.is_started = true;
  } else if (!rank.waiting.empty()) {
    if (rank.polls_left-- > 0) return ncclInProgress;
    return enqueue(rank, std::exchange(rank.waiting, {}));
  } else if (rank.is_finalizing && rank.polls_left-- > 0) {
    return ncclInProgress;
  }
  return ncclSuccess;
}

ncclResult_t FakeNccl::add(Request request) {
  Rank* const rank = find(request.communicator, request.function);
  if (rank == nullptr) return ncclInvalidArgument;
  if (const ncclResult_t failed = enter(request.function)) return failed;
  const bool is_in_group = thread().group_depth > 0;
  if (request.is_pair() && !is_in_group)
    return broken(ncclInvalidUsage,
                  std::string(request.function) + " outside of a group waits for ever");
  if (is_in_group) {
    if (!rank->waiting.empty() && rank->waiting[0].is_pair() != request.is_pair())
      return broken(ncclInvalidUsage, std::string(request.function) + " in a group of others");
    rank->waiting.push_back(std::move(request));
    return ncclSuccess;
  }
  return place(*rank, {std::move(request)});
}

ncclResult_t FakeNccl::place(Rank& rank, std::vector<Request> requests) {
  if (!rank.is_started || rank.is_finalizing || !rank.waiting.empty())
    return broken(ncclInvalidUsage, std::string(requests[0].function) +
                                        " while the communicator has a call in progress");
  if (rank.error != ncclSuccess) {
    last_error_ = rank.error_text;
    return rank.error;
  }
  if (polls_ == 0) return enqueue(rank, std::move(requests));
  rank.polls_left = polls_;
  rank.waiting = std::move(requests);
  return ncclInProgress;
}

ncclResult_t FakeNccl::enqueue(Rank& rank, std::vector<Request> requests) {
  const cudaStream_t stream = requests[0].stream;
  const auto found = std::find_if(ranks_.begin(), ranks_.end(),
                                  [&](const auto& one) { return one.second.get() == &rank; });
  const std::shared_ptr<Rank> own = found->second;
  const std::string name = requests[0].function;
  mutex_.unlock();  // the work takes this mutex while its runtime's is held
  const cudaError_t error =
      rank.runtime->enqueue(stream, name, [this, own, requests = std::move(requests)] {
        WorkInTurn& turn = work_in_turn();
        const std::lock_guard lock(mutex_);
        turn.again = !take_part(*own, requests, turn.token);
      });
  mutex_.lock();
  if (error == cudaSuccess) return ncclSuccess;
  last_error_ = "Cuda failure '" + rank.runtime->error_text(error) + "'";
  return ncclUnhandledCudaError;
}

// Runs on the GPU: false until all ranks have come. `token`: the operation's number, from 1.
bool FakeNccl::take_part(Rank& rank, const std::vector<Request>& requests, std::uint64_t& token) {
  if (rank.is_gone) return true;
  if (token == 0) token = ++rank.operations;
  World& world = *rank.world;
  Operation& operation = world.operations[token];
  operation.parts.resize(static_cast<std::size_t>(world.ranks));
  std::optional<FakeNcclPart>& own = operation.parts[static_cast<std::size_t>(rank.rank)];
  const Request& first = requests[0];
  const auto all = static_cast<std::size_t>(world.ranks);
  // Data for all ranks has the request's number as its key, from -1 down.
  const auto for_all = [](std::size_t request) { return -1 - static_cast<int>(request); };
  if (!own) {
    std::string description = first.is_pair() ? "sends and receives" : "";
    for (std::size_t i = 0; i < requests.size() && !first.is_pair(); ++i)
      description += (i > 0 ? ", " : "") + requests[i].description();
    if (operation.came++ == 0) operation.description = description;
    own.emplace();
    if (description != operation.description) {
      const std::string text = "rank " + std::to_string(rank.rank) + " is at " + description +
                               ", another rank at " + operation.description;
      problems_.push_back(text);
      for (const auto& member : world.members) {
        member->error = ncclInvalidUsage;
        member->error_text = text;
      }
    }
    for (std::size_t i = 0; i < requests.size(); ++i) {
      const Request& request = requests[i];
      const bool reads_all = request.kind == Request::Kind::scatter;
      const bool reads = request.kind != Request::Kind::receive &&
                         (request.kind != Request::Kind::broadcast || request.other == rank.rank);
      if (!reads) continue;
      const std::size_t read =
          request.count * fake_nccl_bytes(request.type) * (reads_all ? all : 1);
      own->given[request.kind == Request::Kind::send ? request.other : for_all(i)].assign(
          static_cast<const char*>(request.from), read);
    }
  }
  if (hangs_ || rank.error != ncclSuccess || operation.came < all) return false;
  const auto given = [&](std::size_t by, int to) -> const std::string& {
    return operation.parts[by]->given[to];
  };
  const auto own_rank = static_cast<std::size_t>(rank.rank);
  const auto write = [&](void* to, const std::string& text) {
    std::memcpy(to, text.data(), text.size());
    if (spoils_ && !text.empty()) static_cast<char*>(to)[0] ^= 1;
  };
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const Request& request = requests[i];
    const std::size_t bytes = request.count * fake_nccl_bytes(request.type);
    std::vector<std::string> ranks_bytes;
    for (std::size_t r = 0; r < all && !request.is_pair(); ++r)
      ranks_bytes.push_back(given(r, for_all(i)));
    switch (request.kind) {
      case Request::Kind::reduce:
        write(request.to, fake_nccl_reduced(ranks_bytes, request.type, request.operation));
        break;
      case Request::Kind::reduce_to:
        if (request.other == rank.rank)
          write(request.to, fake_nccl_reduced(ranks_bytes, request.type, request.operation));
        break;
      case Request::Kind::scatter:
        for (std::string& one : ranks_bytes) one = one.substr(own_rank * bytes, bytes);
        write(request.to, fake_nccl_reduced(ranks_bytes, request.type, request.operation));
        break;
      case Request::Kind::gather:
        for (std::size_t r = 0; r < all; ++r)
          write(static_cast<char*>(request.to) + r * bytes, ranks_bytes[r]);
        break;
      case Request::Kind::broadcast:
        write(request.to, ranks_bytes[static_cast<std::size_t>(request.other)]);
        break;
      case Request::Kind::send:
        break;
      case Request::Kind::receive: {
        const std::string& sent = given(static_cast<std::size_t>(request.other), rank.rank);
        if (sent.size() != bytes)
          problems_.push_back("rank " + std::to_string(rank.rank) + " receives " +
                              std::to_string(request.count) + " elements, " +
                              std::to_string(sent.size()) + " bytes are sent");
        write(request.to, sent);
        break;
      }
    }
  }
  if (++operation.left == all) world.operations.erase(token);
  return true;
}

/// The functions in the table.
struct FakeNcclCalls {
  using Kind = FakeNccl::Request::Kind;
  static FakeNccl& fake() { return *FakeNccl::current_; }

  static ncclResult_t version(int* to) {
    *to = thread().version;
    return ncclSuccess;
  }
  static const char* error_string(ncclResult_t result) {
    switch (result) {
      case ncclSystemError:
        return "unhandled system error";
      case ncclRemoteError:
        return "remote process exited or there was a network error";
      case ncclInvalidUsage:
        return "invalid usage";
      default:
        return "another error";
    }
  }
  static const char* last_error(ncclComm_t) {
    const std::lock_guard lock(fake().mutex_);
    thread_local std::string text;
    text = fake().last_error_;
    return text.c_str();
  }
  static ncclResult_t unique_id(ncclUniqueId* to) {
    const std::lock_guard lock(fake().mutex_);
    if (const ncclResult_t failed = fake().enter("ncclGetUniqueId")) return failed;
    std::memset(to->internal, 0x7f, sizeof to->internal);  // bytes of any value
    to->internal[5] = 0;
    to->internal[sizeof to->internal - 1] = static_cast<char>(++fake().ids_);
    return ncclSuccess;
  }
  static ncclResult_t start(ncclComm_t* to, int ranks, ncclUniqueId id, int rank,
                            ncclConfig_t* config) {
    FakeNccl& nccl = fake();
    const std::lock_guard lock(nccl.mutex_);
    *to = nullptr;
    if (const ncclResult_t failed = nccl.enter("ncclCommInitRankConfig")) return failed;
    const ncclConfig_t right = NCCL_CONFIG_INITIALIZER;
    if (config == nullptr || config->magic != right.magic || config->size != right.size ||
        config->blocking != 0)
      return nccl.broken(ncclInvalidArgument, "a communicator that blocks cannot be aborted");
    if (id.internal[sizeof id.internal - 1] < 1 ||
        id.internal[sizeof id.internal - 1] > nccl.ids_ || id.internal[0] != 0x7f)
      return nccl.broken(ncclInvalidArgument, "an id that nobody has made");
    std::shared_ptr<FakeNccl::World>& world =
        nccl.worlds_[std::string(id.internal, sizeof id.internal)];
    if (!world) world = std::make_shared<FakeNccl::World>();
    if (world->ranks == 0) world->ranks = ranks;
    if (ranks != world->ranks || rank < 0 || rank >= ranks)
      return nccl.broken(ncclInvalidArgument, "ranks disagree on their number");
    auto own = std::make_shared<FakeNccl::Rank>();
    own->rank = rank;
    own->world = world;
    own->runtime = thread().runtime;
    own->polls_left = nccl.polls_;
    for (const auto& member : world->members) {
      if (member->rank == rank)
        return nccl.broken(ncclInvalidArgument, "a rank joins a second time");
      if (member->runtime == own->runtime)
        return nccl.broken(ncclInvalidUsage, "Duplicate GPU detected : rank " +
                                                 std::to_string(rank) + " and rank " +
                                                 std::to_string(member->rank));
    }
    world->members.push_back(own);
    ++world->joined;
    *to = reinterpret_cast<ncclComm_t>(own.get());
    nccl.ranks_[*to] = own;
    return nccl.state_of(*own);
  }
  static ncclResult_t async_error(ncclComm_t communicator, ncclResult_t* to) {
    const std::lock_guard lock(fake().mutex_);
    FakeNccl::Rank* const rank = fake().find(communicator, "ncclCommGetAsyncError");
    if (rank == nullptr) return ncclInvalidArgument;
    *to = fake().state_of(*rank);
    return ncclSuccess;
  }
  static ncclResult_t finalize(ncclComm_t communicator) {
    const std::lock_guard lock(fake().mutex_);
    FakeNccl::Rank* const rank = fake().find(communicator, "ncclCommFinalize");
    if (rank == nullptr) return ncclInvalidArgument;
    if (!rank->is_started || !rank->waiting.empty())
      return fake().broken(ncclInvalidUsage, "ncclCommFinalize while a call is in progress");
    rank->is_finalizing = true;
    rank->polls_left = fake().polls_;
    return fake().state_of(*rank);
  }
  static ncclResult_t destroy(ncclComm_t communicator) {
    const std::lock_guard lock(fake().mutex_);
    FakeNccl::Rank* const rank = fake().find(communicator, "ncclCommDestroy");
    if (rank == nullptr) return ncclInvalidArgument;
    rank->is_gone = true;
    if (!rank->is_finalizing || rank->polls_left > 0)
      return fake().broken(ncclInvalidUsage, "a communicator is destroyed that is not finalized");
    return ncclSuccess;
  }
  static ncclResult_t abort(ncclComm_t communicator) {
    const std::lock_guard lock(fake().mutex_);
    FakeNccl::Rank* const rank = fake().find(communicator, "ncclCommAbort");
    if (rank == nullptr) return ncclInvalidArgument;
    rank->is_gone = true;
    ++fake().aborted_;
    return ncclSuccess;
  }
  static ncclResult_t add(FakeNccl::Request request) {
    const std::lock_guard lock(fake().mutex_);
    return fake().add(std::move(request));
  }
  static ncclResult_t all_reduce(const void* from, void* to, std::size_t count, ncclDataType_t type,
                                 ncclRedOp_t operation, ncclComm_t comm, cudaStream_t stream) {
    return add({Kind::reduce, "ncclAllReduce", from, to, count, type, operation, 0, comm, stream});
  }
  static ncclResult_t all_gather(const void* from, void* to, std::size_t count, ncclDataType_t type,
                                 ncclComm_t comm, cudaStream_t stream) {
    return add({Kind::gather, "ncclAllGather", from, to, count, type, ncclSum, 0, comm, stream});
  }
  static ncclResult_t reduce_scatter(const void* from, void* to, std::size_t count,
                                     ncclDataType_t type, ncclRedOp_t operation, ncclComm_t comm,
                                     cudaStream_t stream) {
    return add(
        {Kind::scatter, "ncclReduceScatter", from, to, count, type, operation, 0, comm, stream});
  }
  static ncclResult_t reduce_to(const void* from, void* to, std::size_t count, ncclDataType_t type,
                                ncclRedOp_t operation, int root, ncclComm_t comm,
                                cudaStream_t stream) {
    return add(
        {Kind::reduce_to, "ncclReduce", from, to, count, type, operation, root, comm, stream});
  }
  static ncclResult_t broadcast(const void* from, void* to, std::size_t count, ncclDataType_t type,
                                int root, ncclComm_t comm, cudaStream_t stream) {
    return add(
        {Kind::broadcast, "ncclBroadcast", from, to, count, type, ncclSum, root, comm, stream});
  }
  static ncclResult_t send(const void* from, std::size_t count, ncclDataType_t type, int peer,
                           ncclComm_t comm, cudaStream_t stream) {
    return add({Kind::send, "ncclSend", from, nullptr, count, type, ncclSum, peer, comm, stream});
  }
  static ncclResult_t receive(void* to, std::size_t count, ncclDataType_t type, int peer,
                              ncclComm_t comm, cudaStream_t stream) {
    return add({Kind::receive, "ncclRecv", nullptr, to, count, type, ncclSum, peer, comm, stream});
  }
  static ncclResult_t group_start() {
    ++thread().group_depth;
    return ncclSuccess;
  }
  static ncclResult_t group_end() {
    FakeNccl& nccl = fake();
    const std::lock_guard lock(nccl.mutex_);
    if (--thread().group_depth < 0)
      return nccl.broken(ncclInvalidUsage, "a group ends that never began");
    for (auto& [handle, rank] : nccl.ranks_) {
      if (rank->is_gone || rank->waiting.empty() || rank->runtime != thread().runtime) continue;
      return nccl.place(*rank, std::exchange(rank->waiting, {}));
    }
    return ncclSuccess;
  }
};

FakeNccl::FakeNccl() {
  current_ = this;
  using Calls = FakeNcclCalls;
  table_.ncclGetVersion = Calls::version;
  table_.ncclGetErrorString = Calls::error_string;
  table_.ncclGetLastError = Calls::last_error;
  table_.ncclGetUniqueId = Calls::unique_id;
  table_.ncclCommInitRankConfig = Calls::start;
  table_.ncclCommFinalize = Calls::finalize;
  table_.ncclCommDestroy = Calls::destroy;
  table_.ncclCommAbort = Calls::abort;
  table_.ncclCommGetAsyncError = Calls::async_error;
  table_.ncclAllReduce = Calls::all_reduce;
  table_.ncclAllGather = Calls::all_gather;
  table_.ncclReduceScatter = Calls::reduce_scatter;
  table_.ncclReduce = Calls::reduce_to;
  table_.ncclBroadcast = Calls::broadcast;
  table_.ncclSend = Calls::send;
  table_.ncclRecv = Calls::receive;
  table_.ncclGroupStart = Calls::group_start;
  table_.ncclGroupEnd = Calls::group_end;
}

FakeNccl::~FakeNccl() {
  current_ = nullptr;
  for (const auto& [communicator, rank] : ranks_) rank->world->members.clear();  // breaks a cycle
}

}  // namespace tandem::testing

#include "tests/harness/rank_threads.h"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>
#include <tuple>

#include "engine/graph/error.h"
#include "engine/ranks/message_communicator.h"

namespace tandem::testing {

/// The state that all ranks share.
class RankThreads::Hub {
 public:
  explicit Hub(const RankThreadsOptions& options) : options_(options) {}

  struct Exchange {
    std::string name;
    std::map<int, std::string> bytes;  // by rank
    bool is_broken = false;            // ranks have come to it under different names
  };
  /// A message that one side has begun, and possibly not yet the other.
  struct Entry {
    char* bytes = nullptr;
    std::size_t count = 0;
    int owner = 0;
    bool is_done = false;
    std::string problem;
    Entry* next = nullptr;
  };
  struct Queue {
    Entry *first = nullptr, *last = nullptr;
    void add(Entry* entry) {
      (first == nullptr ? first : last->next) = entry;
      last = entry;
    }
    Entry* take() {
      Entry* const entry = first;
      if (entry != nullptr) first = std::exchange(entry->next, nullptr);
      return entry;
    }
    void drop(int owner) {
      Queue kept;
      while (Entry* const entry = take()) {
        if (entry->owner != owner) kept.add(entry);
      }
      *this = kept;
    }
  };
  struct Way {
    Queue sent, awaited;
  };

  std::vector<std::string> exchange(int rank, int number, const std::string& name,
                                    const std::string& bytes) {
    std::unique_lock lock(mutex_);
    const bool had_failed = !failure_.empty();
    Exchange& at = exchanges_[number];
    if (at.bytes.empty()) at.name = name;
    if (at.name != name) {
      at.is_broken = true;
      if (failure_.empty()) {
        failure_ = "rank " + std::to_string(rank) + " is at the exchange '" + name +
                   "', other ranks at '" + at.name + "'";
      }
    }
    at.bytes[rank] = bytes;
    changed_.notify_all();
    const auto ranks = static_cast<std::size_t>(options_.ranks);
    const auto is_decided = [&] { return at.bytes.size() == ranks || !failure_.empty(); };
    if (!changed_.wait_for(lock, options_.exchange_limit, is_decided)) {
      for (int r = 0; r < options_.ranks; ++r) {
        if (at.bytes.count(r) == 0)
          failure_ += (failure_.empty() ? "rank " : ", rank ") + std::to_string(r) +
                      " has not come to '" + name + "'";
      }
      changed_.notify_all();
    }
    // As over sockets: a rank that fails after an exchange leaves the exchange as it was.
    if (at.bytes.size() < ranks || at.is_broken || had_failed) {
      Diagnostic d;
      d.message = "rank " + std::to_string(rank) + " of " + std::to_string(options_.ranks) + ": " +
                  failure_ + " (at '" + name + "')";
      throw Error(ErrorKind::runtime, std::move(d));
    }
    std::vector<std::string> all;
    for (const auto& [r, text] : at.bytes) all.push_back(text);
    return all;
  }
  std::optional<std::string> failure() {
    const std::lock_guard lock(mutex_);
    return failure_.empty() ? std::nullopt : std::optional(failure_);
  }
  void fail(const std::string& text) {
    const std::lock_guard lock(mutex_);
    if (failure_.empty()) failure_ = text;
    changed_.notify_all();
  }

  Entry* begin(int owner, int from, int to, int channel, bool sends, char* bytes,
               std::size_t count) {
    const std::lock_guard lock(mutex_);
    if (free_ == nullptr) {
      for (Entry& entry : *pools_.emplace_back(std::make_unique<std::array<Entry, 64>>())) {
        entry.next = free_;
        free_ = &entry;
      }
    }
    Entry* const entry = std::exchange(free_, free_->next);
    *entry = Entry{bytes, count, owner};
    Way& way = ways_[{from, to, channel}];
    Entry* const other = (sends ? way.awaited : way.sent).take();
    if (other == nullptr) {
      (sends ? way.sent : way.awaited).add(entry);
      return entry;
    }
    if (other->count != count) {
      entry->problem = other->problem = "rank " + std::to_string(from) + " and rank " +
                                        std::to_string(to) + " have messages of different sizes";
    } else if (sends) {
      std::memcpy(other->bytes, bytes, count);
    } else {
      std::memcpy(bytes, other->bytes, count);
    }
    entry->is_done = other->is_done = true;
    changed_.notify_all();
    return entry;
  }
  bool is_done(Entry* entry) {
    const std::lock_guard lock(mutex_);
    if (!entry->is_done) return false;
    if (!entry->problem.empty())
      throw Error(ErrorKind::runtime, Diagnostic{.message = entry->problem});
    entry->next = free_;
    free_ = entry;
    return true;
  }
  void wait_for_change(std::chrono::microseconds time) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, time);
  }
  void abandon(int owner) {
    const std::lock_guard lock(mutex_);
    for (auto& [key, way] : ways_) {
      way.sent.drop(owner);
      way.awaited.drop(owner);
    }
    changed_.notify_all();
  }

 private:
  const RankThreadsOptions options_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<int, Exchange> exchanges_;  // by their number
  std::string failure_;
  std::map<std::tuple<int, int, int>, Way> ways_;  // by from, to, channel
  std::vector<std::unique_ptr<std::array<Entry, 64>>> pools_;
  Entry* free_ = nullptr;
};

namespace {

class HubRendezvous final : public Rendezvous {
 public:
  HubRendezvous(std::shared_ptr<RankThreads::Hub> hub, int rank, int ranks)
      : hub_(std::move(hub)), rank_(rank), ranks_(ranks) {}
  int rank() const override { return rank_; }
  int ranks() const override { return ranks_; }
  std::vector<std::string> exchange(const std::string& name, const std::string& bytes) override {
    const std::lock_guard lock(mutex_);
    return hub_->exchange(rank_, number_++, name, bytes);
  }
  std::optional<std::string> failure() override { return hub_->failure(); }
  void fail(const std::string& why) override {
    hub_->fail("rank " + std::to_string(rank_) + " has ended with an error: " + why);
  }

 private:
  const std::shared_ptr<RankThreads::Hub> hub_;
  const int rank_, ranks_;
  std::mutex mutex_;
  int number_ = 0;
};

class HubMessages final : public RankMessages {
 public:
  HubMessages(std::shared_ptr<RankThreads::Hub> hub, int rank, int ranks)
      : hub_(std::move(hub)), rank_(rank), ranks_(ranks) {}
  int rank() const override { return rank_; }
  int ranks() const override { return ranks_; }
  Request send(int to, int channel, const void* bytes, std::size_t count) override {
    auto* const sent = static_cast<char*>(const_cast<void*>(bytes));  // it is only read
    return request(hub_->begin(rank_, rank_, to, channel, true, sent, count));
  }
  Request receive(int from, int channel, void* bytes, std::size_t count) override {
    return request(
        hub_->begin(rank_, from, rank_, channel, false, static_cast<char*>(bytes), count));
  }
  bool is_done(Request& of) override {
    if (of != 0 && !hub_->is_done(reinterpret_cast<RankThreads::Hub::Entry*>(of))) return false;
    of = 0;
    return true;
  }
  void pause(std::chrono::microseconds) override {
    hub_->wait_for_change(std::chrono::microseconds(2000));
  }
  void abandon() override { hub_->abandon(rank_); }

 private:
  static Request request(RankThreads::Hub::Entry* entry) {
    return reinterpret_cast<Request>(entry);
  }
  const std::shared_ptr<RankThreads::Hub> hub_;
  const int rank_, ranks_;
};

}  // namespace

RankThreads::RankThreads(const RankThreadsOptions& options)
    : options_(options), hub_(std::make_shared<Hub>(options)) {}

RankThreads::~RankThreads() = default;

std::shared_ptr<RankGroup> RankThreads::group(int rank) {
  RankGroupOptions options;
  options.local_rank = rank;
  options.local_ranks = options.core_sharers = options_.ranks;
  options.operation_limit = options_.operation_limit;
  options.sizes = options_.sizes;
  return std::make_shared<RankGroup>(std::make_shared<HubRendezvous>(hub_, rank, options_.ranks),
                                     std::make_shared<HubMessages>(hub_, rank, options_.ranks),
                                     options);
}

std::vector<std::string> RankThreads::run(const std::function<void(RankGroup&)>& f) {
  std::vector<std::string> thrown(static_cast<std::size_t>(options_.ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < options_.ranks; ++rank) {
    threads.emplace_back([&, rank] {
      const std::shared_ptr<RankGroup> own = group(rank);
      try {
        f(*own);
      } catch (const std::exception& error) {
        thrown[static_cast<std::size_t>(rank)] = error.what();
        own->rendezvous()->fail(error.what());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return thrown;
}

void on_rank_threads(int ranks, const std::function<void(RankGroup&)>& f) {
  const std::vector<std::string> thrown = RankThreads(ranks).run(f);
  for (std::size_t rank = 0; rank < thrown.size(); ++rank) {
    if (!thrown[rank].empty()) {
      throw Error(ErrorKind::runtime,
                  Diagnostic{.message = "rank " + std::to_string(rank) + ": " + thrown[rank]});
    }
  }
}

}  // namespace tandem::testing

#include "engine/train/group/gathered.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>

#include <nlohmann/json.hpp>

namespace tandem {
namespace {

using Json = nlohmann::json;

constexpr std::size_t length_bytes = sizeof(std::uint64_t);

std::string text_of(const Error& error) {
  Json list = Json::array();
  for (const Diagnostic& d : error.diagnostics()) {
    list.push_back({d.message, d.file, d.line, d.column, d.path, d.expected, d.got, d.fix});
    if (list.size() == 50) break;
  }
  return Json{{"kind", static_cast<int>(error.kind())}, {"list", std::move(list)}}.dump(
      -1, ' ', false, Json::error_handler_t::replace);
}

Error error_of(const std::string& text) {
  const Json json = Json::parse(text);
  std::vector<Diagnostic> list;
  for (const Json& d : json["list"]) {
    const auto text = [&](std::size_t i) { return d[i].get<std::string>(); };
    list.push_back(
        {text(0), text(1), d[2].get<int>(), d[3].get<int>(), text(4), text(5), text(6), text(7)});
  }
  return {static_cast<ErrorKind>(json["kind"].get<int>()), std::move(list)};
}

// Throws the errors of all ranks on each of them. `all`: their errors, "" where there is none.
void refuse_errors(int rank, const std::vector<std::string>& all) {
  std::vector<Diagnostic> problems;
  std::optional<ErrorKind> kind;
  std::vector<std::string> told;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].empty() || std::count(told.begin(), told.end(), all[i]) > 0) continue;
    told.push_back(all[i]);
    const Error error = error_of(all[i]);
    kind = kind.value_or(error.kind());
    for (Diagnostic d : error.diagnostics()) {
      if (i > 0) d.message = "rank " + std::to_string(i) + ": " + d.message;
      problems.push_back(std::move(d));
    }
  }
  if (!kind) return;
  if (rank > 0) throw ErrorElsewhere(*kind, std::move(problems));
  throw Error(*kind, std::move(problems));
}

constexpr std::chrono::milliseconds news_every{500};  // well within the time limit of an exchange
constexpr char busy = 'b', done = 'd';

// Informs all ranks that this one is still at work, and of its result; ends once all are done.
class Together {
 public:
  Together(Rendezvous& ranks, std::string name)
      : ranks_(ranks), name_(std::move(name)), thread_([this] { tell(); }) {}
  ~Together() {
    if (thread_.joinable()) end("");
  }

  /// The errors of all ranks.
  std::vector<std::string> end(const std::string& error) {
    {
      std::lock_guard lock(mutex_);
      ended_ = error;
    }
    woken_.notify_all();
    thread_.join();
    if (failure_) std::rethrow_exception(failure_);
    return std::move(all_);
  }

 private:
  void tell() {
    try {
      for (bool is_over = false; !is_over;) {
        std::string news(1, busy);
        {
          std::unique_lock lock(mutex_);
          woken_.wait_for(lock, news_every, [&] { return ended_.has_value(); });
          if (ended_) news = done + *ended_;
        }
        all_ = gathered(ranks_, name_, news);
        is_over = std::all_of(all_.begin(), all_.end(),
                              [](const std::string& of_rank) { return of_rank[0] == done; });
      }
      for (std::string& of_rank : all_) of_rank.erase(0, 1);
    } catch (...) {
      failure_ = std::current_exception();
    }
  }

  Rendezvous& ranks_;
  const std::string name_;
  std::mutex mutex_;
  std::condition_variable woken_;
  std::optional<std::string> ended_;
  std::vector<std::string> all_;
  std::exception_ptr failure_;
  std::thread thread_;
};

}  // namespace

std::vector<std::string> gathered(Rendezvous& ranks, const std::string& name,
                                  const std::string& bytes) {
  std::uint64_t length = bytes.size();
  std::string first(length_bytes, '\0');
  std::memcpy(first.data(), &length, length_bytes);
  std::size_t at = std::min(bytes.size(), Rendezvous::most_bytes - length_bytes);
  first.append(bytes, 0, at);
  std::vector<std::string> all = ranks.exchange(name, first);
  std::vector<std::uint64_t> lengths;
  for (std::string& of_rank : all) {
    std::memcpy(&length, of_rank.data(), length_bytes);
    lengths.push_back(length);
    of_rank.erase(0, length_bytes);
  }
  const auto is_whole = [&] {
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i].size() < lengths[i]) return false;
    }
    return true;
  };
  while (!is_whole()) {
    const std::size_t piece = std::min(bytes.size() - at, Rendezvous::most_bytes);
    const std::vector<std::string> more = ranks.exchange(name, bytes.substr(at, piece));
    at += piece;
    for (std::size_t i = 0; i < all.size(); ++i) all[i] += more[i];
  }
  return all;
}

void on_all_ranks(Rendezvous& ranks, const std::string& name, FunctionRef<void()> action) {
  if (ranks.ranks() == 1) return action();
  Together together(ranks, name);
  std::string error;
  std::exception_ptr other;
  try {
    action();
  } catch (const Error& own) {
    error = text_of(own);
  } catch (const std::exception& own) {
    error = text_of(Error(ErrorKind::runtime, Diagnostic{.message = own.what()}));
    other = std::current_exception();
  }
  const std::vector<std::string> all = together.end(error);
  if (other) std::rethrow_exception(other);
  refuse_errors(ranks.rank(), all);
}

void on_rank_0_first(Rendezvous& ranks, const std::string& name, FunctionRef<void()> action) {
  on_all_ranks(ranks, name + " on rank 0", [&] {
    if (ranks.rank() == 0) action();
  });
  on_all_ranks(ranks, name, [&] {
    if (ranks.rank() > 0) action();
  });
}

std::string from_rank_0(Rendezvous& ranks, const std::string& name,
                        FunctionRef<std::string()> action) {
  std::string own;
  on_all_ranks(ranks, name, [&] {
    if (ranks.rank() == 0) own = action();
  });
  return gathered(ranks, name, own)[0];
}

}  // namespace tandem

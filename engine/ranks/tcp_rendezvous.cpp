// The rendezvous over TCP: every rank is a client of the server that rank 0 runs.
#include <poll.h>
#include <sys/socket.h>

#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "engine/graph/error.h"
#include "engine/ranks/beats.h"
#include "engine/ranks/rank_server.h"
#include "engine/ranks/rendezvous.h"

namespace tandem {
namespace {

constexpr std::chrono::seconds verdict_time{10};  // for the server's own time limit to get here
constexpr std::chrono::seconds farewell_time{1};
constexpr std::size_t most_word = 4000;  // bytes of the text that says why a rank ends

[[noreturn]] void throw_error(const RankOptions& options, const std::string& what,
                              const std::string& fix, ErrorKind kind = ErrorKind::runtime) {
  throw Error(kind, Diagnostic{.message = "rank " + std::to_string(options.rank) + " of " +
                                          std::to_string(options.ranks) + ": " + what,
                               .fix = fix});
}

/// A thread serves the connection once it is open: reports of a death arrive while this rank
/// computes, and others see that it is alive.
class TcpRendezvous final : public Rendezvous {
 public:
  explicit TcpRendezvous(const RankOptions& options)
      : options_(options), reader_((most_bytes + 4) * static_cast<std::size_t>(options.ranks)) {
    if (options_.exchange_limit.count() == 0) options_.exchange_limit = options_.limit;
    find_server();
    const auto until = RankClock::now() + options.limit;
    std::string why;
    socket_ = connect_to(split_addresses(options_.address), until, why);
    if (!socket_) {
      throw_error(options,
                  "nothing answers at " + options_.address + " within " +
                      std::to_string(options.limit.count() / 1000) + " s (" + why + ")",
                  "start rank 0, and see that TANDEM_ADDRESS names its host and that the port can "
                  "be reached from here");
    }
    int pair[2] = {-1, -1};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) != 0)
      throw_error(options, "can open no more files", "raise the limit: ulimit -n");
    wake_ = Socket(pair[0]);
    waker_ = Socket(pair[1]);
    std::string hello;
    add_number(hello, static_cast<std::uint32_t>(options.rank));
    add_number(hello, static_cast<std::uint32_t>(options.ranks));
    outgoing_ = encode(Frame::Kind::hello, hello);
    heard_ = RankClock::now();
    thread_ = std::thread([this] { serve(); });
    try {
      std::unique_lock lock(mutex_);
      be_welcomed(next_frame(lock, until + verdict_time));
    } catch (...) {
      end();
      throw;
    }
  }
  ~TcpRendezvous() override { end(); }

  int rank() const override { return options_.rank; }
  int ranks() const override { return options_.ranks; }

  std::vector<std::string> exchange(const std::string& name, const std::string& bytes) override {
    if (bytes.size() > most_bytes)
      throw_error(options_, "gives " + std::to_string(bytes.size()) + " bytes to '" + name + "'",
                  "at most " + std::to_string(most_bytes) + " can be exchanged", ErrorKind::usage);
    const std::lock_guard one_at_a_time(exchanging_);
    std::unique_lock lock(mutex_);
    throw_failure(name);
    std::string content;
    add_text(content, name);
    add_text(content, bytes);
    send(encode(Frame::Kind::put, content));
    const std::optional<Frame> answer =
        next_frame(lock, RankClock::now() + options_.exchange_limit + verdict_time);
    std::vector<std::string> all;
    if (answer && answer->kind == Frame::Kind::all) {
      ContentReader reader(answer->content);
      while (std::optional<std::string> one = reader.text()) all.push_back(std::move(*one));
    }
    if (all.size() == static_cast<std::size_t>(options_.ranks)) return all;
    if (!failure_) failure_ = has_ended_ ? "rank 0 has ended" : "rank 0 does not answer";
    throw_failure(name);
    return {};
  }

  std::optional<std::string> failure() override {
    const std::lock_guard lock(mutex_);
    return failure_;
  }

  void fail(const std::string& why) override {
    const std::lock_guard lock(mutex_);
    if (failure_) return;
    failure_ = "this rank has ended with an error: " + why;
    send(encode(Frame::Kind::failed, why.substr(0, most_word)));
  }

 private:
  void find_server() {
    const bool is_shared = options_.address.empty() && options_.share;
    if (options_.rank == 0) {
      Socket listener = is_shared ? listen_anywhere(options_.one_machine)
                                  : listen_at(split_address(options_.address));
      if (is_shared) options_.address = addresses_of(listener, options_.one_machine);
      server_ = std::make_unique<RankServer>(std::move(listener), options_.ranks, options_.limit,
                                             options_.exchange_limit, options_.silence);
    }
    if (is_shared) options_.address = options_.share(options_.address);
    options_.share = nullptr;  // may refer to what ends when this returns
  }

  void be_welcomed(const std::optional<Frame>& answer) {
    if (answer && answer->kind == Frame::Kind::welcome) return;
    if (answer && answer->kind == Frame::Kind::refused)
      throw_error(options_, "rank 0 refuses it: " + answer->content,
                  "look at TANDEM_RANK and TANDEM_RANKS, or what the launcher gives in their place",
                  ErrorKind::usage);
    if (failure_) throw_error(options_, *failure_, "look at what that rank has printed");
    throw_error(options_, "what answers at " + options_.address + " is no rank 0 of this program",
                "set another port in TANDEM_ADDRESS on all ranks, and run the same version "
                "everywhere");
  }

  void throw_failure(const std::string& name) {
    if (failure_)
      throw_error(options_, *failure_ + " (at '" + name + "')",
                  "look at what the ranks named here have printed, or start them all");
  }

  /// The mutex is locked here and in all below but `serve`.
  void send(const std::string& bytes) {
    outgoing_ += bytes;
    std::string byte = "x";
    (void)send_some(waker_, byte);
  }

  /// Nothing where there is a failure, the server has ended or time is over.
  std::optional<Frame> next_frame(std::unique_lock<std::mutex>& lock, RankClock::time_point until) {
    changed_.wait_until(lock, until, [&] {
      return frame_ || failure_ || has_ended_ || is_closed_ || reader_.is_foreign();
    });
    return std::exchange(frame_, std::nullopt);
  }

  void serve() {
    RankClock::time_point end = RankClock::time_point::max();
    while (true) {
      bool is_closed = false, sends = false;
      RankClock::time_point next = RankClock::now() + Beats::interval;
      {
        const std::lock_guard lock(mutex_);
        look_at_clocks();
        if (!is_closed_ && !send_some(socket_, outgoing_)) outgoing_.clear();
        is_closed = is_closed_;
        sends = !outgoing_.empty();
        if (ending_ && end == RankClock::time_point::max()) end = RankClock::now() + farewell_time;
        if (ending_ && (is_closed || !sends || RankClock::now() >= end)) return;
        next = std::min({next, beats_.next(), end});
      }
      // A connection that has ended would be ready all the time.
      const int read_from = is_closed ? -1 : socket_.get();
      pollfd polled[2] = {{read_from, static_cast<short>(sends ? POLLIN | POLLOUT : POLLIN), 0},
                          {wake_.get(), POLLIN, 0}};
      (void)poll(polled, 2, milliseconds_until(next));
      const std::lock_guard lock(mutex_);
      std::string ignored;
      if (polled[1].revents != 0) (void)receive(wake_, ignored);
      if (polled[0].revents != 0) take_what_came();
    }
  }

  void look_at_clocks() {
    const RankClock::time_point now = RankClock::now();
    beats_.turn(now);
    if (!is_closed_ && is_welcome_ && !has_ended_ && !failure_ &&
        beats_.silence(heard_, now) > options_.silence) {
      failure_ = "rank 0 (" + options_.address + ") has given no sign of life for " +
                 std::to_string(options_.silence.count() / 1000) +
                 " s: it was stopped, or its machine or the network hangs";
      changed_.notify_all();
    }
    if (beats_.is_due(now) && is_welcome_ && outgoing_.empty())
      outgoing_ = encode(Frame::Kind::beat);
  }

  void take_what_came() {
    std::string bytes;
    const Received received = receive(socket_, bytes);
    if (received == Received::some) heard_ = RankClock::now();
    reader_.add(bytes);
    while (std::optional<Frame> frame = reader_.next()) {
      if (frame->kind == Frame::Kind::failed) {
        if (!failure_) failure_ = frame->content;
      } else if (frame->kind == Frame::Kind::leave) {
        has_ended_ = true;
      } else if (frame->kind != Frame::Kind::beat) {
        is_welcome_ |= frame->kind == Frame::Kind::welcome;
        frame_ = std::move(frame);
      }
    }
    if (received == Received::ended) {
      is_closed_ = true;
      if (!has_ended_ && !failure_ && is_welcome_)
        failure_ = "rank 0 (" + options_.address + ") has died: its connection has ended";
    }
    changed_.notify_all();
  }

  void end() {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
      send(encode(Frame::Kind::leave));
    }
    thread_.join();
    socket_ = Socket();
  }

  RankOptions options_;
  std::mutex exchanging_;  // held during an exchange; locked before `mutex_`
  std::mutex mutex_;       // guards all below but the sockets, which only the thread reads
  std::condition_variable changed_;
  std::unique_ptr<RankServer> server_;  // on rank 0; destroyed after the connection
  Socket socket_, wake_, waker_;
  FrameReader reader_;
  Beats beats_;
  RankClock::time_point heard_;
  std::string outgoing_;
  std::optional<Frame> frame_;
  std::optional<std::string> failure_;
  bool is_welcome_ = false, has_ended_ = false, is_closed_ = false, ending_ = false;
  std::thread thread_;
};

}  // namespace

std::shared_ptr<Rendezvous> make_rendezvous(const RankOptions& options) {
  if (options.ranks < 1 || options.rank < 0 || options.rank >= options.ranks)
    throw_error(options, "there is no such rank", "ranks count from 0", ErrorKind::usage);
  if (options.ranks == 1) return one_rank();
  return std::make_shared<TcpRendezvous>(options);
}

}  // namespace tandem

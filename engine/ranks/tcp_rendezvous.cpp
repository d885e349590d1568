// The rendezvous over TCP: every rank is a client of the server that rank 0 runs.
#include <poll.h>

#include <mutex>
#include <utility>

#include "engine/graph/error.h"
#include "engine/ranks/rank_server.h"
#include "engine/ranks/rendezvous.h"

namespace tandem {
namespace {

constexpr std::chrono::seconds verdict_time{10};  // for the server's own time limit to get here

[[noreturn]] void fail(const RankOptions& options, const std::string& what, const std::string& fix,
                       ErrorKind kind = ErrorKind::runtime) {
  Diagnostic d;
  d.message =
      "rank " + std::to_string(options.rank) + " of " + std::to_string(options.ranks) + ": " + what;
  d.fix = fix;
  throw Error(kind, std::move(d));
}

class OneRank final : public Rendezvous {
 public:
  int rank() const override { return 0; }
  int ranks() const override { return 1; }
  std::vector<std::string> exchange(const std::string&, const std::string& bytes) override {
    return {bytes};
  }
  std::optional<std::string> failure() override { return std::nullopt; }
  void fail(const std::string&) override {}
};

class TcpRendezvous final : public Rendezvous {
 public:
  explicit TcpRendezvous(const RankOptions& options)
      : options_(options), reader_((most_bytes + 4) * static_cast<std::size_t>(options.ranks)) {
    const HostPort address = split_address(options.address);
    if (options.rank == 0)
      server_ = std::make_unique<RankServer>(address, options.ranks, options.limit);
    const auto until = RankClock::now() + options.limit;
    std::string why;
    socket_ = connect_to(address, until, why);
    if (!socket_) {
      fail(options,
           "nothing answers at " + options.address + " within " +
               std::to_string(options.limit.count() / 1000) + " s (" + why + ")",
           "start rank 0, and see that TANDEM_ADDRESS names its host and that the port can be "
           "reached from here");
    }
    std::string hello;
    add_number(hello, static_cast<std::uint32_t>(options.rank));
    add_number(hello, static_cast<std::uint32_t>(options.ranks));
    send(encode(Frame::Kind::hello, hello), until);
    const std::optional<Frame> answer = next_frame(until + verdict_time);
    if (answer && answer->kind == Frame::Kind::welcome) return;
    if (answer && answer->kind == Frame::Kind::refused)
      fail(options, "rank 0 refuses it: " + answer->content,
           "look at TANDEM_RANK and TANDEM_RANKS, or what the launcher gives in their place",
           ErrorKind::usage);
    if (failure_) fail(options, *failure_, "look at what that rank has printed");
    fail(options, "what answers at " + options.address + " is no rank 0 of this program",
         "set another port in TANDEM_ADDRESS on all ranks, and run the same version everywhere");
  }
  ~TcpRendezvous() override {
    outgoing_ += encode(Frame::Kind::leave);
    (void)send_some(socket_, outgoing_);
  }

  int rank() const override { return options_.rank; }
  int ranks() const override { return options_.ranks; }

  std::vector<std::string> exchange(const std::string& name, const std::string& bytes) override {
    if (bytes.size() > most_bytes)
      fail(options_, "gives " + std::to_string(bytes.size()) + " bytes to '" + name + "'",
           "at most " + std::to_string(most_bytes) + " can be exchanged", ErrorKind::usage);
    const std::lock_guard lock(mutex_);
    throw_failure(name);
    const auto until = RankClock::now() + options_.limit + verdict_time;
    std::string content;
    add_text(content, name);
    add_text(content, bytes);
    send(encode(Frame::Kind::put, content), until);
    const std::optional<Frame> answer = next_frame(until);
    std::vector<std::string> all;
    if (answer && answer->kind == Frame::Kind::all) {
      ContentReader reader(answer->content);
      while (std::optional<std::string> one = reader.text()) all.push_back(std::move(*one));
    }
    if (all.size() == static_cast<std::size_t>(options_.ranks)) return all;
    if (!failure_) failure_ = "rank 0 does not answer";
    throw_failure(name);
    return {};
  }

  std::optional<std::string> failure() override {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock) return std::nullopt;  // a thread at an exchange is told
    if (!failure_) take_what_came();
    return failure_;
  }

  void fail(const std::string& why) override {
    const std::lock_guard lock(mutex_);
    outgoing_ += encode(Frame::Kind::failed, why.substr(0, most_word));
    (void)send_some(socket_, outgoing_);
  }

 private:
  static constexpr std::size_t most_word = 4000;  // bytes

  void throw_failure(const std::string& name) {
    if (failure_)
      fail(options_, *failure_ + " (at '" + name + "')",
           "look at what the ranks named here have printed, or start them all");
  }

  void send(const std::string& bytes, RankClock::time_point until) {
    outgoing_ += bytes;
    while (send_some(socket_, outgoing_) && !outgoing_.empty()) {
      if (!wait_for(socket_, POLLOUT, until)) break;
    }  // an end of the connection is found when the answer is read
  }

  /// Frames that came in, but for those that end all, which become the failure.
  void take_what_came() {
    std::string bytes;
    const Received received = receive(socket_, bytes);
    reader_.add(bytes);
    while (std::optional<Frame> frame = reader_.next()) {
      if (frame->kind == Frame::Kind::failed) {
        if (!failure_) failure_ = frame->content;
      } else if (frame->kind == Frame::Kind::leave) {
        has_ended_ = true;
      } else {
        frame_ = std::move(frame);
      }
    }
    if (received == Received::ended && !has_ended_ && !failure_ && !frame_) {
      failure_ = is_welcome_
                     ? "rank 0 (" + options_.address + ") has died: its connection has ended"
                     : std::optional<std::string>();
      is_closed_ = true;
    }
  }

  /// Nothing where there is a failure, the server has ended or time is over.
  std::optional<Frame> next_frame(RankClock::time_point until) {
    while (true) {
      take_what_came();
      if (frame_) {
        is_welcome_ = true;
        return std::exchange(frame_, std::nullopt);
      }
      if (failure_ || is_closed_ || reader_.is_foreign()) return std::nullopt;
      if (has_ended_) {
        failure_ = "rank 0 has ended";
        return std::nullopt;
      }
      if (!wait_for(socket_, POLLIN, until)) return std::nullopt;
    }
  }

  const RankOptions options_;
  std::mutex mutex_;
  std::unique_ptr<RankServer> server_;  // of rank 0; goes after the connection
  Socket socket_;
  FrameReader reader_;
  std::string outgoing_;
  std::optional<Frame> frame_;
  std::optional<std::string> failure_;
  bool is_welcome_ = false, has_ended_ = false, is_closed_ = false;
};

}  // namespace

std::unique_ptr<Rendezvous> make_rendezvous(const RankOptions& options) {
  if (options.ranks < 1 || options.rank < 0 || options.rank >= options.ranks)
    fail(options, "there is no such rank", "ranks count from 0", ErrorKind::usage);
  if (options.ranks == 1) return std::make_unique<OneRank>();
  return std::make_unique<TcpRendezvous>(options);
}

}  // namespace tandem

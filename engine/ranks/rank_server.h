// The server that rank 0 runs for all ranks, itself among them: admits them, collects their
// exchanges, reports to all when one has died. It has a thread of its own, so that reports arrive
// while rank 0 computes.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "engine/ranks/beats.h"
#include "engine/ranks/frames.h"
#include "engine/ranks/sockets.h"

namespace tandem {

class RankServer {
 public:
  /// `limit`: for all ranks to connect. `exchange_limit`: for all to come to an exchange after the
  /// first one has.
  /// `silence`: after which a rank counts as stopped.
  RankServer(Socket listener, int ranks, std::chrono::milliseconds limit,
             std::chrono::milliseconds exchange_limit, std::chrono::milliseconds silence);
  /// Sends all ranks that are still there the news that it ends.
  ~RankServer();
  RankServer(const RankServer&) = delete;
  RankServer& operator=(const RankServer&) = delete;

 private:
  struct Connection {
    Socket socket;
    std::string peer;
    FrameReader reader{256};  // a hello is short
    std::string outgoing;
    int rank = -1;                 // -1: has not said hello
    RankClock::time_point greets;  // by when it says hello, or is closed
    RankClock::time_point heard;   // when something came last
    bool ends = false;             // once all is sent
    bool ended = false;
  };
  struct Member {
    enum class State : std::uint8_t { absent, present, left, died };
    State state = State::absent;
    Connection* connection = nullptr;
    std::optional<std::string> name, bytes;  // the exchange that it has come to
  };

  void serve();
  void take(Connection& connection);
  void take(Connection& connection, const Frame& frame);
  void greet(Connection& connection, const Frame& frame);
  void put(Connection& connection, const Frame& frame);
  void answer_if_complete();
  void look_at_clocks();
  void beat();
  void close_ended();
  /// From now on nothing succeeds.
  void fail(const std::string& text);
  void refuse(Connection& connection, const std::string& why);
  bool is_at_exchange() const;  // somebody has come to one
  std::string missing() const;
  RankClock::time_point next_deadline() const;

  const int ranks_;
  const std::chrono::milliseconds limit_, exchange_limit_, silence_;
  Beats beats_;
  Socket listener_, wake_, waker_;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::vector<Member> members_;
  std::string first_name_;  // name of the exchange under way
  std::optional<RankClock::time_point> deadline_;
  std::optional<std::string> failure_;
  std::vector<std::string> strangers_;  // peers that were refused
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace tandem

#include "engine/ranks/rank_server.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>

#include "engine/graph/error.h"
#include "engine/ranks/rendezvous.h"

namespace tandem {
namespace {

constexpr std::chrono::seconds hello_limit{5}, farewell_limit{1};
constexpr std::size_t most_waiting = 64;   // connections that have not said hello
constexpr std::size_t most_strangers = 4;  // that an error names

std::string seconds_text(std::chrono::milliseconds time) {
  const auto ms = time.count();
  return ms % 1000 == 0 ? std::to_string(ms / 1000) + " s" : std::to_string(ms) + " ms";
}

}  // namespace

RankServer::RankServer(Socket listener, int ranks, std::chrono::milliseconds limit,
                       std::chrono::milliseconds exchange_limit, std::chrono::milliseconds silence)
    : ranks_(ranks),
      limit_(limit),
      exchange_limit_(exchange_limit),
      silence_(silence),
      listener_(std::move(listener)),
      members_(static_cast<std::size_t>(ranks)) {
  int pair[2] = {-1, -1};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) != 0) {
    throw Error(ErrorKind::runtime, Diagnostic{.message = "rank 0 can open no more files",
                                               .fix = "raise the limit: ulimit -n"});
  }
  wake_ = Socket(pair[0]);
  waker_ = Socket(pair[1]);
  deadline_ = RankClock::now() + limit_;
  thread_ = std::thread([this] { serve(); });
}

RankServer::~RankServer() {
  std::string byte = "x";
  (void)send_some(waker_, byte);
  thread_.join();
}

void RankServer::serve() {
  RankClock::time_point end;
  while (!ending_ || (!connections_.empty() && RankClock::now() < end)) {
    std::vector<pollfd> polled{{ending_ ? -1 : listener_.get(), POLLIN, 0},
                               {ending_ ? -1 : wake_.get(), POLLIN, 0}};
    for (const auto& connection : connections_) {
      const bool sends = !connection->outgoing.empty();
      polled.push_back(
          {connection->socket.get(), static_cast<short>(sends ? POLLIN | POLLOUT : POLLIN), 0});
    }
    (void)poll(polled.data(), polled.size(), milliseconds_until(ending_ ? end : next_deadline()));
    for (std::size_t i = 0; i + 2 < polled.size(); ++i) {
      if (polled[i + 2].revents != 0) take(*connections_[i]);
    }
    if (polled[0].revents != 0) {
      auto connection = std::make_unique<Connection>();
      connection->socket = accept_from(listener_, connection->peer);
      connection->heard = RankClock::now();
      connection->greets = connection->heard + hello_limit;
      if (connection->socket) connections_.push_back(std::move(connection));
    }
    if (polled[1].revents != 0) {
      ending_ = true;
      end = RankClock::now() + farewell_limit;
      for (const auto& connection : connections_) {
        connection->outgoing += encode(Frame::Kind::leave);
        connection->ends = true;
        connection->ended |= connection->rank < 0;
      }
    }
    if (!ending_) look_at_clocks();
    if (!ending_) beat();
    for (const auto& connection : connections_) {
      if (!connection->ended && !send_some(connection->socket, connection->outgoing))
        connection->ended = true;
      // The other side closes: if this side closed first, what the other has not read yet could be
      // lost.
      if (connection->ends && connection->outgoing.empty())
        (void)shutdown(connection->socket.get(), SHUT_WR);
    }
    close_ended();
  }
}

void RankServer::take(Connection& connection) {
  std::string bytes;
  const Received received = receive(connection.socket, bytes);
  if (received == Received::ended) connection.ended = true;
  if (received == Received::some) connection.heard = RankClock::now();
  if (connection.ends) return;  // nothing of it counts any more
  connection.reader.add(bytes);
  while (!connection.ends) {
    const std::optional<Frame> frame = connection.reader.next();
    if (!frame) break;
    take(connection, *frame);
  }
  if (!connection.reader.is_foreign() || connection.ends) return;
  if (connection.rank < 0) return refuse(connection, "");
  fail("rank " + std::to_string(connection.rank) + " (" + connection.peer +
       ") sends something that is no message of this program: all ranks have to run the same "
       "version");
}

void RankServer::take(Connection& connection, const Frame& frame) {
  if (connection.rank < 0) return greet(connection, frame);
  Member& member = members_[static_cast<std::size_t>(connection.rank)];
  if (frame.kind == Frame::Kind::put) return put(connection, frame);
  if (frame.kind == Frame::Kind::failed) {
    fail("rank " + std::to_string(connection.rank) + " (" + connection.peer +
         ") has ended with an error: " + frame.content);
  }
  if (frame.kind == Frame::Kind::leave && member.state == Member::State::present)
    member.state = Member::State::left;
}

void RankServer::greet(Connection& connection, const Frame& frame) {
  ContentReader content(frame.content);
  const std::optional<std::uint32_t> rank = content.number(), ranks = content.number();
  if (frame.kind != Frame::Kind::hello || !ranks || !content.at_end())
    return refuse(connection, "this is no rank");
  if (*ranks != static_cast<std::uint32_t>(ranks_) || *rank >= *ranks) {
    return refuse(connection, "this run has " + std::to_string(ranks_) + " ranks, not " +
                                  std::to_string(*ranks) +
                                  ": the number has to be the same on all ranks");
  }
  Member& member = members_[*rank];
  if (member.state != Member::State::absent) {
    const std::string who = member.connection != nullptr ? "is taken by " + member.connection->peer
                                                         : std::string("was taken before");
    return refuse(connection, "rank " + std::to_string(*rank) + " " + who +
                                  ": each rank has to have a number of its own");
  }
  member.state = Member::State::present;
  member.connection = &connection;
  connection.rank = static_cast<int>(*rank);
  connection.reader.allow(Rendezvous::most_bytes + 4096);
  if (!is_at_exchange() && std::none_of(members_.begin(), members_.end(), [](const Member& m) {
        return m.state == Member::State::absent;
      }))
    deadline_.reset();
  connection.outgoing +=
      failure_ ? encode(Frame::Kind::failed, *failure_) : encode(Frame::Kind::welcome);
}

void RankServer::put(Connection& connection, const Frame& frame) {
  ContentReader content(frame.content);
  Member& member = members_[static_cast<std::size_t>(connection.rank)];
  std::optional<std::string> name = content.text(), bytes = content.text();
  const std::string who = "rank " + std::to_string(connection.rank);
  if (!bytes || member.bytes) return fail(who + " has sent an exchange that is not its turn");
  if (failure_) return;  // the rank knows already
  if (!is_at_exchange()) {
    first_name_ = *name;
    deadline_ = RankClock::now() + exchange_limit_;
  }
  member.name = std::move(name);
  member.bytes = std::move(bytes);
  if (*member.name != first_name_) {
    return fail(who + " is at the exchange '" + *member.name + "', other ranks at '" + first_name_ +
                "': all ranks have to run the same program with the same configuration");
  }
  for (int rank = 0; rank < ranks_; ++rank) {
    if (members_[static_cast<std::size_t>(rank)].state == Member::State::left)
      return fail("rank " + std::to_string(rank) + " has ended; " + who + " waits for it at '" +
                  first_name_ + "'");
  }
  answer_if_complete();
}

void RankServer::answer_if_complete() {
  std::string content;
  for (const Member& member : members_) {
    if (!member.bytes) return;
    add_text(content, *member.bytes);
  }
  const std::string answer = encode(Frame::Kind::all, content);
  for (Member& member : members_) {
    if (member.connection != nullptr) member.connection->outgoing += answer;
    member.name.reset();
    member.bytes.reset();
  }
  deadline_.reset();
}

bool RankServer::is_at_exchange() const {
  return std::any_of(members_.begin(), members_.end(),
                     [](const Member& member) { return member.bytes.has_value(); });
}

std::string RankServer::missing() const {
  std::string text;
  int named = 0;
  for (int rank = 0; rank < ranks_; ++rank) {
    const Member& member = members_[static_cast<std::size_t>(rank)];
    const bool is_absent = member.state == Member::State::absent;
    if (member.bytes || (!is_absent && !is_at_exchange())) continue;
    if (++named > 8) continue;
    if (!text.empty()) text += ", ";
    text += "rank " + std::to_string(rank);
    text += is_absent ? " has not connected"
                      : " (" + member.connection->peer + ") is connected but has not reached it";
  }
  if (named > 8) text += " and " + std::to_string(named - 8) + " more";
  return text;
}

void RankServer::look_at_clocks() {
  const RankClock::time_point now = RankClock::now();
  std::size_t waiting = 0;
  for (const auto& connection : connections_) {
    if (connection->rank >= 0) continue;
    if (connection->ends) {
      connection->ended |= now >= connection->greets;
      continue;
    }
    if (now >= connection->greets || ++waiting > most_waiting) refuse(*connection, "");
  }
  if (!deadline_ || now < *deadline_ || failure_) return;
  std::string text = missing();
  if (is_at_exchange()) text += " at '" + first_name_ + "'";
  text += " within " + seconds_text(is_at_exchange() ? exchange_limit_ : limit_);
  for (const std::string& stranger : strangers_) text += "; " + stranger;
  fail(text);
}

void RankServer::beat() {
  const RankClock::time_point now = RankClock::now();
  beats_.turn(now);
  for (int rank = 0; rank < ranks_; ++rank) {
    const Member& member = members_[static_cast<std::size_t>(rank)];
    if (member.state != Member::State::present || member.connection == nullptr) continue;
    if (beats_.silence(member.connection->heard, now) <= silence_) continue;
    fail("rank " + std::to_string(rank) + " (" + member.connection->peer +
         ") has given no sign of life for " + seconds_text(silence_) +
         ": it was stopped, or its machine or network hangs");
  }
  if (!beats_.is_due(now)) return;
  for (const Member& member : members_) {
    if (member.connection != nullptr && member.connection->outgoing.empty())
      member.connection->outgoing = encode(Frame::Kind::beat);
  }
}

void RankServer::close_ended() {
  for (const auto& connection : connections_) {
    if (!connection->ended || connection->rank < 0) continue;
    Member& member = members_[static_cast<std::size_t>(connection->rank)];
    member.connection = nullptr;
    if (member.state != Member::State::present) continue;
    member.state = Member::State::died;
    if (ending_) continue;
    fail("rank " + std::to_string(connection->rank) + " (" + connection->peer +
         ") has died: its connection has ended");
  }
  for (auto& member : members_) {  // one that has left cannot come
    if (member.state == Member::State::left && is_at_exchange())
      fail("rank " + std::to_string(&member - members_.data()) +
           " has ended; other ranks wait for it at '" + first_name_ + "'");
  }
  std::erase_if(connections_, [](const auto& connection) { return connection->ended; });
}

void RankServer::fail(const std::string& text) {
  if (failure_) return;
  failure_ = text;
  deadline_.reset();
  const std::string told = encode(Frame::Kind::failed, text);
  for (const Member& member : members_) {
    if (member.connection == nullptr) continue;
    member.connection->outgoing += told;
    (void)send_some(member.connection->socket, member.connection->outgoing);
  }
}

void RankServer::refuse(Connection& connection, const std::string& why) {
  if (strangers_.size() < most_strangers) {
    strangers_.push_back("a connection from " + connection.peer +
                         " was refused: " + (why.empty() ? "it is no rank of this program" : why));
  }
  if (why.empty()) {
    connection.ended = true;
    return;
  }
  connection.outgoing += encode(Frame::Kind::refused, why);
  connection.ends = true;
  connection.greets = RankClock::now() + farewell_limit;
}

RankClock::time_point RankServer::next_deadline() const {
  RankClock::time_point next = beats_.next();
  if (deadline_) next = std::min(next, *deadline_);
  for (const auto& connection : connections_) {
    if (connection->rank < 0) next = std::min(next, connection->greets);
  }
  return next;
}

}  // namespace tandem

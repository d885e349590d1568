// TCP connections with time limits.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tandem {

using RankClock = std::chrono::steady_clock;

/// Closed with the object; programs that are started do not inherit it.
class Socket {
 public:
  explicit Socket(int descriptor = -1) : descriptor_(descriptor) {}
  Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Socket& operator=(Socket&& other) noexcept;
  ~Socket();
  int get() const { return descriptor_; }
  explicit operator bool() const { return descriptor_ >= 0; }

 private:
  int descriptor_;
};

struct HostPort {
  std::string host, port;
};
/// "node1:29400", "[::1]:29400". Throws Error{usage}.
HostPort split_address(const std::string& address);
/// The addresses between commas; at least one.
std::vector<HostPort> split_addresses(const std::string& addresses);

/// A listener that does not block. For a host that means only this machine (localhost, 127.…, ::1)
/// only that address is served, else all addresses of the machine. Throws Error{runtime}, with its
/// own message for a port that is taken.
Socket listen_at(const HostPort& at);
/// A listener at a free port, on all addresses of the machine or only on 127.0.0.1. Throws
/// Error{runtime}.
Socket listen_anywhere(bool this_machine_alone);
/// Where others reach the listener: "10.0.0.5:40123,[fe80::1]:40123", the machine's addresses that
/// are up; only 127.0.0.1 where it listens only there.
std::string addresses_of(const Socket& listener, bool this_machine_alone);
/// The next connection, which does not block, and who it is; empty where none waits.
Socket accept_from(const Socket& listener, std::string& peer);
/// Tries all addresses until `until`, also names that cannot be resolved yet; empty where nothing
/// has answered, with the last try's reason in `why`. The connection does not block.
Socket connect_to(const std::vector<HostPort>& to, RankClock::time_point until, std::string& why);

enum class Received { some, nothing, ended };
/// Adds what has come in, without waiting.
Received receive(const Socket& socket, std::string& bytes);
/// Sends what fits now and takes it off the text; false where the connection has ended.
bool send_some(const Socket& socket, std::string& bytes);
/// Waits until the socket can be read, or written; false where the time is over.
bool wait_for(const Socket& socket, short events, RankClock::time_point until);
/// Milliseconds for poll, rounded up; never negative.
int milliseconds_until(RankClock::time_point until);

}  // namespace tandem

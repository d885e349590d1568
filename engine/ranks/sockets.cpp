#include "engine/ranks/sockets.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <thread>

#include "engine/graph/error.h"

namespace tandem {
namespace {

[[noreturn]] void fail_socket(ErrorKind kind, const std::string& message,
                              const std::string& expected, const std::string& got,
                              const std::string& fix) {
  throw Error(kind, Diagnostic{.message = message, .expected = expected, .got = got, .fix = fix});
}

struct FreeAddresses {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

Addresses resolve(const HostPort& of, std::string& why) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int error = getaddrinfo(of.host.c_str(), of.port.c_str(), &hints, &list);
  if (error != 0) why = gai_strerror(error);
  return Addresses(list);
}

bool is_loopback(const sockaddr* address) {
  if (address->sa_family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(address);
    return ntohl(v4->sin_addr.s_addr) >> 24 == 127;
  }
  return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr);
}

/// A host's own name often means 127.0.1.1 on the host itself and its address elsewhere.
bool means_this_machine_alone(const HostPort& at, const sockaddr* address) {
  return is_loopback(address) &&
         (at.host == "localhost" || at.host.find_first_not_of("0123456789.:") == std::string::npos);
}

void set(int socket, int level, int option, int value) {
  (void)setsockopt(socket, level, option, &value, sizeof value);
}

/// A machine that vanishes without a word is noticed after about ten seconds.
void prepare(int socket) {
  set(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  set(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(socket, IPPROTO_TCP, TCP_KEEPIDLE, 4);
  set(socket, IPPROTO_TCP, TCP_KEEPINTVL, 2);
  set(socket, IPPROTO_TCP, TCP_KEEPCNT, 3);
  set(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, 10000);
}

constexpr int socket_type = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;

/// 0, or the error of the call that failed.
int open_listener(Socket& to, const sockaddr* address, socklen_t bytes, bool both_families) {
  to = Socket(socket(address->sa_family, socket_type, 0));
  if (!to) return errno;
  set(to.get(), SOL_SOCKET, SO_REUSEADDR, 1);  // the port of a run that has just ended
  if (address->sa_family == AF_INET6) set(to.get(), IPPROTO_IPV6, IPV6_V6ONLY, !both_families);
  if (bind(to.get(), address, bytes) != 0) return errno;
  return listen(to.get(), 1024) == 0 ? 0 : errno;
}

int listen_everywhere(Socket& to, in_port_t port) {
  sockaddr_in6 all6{};
  all6.sin6_family = AF_INET6;
  all6.sin6_addr = in6addr_any;
  all6.sin6_port = port;
  const int error = open_listener(to, reinterpret_cast<sockaddr*>(&all6), sizeof all6, true);
  if (error == 0 || error == EADDRINUSE || error == EACCES) return error;
  sockaddr_in all4{};  // a machine without IPv6
  all4.sin_family = AF_INET;
  all4.sin_addr.s_addr = htonl(INADDR_ANY);
  all4.sin_port = port;
  return open_listener(to, reinterpret_cast<sockaddr*>(&all4), sizeof all4, false);
}

in_port_t port_of(const sockaddr* address) {
  return address->sa_family == AF_INET ? reinterpret_cast<const sockaddr_in*>(address)->sin_port
                                       : reinterpret_cast<const sockaddr_in6*>(address)->sin6_port;
}

std::string text_of(const sockaddr* address, socklen_t bytes) {
  char host[NI_MAXHOST] = "", port[NI_MAXSERV] = "";
  if (getnameinfo(address, bytes, host, sizeof host, port, sizeof port,
                  NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return "an unknown address";
  return std::string(host) + ":" + port;
}

/// Where no process listens at a port of this machine, the system may connect the socket to itself.
bool is_connected_to_itself(const Socket& socket) {
  sockaddr_storage own{}, other{};
  socklen_t own_bytes = sizeof own, other_bytes = sizeof other;
  return getsockname(socket.get(), reinterpret_cast<sockaddr*>(&own), &own_bytes) == 0 &&
         getpeername(socket.get(), reinterpret_cast<sockaddr*>(&other), &other_bytes) == 0 &&
         own_bytes == other_bytes && std::memcmp(&own, &other, own_bytes) == 0;
}

/// One try; 0 where connected.
int try_connect(Socket& to, const addrinfo& address, RankClock::time_point until) {
  to = Socket(socket(address.ai_family, socket_type, 0));
  if (!to) return errno;
  if (connect(to.get(), address.ai_addr, address.ai_addrlen) == 0)
    return is_connected_to_itself(to) ? ECONNREFUSED : 0;
  if (errno != EINPROGRESS) return errno;
  if (!wait_for(to, POLLOUT, until)) return ETIMEDOUT;
  int error = 0;
  socklen_t bytes = sizeof error;
  getsockopt(to.get(), SOL_SOCKET, SO_ERROR, &error, &bytes);
  return error == 0 && is_connected_to_itself(to) ? ECONNREFUSED : error;
}

}  // namespace

Socket& Socket::operator=(Socket&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

Socket::~Socket() {
  if (descriptor_ >= 0) (void)close(descriptor_);
}

HostPort split_address(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  HostPort parts;
  if (colon != std::string::npos) parts = {address.substr(0, colon), address.substr(colon + 1)};
  if (parts.host.size() > 2 && parts.host.front() == '[' && parts.host.back() == ']')
    parts.host = parts.host.substr(1, parts.host.size() - 2);
  const bool is_port = !parts.port.empty() && parts.port.size() <= 5 &&
                       parts.port.find_first_not_of("0123456789") == std::string::npos &&
                       std::stoi(parts.port) >= 1 && std::stoi(parts.port) <= 65535;
  if (parts.host.empty() || !is_port) {
    fail_socket(ErrorKind::usage, "the address of rank 0", "host:port, such as node1:29400",
                '"' + address + '"', "set TANDEM_ADDRESS to rank 0's host and a free port on it");
  }
  return parts;
}

std::vector<HostPort> split_addresses(const std::string& addresses) {
  std::vector<HostPort> all;
  for (std::size_t begin = 0; begin <= addresses.size();) {
    const std::size_t end = std::min(addresses.find(',', begin), addresses.size());
    all.push_back(split_address(addresses.substr(begin, end - begin)));
    begin = end + 1;
  }
  return all;
}

Socket listen_at(const HostPort& at) {
  std::string why;
  const Addresses addresses = resolve(at, why);
  Socket listener;
  int error = 0;
  if (addresses) {
    const addrinfo& first = *addresses;
    error = means_this_machine_alone(at, first.ai_addr)
                ? open_listener(listener, first.ai_addr, first.ai_addrlen, false)
                : listen_everywhere(listener, port_of(first.ai_addr));
    if (error == 0) return listener;
    why = std::strerror(error);
  }
  fail_socket(
      ErrorKind::runtime, "rank 0 cannot listen at " + at.host + ":" + at.port, "a free port", why,
      error == EADDRINUSE
          ? "port " + at.port +
                " is taken by another program, perhaps by a run that has not "
                "ended: end it, or set another port in TANDEM_ADDRESS on all ranks"
          : "set TANDEM_ADDRESS to a name or number of this machine and a port from 1024 on");
}

Socket listen_anywhere(bool this_machine_alone) {
  Socket listener;
  sockaddr_in loopback{};
  loopback.sin_family = AF_INET;
  loopback.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int error = this_machine_alone
                        ? open_listener(listener, reinterpret_cast<const sockaddr*>(&loopback),
                                        sizeof loopback, false)
                        : listen_everywhere(listener, 0);
  if (error == 0) return listener;
  fail_socket(ErrorKind::runtime, "rank 0 cannot listen", "a free port", std::strerror(error),
              "name one in TANDEM_ADDRESS: node1:29400");
}

std::string addresses_of(const Socket& listener, bool this_machine_alone) {
  sockaddr_storage own{};
  socklen_t bytes = sizeof own;
  (void)getsockname(listener.get(), reinterpret_cast<sockaddr*>(&own), &bytes);
  const std::string port =
      ":" + std::to_string(ntohs(port_of(reinterpret_cast<const sockaddr*>(&own))));
  if (this_machine_alone) return "127.0.0.1" + port;
  constexpr int most = 8;
  std::string text;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) list = nullptr;
  int found = 0;
  for (const int family : {AF_INET, AF_INET6}) {
    for (const ifaddrs* a = list; a != nullptr && found < most; a = a->ifa_next) {
      if (a->ifa_addr == nullptr || a->ifa_addr->sa_family != family) continue;
      if ((a->ifa_flags & IFF_UP) == 0 || is_loopback(a->ifa_addr)) continue;
      char host[NI_MAXHOST] = "";
      const socklen_t size = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
      if (getnameinfo(a->ifa_addr, size, host, sizeof host, nullptr, 0, NI_NUMERICHOST) != 0)
        continue;
      const std::string name = host;
      if (name.find('%') != std::string::npos)
        continue;  // link-local: its zone is valid on this machine only
      if (found++ > 0) text += ",";
      text += (family == AF_INET ? name : "[" + name + "]") + port;
    }
  }
  if (list != nullptr) freeifaddrs(list);
  return text.empty() ? "127.0.0.1" + port : text;
}

Socket accept_from(const Socket& listener, std::string& peer) {
  sockaddr_storage address{};
  socklen_t bytes = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  Socket socket(accept4(listener.get(), any, &bytes, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (socket) {
    prepare(socket.get());
    peer = text_of(any, bytes);
  }
  return socket;
}

Socket connect_to(const std::vector<HostPort>& to, RankClock::time_point until, std::string& why) {
  using std::chrono::milliseconds;
  const milliseconds longest_try{to.size() > 1 ? 2000 : 5000};
  milliseconds pause{20};
  while (true) {
    for (const HostPort& one : to) {
      const Addresses addresses = resolve(one, why);
      for (const addrinfo* a = addresses.get(); a != nullptr; a = a->ai_next) {
        Socket socket;
        const int error = try_connect(socket, *a, std::min(until, RankClock::now() + longest_try));
        if (error == 0) {
          prepare(socket.get());
          return socket;
        }
        why = std::strerror(error);
      }
    }
    if (RankClock::now() >= until) return Socket();
    std::this_thread::sleep_until(std::min(until, RankClock::now() + pause));
    pause = std::min(pause * 2, milliseconds(500));
  }
}

Received receive(const Socket& socket, std::string& bytes) {
  char buffer[4096];
  bool some = false;
  while (true) {
    const ssize_t got = recv(socket.get(), buffer, sizeof buffer, MSG_DONTWAIT);
    if (got > 0) {
      bytes.append(buffer, static_cast<std::size_t>(got));
      some = true;
      if (bytes.size() > (std::size_t{1} << 22)) return Received::some;  // others have their turn
      continue;
    }
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
      return some ? Received::some : Received::nothing;
    return some ? Received::some : Received::ended;  // the next call sees the end
  }
}

bool send_some(const Socket& socket, std::string& bytes) {
  while (!bytes.empty()) {
    const ssize_t sent =
        send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) {
      bytes.erase(0, static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      return true;
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

bool wait_for(const Socket& socket, short events, RankClock::time_point until) {
  while (true) {
    pollfd one{socket.get(), events, 0};
    const int ready = poll(&one, 1, milliseconds_until(until));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
    if (ready == 0 && RankClock::now() >= until) return false;
  }
}

int milliseconds_until(RankClock::time_point until) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - RankClock::now()).count();
  return static_cast<int>(std::clamp<long long>(left, 0, 1000 * 3600));
}

}  // namespace tandem

// Processes that play the ranks of a run, and report what they have seen.
#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "engine/graph/error.h"
#include "engine/ranks/rendezvous.h"

namespace tandem::testing {

/// A port of this machine that was free just now.
inline int free_port() {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t bytes = sizeof address;
  EXPECT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), bytes), 0);
  getsockname(listener, reinterpret_cast<sockaddr*>(&address), &bytes);
  close(listener);
  return ntohs(address.sin_port);
}

/// Each `start` forks; what the function returns, or the text of the Error that it throws, comes
/// back by a pipe.
class RankProcesses {
 public:
  ~RankProcesses() {
    for (const Child& child : children_) {
      if (child.pid <= 0) continue;
      kill(child.pid, SIGKILL);
      waitpid(child.pid, nullptr, 0);
    }
  }

  void start(const std::function<std::string()>& f) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const pid_t pid = fork();
    if (pid == 0) {
      close(ends[0]);
      std::string said;
      try {
        said = f();
      } catch (const Error& error) {
        said = error.kind() == ErrorKind::usage ? "usage: " : "error: ";
        said += error.what();
      }
      (void)!write(ends[1], said.data(), said.size());
      _exit(0);
    }
    close(ends[1]);
    children_.push_back({pid, ends[0]});
  }

  std::vector<pid_t> pids() const {
    std::vector<pid_t> all;
    for (const Child& child : children_) all.push_back(child.pid);
    return all;
  }

  /// What each has reported, in the order of their starts; "" for one that was killed. Fails if one
  /// takes longer than the limit.
  std::vector<std::string> said(std::chrono::seconds limit = std::chrono::seconds(20)) {
    const auto until = std::chrono::steady_clock::now() + limit;
    std::vector<std::string> all;
    for (Child& child : children_) {
      std::string text;
      char buffer[4096];
      while (true) {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
            until - std::chrono::steady_clock::now());
        pollfd one{child.pipe, POLLIN, 0};
        if (left.count() <= 0 || poll(&one, 1, static_cast<int>(left.count())) <= 0) {
          text += " (still running)";
          kill(child.pid, SIGKILL);
          break;
        }
        const ssize_t got = read(child.pipe, buffer, sizeof buffer);
        if (got <= 0) break;
        text.append(buffer, static_cast<std::size_t>(got));
      }
      close(child.pipe);
      waitpid(child.pid, nullptr, 0);
      child.pid = 0;
      all.push_back(text);
    }
    return all;
  }

 private:
  struct Child {
    pid_t pid = 0;
    int pipe = -1;
  };
  std::vector<Child> children_;
};

}  // namespace tandem::testing

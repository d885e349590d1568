// Runs the command line program as a child that signals are sent to.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "tests/harness/program.h"

namespace tandem::testing {

class WaitingProgram {
 public:
  /// `rows` are written to its standard input, which never ends; `messages` is the file for its
  /// standard error.
  WaitingProgram(const std::vector<std::string>& arguments, const std::string& rows,
                 const std::string& temporary, const std::string& messages = "/dev/null") {
    int ends[2];
    if (pipe(ends) != 0) return;
    child_ = fork();
    if (child_ == 0) {
      dup2(ends[0], STDIN_FILENO);
      close(ends[0]);
      close(ends[1]);
      if (freopen(messages.c_str(), "w", stderr) == nullptr) _exit(126);
      setenv("TMPDIR", temporary.c_str(), 1);
      signal(SIGHUP, SIG_DFL);
      std::vector<char*> words{const_cast<char*>(program.c_str())};
      for (const std::string& word : arguments) words.push_back(const_cast<char*>(word.c_str()));
      words.push_back(nullptr);
      execv(program.c_str(), words.data());
      _exit(127);
    }
    close(ends[0]);
    input_ = ends[1];
    EXPECT_EQ(write(input_, rows.data(), rows.size()), static_cast<ssize_t>(rows.size()));
  }
  ~WaitingProgram() {
    close(input_);
    if (!over_) end();
  }
  WaitingProgram(const WaitingProgram&) = delete;
  WaitingProgram& operator=(const WaitingProgram&) = delete;

  /// Sends the signal `number` when `ready`; returns the exit code, or -1 where it did not exit by
  /// itself.
  int interrupt(int number, const std::function<bool()>& ready) {
    wait_until(ready);
    kill(child_, number);
    return ended();
  }

  /// Calls `cause` when `ready`; returns the exit code, or -1 where a signal ended it.
  int end_by(const std::function<void()>& cause, const std::function<bool()>& ready) {
    wait_until(ready);
    cause();
    return ended();
  }

  /// Sends both signals at the same time when `ready`; returns the exit code, or -1 where a signal
  /// ended it.
  int interrupt_twice(int first, int second, const std::function<bool()>& ready) {
    wait_until(ready);
    if (!hold()) return ended();
    kill(child_, first);
    kill(child_, second);
    kill(child_, SIGCONT);
    return ended();
  }

  /// Sends `first`, and `second` a second later; returns the signal that ended it, or 0 where it
  /// exited, which also happens where it reacts to `first` before it can be stopped.
  int interrupt_again(int first, int second, const std::function<bool()>& ready) {
    wait_until(ready);
    kill(child_, first);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // for its handler
    if (hold()) {
      std::this_thread::sleep_for(std::chrono::seconds(1));
      kill(child_, second);
      kill(child_, SIGCONT);
    }
    ended();
    return ended_by_;
  }

 private:
  static void pause() { std::this_thread::sleep_for(std::chrono::milliseconds(50)); }
  static void wait_until(const std::function<bool()>& ready) {
    for (int i = 0; i < 1200 && !ready(); ++i) pause();
    for (int i = 0; i < 10; ++i) pause();  // by then it waits for rows, or soon will
  }
  /// Stops it until SIGCONT; false where it has ended already.
  bool hold() {
    int status = 0;
    kill(child_, SIGSTOP);
    if (waitpid(child_, &status, WUNTRACED) == child_ && WIFSTOPPED(status)) return true;
    note_end(status);
    return false;
  }
  void note_end(int status) {
    over_ = true;
    ended_by_ = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    code_ = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  int ended() {
    int status = 0;
    for (int i = 0; i < 1200 && !over_; ++i) {
      if (waitpid(child_, &status, WNOHANG) == child_) {
        note_end(status);
      } else {
        pause();
      }
    }
    if (!over_) end();
    return code_;
  }
  void end() {
    over_ = true;
    if (child_ <= 0) return;
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
  }

  pid_t child_ = -1;
  int input_ = -1, ended_by_ = 0, code_ = -1;
  bool over_ = false;
};

}  // namespace tandem::testing

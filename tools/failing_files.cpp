#include "tools/failing_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdint>

#include "tandem/tandem.h"

namespace tandem::tool {
namespace {

std::atomic_flag reporting = ATOMIC_FLAG_INIT;
char path[4096];  // used by the thread that reports

/// Reads a file character by character, because a signal handler cannot allocate memory.
class Characters {
 public:
  explicit Characters(const char* file) : file_(open(file, O_RDONLY | O_CLOEXEC)) {}
  ~Characters() { close(file_); }
  Characters(const Characters&) = delete;
  Characters& operator=(const Characters&) = delete;

  /// Sets `c` to a line feed and returns false at the end.
  bool next(char& c) {
    if (at_ == filled_) {
      at_ = 0;
      filled_ = read(file_, buffer_, sizeof buffer_);
    }
    c = at_ < filled_ ? buffer_[at_++] : '\n';
    return filled_ > 0;
  }
  /// Reads a hexadecimal number that begins with c; c becomes the character after it.
  std::uintptr_t number(char& c) {
    std::uintptr_t value = 0;
    const auto digit = [&] {
      if (c >= '0' && c <= '9') return c - '0';
      return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    };
    for (int d = digit(); d >= 0; next(c), d = digit()) {
      value = value * 16 + static_cast<std::uintptr_t>(d);
    }
    return value;
  }

 private:
  int file_;
  char buffer_[4096];
  ssize_t at_ = 0, filled_ = 0;
};

/// Writes the path of the file that is mapped at an address into `path`; returns its length, 0
/// where there is no file. Lines of the system's list have the form "BEGIN-END rw-p 00000000 08:01
/// 131 /a/file".
std::size_t find_path(std::uintptr_t address) {
  Characters maps("/proc/self/maps");
  char c;
  while (maps.next(c)) {
    const std::uintptr_t begin = maps.number(c);
    maps.next(c);
    const std::uintptr_t end = maps.number(c);
    const bool found = begin <= address && address < end;
    std::size_t length = 0;
    for (; c != '\n'; maps.next(c)) {
      const bool is_part = found && (length > 0 || c == '/') && length < sizeof path;
      if (is_part) path[length++] = static_cast<unsigned char>(c) < ' ' ? '?' : c;
    }
    if (found) return length;
  }
  return 0;
}

void say(const char* text, std::size_t length) {
  while (length > 0) {
    const ssize_t written = write(STDERR_FILENO, text, length);
    if (written <= 0) return;
    text += written;
    length -= static_cast<std::size_t>(written);
  }
}

/// Only calls functions that are safe in a signal handler.
void on_bus_error(int signal, siginfo_t* info, void*) {
  if (reporting.test_and_set()) {
    for (;;) pause();  // another thread ends the process
  }
  const bool is_access = info->si_code > 0;  // else another process has sent the signal
  const std::size_t length =
      is_access ? find_path(reinterpret_cast<std::uintptr_t>(info->si_addr)) : 0;
  if (length == 0) {  // the address belongs to no file
    std::signal(signal, SIG_DFL);
    std::raise(signal);
    return;
  }
  constexpr char before[] = "tandem: ",
                 after[] =
                     ": the file was cut, or its disk cannot be read any more, while it was in use "
                     "(leave files in use as they are; what was saved before is complete: make the "
                     "file again and continue from there, as train --resume does)\n";
  say(before, sizeof before - 1);
  say(path, length);
  say(after, sizeof after - 1);
  _exit(static_cast<int>(ErrorKind::data));
}

}  // namespace

void report_failing_files() {
  std::signal(SIGXFSZ, SIG_IGN);
  struct sigaction action {};
  action.sa_sigaction = on_bus_error;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGBUS, &action, nullptr);
}

}  // namespace tandem::tool

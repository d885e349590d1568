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
char path[4096];  // for the thread that reports

/// A file read character by character: in a handler there is no memory to be had.
class Characters {
 public:
  explicit Characters(const char* file) : file_(open(file, O_RDONLY | O_CLOEXEC)) {}
  ~Characters() { close(file_); }
  Characters(const Characters&) = delete;
  Characters& operator=(const Characters&) = delete;

  /// False and a line feed at the end.
  bool next(char& c) {
    if (at_ == filled_) {
      at_ = 0;
      filled_ = read(file_, buffer_, sizeof buffer_);
    }
    c = at_ < filled_ ? buffer_[at_++] : '\n';
    return filled_ > 0;
  }
  /// A hexadecimal number that begins with c, which becomes what follows it.
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

/// Puts the file that is mapped at an address into `path`; its length, 0 where there is none. Lines
/// of the system's list are "BEGIN-END rw-p 00000000 08:01 131 /a/file".
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

/// Calls nothing that is not safe in a handler.
void on_bus_error(int signal, siginfo_t* info, void*) {
  if (reporting.test_and_set()) {
    for (;;) pause();  // another thread ends the process
  }
  const bool is_access = info->si_code > 0;  // else another process has sent it
  const std::size_t length =
      is_access ? find_path(reinterpret_cast<std::uintptr_t>(info->si_addr)) : 0;
  if (length == 0) {  // no file
    std::signal(signal, SIG_DFL);
    std::raise(signal);
    return;
  }
  constexpr char before[] = "tandem: ", after[] =
                                            ": the file was cut, or its disk cannot be read any "
                                            "more, while it was in use (leave files in "
                                            "use as they are; what was saved before is whole: make "
                                            "the file anew and go on from there, as "
                                            "train --resume does)\n";
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

// Shows progress of a command: one line on a terminal, overwritten; elsewhere an occasional line.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

#include <fmt/format.h>
#include <unistd.h>

namespace tandem::tool {

class ProgressLine {
 public:
  /// `shown`: false where results go to the same terminal.
  explicit ProgressLine(bool shown = true)
      : shown_(shown),
        terminal_(isatty(STDERR_FILENO) != 0),
        last_(terminal_ ? Clock::time_point() : Clock::now()) {}
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  ~ProgressLine() { end(); }

  /// `rows` 0: tables are being read, and no row is used yet. `part` negative: unknown.
  void show(std::int64_t rows, double part, double rows_per_second) {
    if (!is_due()) return;
    std::string line = rows > 0 ? fmt::format("{} rows  {:.0f} rows/s", rows, rows_per_second)
                                : std::string("reading");
    if (part >= 0) line += fmt::format("  {:.0f} %", 100 * part);
    show(line);
  }
  /// Shows progress of a search. `best_ms` negative: no result yet.
  void show_search(int tried, int most, double best_ms) {
    if (!is_due()) return;
    const std::string best =
        best_ms < 0 ? "none that fits yet" : fmt::format("best {:.3f} ms a step", best_ms);
    show(fmt::format("compared {} of {} placements at most  {}", tried, most, best));
  }
  void message(const std::string& text) {
    end();
    std::fprintf(stderr, "%s\n", text.c_str());
  }
  void end() {
    if (open_) std::fputs("\r\033[K", stderr);
    open_ = false;
  }

 private:
  using Clock = std::chrono::steady_clock;

  bool is_due() {
    const auto now = Clock::now();
    const std::chrono::milliseconds pause(terminal_ ? 200 : 30'000);
    if (!shown_ || now - last_ < pause) return false;
    last_ = now;
    return true;
  }
  void show(const std::string& line) {
    std::fprintf(stderr, terminal_ ? "\r\033[K%s" : "%s\n", line.c_str());
    std::fflush(stderr);
    open_ = terminal_;
  }

  bool shown_, terminal_, open_ = false;
  Clock::time_point last_;
};

/// Does `work`, which reports through the callbacks of `how`; `line` displays them and is erased
/// when this returns or throws.
template <class Options, class Work>
auto show_progress(Options& how, ProgressLine line, Work work) {
  how.on_message = [&line](const std::string& text) { line.message(text); };
  how.on_progress = [&line](std::int64_t rows, double part, double rows_per_second) {
    line.show(rows, part, rows_per_second);
  };
  return work();
}

}  // namespace tandem::tool

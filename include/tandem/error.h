// The one error form of Tandem: everything that is wrong with a model, option or data file at once.
#pragma once

#include <exception>
#include <string>
#include <vector>

namespace tandem::inline v1 {

/// One thing that is wrong: where it is, what was expected, what was found, and how to fix it.
struct Diagnostic {
  std::string message;
  std::string file;          ///< configuration, model or data file; empty if none
  int line = 0, column = 0;  ///< 1-based; 0 = unknown; line: a row for data files
  std::string path;          ///< operator or parameter path
  std::string expected, got, fix;
};

/// The kind decides the exit code of the command-line tool.
enum class ErrorKind {
  runtime = 1,       ///< failure while running (disk full, ...)
  usage = 2,         ///< bad usage, model, configuration or policy
  does_not_fit = 3,  ///< the plan exceeds a memory limit
  data = 4,          ///< bad data
  diverged = 5,      ///< a non-finite loss, parameter or statistic
};

/// Thrown before a run or between steps, never inside a step.
class Error : public std::exception {
 public:
  Error(ErrorKind kind, Diagnostic diagnostic);
  Error(ErrorKind kind, std::vector<Diagnostic> diagnostics);
  ErrorKind kind() const { return kind_; }
  const std::vector<Diagnostic>& diagnostics() const { return diagnostics_; }
  /// All diagnostics, one a line: `file:line:column: path: message: expected ..., got ... (fix)`.
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  ErrorKind kind_;
  std::vector<Diagnostic> diagnostics_;
  std::string text_;
};
/// An error that another process of the run reports to the user: this process ends silently.
struct ErrorElsewhere : Error {
  using Error::Error;
};

std::string to_string(const Diagnostic& diagnostic);

}  // namespace tandem::inline v1

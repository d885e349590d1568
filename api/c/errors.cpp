// The errors of the C library: the last one of each thread.
#include <cstddef>
#include <exception>
#include <new>
#include <utility>
#include <vector>

#include "api/c/guarded.h"
#include "api/c/structs.h"
#include "tandem/tandem.h"

namespace tandem::c_library {
namespace {

static_assert(TANDEM_RUNTIME == static_cast<int>(ErrorKind::runtime));
static_assert(TANDEM_USAGE == static_cast<int>(ErrorKind::usage));
static_assert(TANDEM_DOES_NOT_FIT == static_cast<int>(ErrorKind::does_not_fit));
static_assert(TANDEM_DATA == static_cast<int>(ErrorKind::data));
static_assert(TANDEM_DIVERGED == static_cast<int>(ErrorKind::diverged));

struct LastError {
  std::string text;
  std::vector<Diagnostic> diagnostics;
  bool is_out_of_memory = false;  // there was none for the text, either
};

LastError& last_error() noexcept {
  thread_local LastError error;
  return error;
}

TandemStatus failed(ErrorKind kind, const char* text, std::vector<Diagnostic> diagnostics) {
  last_error() = {text, std::move(diagnostics)};
  return static_cast<TandemStatus>(kind);
}

/// The status of the exception that is being handled.
TandemStatus failed() {
  try {
    throw;
  } catch (const Error& error) {
    return failed(error.kind(), error.what(), error.diagnostics());
  } catch (const std::bad_alloc&) {
    return failed(ErrorKind::runtime, "out of memory", {{.message = "out of memory"}});
  } catch (const std::exception& error) {
    return failed(ErrorKind::runtime, error.what(), {{.message = error.what()}});
  } catch (...) {
    const char* const text = "an exception that is no error of the library";
    return failed(ErrorKind::runtime, text, {{.message = text}});
  }
}

}  // namespace

TandemStatus guarded(FunctionRef<void()> call) noexcept {
  try {
    call();
    last_error() = {};
    return TANDEM_OK;
  } catch (...) {
    try {
      return failed();
    } catch (...) {
      LastError& error = last_error();
      error.text.clear();
      error.diagnostics.clear();
      error.is_out_of_memory = true;
      return TANDEM_RUNTIME;
    }
  }
}

Error bad_argument(const std::string& name, std::string message, std::string expected,
                   std::string got) {
  return Error(ErrorKind::usage, Diagnostic{.message = std::move(message),
                                            .path = name,
                                            .expected = std::move(expected),
                                            .got = std::move(got)});
}

void write_diagnostic(const Diagnostic& from, TandemDiagnostic* to, const char* name) {
  TandemDiagnostic written{};
  written.message = from.message.c_str();
  written.expected = from.expected.c_str();
  written.got = from.got.c_str();
  written.fix = from.fix.c_str();
  written.file = from.file.c_str();
  written.path = from.path.c_str();
  written.line = from.line;
  written.column = from.column;
  write_struct(written, to, name);
}

}  // namespace tandem::c_library

using namespace tandem::c_library;

const char* tandem_version() {
  static const std::string version = tandem::api::version();
  return version.c_str();
}

int32_t tandem_abi_version() { return TANDEM_ABI_VERSION; }

const char* tandem_error_message() {
  const LastError& error = last_error();
  return error.is_out_of_memory ? "out of memory" : error.text.c_str();
}

size_t tandem_error_count() { return last_error().diagnostics.size(); }

TandemStatus tandem_error_at(size_t index, TandemDiagnostic* diagnostic) {
  const std::vector<tandem::Diagnostic>& all = last_error().diagnostics;
  if (index >= all.size()) return TANDEM_USAGE;
  try {
    write_diagnostic(all[index], diagnostic, "diagnostic");
    return TANDEM_OK;
  } catch (...) {  // the thread's error stays
    return TANDEM_USAGE;
  }
}

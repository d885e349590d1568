// Replaces functions that a loaded shared library calls in another one.
#pragma once

#include <initializer_list>
#include <span>
#include <string_view>

namespace tandem {

struct ReplacedCall {
  std::string_view name;  // the function's name in the library's symbol table
  void* function;
};

/// Points the library whose file name begins with `library` to `calls` wherever it would call
/// functions of these names; other libraries and the program keep theirs. Changes everything or
/// nothing: false where the library is not loaded, where it calls a function whose name begins with
/// one of `prefixes` and that `calls` lacks, or on another processor than x86-64.
bool replace_library_calls(std::string_view library, std::span<const ReplacedCall> calls,
                           std::initializer_list<std::string_view> prefixes);

}  // namespace tandem

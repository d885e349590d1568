// Python's pickles as data: a bounded reader of what files of weights use. Nothing is imported and
// nothing is called: a call of a function that is known by name stays a value that says which
// function, with which arguments.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tandem {

/// The number of a value in its Pickle.
using PickleId = std::uint32_t;

struct PickleValue {
  enum class Kind : std::uint8_t {
    other,  // None, bytes, integers of more than 64 bits
    boolean,
    integer,
    number,
    text,
    tuple,
    list,
    dict,        // items: key, value, key, value, ...
    global,      // text: "module.name"
    call,        // text: the function; items: its arguments as one tuple
    persistent,  // items: the identifier of an object outside of the pickle
  };
  Kind kind = Kind::other;
  std::uint8_t depth = 0;    // levels of lists, tuples, dicts and calls below it
  std::int64_t integer = 0;  // also a boolean's 0 or 1
  double number = 0;
  std::string text;
  std::vector<PickleId> items;
};

struct Pickle {
  std::vector<PickleValue> values;
  PickleId root = 0;

  const PickleValue& at(PickleId id) const { return values[id]; }
  /// The value under a text in a dict; null where there is none.
  const PickleValue* find(const PickleValue& dict, std::string_view key) const;
};

/// What a pickle may be and name.
struct PickleRules {
  std::string file, member;  // for messages
  std::string fix;           // the fix in the error for a refused name
  /// Whether a "module.name" may occur, and whether it may be called.
  bool (*may_stand)(std::string_view name) = nullptr;
  bool (*may_be_called)(std::string_view name) = nullptr;
  std::size_t bytes = std::size_t{64} << 20;
  std::size_t values = std::size_t{1} << 21;  // less than 100 bytes each, plus their texts
  int depth = 64;
};

/// Reads protocols 2 to 5, and what older protocols have in common with them.
/// collections.OrderedDict is a dict, whose attributes are skipped. Throws Error{data} with file,
/// member and byte where the pickle is broken, cut off or beyond the limits, and where it names
/// anything that the rules do not allow.
Pickle read_pickle(std::string_view bytes, const PickleRules& rules);

}  // namespace tandem

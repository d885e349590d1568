// States that hold something of another state, which is named `of`: what each holds, what fills it
// and how it is saved.
//
//                  holds                            filled by                        saved
//   Mirror         a parameter on another device    every write of the parameter,    no
//                  or in 16 bits                    and its update in each step
//   CachedRows     some rows of a table, or of an   the table, once; the table's     as rows of
//                  optimizer state of it            own copy of them is then stale  the table
//   PrefetchedRows rows of a table, or their names  the step before; any write of    no
//                  and number, for the next step    another state empties it
//   LowHalf        the low 16 bits of a table of    writes of the table, which is    as part of
//                  float32 stored as bfloat16       float32 for its writers          the table
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace tandem {

struct Mirror {
  std::string of;
};
struct CachedRows {
  std::string of;
  std::shared_ptr<const std::vector<std::int64_t>> rows;  // ascending; row k here is rows[k] there
};
struct PrefetchedRows {
  std::string of;
};
struct LowHalf {
  std::string of;
};

/// Which of these a state is; most states are none of them.
struct Derived : std::variant<std::monostate, Mirror, CachedRows, PrefetchedRows, LowHalf> {
  using variant::variant;

  /// Whether checkpoints have it under its own name.
  bool is_saved() const { return std::holds_alternative<std::monostate>(*this); }
  template <class Kind>
  const Kind* as() const {
    return std::get_if<Kind>(this);
  }
  template <class Kind>
  bool is() const {
    return as<Kind>() != nullptr;
  }
  template <class Kind>
  bool is_of(std::string_view state) const {
    return is<Kind>() && as<Kind>()->of == state;
  }
};

}  // namespace tandem

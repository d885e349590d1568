// Rows that data chooses, in a graph of static shapes: values have room for all possible rows, and
// flags say which count. Each operator has a rule for them; an operator that mixes rows is masked,
// or refused.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "importer/session.h"

namespace tandem::importer {

/// Along one axis of a value, data has chosen some of its entries, whose order stays. The others
/// hold what the operators make of entries that were not chosen.
struct ChosenRows {
  std::size_t axis = 0;
  ValueId valid;      // bool [extent of the axis]
  std::string cause;  // "NonZero at block.1.mlp"
};

/// For integers that exporters compute shapes with: which of them are extents of chosen rows.
struct CountedExtents {
  enum Flag : std::int64_t { none = 0, count = 1, computed = 2 };

  HostTensor flags;  // int64, in the shape of the term: Flag
  ValueId valid;
  std::string cause;
};

/// The term with entries along an axis that count where `valid` is true.
Term with_chosen_rows(Term term, std::size_t axis, ValueId valid, std::string cause);
/// The extents of a term, as Shape gives them.
Term counted_extents(const Term& of, Term extents, std::int64_t first);

/// The term without what is known of its rows, for operators that take all of them.
Term without_choice(Term term);
std::vector<Term> without_choice(const std::vector<Term>& terms);

bool is_about_chosen_rows(const std::vector<Term>& inputs);

/// What Session::apply does where some of the inputs have chosen rows or their extents. Throws
/// Unsupported, with the cause, where the operator would mix what was chosen with what was not.
std::vector<Term> apply_to_chosen_rows(Session& session, std::string_view op,
                                       const std::vector<Term>& inputs,
                                       const Attributes& attributes);

/// Like apply_to_chosen_rows where the inputs have only extents of chosen rows, not the rows:
/// operators that move extents move their flags. Throws Unsupported where the extents become values
/// of the graph.
std::vector<Term> apply_to_counted_extents(Session& session, std::string_view op,
                                           const std::vector<Term>& inputs,
                                           const Attributes& attributes);

/// Throws Unsupported: `reason`, "which CAUSE chooses".
[[noreturn]] void refuse_chosen_rows(const Session& session, const std::string& cause,
                                     const std::string& reason);

/// Extents that a node takes from `target`: throws Unsupported unless they are extents of chosen
/// rows themselves.
void check_counted_target(const Session& session, const Term& target);

/// `made`, whose extents come from `target`: extents of chosen rows in `target` are so in `made`,
/// too.
Term with_counted_extents(const Session& session, const Term& target, Term made);

/// Throws Unsupported: the values of `term` are a setting of `op`, and data has chosen them.
[[noreturn]] void refuse_chosen_setting(const Session& session, std::string_view op,
                                        const Term& term);

/// The entries along an axis that a file says are `sizes` long in all: all entries where data could
/// choose just that many, else the first chosen ones. The result has no chosen rows left.
Term first_chosen_rows(Session& session, const Term& x, std::int64_t count);

}  // namespace tandem::importer

// Extents of rows that data chooses, in the arithmetic of shapes.
#include <fmt/format.h>

#include <algorithm>

#include "importer/chosen_rows.h"

namespace tandem::importer {
namespace {

/// The flags of a term; zeros in its shape where none of it is an extent of rows.
HostTensor flags_of(const Term& term) {
  return term.counts ? term.counts->flags : HostTensor(TensorType{DType::int64, term.type.shape});
}

bool any_flag(const HostTensor& flags) {
  for (const std::int64_t flag : flags.as<std::int64_t>()) {
    if (flag != CountedExtents::none) return true;
  }
  return false;
}

/// -1 in a shape, which no extent is.
bool is_below_zero(const Term& term) {
  if (!term.constant || term.counts) return false;
  for (std::int64_t i = 0; i < term.type.elements(); ++i) {
    if (term.constant->number(i) >= 0) return false;
  }
  return true;
}

HostTensor computed_flags(const Shape& shape) {
  HostTensor flags(TensorType{DType::int64, shape});
  for (std::int64_t& flag : flags.as<std::int64_t>()) flag = CountedExtents::computed;
  return flags;
}

}  // namespace

std::vector<Term> apply_to_counted_extents(Session& session, std::string_view op,
                                           const std::vector<Term>& inputs,
                                           const Attributes& attributes) {
  std::shared_ptr<const CountedExtents> counts;
  for (const Term& input : inputs) {
    if (input.counts && !counts) counts = input.counts;
    if (input.counts && input.counts->valid != counts->valid)
      refuse_chosen_rows(session, counts->cause,
                         fmt::format("{} takes numbers of different rows", op));
  }
  std::vector<Term> results = session.apply(op, without_choice(inputs), attributes);
  for (const Term& result : results) {
    if (!result.constant) {
      refuse_chosen_rows(session, counts->cause,
                         fmt::format("{} computes with the number of rows", op));
    }
  }
  const bool asks_for_rest =
      op == "Equal" && (is_below_zero(inputs[0]) || is_below_zero(inputs[1]));
  if (asks_for_rest) return results;
  static constexpr std::string_view movers[] = {"Gather",    "Slice",  "Concat",   "Reshape",
                                                "Transpose", "Expand", "Identity", "Split"};
  const bool moves = std::find(std::begin(movers), std::end(movers), op) != std::end(movers);
  const bool selects = op == "Where" && !inputs[0].counts;
  std::vector<Term> flags;
  if (moves || selects) {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const bool is_other = (op == "Gather" && i == 1) || (selects && i == 0);
      if (is_other && inputs[i].counts)
        refuse_chosen_rows(session, counts->cause,
                           fmt::format("{} indexes by the number of rows", op));
      flags.push_back(is_other ? without_choice(inputs[i]) : session.constant(flags_of(inputs[i])));
    }
    flags = session.apply(op, flags, attributes);
  } else {
    for (const Term& result : results) {
      const bool is_cast = op == "Cast" && inputs[0].type.shape == result.type.shape;
      flags.push_back(
          session.constant(is_cast ? flags_of(inputs[0]) : computed_flags(result.type.shape)));
    }
  }
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!flags[i].constant || !any_flag(*flags[i].constant)) continue;
    results[i].counts = std::make_shared<const CountedExtents>(
        CountedExtents{*flags[i].constant, counts->valid, counts->cause});
  }
  return results;
}

Term counted_extents(const Term& of, Term extents, std::int64_t first) {
  if (!of.rows) return extents;
  const std::int64_t at = static_cast<std::int64_t>(of.rows->axis) - first;
  if (at < 0 || at >= extents.type.elements()) return extents;
  HostTensor flags(TensorType{DType::int64, extents.type.shape});
  flags.as<std::int64_t>()[static_cast<std::size_t>(at)] = CountedExtents::count;
  extents.counts = std::make_shared<const CountedExtents>(
      CountedExtents{std::move(flags), of.rows->valid, of.rows->cause});
  return extents;
}

void check_counted_target(const Session& session, const Term& target) {
  if (!target.counts) return;
  std::int64_t counted = 0;
  for (const std::int64_t flag : target.counts->flags.as<std::int64_t>()) {
    if (flag == CountedExtents::computed)
      refuse_chosen_rows(session, target.counts->cause,
                         "a shape is computed with the number of rows");
    counted += flag;
  }
  if (counted > 1)
    refuse_chosen_rows(session, target.counts->cause, "a shape has twice the number of rows");
}

Term with_counted_extents(const Session& session, const Term& target, Term made) {
  if (!target.counts) return made;
  const auto flags = target.counts->flags.as<std::int64_t>();
  const std::size_t missing = made.type.shape.size() - flags.size();
  for (std::size_t i = 0; i < flags.size(); ++i) {
    if (flags[i] != CountedExtents::count) continue;
    const std::size_t axis = missing + i;
    if (made.rows) {
      if (made.rows->axis == axis && made.rows->valid == target.counts->valid) return made;
      refuse_chosen_rows(session, target.counts->cause, "a shape has the number of other rows");
    }
    return with_chosen_rows(std::move(made), axis, target.counts->valid, target.counts->cause);
  }
  return made;
}

}  // namespace tandem::importer

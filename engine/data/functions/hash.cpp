// hash(100000): an id below that number of each (column, value), by a hash of both.
#include <fmt/format.h>

#include "engine/data/functions/field_function.h"
#include "engine/data/table_plan.h"

namespace tandem::functions {
namespace {

struct Hash final : TextFunction {
  std::int64_t modulus = 0;

  explicit Hash(Call& call) {
    call.count(1, 1, "hash(100000)");
    modulus = whole(call.number(0), 2, "the number of ids");
  }

  bool take_text(FieldPlanner& plan) const override {
    // Where 0 fills up after a `split`, no value has that id.
    const std::uint64_t first = plan.field().most > 0 && plan.field().pad == 0 ? 1 : 0;
    const std::uint64_t count = static_cast<std::uint64_t>(modulus) - first;
    plan.end_as_ids(modulus, [=](const std::string& column) -> ValueIds {
      return [=, hash = ColumnHash(column)](std::string_view value) {
        return static_cast<std::int64_t>(first + hash(value) % count);
      };
    });
    return true;
  }
  std::string decides_ids() const override { return fmt::format("hash({})", modulus); }
};

}  // namespace

FieldFunctionKind hash() {
  return {.name = "hash",
          .form = "hash(n)",
          .read = read_call<Hash>,
          .of_text = true,
          .gives_ids = true};
}

}  // namespace tandem::functions

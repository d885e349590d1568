// decimal(','): a number whose fraction follows this mark, where the table's own marks,
// data.decimal and data.thousands, read none: columns with "3,14" next to others with "2.5".
#include "engine/data/cells/cell_number.h"
#include "engine/data/functions/field_function.h"
#include "engine/data/table_plan.h"

namespace tandem::functions {
namespace {

struct Decimal final : TextFunction {
  CellText own;

  explicit Decimal(Call& call) {
    call.count(1, 1, "decimal(',')", true);
    if (!call[0].is_text || (call[0].text != "," && call[0].text != "."))
      throw std::invalid_argument("the mark is ',' or '.' in quotes: write decimal(',')");
    own.decimal = call[0].text == "," ? DecimalMark::comma : DecimalMark::point;
  }

  bool take_text(FieldPlanner& plan) const override {
    plan.read_text({.number = [own = own](std::string_view text,
                                          const CellText& cells) -> std::optional<double> {
                      std::string buffer;
                      const std::optional<double> usual = read_double(text, cells, buffer);
                      return usual ? usual : read_double(text, own, buffer);
                    },
                    .problem = "not a number",
                    .expected = "a number"},
                   false);
    return true;
  }
  std::string decides_ids() const override {
    return own.decimal == DecimalMark::comma ? "decimal(',')" : "decimal('.')";
  }
};

}  // namespace

FieldFunctionKind decimal() {
  return {.name = "decimal", .form = "decimal(',')", .read = read_call<Decimal>, .of_text = true};
}

}  // namespace tandem::functions

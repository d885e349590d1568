// FTRL-Proximal (McMahan et al. 2013, "Ad Click Prediction: a View from the Trenches", Algorithm 1)
// with g = scale * grad and p = -lr_power: n' = n + g^2, z' = z + g + 2 * l2_shrinkage * master -
// (n'^p - n^p) / lr * master, master = (sign(z') * l1 - z') / ((beta + n'^p) / lr + l2), and 0
// where |z'| <= l1. The dialects "tensorflow" and "mindspore" have 2 * l2 in place of l2. The group
// form shrinks whole rows as well: by max(0, 1 - l21 * sqrt(columns) / |x|), x the row's
// numerators. `skip` keeps all.
#include "engine/operators/operators.h"
#include "engine/operators/update.h"

namespace tandem::operators {
namespace {

void require_settings(const NodeView& view) {
  for (const char* name : {"l1", "l2", "beta", "l2_shrinkage", "l21"}) {
    require_not_negative(view, name);
  }
  const double power = view.attributes().number("lr_power");
  if (!(power <= 0 && power >= -10)) {
    view.fail("lr_power is out of range", "-10 to 0", std::to_string(power));
  }
  const std::string& dialect = view.attributes().text("dialect");
  if (dialect != "mcmahan" && dialect != "tensorflow" && dialect != "mindspore") {
    view.fail("dialect is unknown", "\"mcmahan\", \"tensorflow\" or \"mindspore\"", dialect);
  }
}

UpdateKind kind(const char* op, bool whole_row) {
  return {.op = op,
          .attributes = {{"l1", 0.0},
                         {"l2", 0.0},
                         {"beta", 0.0},
                         {"l2_shrinkage", 0.0},
                         {"lr_power", -0.5},
                         {"l21", 0.0},
                         {"dialect", std::string("mcmahan")}},
          .states = {{.name = "accumulator", .squares = true}, {.name = "linear"}},
          .require_settings = require_settings,
          .whole_row = whole_row,
          .flops = 14};
}

}  // namespace

UpdateKind ftrl_kind() { return kind("FtrlUpdate", false); }
UpdateKind group_ftrl_kind() { return kind("GroupFtrlUpdate", true); }

Operator ftrl_update() { return update_operator(ftrl_kind()); }
Operator group_ftrl_update() { return update_operator(group_ftrl_kind()); }

}  // namespace tandem::operators

// The lists of optimizers agree: kinds of the configuration, updates, and what kernels know of
// them.
#include "engine/operators/update_kind.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <string>

#include "engine/graph/error.h"
#include "engine/training/config/config_names.h"
#include "engine/training/optimizers/optimizer.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/shared/update_rules.h"

namespace tandem::testing {
namespace {

TEST(UpdateKinds, AreThoseOfTheOptimizers) {
  std::set<std::string> chosen;
  for (const auto& choice : optimizer_kinds) {
    const UpdateChoice update = choose_update({.kind = choice.value});
    const UpdateKind* kind = find_update_kind(update.op);
    ASSERT_NE(kind, nullptr) << choice.name;
    EXPECT_LE(update.starts.size(), kind->states.size()) << choice.name;
    for (const auto& [name, value] : update.settings.entries()) {
      EXPECT_TRUE(std::any_of(
          kind->attributes.begin(), kind->attributes.end(),
          [&, &setting = name](const AttributeSpec& spec) { return spec.name == setting; }))
          << update.op << " has no " << name;
    }
    EXPECT_EQ(update.settings.entries().size(), kind->attributes.size())
        << update.op << ": one left out would be another kind's where updates are grouped";
    chosen.insert(update.op);
  }
  for (const UpdateKind& kind : update_kinds()) EXPECT_TRUE(chosen.contains(kind.op)) << kind.op;
}

TEST(UpdateKinds, LieAsKernelsTakeThem) {
  EXPECT_EQ(std::size(row_optimizer_ops) + 1, update_kinds().size()) << "and lamb";
  for (const UpdateKind& kind : update_kinds()) {
    SCOPED_TRACE(kind.op);
    EXPECT_LE(kind.states.size(), static_cast<std::size_t>(most_states));
    if (kind.whole_tensor) {
      EXPECT_FALSE(kind.whole_row);
      EXPECT_THROW(row_optimizer(kind.op), Error) << "it has no step for rows";
      continue;
    }
    const RowLayout layout = layout_of(row_optimizer(kind.op));
    EXPECT_EQ(layout.whole_row, kind.whole_row);
    EXPECT_EQ(layout.elementwise(), kind.elementwise());
    const auto states = static_cast<std::size_t>(layout.states);
    EXPECT_EQ(states, kind.has_states == nullptr ? kind.states.size() : 0u);
    const Shape master{7, 3, 2};
    for (std::size_t k = 0; k < states; ++k) {
      const bool by_row = layout.by_row[k];
      EXPECT_EQ(kind.states[k].by_row, by_row) << kind.states[k].name;
      EXPECT_EQ(kind.state_shape(k, master), by_row ? Shape{7} : master) << kind.states[k].name;
      EXPECT_EQ(layout.state_columns(static_cast<int>(k), 6), by_row ? 1 : 6);
    }
  }
}

TEST(UpdateKinds, HaveAFastKernelOnTheHost) {
  const KernelList list = cpu_kernels();
  for (const UpdateKind& kind : update_kinds()) {
    EXPECT_TRUE(std::any_of(list.begin(), list.end(), [&](const Kernel& kernel) {
      return kernel.op == kind.op && !kernel.reference;
    })) << kind.op;
  }
}

// Never the update of another kind.
TEST(UpdateKinds, AnUnknownOneIsAnError) {
  EXPECT_EQ(find_update_kind("OtherUpdate"), nullptr);
  EXPECT_THROW(row_optimizer("OtherUpdate"), Error);
  EXPECT_THROW(with_rule<float>("OtherUpdate", {}, [](auto) { return 0; }), Error);
}

}  // namespace
}  // namespace tandem::testing

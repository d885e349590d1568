// What is derived from the list of optimizers: names, updates, rules, kernels.
#include "engine/operators/update_kind.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "engine/graph/error.h"
#include "engine/optimizers/optimizer.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/rows/row_rule.h"
#include "tests/harness/update_settings.h"

namespace tandem::testing {
namespace {

TEST(UpdateKinds, AreThoseOfTheOptimizers) {
  std::set<std::string> chosen;
  std::set<std::string_view> names;
  for (const OptimizerKind& optimizer : all_optimizers()) {
    const UpdateChoice update = optimizer.choose({});
    const UpdateKind* kind = find_update_kind(update.op);
    ASSERT_NE(kind, nullptr) << optimizer.name;
    EXPECT_FALSE(optimizer.source.empty()) << optimizer.name;
    EXPECT_TRUE(names.insert(optimizer.name).second) << optimizer.name;
    EXPECT_EQ(update.starts.size(), kind->states.size()) << optimizer.name;
    EXPECT_EQ(update.settings.entries().size(), kind->attributes.size())
        << update.op << ": one left out would be another kind's where updates are grouped";
    chosen.insert(update.op);
  }
  for (const UpdateKind& kind : update_kinds()) EXPECT_TRUE(chosen.contains(kind.op)) << kind.op;
}

TEST(UpdateKinds, HaveARuleForAllSettings) {
  for (const UpdateSettings& tried : settings_to_try()) {
    SCOPED_TRACE(tried.name);
    const UpdateKind& kind = *find_update_kind(tried.op);
    const RowFactors factors = row_factors(tried.op, tried.settings);
    EXPECT_EQ(factors.layout.kept, kind.kept(tried.settings));
    EXPECT_EQ(factors.layout.whole_row, kind.whole_row);
    EXPECT_EQ(factors.terms > 0, kind.whole_tensor);
    EXPECT_TRUE(kind.whole_tensor || factors.layout.elementwise() == kind.elementwise());
    const Shape master{7, 3, 2};
    const std::map<StateShape, Shape> shapes{{StateShape::like_master, master},
                                             {StateShape::one_per_row, {7}},
                                             {StateShape::row_statistics, {7, 3, 1}},
                                             {StateShape::column_statistics, {7, 1, 2}}};
    for (std::size_t k = 0; k < kind.states.size(); ++k) {
      EXPECT_TRUE(kind.states[k].optional || kind.keeps_state(k, tried.settings, master));
      if (!kind.keeps_state(k, tried.settings, master)) continue;
      const bool by_row = kind.states[k].shape == StateShape::one_per_row;
      EXPECT_EQ(factors.layout.is_by_row(static_cast<int>(k)), by_row);
      EXPECT_EQ(kind.state_shape(k, master), shapes.at(kind.states[k].shape))
          << kind.states[k].name;
      EXPECT_EQ(factors.layout.state_columns(static_cast<int>(k), 6), by_row ? 1 : 6);
    }
  }
}

// Statistics of rows and columns exist if the master has rows and columns.
TEST(UpdateKinds, FactoredStatesFollowTheMaster) {
  const UpdateKind& kind = *find_update_kind("AdafactorUpdate");
  ASSERT_TRUE(kind.is_factored());
  EXPECT_FALSE(find_update_kind("LambUpdate")->is_factored());
  Attributes defaults;
  for (const AttributeSpec& spec : kind.attributes) defaults.set(spec.name, spec.value);
  const auto states_of = [&](const Shape& master) {
    std::map<std::string, Shape> states;
    for (std::size_t k = 0; k < kind.states.size(); ++k) {
      if (kind.keeps_state(k, defaults, master))
        states[kind.states[k].name] = kind.state_shape(k, master);
    }
    return states;
  };
  using States = std::map<std::string, Shape>;
  EXPECT_EQ(states_of({}), (States{{"variance", {}}}));
  EXPECT_EQ(states_of({7}), (States{{"variance", {7}}}));
  EXPECT_EQ(states_of({4, 3}), (States{{"row_var", {4, 1}}, {"col_var", {1, 3}}}));
  EXPECT_EQ(states_of({2, 5, 4, 3}),
            (States{{"row_var", {2, 5, 4, 1}}, {"col_var", {2, 5, 1, 3}}}));
}

// Loops are compiled for each set of states; a set that no settings use would never run.
TEST(UpdateKinds, EveryRuleIsTried) {
  std::set<int> rules;
  for (const UpdateSettings& tried : settings_to_try())
    rules.insert(row_factors(tried.op, tried.settings).rule);
  EXPECT_EQ(rules.size(), static_cast<std::size_t>(rule_count));
}

TEST(UpdateKinds, HaveAFastKernelOnTheHost) {
  const KernelList list = cpu_kernels();
  for (const UpdateKind& kind : update_kinds()) {
    if (kind.compose != nullptr) continue;  // its operators have kernels
    EXPECT_TRUE(std::any_of(list.begin(), list.end(), [&](const Kernel& kernel) {
      return kernel.op == kind.op && !kernel.reference;
    })) << kind.op;
  }
}

// It is never replaced by another kind's update.
TEST(UpdateKinds, AnUnknownOneIsAnError) {
  EXPECT_EQ(find_update_kind("OtherUpdate"), nullptr);
  EXPECT_EQ(find_optimizer("other"), nullptr);
  EXPECT_THROW(with_rule<float>("OtherUpdate", {}, [](auto) { return 0; }), Error);
}

// If keeps_still is true, a gradient of zeros changes nothing, so rows without one may be skipped.
TEST(UpdateKinds, KeepStillWhereTheySaySo) {
  for (const UpdateSettings& tried : settings_to_try()) {
    const UpdateKind& kind = *find_update_kind(tried.op);
    if (!kind.elementwise() || !kind.keeps_still(tried.settings)) continue;
    with_rule<double>(tried.op, tried.settings, [&](const auto& rule) {
      using R = std::decay_t<decltype(rule)>;
      if constexpr (!R::whole_row && !R::whole_tensor) {
        double states[most_states];
        for (int k = 0; k < most_states; ++k) states[k] = 0.25 * (k + 1);
        EXPECT_EQ(R::element(rule.step(0.1, 3, 1.0), 1.5, 0.0, states), 1.5) << tried.name;
        for (int k = 0; k < most_states; ++k) EXPECT_EQ(states[k], 0.25 * (k + 1)) << tried.name;
      }
      return 0;
    });
  }
}

}  // namespace
}  // namespace tandem::testing

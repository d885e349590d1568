// Which state a derived state belongs to, and under which name it is saved.
#include <gtest/gtest.h>

#include "engine/graph/graph.h"

namespace tandem {
namespace {

TEST(DerivedState, AStateOfItsOwnIsSavedUnderItsName) {
  State state;
  state.name = "deep.weight";
  EXPECT_TRUE(state.derived.is_saved());
  EXPECT_FALSE(state.derived.is<Mirror>());
  EXPECT_FALSE(state.derived.is_of<Mirror>(""));
  EXPECT_EQ(state.source<Mirror>(), "deep.weight");
}

TEST(DerivedState, NamesItsSourceAsWhatItIsAlone) {
  State state;
  state.name = "deep.weight/cached";
  const std::vector<std::int64_t> rows{2, 5};
  state.derived =
      CachedRows{"deep.weight", std::make_shared<const std::vector<std::int64_t>>(rows)};
  EXPECT_TRUE(state.derived.is_of<CachedRows>("deep.weight"));
  EXPECT_FALSE(state.derived.is_of<CachedRows>("wide.weight"));
  EXPECT_FALSE(state.derived.is_of<PrefetchedRows>("deep.weight"));
  EXPECT_EQ(*state.derived.as<CachedRows>()->rows, rows);
  EXPECT_EQ(state.source<CachedRows>(), "deep.weight");
  EXPECT_EQ(state.source<Mirror>(), "deep.weight/cached");
}

TEST(DerivedState, NoneOfThemIsSavedUnderItsName) {
  for (const Derived& derived : {Derived(Mirror{"w"}), Derived(CachedRows{"w", {}}),
                                 Derived(PrefetchedRows{"w"}), Derived(LowHalf{"w"})})
    EXPECT_FALSE(derived.is_saved()) << derived.index();
}

}  // namespace
}  // namespace tandem

// Which names of files say that `init` trains on them, or holds them out.
#include <gtest/gtest.h>

#include "api/init/data/data_look.h"

namespace tandem::api {
namespace {

TEST(InitFiles, NamesSayWhatIsHeldOut) {
  for (const char* name : {"hold_out.csv", "rows-hold-out.csv", "held_out.csv", "holdout.csv",
                           "x_oot.csv", "valid.csv", "validation.csv", "dev.csv", "test2.csv"})
    EXPECT_TRUE(names_held_out(name)) << name;
  for (const char* name : {"household.csv", "hold.csv", "out.csv", "2024q4.csv", "latest.csv"})
    EXPECT_FALSE(names_held_out(name)) << name;
  EXPECT_TRUE(names_training("train1.csv"));
  EXPECT_FALSE(names_training("trains.csv"));
}

}  // namespace
}  // namespace tandem::api

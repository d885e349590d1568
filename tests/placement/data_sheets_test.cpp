// Accelerators by their data sheets: what the cost model takes from them, and which words name one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "engine/formats/files.h"
#include "engine/graph/error.h"
#include "placement/report/data_sheets.h"
#include "tests/api/error_of.h"
#include "tests/harness/folders.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using testing::error_of;
using ::testing::HasSubstr;
using ::testing::Not;

DeviceProfile of(const std::string& name, DType compute = DType::float32, bool tf32 = false) {
  return named_profiles(name, compute, tf32).at("gpu").profile;
}

TEST(DataSheets, APartOfWhatIsStatedIsReached) {
  const StoredProfile h100 = named_profiles("h100", DType::float32, false).at("gpu");
  EXPECT_DOUBLE_EQ(h100.profile.flops, 0.7 * 67e12);
  EXPECT_DOUBLE_EQ(h100.profile.bandwidth, 0.85 * 3.35e12);
  EXPECT_DOUBLE_EQ(h100.profile.link_bandwidth, 0.85 * 64e9);
  EXPECT_EQ(h100.memory_bytes, 80'000'000'000u);
  EXPECT_EQ(named_profiles("h200", DType::float32, false).at("gpu").memory_bytes, 141'000'000'000u);
}

TEST(DataSheets, TheRateIsThatOfTheRunsPrecision) {
  EXPECT_DOUBLE_EQ(of("a100").flops, 0.7 * 19.5e12);
  EXPECT_DOUBLE_EQ(of("a100", DType::float32, true).flops, 0.7 * 156e12);
  EXPECT_DOUBLE_EQ(of("a100", DType::bfloat16).flops, 0.7 * 312e12);
  EXPECT_DOUBLE_EQ(of("a100", DType::float16, true).flops, 0.7 * 312e12);
  EXPECT_DOUBLE_EQ(of("t4", DType::float16).flops, 0.7 * 65e12);
  // It has no such products.
  EXPECT_DOUBLE_EQ(of("t4", DType::bfloat16).flops, 0.7 * 8.1e12);
  EXPECT_DOUBLE_EQ(of("v100", DType::float32, true).flops, 0.7 * 15.7e12);
}

// Would show a digit too many or too few.
TEST(DataSheets, RowsArePlausible) {
  const std::vector<std::string> names = data_sheet_names();
  EXPECT_GE(names.size(), 8u);
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    const DeviceModel& sheet = *find_data_sheet(name);
    EXPECT_TRUE(sheet.float32 > 5 && sheet.float32 < 200);
    EXPECT_TRUE(sheet.tf32 == 0 || (sheet.tf32 >= sheet.float32 && sheet.tf32 < 10 * 67));
    EXPECT_TRUE(sheet.float16 > 60 && sheet.float16 < 1000);
    EXPECT_TRUE(sheet.bfloat16 == 0 || sheet.bfloat16 == sheet.float16);
    EXPECT_TRUE(sheet.bandwidth >= 300 && sheet.bandwidth < 5000);
    EXPECT_TRUE(sheet.memory >= 16 && sheet.memory < 200);
    EXPECT_TRUE(sheet.link_bandwidth == 16 || sheet.link_bandwidth == 32 ||
                sheet.link_bandwidth == 64);
  }
}

TEST(DataSheets, ThePageListsThem) {
  const std::string page = read_file(source_folder() + "/docs/placement.md");
  for (const std::string& name : data_sheet_names()) EXPECT_THAT(page, HasSubstr("`" + name + "`"));
}

TEST(DataSheets, AWordIsNoFile) {
  const testing::TemporaryFolder folder;
  const std::string file = folder / "h100";
  std::ofstream(file) << R"({ "tandem_device_profile": 1, "devices": {
    "gpu": { "flops_per_second": 5e9 } } })";
  EXPECT_DOUBLE_EQ(of(file).flops, 5e9);
  EXPECT_DOUBLE_EQ(of("h100").flops, 0.7 * 67e12);
}

TEST(DataSheets, UnknownWordsGetTheNearestAndTheList) {
  EXPECT_THAT(error_of([] { of("h10O"); }),
              AllOf(HasSubstr("h10O: no such file, and no accelerator of this name is known"),
                    HasSubstr("or one of h200, h100, a100"), HasSubstr("did you mean \"h100\"?")));
  EXPECT_THAT(error_of([] { of("gone/profile.json"); }),
              AllOf(HasSubstr("one of h200"), Not(HasSubstr("did you mean"))));
}

}  // namespace
}  // namespace tandem

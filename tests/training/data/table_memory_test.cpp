// How much memory and time text tables take, whatever a packed file unpacks to.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/config/keys/config_check.h"
#include "engine/data/data_source.h"
#include "engine/data/prepare_table.h"
#include "engine/data/table_file.h"
#include "engine/formats/files.h"
#include "engine/graph/error.h"
#include "tests/harness/few_addresses.h"
#include "tests/harness/peak_memory.h"
#include "tests/training/data/data_config_text.h"
#include "tests/training/error_text.h"
#include "tests/training/formats/packed_files.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem {
namespace {

using namespace tandem::testing;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::size_t mib = std::size_t{1} << 20;

OpenOptions one_thread() {
  OpenOptions options;
  options.threads = 1;
  return options;
}

TEST(TableMemory, ATableTakesLessThanItsArrays) {
  if (!counts_allocations()) GTEST_SKIP() << "sanitizers take memory of their own";
  const TemporaryFolder folder;
  std::string rows;
  constexpr std::size_t count = 6'000'000;
  for (std::size_t i = 0; i < count; ++i)
    rows += std::to_string(i % 9) + "\t" + std::to_string(i % 7) + "\n";
  write_file(folder / "a", rows);
  write_file(folder / "a.gz", gzipped(rows));
  for (const std::string file : {"a", "a.gz"}) {
    const DataConfig config =
        data_config(folder, "kind = 'tsv'\ncolumns = ['x', 'y']\n[data.train]\nfiles = ['" + file +
                                "']\n[data.fields]\nx = { from = 'x', as = ['float32'] }\n"
                                "y = { from = 'y', as = ['vocabulary'] }\n");
    const std::size_t peak = peak_memory_of([&] {
      const DataSets sets = open_data(config, one_thread());
      if (sets.train->samples() != count) throw 1;
    });
    EXPECT_LT(peak, 8 * count) << file;
    RecordProperty(file, std::to_string(peak) + " of " + std::to_string(8 * count));
  }
}

// 24 values of 15 MiB in 360 KiB.
TEST(TableMemory, ValuesOfAVocabularyAreCountedAgainstTheMachine) {
  if (!counts_allocations()) GTEST_SKIP() << "sanitizers take memory of their own";
  const TemporaryFolder folder;
  std::string file;
  for (char c = 'a'; c < 'a' + 24; ++c)
    file += gzipped(std::string(1, c) + std::string(15 * mib, 'x') + "\n");
  write_file(folder / "a.gz", file);
  const DataConfig config =
      data_config(folder,
                  "kind = 'tsv'\ncolumns = ['x']\n[data.train]\nfiles = ['a.gz']\n"
                  "[data.fields]\nx = { from = 'x', as = ['vocabulary'] }\n");
  const std::size_t peak = peak_memory_of([&] {
    const FewAddresses few(400 * mib);
    try {
      open_data(config, one_thread());
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::does_not_fit);
      EXPECT_THAT(error.what(),
                  AllOf(HasSubstr("a.gz"), HasSubstr("different values of a vocabulary"),
                        HasSubstr("hash(n)"), Not(HasSubstr("batch"))));
    }
    if (::testing::Test::HasFailure()) throw 1;
  });
  EXPECT_LT(peak, 400 * mib);
}

// Comparing them with each other would take hours.
TEST(TableMemory, AHeaderOfManyColumns) {
  const TemporaryFolder folder;
  constexpr int count = 1'000'000;
  std::string header;
  for (int i = 0; i < count; ++i) header += "c" + std::to_string(i) + "\t";
  write_file(folder / "a", header + "c\n");
  write_file(folder / "twice", header + "c7\n");
  const auto config = [&](const std::string& file) {
    return data_config(folder, "kind = 'tsv'\n[data.train]\nfiles = ['" + file +
                                   "']\n[data.fields]\nx = { from = 'c0', as = ['float32'] }\n");
  };
  EXPECT_EQ(table_columns(config("a"), folder / "a").size(), count + 1u);
  EXPECT_THAT(error_of([&] { table_columns(config("twice"), folder / "twice"); }),
              HasSubstr("two columns have the name `c7`"));
}

}  // namespace
}  // namespace tandem

// Files read in blocks by several threads: everything is as if one thread had read file after file.
#include "engine/data/encode_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "engine/config/keys/config_check.h"
#include "engine/data/prepare_table.h"
#include "engine/data/table_file.h"
#include "engine/formats/files.h"
#include "engine/graph/error.h"
#include "tests/training/data/data_config_text.h"
#include "tests/training/error_text.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::TemporaryFolder;

constexpr const char* three_columns =
    "[data.train]\nfiles = ['a']\n[data.fields]\n"
    "words = { from = ['t', 'u'], as = [\"missing('x')\", 'vocabulary'] }\n"
    "parts = { from = 'u', as = [\"split('|', max=2, pad=7)\", 'vocabulary(by=\"value\")'] }\n"
    "n = { from = 'n', as = ['int32'] }\n";

/// All that reading files gives, with values instead of their numbers.
struct Outcome {
  std::vector<std::string> arrays, problems, failures;
  std::vector<std::int64_t> counts;
  std::vector<std::string> values;  // with how often they occur, sorted
  std::uint64_t read = 0;           // bytes that were reported
  bool operator==(const Outcome&) const = default;
};

std::string decoded(const std::string& bytes, const ValueCounts& values) {
  std::string text;
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(std::int32_t)) {
    std::int32_t number;
    std::memcpy(&number, bytes.data() + at, sizeof number);
    text += number < 0
                ? "none"
                : std::to_string(values.column(number)) + ":" + std::string(values.value(number));
    text += ";";
  }
  return text;
}

std::string text_of(const std::exception_ptr& failure) {
  if (!failure) return "";
  return error_of([&] { std::rethrow_exception(failure); });
}

Outcome read(const TemporaryFolder& folder, const DataConfig& config,
             const std::vector<std::string>& names, EncodeFilesOptions options) {
  std::vector<std::string> paths;
  for (const std::string& name : names) {
    paths.push_back(folder / name);
    options.prefixes.push_back(folder / ("arrays-" + name));
  }
  Outcome outcome;
  std::atomic<std::uint64_t> heard = 0;
  options.on_read = [&](std::uint64_t bytes) { heard += bytes; };
  std::vector<Diagnostic> errors;
  const TablePlan plan = plan_table(config, table_columns(config, paths[0]), errors);
  EXPECT_THAT(errors, IsEmpty());
  const EncodedFiles all = encode_files(config, plan, paths, options);
  for (std::size_t i = 0; i < names.size(); ++i) {
    const EncodedFile& file = all.files[i];
    outcome.failures.push_back(text_of(all.failures[i]));
    outcome.counts.insert(outcome.counts.end(), {file.rows, file.bad});
    for (const Diagnostic& d : file.problems) outcome.problems.push_back(to_string(d));
    for (const auto& columns : file.fields) {
      for (const ColumnStatistics& s : columns) {
        outcome.counts.insert(outcome.counts.end(),
                              {s.values, s.empty, s.cut, s.unknown,
                               static_cast<std::int64_t>(s.least < 1e9 ? s.least : 0),
                               static_cast<std::int64_t>(s.greatest > -1e9 ? s.greatest : 0)});
      }
    }
    if (!path_exists(options.prefixes[i] + ".lines")) continue;
    for (std::size_t f = 0; f < plan.fields.size(); ++f) {
      const std::string bytes = read_file(options.prefixes[i] + "." + std::to_string(f));
      const std::optional<std::size_t>& vocabulary = plan.fields[f].vocabulary;
      const bool numbered = vocabulary && options.vocabularies == nullptr;
      outcome.arrays.push_back(numbered ? decoded(bytes, all.values[*vocabulary]) : bytes);
      remove_all(options.prefixes[i] + "." + std::to_string(f));
    }
    outcome.arrays.push_back(read_file(options.prefixes[i] + ".lines"));
    remove_all(options.prefixes[i] + ".lines");
  }
  for (const ValueCounts& values : all.values) {
    for (std::int64_t n = 0; n < values.size(); ++n) {
      if (values.times(n) == 0) continue;
      outcome.values.push_back(std::to_string(values.column(n)) + ":" +
                               std::string(values.value(n)) + " " +
                               std::to_string(values.times(n)));
    }
  }
  std::sort(outcome.values.begin(), outcome.values.end());
  outcome.read = heard;
  return outcome;
}

/// Reads with many sizes of blocks and several threads; everything equals one thread's whole file.
/// If bad rows end the reading, their messages are equal.
Outcome expect_the_same(const TemporaryFolder& folder, const DataConfig& config) {
  EncodeFilesOptions options;
  options.problems = 3;
  options.threads = 1;
  const Outcome expected = read(folder, config, {"a"}, options);
  const bool stops = config.table()->on_bad == OnBad::error && !expected.problems.empty();
  for (const std::uint64_t bytes : {3, 16, 61, 250, 4000}) {
    for (const int threads : {1, 3}) {
      options.block_bytes = bytes;
      options.threads = threads;
      const Outcome outcome = read(folder, config, {"a"}, options);
      EXPECT_EQ(outcome.problems, expected.problems);
      EXPECT_TRUE(stops || outcome == expected) << "blocks of " << bytes << ", threads " << threads;
    }
  }
  return expected;
}

TEST(EncodeFiles, BlocksOfPlainTextDoNotShow) {
  const TemporaryFolder folder;
  std::string text = "\xef\xbb\xbf\n";
  for (int i = 0; i < 300; ++i) {
    text += std::to_string(i * 7919) + "\tw" + std::to_string(i * i % 37) + "\t";
    text += i % 5 == 0 ? "" : std::to_string(i % 11) + "|" + std::to_string(i % 3) + "|y";
    text += i % 4 == 0 ? "\r\n" : "\n";
    if (i % 29 == 0) text += "\n\r\n";
    if (i % 50 == 3) text += std::to_string(i) + "x\tbad\trow\n";  // after good ones with its words
    if (i % 70 == 9) text += "only " + std::string(static_cast<std::size_t>(i), 'z') + "\n";
  }
  text += "1\tno\tend";
  write_file(folder / "a", text);
  const std::string header = "kind = 'tsv'\ncolumns = ['n', 't', 'u']\n";
  const Outcome all =
      expect_the_same(folder, data_config(folder, header + "on_bad = 'skip'\n" + three_columns));
  EXPECT_EQ(all.counts[0], 301);
  EXPECT_EQ(all.counts[1], 11 + 23);  // empty lines
  EXPECT_THAT(all.problems,
              ElementsAre(HasSubstr("a:1:1: an empty line: expected 3 fields"),
                          HasSubstr("a:3:1: an empty line"), HasSubstr("a:4:1: an empty line")));
  EXPECT_EQ(all.read, text.size());
  EXPECT_THAT(all.values, ::testing::Not(::testing::Contains(HasSubstr("bad"))));

  const Outcome stopped = expect_the_same(folder, data_config(folder, header + three_columns));
  EXPECT_EQ(stopped.problems, all.problems);
}

TEST(EncodeFiles, EmptyLinesAtTheEndAreNoRows) {
  const TemporaryFolder folder;
  std::string text = "1\ta\tb\n\n2\tc\td\n";
  for (int i = 0; i < 60; ++i) text += i % 3 == 0 ? "\r\n" : "\n";
  const std::string keys = "kind = 'tsv'\ncolumns = ['n', 't', 'u']\non_bad = 'skip'\n";
  for (const bool more : {false, true}) {
    write_file(folder / "a", text + (more ? "x" : ""));
    const Outcome all = expect_the_same(folder, data_config(folder, keys + three_columns));
    EXPECT_EQ(all.counts[0], 2);
    EXPECT_EQ(all.counts[1], more ? 62 : 1);
    EXPECT_EQ(all.read, text.size() + (more ? 1 : 0));
  }
}

TEST(EncodeFiles, LineEndsInQuotesMayLieAnywhere) {
  const TemporaryFolder folder;
  std::string text = "n,\"t\",\"u\"\n";
  for (int i = 0; i < 120; ++i) {
    // Lines that look like rows, and quotes that look like ends, inside of fields.
    const std::string inside = "1,a,b\n2,\"\"c\"\",d\n\n3,e,f";
    text += std::to_string(i) + ",\"" + (i % 3 == 0 ? inside : "w" + std::to_string(i % 5)) + "\",";
    text += i % 4 == 0 ? "\"x|\ny\"\r\n" : "x\n";
    if (i % 40 == 17)
      text += "5,\"open\n6,c,\"d\"e\n";  // not closed in its row; text after a quote
  }
  write_file(folder / "a", text);
  const Outcome all = expect_the_same(
      folder, data_config(folder, std::string("kind = 'csv'\non_bad = 'skip'\n") + three_columns));
  EXPECT_GT(all.counts[0], 100);
  EXPECT_EQ(all.problems.size(), 3u);
  EXPECT_THAT(all.values, ::testing::Contains(HasSubstr("1:1,a,b\n2,\"c\",d\n\n3,e,f ")));
}

TEST(EncodeFiles, AQuoteOverManyBlocks) {
  const TemporaryFolder folder;
  std::string text = "1,a,b\n2,\"";
  for (int i = 0; i < 500; ++i) text += "3,c,d\n";
  text += "\",e\n4,f,g\n";
  write_file(folder / "a", text);
  const Outcome all = expect_the_same(
      folder, data_config(folder, std::string("kind = 'csv'\ncolumns = ['n', 't', 'u']\n") +
                                      three_columns));
  EXPECT_EQ(all.counts[0], 3);
  EXPECT_THAT(all.problems, IsEmpty());
}

TEST(EncodeFiles, VocabulariesThatAreThere) {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 200; ++i) {
    text +=
        std::to_string(i) + "\tw" + std::to_string(i % 9) + "\tw" + std::to_string(i % 4) + "\n";
  }
  write_file(folder / "a", text);
  const DataConfig config =
      data_config(folder, std::string("kind = 'tsv'\ncolumns = ['n', 't', 'u']\n") + three_columns);
  std::vector<Vocabulary> vocabularies;
  for (const bool by_value : {false, true}) {
    ValueCounts counts;
    for (const char* value : {"w0", "w2", "w3"}) {
      counts.count(counts.find_or_add(by_value ? 0 : 1, value));
    }
    std::vector<std::int32_t> ids;
    vocabularies.emplace_back(counts, 1, ids);
  }
  EncodeFilesOptions options;
  options.vocabularies = &vocabularies;
  options.threads = 1;
  const Outcome expected = read(folder, config, {"a"}, options);
  EXPECT_THAT(expected.values, IsEmpty());
  EXPECT_EQ(expected.counts[5], 200 / 9 * 6 + 1);  // unknown values of column `t`
  options.block_bytes = 64;
  options.threads = 3;
  EXPECT_EQ(read(folder, config, {"a"}, options), expected);
}

// Which of several files with mistakes is reported does not depend on who reads faster.
TEST(EncodeFiles, TheFirstFileWithAMistakeIsReported) {
  const TemporaryFolder folder;
  std::string good;
  for (int i = 0; i < 2000; ++i) good += std::to_string(i) + "\ta\tb\n";
  for (const char* name : {"a", "b", "c"}) write_file(folder / name, good);
  write_file(folder / "late", good + "x\ta\tb\n" + good + "y\ta\tb\n");
  write_file(folder / "early", "z\ta\tb\n" + good);
  write_file(folder / "none.gz", good);
  const std::string fields =
      "kind = 'tsv'\ncolumns = ['n', 't', 'u']\n" + std::string(three_columns);
  for (const std::uint64_t bytes : {100, 1 << 20}) {
    for (const int threads : {1, 2, 4}) {
      EncodeFilesOptions options;
      options.threads = threads;
      options.block_bytes = bytes;
      DataConfig config = data_config(folder, fields);
      const Outcome stopped = read(folder, config, {"a", "late", "early", "none.gz"}, options);
      ASSERT_GE(stopped.problems.size(), 2u);
      EXPECT_THAT(stopped.problems[0], HasSubstr("late:2001:1"));
      EXPECT_THAT(stopped.problems[1], HasSubstr("late:4002:1"));
      EXPECT_EQ(stopped.counts[0], 2000);

      config.table()->on_bad = OnBad::skip;
      const Outcome broken = read(folder, config, {"late", "b", "none.gz", "early"}, options);
      EXPECT_THAT(broken.failures[2], HasSubstr("no gzip file"));
      EXPECT_EQ(broken.failures[0] + broken.failures[1], "");
      options.reads_all = true;
      const Outcome all = read(folder, config, {"late", "none.gz", "early", "c"}, options);
      EXPECT_EQ(all.problems.size(), 3u);
      EXPECT_THAT(all.values, ElementsAre("0:b 8000", "1:a 8000", "2:b 8000"));
    }
  }
}

std::vector<std::pair<std::string, std::string>> files_in(const std::string& folder) {
  std::vector<std::pair<std::string, std::string>> files;
  for (const std::string& name : list_directory(folder)) {
    files.emplace_back(name, read_file(folder + "/" + name));
  }
  return files;
}

// More text than two blocks of the usual size: what is prepared is the same to the byte.
TEST(EncodeFiles, PreparedArraysAreTheSame) {
  const TemporaryFolder folder;
  std::string text;
  for (unsigned i = 0; text.size() < (std::size_t{9} << 20); ++i) {
    const unsigned x = i * 2654435761u;
    text += std::to_string(x % 1000) + "\tvalue" + std::to_string(x % 7919) + "\t";
    text += std::to_string(x % 97) + "|" + std::to_string(x % 13) + "\n";
  }
  write_file(folder / "a", text);
  write_file(folder / "b", text.substr(0, text.find('\n', text.size() * 2 / 3) + 1));
  const DataConfig config = data_config(
      folder,
      "kind = 'tsv'\ncolumns = ['n', 't', 'u']\n[data.train]\nfiles = ['a']\n[data.eval]\n"
      "files = ['b']\n[data.fields]\n"
      "words = { from = ['t', 'u'], as = ['vocabulary(min_count=60)'] }\n"
      "parts = { from = 'u', as = [\"split('|', max=3, pad=7)\", 'vocabulary(by=\"value\")'] }\n"
      "hashed = { from = 't', as = ['hash(1000)'] }\nn = 'n'\n");
  OpenOptions options;
  options.threads = 1;
  const PreparedTable one = prepare_table(config, options);
  ASSERT_TRUE(one.built);
  const auto expected = files_in(one.folder);
  EXPECT_GT(expected.size(), 8u);
  remove_all(config.table()->cache);
  options.threads = 4;
  const PreparedTable four = prepare_table(config, options);
  ASSERT_TRUE(four.built);
  EXPECT_EQ(four.folder, one.folder);
  EXPECT_TRUE(files_in(four.folder) == expected);
  EXPECT_EQ(one.vocabularies[0].rows, four.vocabularies[0].rows);
  EXPECT_GT(one.vocabularies[0].rows, 90);
}

}  // namespace
}  // namespace tandem

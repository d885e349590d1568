// Delimited text: line ends, quotes, gzip, pieces that end anywhere.
#include "engine/formats/delimited.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include "engine/formats/files.h"
#include "engine/graph/error.h"
#include "tests/training/error_text.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem {
namespace {

using testing::error_of;
using ::testing::HasSubstr;
using testing::TemporaryFolder;

struct Row {
  std::int64_t line;
  std::vector<std::string> fields;
  std::string problem;
  bool operator==(const Row&) const = default;
};

std::vector<Row> rows_of(const std::string& path, bool quotes, char separator = '\t') {
  DelimitedReader reader(path, separator, quotes);
  std::vector<Row> rows;
  while (reader.next()) {
    Row row{reader.line(), {}, reader.problem()};
    for (const std::string_view field : reader.fields()) row.fields.emplace_back(field);
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<Row> rows_in(const std::string& text, bool quotes) {
  const TemporaryFolder folder;
  write_file(folder / "a", text);
  return rows_of(folder / "a", quotes, quotes ? ',' : '\t');
}

std::string gzipped_by_zlib(const std::string& text) {
  z_stream z{};
  EXPECT_EQ(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string result(text.size() + 1024, '\0');
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  z.avail_in = static_cast<uInt>(text.size());
  z.next_out = reinterpret_cast<Bytef*>(result.data());
  z.avail_out = static_cast<uInt>(result.size());
  EXPECT_EQ(deflate(&z, Z_FINISH), Z_STREAM_END);
  result.resize(z.total_out);
  deflateEnd(&z);
  return result;
}

TEST(Delimited, TabsAndLineEnds) {
  EXPECT_EQ(rows_in("a\tb\r\n\t\n\r\n\nc\t\"d", false), (std::vector<Row>{{1, {"a", "b"}, ""},
                                                                          {2, {"", ""}, ""},
                                                                          {3, {""}, ""},
                                                                          {4, {""}, ""},
                                                                          {5, {"c", "\"d"}, ""}}));
  EXPECT_EQ(rows_in("", false), std::vector<Row>{});
  EXPECT_EQ(rows_in("\n\n", false), std::vector<Row>{});
  EXPECT_EQ(rows_in("\xef\xbb\xbfx\n", false), (std::vector<Row>{{1, {"x"}, ""}}));
  EXPECT_EQ(rows_in("a\rb\n", false), (std::vector<Row>{{1, {"a\rb"}, ""}}));
}

// Empty lines are rows if any line with text follows, even beyond the end of the buffer.
TEST(Delimited, EmptyLines) {
  EXPECT_EQ(rows_in("\n\r\na\n\nb\n\n\r\n\r", false),
            (std::vector<Row>{
                {1, {""}, ""}, {2, {""}, ""}, {3, {"a"}, ""}, {4, {""}, ""}, {5, {"b"}, ""}}));
  EXPECT_EQ(rows_in("\xef\xbb\xbf\n\rx\n", false),
            (std::vector<Row>{{1, {""}, ""}, {2, {"\rx"}, ""}}));
  EXPECT_EQ(rows_in("\"\"\n\na\n\"\"\n\n", true),
            (std::vector<Row>{{1, {""}, ""}, {2, {""}, ""}, {3, {"a"}, ""}, {4, {""}, ""}}));
  const std::vector<Row> many = rows_in(std::string(600'000, '\n') + "x\n\n", false);
  ASSERT_EQ(many.size(), 600'001u);
  EXPECT_EQ(many[599'999], (Row{600'000, {""}, ""}));
  EXPECT_EQ(many.back(), (Row{600'001, {"x"}, ""}));

  const TemporaryFolder folder;
  write_file(folder / "a", "\n\"\"\nx\n\n\n");
  DelimitedReader reader(folder / "a", ',', true);
  for (const bool empty : {true, false, false}) {
    ASSERT_TRUE(reader.next());
    EXPECT_EQ(reader.is_empty_line(), empty) << reader.line();
  }
  EXPECT_FALSE(reader.next());
  EXPECT_EQ(reader.position(), 8u);
  EXPECT_EQ(reader.next_line(), 6);
}

TEST(Delimited, QuotesAsInRfc4180) {
  EXPECT_EQ(rows_in("\"a,b\",\"say \"\"x\"\"\",c\r\n\"two\nlines\",,\"\"\r\nd,e\"f,g", true),
            (std::vector<Row>{{1, {"a,b", "say \"x\"", "c"}, ""},
                              {2, {"two\nlines", "", ""}, ""},
                              {4, {"d", "e\"f", "g"}, ""}}));
  EXPECT_EQ(rows_in("a,\"b\"", true), (std::vector<Row>{{1, {"a", "b"}, ""}}));
  EXPECT_EQ(rows_in("a,\"b\"\r", true), (std::vector<Row>{{1, {"a", "b"}, ""}}));
  EXPECT_EQ(rows_in("a,b,\n", true), (std::vector<Row>{{1, {"a", "b", ""}, ""}}));
}

TEST(Delimited, BrokenQuotesEndWithTheirLine) {
  const std::vector<Row> rows = rows_in("a,\"b\"c\nd,\"e\nf,g\n", true);
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].problem, "text after a closing quote");
  EXPECT_EQ(rows[1].problem, "a quote is not closed");
  EXPECT_EQ(rows[1].line, 2);
  EXPECT_EQ(rows[2], (Row{3, {"f", "g"}, ""}));
}

// Rows longer than the buffer, and ends of the buffer at every place of a row.
TEST(Delimited, PiecesEndAnywhere) {
  std::string plain, quoted;
  std::vector<Row> expected_plain, expected_quoted;
  for (int i = 0; i < 40'000; ++i) {
    const std::string number = std::to_string(i * 7919),
                      filler(static_cast<std::size_t>(i % 37), 'x');
    plain += number + "\t" + filler + "\r\n";
    expected_plain.push_back({i + 1, {number, filler}, ""});
    quoted += number + ",\"" + filler + "\"\"\n\"\r\n";
    expected_quoted.push_back({2 * i + 1, {number, filler + "\"\n"}, ""});
  }
  const std::string large(700'000, 'y');
  plain += large + "\t" + large;
  expected_plain.push_back({40'001, {large, large}, ""});
  EXPECT_EQ(rows_in(plain, false), expected_plain);
  quoted += "\"" + large + "\",z";
  expected_quoted.push_back({80'001, {large, "z"}, ""});
  EXPECT_EQ(rows_in(quoted, true), expected_quoted);
}

TEST(Delimited, ReadsGzip) {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 30'000; ++i) text += std::to_string(i) + "\tvalue\n";
  write_file(folder / "plain", text);
  write_file(folder / "a.gz", gzipped_by_zlib(text));
  write_file(folder / "joined.gz",
             gzipped_by_zlib(text.substr(0, 1001)) + gzipped_by_zlib(text.substr(1001)));
  const std::vector<Row> rows = rows_of(folder / "plain", false);
  EXPECT_EQ(rows.size(), 30'000u);
  EXPECT_EQ(rows_of(folder / "a.gz", false), rows);
  EXPECT_EQ(rows_of(folder / "joined.gz", false), rows);

  std::string bytes = gzipped_by_zlib(text);
  // Zeros pad the data, as with gzip(1); anything else after its end is refused where it begins.
  for (const std::size_t zeros : {1, 511, 600'000}) {
    const std::string padding(zeros, '\0');
    write_file(folder / "padded.gz", bytes + padding);
    EXPECT_EQ(rows_of(folder / "padded.gz", false), rows) << zeros;
    for (const std::string& more : {std::string("x"), bytes}) {
      write_file(folder / "more.gz", bytes + padding + more);
      EXPECT_THAT(error_of([&] { rows_of(folder / "more.gz", false); }),
                  HasSubstr("broken gzip data at byte " + std::to_string(bytes.size() + zeros) +
                            ": there is more data after the zeros that pad it"));
    }
  }
  write_file(folder / "more.gz", bytes + "more");
  EXPECT_THAT(error_of([&] { rows_of(folder / "more.gz", false); }),
              HasSubstr("broken gzip data at byte"));
  write_file(folder / "cut.gz", bytes.substr(0, bytes.size() / 2));
  EXPECT_THAT(error_of([&] { rows_of(folder / "cut.gz", false); }),
              HasSubstr("the file ends too early"));
  bytes[bytes.size() / 2] ^= 0x55;
  bytes[bytes.size() / 2 + 1] ^= 0x55;
  write_file(folder / "broken.gz", bytes);
  EXPECT_THAT(error_of([&] { rows_of(folder / "broken.gz", false); }),
              HasSubstr("broken gzip data at byte"));
  write_file(folder / "plain.gz", text);
  EXPECT_THAT(error_of([&] { rows_of(folder / "plain.gz", false); }), HasSubstr("no gzip file"));
  EXPECT_THAT(error_of([&] { rows_of(folder / "gone", false); }), HasSubstr("cannot open"));
}

TEST(Delimited, ARowHasAnEnd) {
  const TemporaryFolder folder;
  write_file(folder / "a", std::string(std::size_t{17} << 20, 'x') + "\n" +
                               std::string(std::size_t{20} << 20, 'x'));
  EXPECT_THAT(error_of([&] { rows_of(folder / "a", false); }), HasSubstr("a:1: this line is too long"));
  EXPECT_THAT(error_of([&] { rows_of(folder / "a", true); }), HasSubstr("a:1: this line is too long"));
  write_file(folder / "a", "x\n" + std::string(std::size_t{17} << 20, '\n') + "x");
  EXPECT_THAT(error_of([&] { rows_of(folder / "a", false); }),
              HasSubstr("a:2: empty lines without an end"));
}

}  // namespace
}  // namespace tandem

// What the first rows of a delimited file show: its separator, an index that the header lacks,
// names that it lacks; and files of other formats by name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/formats/delimited.h"
#include "engine/formats/files.h"
#include "tests/training/error_text.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;
using testing::TemporaryFolder;
using namespace std::string_literals;

TableForm form_of(const std::string& text, TableHints hints = {}) {
  return find_table_form(text, true, hints);
}
char separator_in(const std::string& text, TableHints hints = {}) {
  return form_of(text, std::move(hints)).separator;
}

TEST(TableForm, SeparatorsOfEvenRows) {
  EXPECT_EQ(separator_in("a,b\n1,2\n"), ',');
  EXPECT_EQ(separator_in("a;b;c\n1;2;3\n4;5;6\n"), ';');
  EXPECT_EQ(separator_in("a\tb\n1\t2\n"), '\t');
  EXPECT_EQ(separator_in("a|b\r\n1|2\r\n"), '|');
  EXPECT_EQ(separator_in("a\n1\n2\n"), ',');  // one column has none
  EXPECT_EQ(separator_in(""), ',');
  // Commas before fractions, in all rows and in some.
  EXPECT_EQ(separator_in("a;b\n1,5;2,5\n3,25;4\n"), ';');
  EXPECT_EQ(separator_in("a;b\n1,5;2\n3,5;4\n"), ';');
  // Separators and line ends in quotes.
  EXPECT_EQ(separator_in("a;b\n\"x, y; z\nand\";1\n\"u\";2\n"), ';');
  EXPECT_EQ(separator_in("a,b\n\"x;y\",\"1;2\"\n"), ',');
  // Text that has another separator in every row.
  EXPECT_EQ(separator_in("when,text\n1,a|b\n2,c|d\n"), ',');
}

TEST(TableForm, NeededColumnsDecide) {
  TableHints hints;
  hints.names = {"a;b"};
  EXPECT_EQ(separator_in("a;b,c\n1,2\n", hints), ',');
  hints.names = {"B"};
  EXPECT_EQ(separator_in("a;b\n1;2\n3\n", hints), ';');  // a short row is a bad row
  TableHints of_cells;
  of_cells.has_header = false;
  of_cells.columns = 2;
  EXPECT_EQ(separator_in("1,5|2\n", of_cells), ',');
  EXPECT_EQ(separator_in("1,5,7|2\n", of_cells), '|');
}

TEST(TableForm, AnIndexThatTheHeaderLacks) {
  EXPECT_TRUE(form_of("\"a\",\"b\"\n\"1\",5,6\n\"2\",5,6\n").has_index);
  EXPECT_FALSE(form_of("a,b\n1,5,6\n1,5,6\n").has_index);  // does not distinguish the rows
  EXPECT_FALSE(form_of("a,b\n1,5,\n2,6,\n").has_index);    // a separator at the end of each row
  EXPECT_FALSE(form_of("a,b\n1,5,6\n").has_index);
  EXPECT_FALSE(form_of("a,b\n1,5\n2,6\n").has_index);
  EXPECT_THAT(header_names({"a", "", " c "}, {}), ElementsAre("a", "Unnamed: 1", "c"));
  EXPECT_THAT(header_names({"a", "b"}, {',', true}), ElementsAre("Unnamed: 0", "a", "b"));
}

TEST(TableForm, ColumnsOfAnotherCase) {
  EXPECT_EQ(find_column({"Age", "Name"}, "age"), 0U);
  EXPECT_EQ(find_column({"Age", "age"}, "age"), 1U);
  EXPECT_EQ(find_column({"Age", "AGE"}, "age"), std::string::npos);
  EXPECT_EQ(find_column({"Age"}, "ages"), std::string::npos);
}

std::vector<std::string> first_row(const std::string& path) {
  DelimitedReader reader(path, ',', true);
  reader.find_form({});
  EXPECT_TRUE(reader.next());
  return {reader.fields().begin(), reader.fields().end()};
}

TEST(TableForm, ReadersFindIt) {
  const TemporaryFolder folder;
  write_file(folder / "bom",
             "\xef\xbb\xbf"
             "a;b\r\n1;2\r\n");
  EXPECT_THAT(first_row(folder / "bom"), ElementsAre("a", "b"));
  write_file(folder / "excel", "sep=|\r\na|b;c\r\n1|2\r\n");
  EXPECT_THAT(first_row(folder / "excel"), ElementsAre("a", "b;c"));
  write_file(folder / "commas", "sep=a,b\n1,2\n");
  EXPECT_THAT(first_row(folder / "commas"), ElementsAre("sep=a", "b"));
}

// The bytes that such files begin with, by their specifications.
TEST(TableForm, OtherFormatsByName) {
  const TemporaryFolder folder;
  const auto refusal = [&](const std::string& bytes) {
    write_file(folder / "x.csv", bytes);
    return error_of([&] { TextStream stream(folder / "x.csv"); });
  };
  EXPECT_THAT(refusal("PAR1\x15\x04"s),
              AllOf(HasSubstr("this is a Parquet file"), HasSubstr("read_parquet")));
  EXPECT_THAT(refusal("PAR1abc\0PAR1"s), HasSubstr("Parquet"));
  EXPECT_THAT(refusal("ARROW1\0\0"s), AllOf(HasSubstr("Arrow"), HasSubstr("read_feather")));
  EXPECT_THAT(refusal("FEA1\0\0\0\0"s), HasSubstr("Feather"));
  EXPECT_THAT(
      refusal("PK\x03\x04\x14\0\x06\0\x08\0\0\0!\0aaaabbbbcccc\x13\0\0\0[Content_Types].xml"s),
      AllOf(HasSubstr("Excel workbook (.xlsx)"), HasSubstr("save it as CSV")));
  EXPECT_THAT(refusal("PK\x03\x04\x14\0\0\0\0\0\0\0!\0aaaabbbbcccc\x05\0\0\0x.npyabc"s),
              HasSubstr(".npz"));
  EXPECT_THAT(refusal("PK\x03\x04\x14\0\0\0\0\0\0\0!\0aaaabbbbcccc\x05\0\0\0x.csvabc"s),
              AllOf(HasSubstr("a zip archive"), HasSubstr("gzip")));
  EXPECT_THAT(refusal("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"s), HasSubstr(".xls"));
  EXPECT_THAT(refusal("\x89HDF\r\n\x1a\n"s), HasSubstr("HDF5"));
  EXPECT_THAT(refusal("SQLite format 3\0"s), HasSubstr("SQLite"));
  EXPECT_THAT(refusal("\xff\xfe"
                      "a\0,\0"s),
              AllOf(HasSubstr("UTF-16"), HasSubstr("iconv")));
  EXPECT_EQ(refusal("PAR1,ORC\n1,2\n"), "no error");  // names of columns
}

}  // namespace
}  // namespace tandem

// `tandem data prepare` when interrupted: what it leaves, what it prints, how it continues.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <zlib.h>

#include <filesystem>

#include "engine/formats/files.h"
#include "tests/api/trained_runs.h"
#include "tests/api/waiting_program.h"
#include "tests/harness/program.h"

namespace tandem::api {
namespace {

namespace fs = std::filesystem;
using namespace tandem::testing;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int rows_of_a_member = 16000, members = 400;  // 900 MiB of text in a few MiB

std::string slowly_packed(const std::string& text) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string bytes(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(bytes.data());
  stream.avail_out = static_cast<uInt>(bytes.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  bytes.resize(stream.total_out);
  deflateEnd(&stream);
  return bytes;
}

// Enough rows for many seconds, so that the files are being read while signals come.
class PrepareSignals : public ::testing::Test {
 protected:
  PrepareSignals() {
    write_clicks(folder_);
    write_rows(members);
  }
  void write_rows(int times) {
    static const std::string member = [] {
      const std::string some = joined(ClickRows(5).rows(160, 6));
      std::string text;
      for (int i = 0; i < rows_of_a_member / 160; ++i) text += some;
      return slowly_packed(text);
    }();
    std::string all;
    for (int i = 0; i < times; ++i) all += member;
    write_file(folder_ / "train.tsv", all);
  }
  /// The only folder in the cache, which contains the present state of the table.
  std::string table() const {
    if (!is_directory(cache_)) return "";
    const std::vector<std::string> tables = list_directory(cache_);
    return tables.size() == 1 ? cache_ + "/" + tables[0] : "";
  }
  bool is_reading() const { return !table().empty() && !list_directory(table()).empty(); }

  TemporaryFolder folder_;
  const std::string cache_ = folder_ / "runs/data", config_ = folder_ / "train.toml",
                    said_ = folder_ / "said";
};

TEST_F(PrepareSignals, LeaveNothingAndTheNextCallBegins) {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    SCOPED_TRACE(number);
    WaitingProgram prepare({"data", "prepare", config_}, "", folder_ / "", said_);
    EXPECT_EQ(prepare.interrupt(number, [&] { return is_reading(); }), 128 + number);
    EXPECT_THAT(list_directory(table()), IsEmpty());
    EXPECT_THAT(read_file(said_),
                HasSubstr("interrupted while the table was prepared (what was prepared of it is "
                          "removed; the next run begins again)"));
  }
  write_rows(1);
  const Ended next = run_program("data prepare " + config_ + " 2>/dev/null");
  EXPECT_EQ(next.code, 0);
  EXPECT_THAT(next.text, HasSubstr("prepared 16000 rows to train on"));
}

TEST_F(PrepareSignals, TwoAtOnceAreOneWish) {
  WaitingProgram prepare({"data", "prepare", config_}, "", folder_ / "");
  EXPECT_GT(prepare.interrupt_twice(SIGINT, SIGTERM, [&] { return is_reading(); }), 128);
  EXPECT_THAT(list_directory(table()), IsEmpty());
}

TEST_F(PrepareSignals, ASecondOneEndsItAtOnce) {
  int ended_by = 0;
  // Repeats until the process is stopped while it handles the first signal.
  for (int i = 0; i < 100 && ended_by == 0; ++i) {
    WaitingProgram prepare({"data", "prepare", config_}, "", folder_ / "");
    ended_by = prepare.interrupt_again(SIGINT, SIGTERM, [&] { return is_reading(); });
  }
  EXPECT_EQ(ended_by, SIGTERM);
  write_rows(1);
  EXPECT_EQ(run_program("data prepare " + config_ + " 2>/dev/null").code, 0);
  EXPECT_THAT(list_directory(table()), SizeIs(1));  // nothing unfinished next to it
}

}  // namespace
}  // namespace tandem::api

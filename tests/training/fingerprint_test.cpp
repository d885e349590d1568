// The fingerprints of what a checkpoint rests on: written, read back, damaged, compared.
#include "engine/train/checkpoints/fingerprint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>

#include "engine/train/checkpoints/checkpoint.h"
#include "tests/training/formats/temporary_folder.h"
#include "tests/training/support.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;
using testing::TemporaryFolder;

Fingerprint example() {
  Fingerprint f;
  f.program = "1.2.3";
  f.model = structure_of({{"operator 1", "conv \"ä\"", {"operator Conv", "inputs \"x\""}},
                          {"input x", "x", {"type float32 [batch, 3]"}},
                          {"operator 2", "relu", {"operator Relu", "inputs operator 1"}}},
                         {{"h", "operator 1"}});
  f.data.train = {
      {"images = train.gz", "", {"12 bytes"}}, {"pipe", "", {}}, {"samples", "", {"34"}}};
  f.data.eval = {{"samples", "", {}}};
  f.data.fields = {{"x", "float32[3]"}};
  f.accepted = {{9, "accepted: something"}};
  return f;
}

CheckpointContent content_with(const Fingerprint& f) {
  CheckpointContent content;
  content.position = testing::position_at(3);
  content.position.fingerprint = std::make_shared<const Fingerprint>(f);
  return content;
}

TEST(FingerprintTest, IsAPartOfTheCheckpoint) {
  const TemporaryFolder folder;
  const Fingerprint written = example();
  write_checkpoint(folder.path(), content_with(written));
  const FingerprintPtr read = read_checkpoint(folder / "step-00000003").position.fingerprint;
  ASSERT_TRUE(read);
  EXPECT_EQ(read->program, "1.2.3");
  EXPECT_EQ(read->model.sha256, written.model.sha256);
  EXPECT_EQ(read->model.count, 3u);
  EXPECT_EQ(read->model.parts, written.model.parts);
  EXPECT_EQ(read->model.values, written.model.values);
  EXPECT_EQ(read->data.train, written.data.train);
  EXPECT_EQ(read->data.eval, written.data.eval);
  EXPECT_EQ(read->data.fields, written.data.fields);
  EXPECT_EQ(read->accepted[0].step, 9u);
  EXPECT_EQ(read->accepted[0].text, "accepted: something");
  EXPECT_FALSE(first_difference(written.model, read->model));
  EXPECT_FALSE(first_difference(written.data, read->data));
  CheckpointContent without;
  without.position = testing::position_at(4);
  write_checkpoint(folder.path(), without);
  const std::string path = folder / "step-00000004";
  const FingerprintPtr none = read_checkpoint(path).position.fingerprint;
  EXPECT_THAT(testing::error_text([&] { fingerprint_in(none, path); }),
              HasSubstr("step-00000004/fingerprint.json: the checkpoint lacks this file"));
}

TEST(FingerprintTest, DamageIsNamed) {
  const TemporaryFolder folder;
  for (const char* text :
       {"", "{}", "[]", "{\"format\": 2, \"program\": \"1\"}",
        "{\"format\": 1, \"program\": \"1\"}", "{\"format\": \"2\", \"program\": \"1\"}",
        "{\"format\": 2, \"program\": \"1\", \"model\": {\"sha256\": \"\", "
        "\"count\": 1, \"values\": {}, \"parts\": [[\"a\"]]}}"}) {
    write_file(folder / fingerprint_file, text);
    EXPECT_THAT(testing::error_text([&] { read_fingerprint(folder.path()); }),
                HasSubstr("fingerprint.json:"))
        << text;
  }
}

// Its parts would be larger than the checkpoint of such a model's weights.
TEST(FingerprintTest, OfAVeryLargeModelTheHashAloneIsKept) {
  const TemporaryFolder folder;
  const auto large = [](const char* last) {
    std::vector<RecordedPart> parts;
    for (int i = 0; i < 100; ++i)
      parts.push_back({"operator " + std::to_string(i), "", {std::string(1 << 19, 'x')}});
    parts.push_back({"operator 100", "", {last}});
    return structure_of(std::move(parts));
  };
  Fingerprint f = example();
  f.model = large("Relu");
  EXPECT_LT(write_fingerprint(folder.path(), f).bytes, 4096u);
  const FingerprintPtr read = read_fingerprint(folder.path());
  EXPECT_FALSE(first_difference(read->model, large("Relu")));
  const auto difference = first_difference(read->model, large("Tanh"));
  ASSERT_TRUE(difference);
  EXPECT_THAT(to_string(*difference), HasSubstr("too large to be listed"));
}

SplitConfig files(const std::vector<std::string>& paths) { return {{{"", paths, {}}}}; }

TEST(DataFingerprintTest, TellsFilesByTheirSizeAndEnds) {
  const TemporaryFolder folder;
  constexpr std::size_t end = 64 << 10;
  const std::string path = folder / "a.bin";
  const auto of = [&](std::string bytes) {
    write_file(path, bytes);
    return fingerprint_of(files({path}));
  };
  const auto differs = [&](const std::string& a, const std::string& b) {
    return first_difference("data.train", of(a), of(b)).has_value();
  };
  for (const std::size_t size :
       {std::size_t{1}, end - 1, end, end + 1, 2 * end, 2 * end + 1, 3 * end}) {
    const std::string zeros(size, '\0');
    EXPECT_FALSE(differs(zeros, zeros));
    EXPECT_TRUE(differs(zeros, zeros + '\0')) << size;
    for (const std::size_t at : {std::size_t{0}, size - 1, size / 2}) {
      std::string other = zeros;
      other[at] = '\1';
      const bool is_read = at < end || at >= size - end;
      EXPECT_EQ(differs(zeros, other), is_read) << size << " " << at;
    }
  }
  EXPECT_FALSE(differs("", ""));
}

// What a pipe gives can be read only once.
TEST(DataFingerprintTest, LeavesPipesAlone) {
  const TemporaryFolder folder;
  const std::string path = folder / "pipe";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const std::vector<RecordedPart> pipe = fingerprint_of(files({path}));
  ASSERT_EQ(pipe.size(), 2u);
  EXPECT_EQ(pipe[0].id, "pipe");
  EXPECT_EQ(pipe[0].facts, std::vector<std::string>());
  EXPECT_FALSE(first_difference("data.train", pipe, pipe));
}

TEST(DataFingerprintTest, NumbersOfSamplesCountWhereBothAreKnown) {
  const auto difference = [](std::int64_t before, std::int64_t now) {
    const auto found = first_difference("data.eval", fingerprint_of(SplitConfig(), before),
                                        fingerprint_of(SplitConfig(), now));
    return found ? to_string(*found) : "none";
  };
  EXPECT_EQ(difference(10, 0), "none");
  EXPECT_EQ(difference(0, 10), "none");
  EXPECT_EQ(difference(10, 9), "data.eval: samples: 10, now 9");
}

TEST(RecordedPartsTest, ComeAndGo) {
  const RecordedPart a{"a", "name", {"x 1", "y 2"}}, b{"b", "", {"x 1"}};
  const auto difference = [](const std::vector<RecordedPart>& before,
                             const std::vector<RecordedPart>& now) {
    const auto found = first_difference("", before, now);
    return found ? to_string(*found) : "no difference";
  };
  EXPECT_EQ(difference({a, b}, {{"a", "other", {"x 1", "y 2"}}, b}), "no difference");
  EXPECT_EQ(difference({a}, {{"a", "", {"x 1", "y 3", "z"}}}), "a: y 2, now y 3, z");
  EXPECT_EQ(difference({a, b}, {a}), "b: b, now none");
  EXPECT_EQ(difference({a}, {a, b}), "b: none, now b");
  EXPECT_EQ(difference({a, b}, {b}), "b: a (name), now b");
}

}  // namespace
}  // namespace tandem

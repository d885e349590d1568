// Event files of TensorBoard: checksums, records, messages and histograms as others make them
// (tests/scripts/tensorboard_events.py).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "engine/formats/events/crc32c.h"
#include "engine/formats/events/event.h"
#include "engine/formats/events/record.h"
#include "engine/formats/events/wire.h"
#include "engine/formats/files.h"
#include "tests/harness/folders.h"

namespace tandem {
namespace {

using Json = nlohmann::json;

const Json& expected() {
  static const Json json =
      Json::parse(read_file(source_folder() + "/tests/data/tensorboard/expected.json"));
  return json;
}

std::string from_hex(const std::string& digits) {
  std::string bytes;
  for (std::size_t i = 0; i < digits.size(); i += 2)
    bytes += static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
  return bytes;
}

std::string event_bytes(const char* name) { return from_hex(expected()["events"][name]); }

Histogram histogram_of(const std::vector<double>& values) {
  Histogram histogram;
  for (const double value : values) histogram.add(value);
  return histogram;
}

TEST(EventFiles, ChecksumsAreThoseOfRfc3720) {
  ASSERT_EQ(expected()["rfc3720"].size(), 5u);
  for (const Json& example : expected()["rfc3720"]) {
    const std::string bytes = from_hex(example["bytes"]);
    EXPECT_EQ(crc32c(bytes), example["crc"].get<std::uint32_t>()) << example["bytes"];
    EXPECT_EQ(masked_crc32c(bytes), example["masked"].get<std::uint32_t>()) << example["bytes"];
  }
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);  // as the RFC prints it, bytes turned
}

TEST(EventFiles, RecordsAreReadBackUpToATornOne) {
  const std::vector<std::string> texts{"", "a", std::string("\0\n\xff", 3),
                                       std::string(70000, 'x')};
  std::string file;
  std::vector<std::size_t> ends{0};
  for (const std::string& text : texts) {
    file += tf_record(text);
    ends.push_back(file.size());
    EXPECT_EQ(file.size() - ends[ends.size() - 2], text.size() + 16);
  }
  TfRecords records(file);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    EXPECT_EQ(records.offset(), ends[i]);
    EXPECT_EQ(records.next(), texts[i]);
  }
  EXPECT_EQ(records.next(), std::nullopt);
  EXPECT_EQ(records.offset(), file.size());
  for (std::size_t bytes = 0; bytes < ends[3]; ++bytes) {  // cut anywhere
    TfRecords torn(std::string_view(file).substr(0, bytes));
    while (torn.next()) {
    }
    EXPECT_EQ(torn.offset(), *(std::upper_bound(ends.begin(), ends.end(), bytes) - 1)) << bytes;
  }
}

TEST(EventFiles, ADamagedRecordEndsTheFile) {
  const std::string whole = tf_record("first") + tf_record("second");
  for (std::size_t at = 21; at < whole.size(); ++at) {  // any byte of the second one
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 4);
    TfRecords records(damaged);
    EXPECT_EQ(records.next(), "first");
    EXPECT_EQ(records.next(), std::nullopt) << at;
  }
  const std::string endless = std::string(8, '\xff') + std::string(20, '\0');
  TfRecords huge(endless);
  EXPECT_EQ(huge.next(), std::nullopt);
}

TEST(EventFiles, MessagesAreThoseOfProtocolBuffers) {
  const double wall = expected()["wall"];
  EXPECT_EQ(version_event(wall), event_bytes("version"));
  EXPECT_EQ(start_event({wall, 301}), event_bytes("start"));
  EXPECT_EQ(scalars_event({wall, 300}, {{"train/loss", 0.75}, {"train/lr", 0.001}}),
            event_bytes("scalars"));
  EXPECT_EQ(graph_event(wall, from_hex(expected()["graph"])), event_bytes("graph"));
  const Histogram histogram = histogram_of(expected()["histograms"][0]["values"]);
  EXPECT_EQ(histogram_event({wall, 7}, "weights/fc1:weight", histogram), event_bytes("histogram"));
}

TEST(EventFiles, StepsAndTagsAreReadAgain) {
  const auto facts = [](const char* name) { return facts_of_event(event_bytes(name)); };
  EXPECT_EQ(facts("version").step, 0);
  EXPECT_EQ(facts("scalars").step, 300);
  EXPECT_EQ(facts("scalars").tag, "train/loss");
  EXPECT_FALSE(facts("scalars").is_start);
  EXPECT_EQ(facts("start").step, 301);
  EXPECT_TRUE(facts("start").is_start);
  EXPECT_TRUE(facts("graph").is_graph);
  EXPECT_FALSE(facts("version").is_graph);
  EXPECT_EQ(facts("histogram").tag, "weights/fc1:weight");
  EXPECT_EQ(facts_of_event("").step, 0);
  // Bytes that are not a message give nothing, and are not read beyond their end.
  const std::string event = event_bytes("histogram");
  for (std::size_t bytes = 0; bytes < event.size(); ++bytes)
    facts_of_event(std::string_view(event).substr(0, bytes));
  EXPECT_FALSE(WireReader("\x0a\x7fxyz").next());
}

TEST(EventFiles, HistogramsCountAsNumPy) {
  for (const Json& one : expected()["histograms"]) {
    const Histogram histogram = histogram_of(one["values"]);
    EXPECT_EQ(histogram.count(), one["values"].size());
    EXPECT_DOUBLE_EQ(histogram.least(), one["least"]);
    EXPECT_DOUBLE_EQ(histogram.greatest(), one["greatest"]);
    EXPECT_DOUBLE_EQ(histogram.sum(), one["sum"]);
    EXPECT_DOUBLE_EQ(histogram.sum_of_squares(), one["sum_of_squares"]);
    const std::vector<Histogram::Bucket> buckets = histogram.buckets();
    ASSERT_EQ(buckets.size(), one["buckets"].size());
    for (std::size_t i = 0; i < buckets.size(); ++i) {
      EXPECT_DOUBLE_EQ(buckets[i].limit, one["buckets"][i][0]);
      EXPECT_EQ(buckets[i].values, one["buckets"][i][1]);
    }
  }
}

TEST(EventFiles, ValuesThatAreNotFiniteAreInNoBucket) {
  Histogram histogram;
  const std::vector<float> values{1.0f, std::numeric_limits<float>::quiet_NaN(),
                                  std::numeric_limits<float>::infinity(),
                                  -std::numeric_limits<float>::infinity(), 2.0f};
  histogram.add(values);
  EXPECT_EQ(histogram.count(), 2u);
  EXPECT_EQ(histogram.sum(), 3);
  EXPECT_EQ(Histogram().buckets().size(), 1u);
  EXPECT_EQ(Histogram().least(), 0);
}

}  // namespace
}  // namespace tandem

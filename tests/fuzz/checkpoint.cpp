// Fuzz target: checkpoints with changed JSON but correct sizes and hashes. Each is read, or refused
// by a typed error without a library's text; a checkpoint that is read can be resumed.
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "engine/graph/error.h"
#include "engine/train/checkpoints/checkpoint.h"
#include "tests/fuzz/defect.h"
#include "tests/training/edited_checkpoint.h"

namespace tandem {
namespace {

using testing::EditedCheckpoint;
using Json = EditedCheckpoint::Json;

constexpr std::int64_t rows = 4'100;  // two files, the first of one page

CheckpointContent content() {
  CheckpointContent content;
  TrainingPosition& p = content.position;
  p.step = 7;
  p.data = {3, 32};  // epochs of two steps
  p.samples = 224;
  p.held_out = 0.1;
  p.batch_size = 32;
  p.batches = {{0, 32, 64, false}};
  p.evaluated = 5;
  p.best = 0.25;
  p.best_step = 4;
  p.best_metric = "auc";
  p.evaluations_without_better = 1;
  p.skipped_in_a_row = 1;
  p.vocabularies = {{"vocabulary.ids.tsv", std::string(64, 'a')}};
  p.optimizers = {{"fc1.weight", "adam"}, {"deep", "sgd"}};
  p.functions = {{"ids", "hash(300)"}};
  p.thawed = {{"fc1 until 2 steps", true}};
  content.model.push_back({"fc1.weight", HostTensor(TensorType{DType::float32, {2, 3}})});
  content.model.push_back({"deep", HostTensor(TensorType{DType::float32, {rows, 4}})});
  content.optimizer.push_back(
      {"fc1.weight/exp_avg", HostTensor(TensorType{DType::float32, {2, 3}})});
  content.aliases["decoder.weight"] = "fc1.weight";
  return content;
}

/// Turns the fuzzer's bytes into choices; zeros after their end.
class Choices {
 public:
  Choices(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}
  bool more() const { return at_ < size_; }
  std::uint64_t number(int bytes) {
    std::uint64_t value = 0;
    for (int i = 0; i < bytes; ++i) value = value << 8 | (at_ < size_ ? data_[at_++] : 0);
    return value;
  }
  std::size_t below(std::size_t limit) { return limit > 0 ? number(2) % limit : 0; }
  /// A text without the characters that mark a library's text, so that it cannot look like one.
  std::string text() {
    const std::size_t bytes = std::min<std::size_t>(number(1) % 32, size_ - at_);
    at_ += bytes;
    std::string text(reinterpret_cast<const char*>(data_) + at_ - bytes, bytes);
    for (char& c : text) {
      if (c == '.' || c == ':' || c == '_' || c == ' ') c = 'x';
    }
    return text;
  }

 private:
  const std::uint8_t* data_;
  std::size_t size_, at_ = 0;
};

Json value_of(Choices& choices, const Json& document) {
  static const auto hostile = testing::hostile_values();
  switch (choices.number(1) % 6) {
    case 0:
      return hostile[choices.below(hostile.size())].second;
    case 1:
      return choices.number(8);
    case 2:
      return static_cast<std::int64_t>(choices.number(1)) - 2;
    case 3:
      return choices.text();
    case 4:
      return Json::array({choices.number(1), choices.number(8)});
    default: {  // a value from another place
      const auto places = EditedCheckpoint::places(document);
      return places.empty() ? Json() : document[places[choices.below(places.size())]];
    }
  }
}

/// Makes an edit; returns whether the manifest is to be written as edited.
bool edit(EditedCheckpoint& checkpoint, Choices& choices) {
  const std::vector<std::string> files = checkpoint.files();
  const std::string& file = files[choices.below(files.size())];
  Json& json = checkpoint.json(file);
  const auto places = EditedCheckpoint::places(json);
  if (places.empty()) return false;
  const Json::json_pointer place = places[choices.below(places.size())];
  const Json value = value_of(choices, json);
  Json& parent = json[place.parent_pointer()];
  if (value.is_discarded()) {
    EditedCheckpoint::remove(json, place);
  } else if (parent.is_object() && choices.number(1) % 8 == 0) {
    parent[choices.text()] = value;  // an additional or renamed member
  } else {
    json[place] = value;
  }
  return file == "manifest.json" && choices.number(1) % 2 == 0;
}

/// Checks the numbers that a resumed run computes with.
void expect_sound(const CheckpointContent& content) {
  const TrainingPosition& p = content.position;
  const bool sound = p.step <= most_checkpoint_step && p.data.epoch >= 0 && p.data.sample >= 0 &&
                     static_cast<std::uint64_t>(p.data.epoch) <= p.step && p.samples >= p.step &&
                     p.batch_size > 0 && p.evaluations_without_better >= 0 &&
                     p.best_step <= p.step && p.held_out < 1;
  if (!sound) defect("a position that no run has", std::to_string(p.step));
  std::size_t sum = 0;
  for (const auto* tensors : {&content.model, &content.optimizer}) {
    for (const NamedTensor& t : *tensors) {
      const auto* bytes = static_cast<const unsigned char*>(t.tensor.data());
      if (t.tensor.bytes() > 0) sum += bytes[0] + bytes[t.tensor.bytes() - 1];
    }
  }
  volatile std::size_t read = sum;
  (void)read;
}

struct Folder {
  Folder() {
    const char* parent = std::getenv("TMPDIR");
    path = std::string(parent != nullptr ? parent : "/tmp") + "/tandem-fuzz-XXXXXX";
    if (::mkdtemp(path.data()) == nullptr) defect("no folder", path);
    write_checkpoint(path + "/whole", content(), {.shard_bytes = 40'000});
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  std::string path;
};

void read_changed(Choices choices) {
  static const Folder folder;
  static const EditedCheckpoint whole(folder.path + "/whole/" + checkpoint_name(7));
  EditedCheckpoint changed = whole;
  bool as_it_is = false;
  do as_it_is |= edit(changed, choices);
  while (choices.more());
  const std::string path = folder.path + "/" + checkpoint_name(7);
  changed.write(path, as_it_is);
  expect_sound(read_checkpoint(path));
}

}  // namespace
}  // namespace tandem

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    tandem::read_changed({data, size});
  } catch (const tandem::Error& error) {
    const std::string text = error.what();
    for (const char* words : {"json.exception", "filesystem error", "basic_string", "std::"}) {
      if (text.find(words) != std::string::npos) tandem::defect("a library's text", text);
    }
    if (text.find("/step-00000007") == std::string::npos) tandem::defect("no file", text);
  }
  return 0;
}

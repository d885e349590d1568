// Fuzz target: any bytes as a data file; the first byte picks the reader. The result is arrays or
// rows that can be read to their last byte, or a typed error that names the file.
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>

#include "engine/data/chat/chat_encoder.h"
#include "engine/data/json_row.h"
#include "engine/formats/arrays/cifar.h"
#include "engine/formats/arrays/idx.h"
#include "engine/formats/arrays/npy.h"
#include "engine/formats/delimited.h"
#include "engine/formats/images/image_file.h"
#include "engine/formats/json_file.h"
#include "engine/formats/safetensors.h"
#include "engine/formats/tokenizer/tokenizer.h"
#include "engine/formats/weights/weights_file.h"
#include "engine/graph/error.h"
#include "tests/fuzz/defect.h"

namespace tandem {
namespace {

/// A file in memory.
class MemoryFile {
 public:
  MemoryFile(const std::uint8_t* data, std::size_t size)
      : descriptor_(::memfd_create("fuzz", 0)),
        path_("/proc/self/fd/" + std::to_string(descriptor_)) {
    if (descriptor_ < 0) defect("no file", "memfd_create");
    for (std::size_t done = 0; done < size;) {
      const ssize_t written = ::write(descriptor_, data + done, size - done);
      if (written <= 0) defect("cannot write", path_);
      done += static_cast<std::size_t>(written);
    }
  }
  ~MemoryFile() { ::close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  const std::string& path() const { return path_; }

 private:
  int descriptor_;
  std::string path_;
};

/// Reads every byte, so that the address sanitizer finds missing ones.
void read_all(const void* data, std::size_t bytes) {
  std::size_t sum = 0;
  for (std::size_t i = 0; i < bytes; ++i) sum += static_cast<const unsigned char*>(data)[i];
  volatile std::size_t read = sum;
  (void)read;
}

void read_all(const HostTensor& tensor) {
  if (tensor.bytes() != tensor.type().bytes()) defect("bytes", to_string(tensor.type()));
  read_all(tensor.data(), tensor.bytes());
}

void read_all(const std::vector<NamedTensor>& tensors) {
  for (const NamedTensor& t : tensors) read_all(t.tensor);
}

void read_rows(const std::string& path, char separator, bool quotes) {
  DelimitedReader reader(path, separator, quotes);
  std::int64_t line = 0;
  while (reader.next()) {
    if (reader.line() <= line) defect("lines do not grow", std::to_string(line));
    line = reader.line();
    for (const std::string_view field : reader.fields()) read_all(field.data(), field.size());
  }
}

void read_items(const JsonItem& item) {
  read_all(item.shown().data(), item.shown().size());
  for (const auto& member : item.members()) read_items(member.second);
  for (const JsonItem& each : item.items()) read_items(each);
}

/// Skips large arrays, which a single element can claim to be by strides of 0.
void read_weights(const WeightsFile& file) {
  constexpr std::uint64_t most = std::uint64_t{1} << 20;
  for (const std::string& name : file.names()) {
    if (file.type(name).bytes() > most) continue;
    read_all(file.read(name, file.type(name).dtype));
  }
}

void read_picture(const std::string& path) {
  Image image;
  for (const ImageReading& how :
       {ImageReading{}, {.channels = 1, .least_height = 8, .least_width = 8}}) {
    const ImageHeader header = read_image(path, how, image);
    if (image.channels != how.channels || image.height > header.height)
      defect("another picture than asked for", path);
    read_all(image.pixels.data(), image.pixels.size());
  }
}

/// Text that does not fit the vocabulary must be reported, whatever the tokenizer.
void read_tokenizer(const std::string& path) {
  const auto tokenizer = Tokenizer::read(path);
  EncodeScratch scratch;
  EncodedTokens encoded;
  for (const char* text :
       {"", "Hello, world! don't 12", " a\n\n  b\t", "\xc3\xa4\xe4\xb8\xad\xf0\x9f\x91\x8d"}) {
    for (const std::int64_t length : {0, 8}) {
      try {
        tokenizer->encode(text, {.length = length}, scratch, encoded);
      } catch (const std::invalid_argument&) {
        continue;
      }
      if (encoded.ids.size() != encoded.mask.size() || encoded.ids.size() != encoded.types.size())
        defect("lengths differ", path);
      const std::string back = tokenizer->decode(encoded.ids, false);
      read_all(back.data(), back.size());
    }
  }
}

void read_json_rows(const std::string& path) {
  DelimitedReader reader(path, '\n', false);
  JsonRow row({"a", "text", ""}, {1, 1, 1});
  while (reader.next()) {
    if (!row.take(reader.fields()[0]).message.empty()) continue;
    for (const std::string_view cell : row.cells()) read_all(cell.data(), cell.size());
  }
}

/// Every line is a conversation or refused with its place, and answers lie among the tokens of
/// every template.
void read_conversations(const std::string& path) {
  static const std::shared_ptr<const Tokenizer> tokenizer = Tokenizer::parse(
      "tokenizer.json",
      R"({"pre_tokenizer":{"type":"Metaspace"},"added_tokens":[{"id":3,"content":"<|im_end|>"}],)"
      R"("model":{"type":"Unigram","unk_id":0,"vocab":[["<unk>",0],["a",-1],["▁",-2]]}})");
  DelimitedReader reader(path, '\n', false);
  ChatEncoder::Scratch scratch;
  ChatTokens tokens;
  while (reader.next()) {
    try {
      const Conversation all = read_conversation(path, reader.line(), reader.fields()[0]);
      for (const ChatTemplate& style : all_chat_templates()) {
        if (ChatEncoder(style, "a", tokenizer).encode(all, scratch, tokens)) continue;
        std::size_t end = 0;
        for (const TextRange& answer : tokens.answers) {
          if (answer.begin >= answer.end || answer.begin < end || answer.end > tokens.ids.size())
            defect("an answer is not among the tokens", style.name);
          end = answer.begin;
        }
      }
    } catch (const Error& error) {
      const std::string text = error.what();
      if (text.find(path + ":" + std::to_string(reader.line())) == std::string::npos)
        defect("no place", text);
    }
  }
}

using Reader = void (*)(const std::string& path);
constexpr Reader readers[] = {
    [](const std::string& path) { read_all(read_idx(path)); },
    [](const std::string& path) { read_all(read_cifar(path)); },
    [](const std::string& path) { read_all(read_npy(path)); },
    [](const std::string& path) { read_all(read_npz(path)); },
    [](const std::string& path) { read_rows(path, '\t', false); },
    [](const std::string& path) { read_rows(path, ',', true); },
    [](const std::string& path) { read_all(SafetensorsFile(path).tensors()); },
    [](const std::string& path) { read_items(JsonFile(path).root()); },
    [](const std::string& path) { read_weights(*weights_format_of("weights.pt")->open(path)); },
    [](const std::string& path) { read_picture(path); },
    [](const std::string& path) { read_tokenizer(path); },
    [](const std::string& path) { read_json_rows(path); },
    [](const std::string& path) { read_conversations(path); },
};

}  // namespace
}  // namespace tandem

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const tandem::MemoryFile file(data + 1, size - 1);
  try {
    tandem::readers[data[0] % std::size(tandem::readers)](file.path());
  } catch (const tandem::Error& error) {
    const std::string text = error.what();
    if (text.find(file.path()) == std::string::npos) tandem::defect("no file", text);
  }
  return 0;
}

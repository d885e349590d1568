#include "engine/formats/zip_file.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/formats/gzip.h"
#include "engine/formats/zip_format.h"
#include "engine/graph/error.h"

namespace tandem {
namespace {

constexpr std::uint64_t entry_bytes = 46, most_entries = 1'000'000;

}  // namespace

void ZipFile::fail(std::string message, std::uint64_t offset, std::string name) const {
  throw Error(ErrorKind::data,
              {.message = std::move(message) + " (at byte " + std::to_string(offset) + ")",
               .file = file_.path(),
               .path = std::move(name)});
}

template <class T>
T ZipFile::get(std::uint64_t offset) const {
  T value{};
  if (offset > file_.size() || file_.read_at(offset, &value, sizeof(T)) < sizeof(T)) {
    fail("the archive is cut off", offset);
  }
  return value;
}

ZipFile::ZipFile(const std::string& path, ZipWords words) : file_(path), words_(std::move(words)) {
  std::uint64_t entries = 0, at = 0;
  find_directory(entries, at);
  for (std::uint64_t i = 0; i < entries; ++i) at = add_entry(at);
}

void ZipFile::find_directory(std::uint64_t& entries, std::uint64_t& at) const {
  constexpr std::uint64_t end_bytes = 22, longest_comment = 65535;
  const std::uint64_t size = file_.size();
  if (size < end_bytes || get<std::uint16_t>(0) != 0x4b50) {
    fail("not a " + words_.archive + " (zip) archive", 0);
  }
  const std::uint64_t from = size - std::min(size, end_bytes + longest_comment);
  std::vector<std::uint8_t> tail(static_cast<std::size_t>(size - from));
  if (file_.read_at(from, tail.data(), tail.size()) < tail.size()) {
    fail("the archive is cut off", from);
  }
  std::size_t place = tail.size() - end_bytes;
  while (std::memcmp(&tail[place], &end_signature, sizeof end_signature) != 0) {
    if (place-- == 0) {
      fail("not a " + words_.archive + " archive, or cut off: it has no directory", size);
    }
  }
  const std::uint64_t end = from + place;
  entries = get<std::uint16_t>(end + 10);
  at = get<std::uint32_t>(end + 16);
  if (end >= 20 && get<std::uint32_t>(end - 20) == locator_signature) {
    const auto end64 = get<std::uint64_t>(end - 20 + 8);
    if (get<std::uint32_t>(end64) != end64_signature) fail("broken zip64 directory", end64);
    entries = get<std::uint64_t>(end64 + 32);
    at = get<std::uint64_t>(end64 + 48);
  }
  if (entries > size / entry_bytes) fail("the archive's directory is broken", end);
  if (entries > most_entries) {
    fail("the archive has more than a million " + words_.member + "s", end);
  }
}

// Takes the entry at `at` of the directory; returns where the next one is.
std::uint64_t ZipFile::add_entry(std::uint64_t at) {
  std::uint8_t fixed[entry_bytes];
  if (at > file_.size() || file_.read_at(at, fixed, entry_bytes) < entry_bytes) {
    fail("the archive is cut off", at);
  }
  const auto number = [&]<class T>(std::size_t place, T value) {
    std::memcpy(&value, fixed + place, sizeof value);
    return value;
  };
  const auto number16 = [&](std::size_t place) { return number(place, std::uint16_t{}); };
  const auto number32 = [&](std::size_t place) { return number(place, std::uint32_t{}); };
  if (number32(0) != central_signature) fail("broken directory of the archive", at);
  Entry entry{number16(8), number16(10), number32(16), number32(20), number32(24), number32(42)};
  const std::size_t name_bytes = number16(28), extra_bytes = number16(30);
  const std::uint64_t extra = at + entry_bytes + name_bytes;
  const std::uint64_t next = extra + extra_bytes + number16(32);
  if (next > file_.size()) fail("the archive is cut off", at);
  std::string name(name_bytes, '\0');
  file_.read_at(at + entry_bytes, name.data(), name_bytes);
  for (std::uint64_t e = extra; e + 4 <= extra + extra_bytes;) {
    const auto id = get<std::uint16_t>(e), length = get<std::uint16_t>(e + 2);
    std::uint64_t value = e + 4;
    if (id == 1) {  // zip64: the fields that did not fit, in this order
      for (std::uint64_t* field : {&entry.bytes, &entry.packed, &entry.local}) {
        if (*field != in_zip64) continue;
        if (value + 8 > e + 4 + length) fail("broken zip64 entry", e, name);
        *field = get<std::uint64_t>(value);
        value += 8;
      }
    }
    e += 4 + std::uint64_t{length};
  }
  if (name.ends_with(words_.ending)) name.resize(name.size() - words_.ending.size());
  if (!entries_.emplace(name, entry).second) {
    fail("the archive has this " + words_.member + " twice", at, name);
  }
  names_.push_back(std::move(name));
  return next;
}

std::uint64_t ZipFile::data_offset(const std::string& name) const {
  const Entry& e = entry(name);
  const auto refuse = [&](const char* message) { fail(message, e.local, name); };
  if (e.flags & 1) refuse("the archive is encrypted");
  if (e.method != 0 && e.method != 8) refuse("compressed in an unknown way");
  if (get<std::uint32_t>(e.local) != local_signature) refuse("broken archive entry");
  const std::uint64_t size = file_.size();
  const std::uint64_t data =
      e.local + 30 + get<std::uint16_t>(e.local + 26) + get<std::uint16_t>(e.local + 28);
  if (data > size || e.packed > size - data) refuse("the archive is cut off");
  const bool possible = e.method == 0 ? e.bytes == e.packed : e.bytes <= most_unpacked(e.packed);
  if (!possible) refuse("broken archive entry: its size is impossible");
  return data;
}

ZipStream::ZipStream(const ZipFile& archive, const std::string& name)
    : archive_(archive), name_(name), entry_(archive.entry(name)) {
  const std::uint64_t data = archive.data_offset(name);
  if (entry_.method == 0) {
    bytes_ = std::make_unique<FileRange>(archive.file(), data, entry_.packed);
  } else {
    bytes_ = std::make_unique<InflatedRange>(archive.file(), data, entry_.packed, name);
  }
}

std::size_t ZipStream::read(void* to, std::size_t bytes) {
  const std::size_t got = bytes_->read(to, bytes);
  crc_ = crc32_of(to, got, crc_);
  return got;
}

void ZipStream::expect_end() {
  std::uint8_t beyond;
  if (bytes_->read(&beyond, 1) > 0) {
    archive_.fail("it unpacks to more than the " + std::to_string(entry_.bytes) +
                      " bytes that the directory says",
                  entry_.local, name_);
  }
  if (crc_ != entry_.crc) archive_.fail("damaged: the checksum does not fit", entry_.local, name_);
}

}  // namespace tandem

// State between steps: entries by name, each in the layout that the first program chose.
#include <algorithm>
#include <cassert>
#include <cstring>
#include <vector>

#include "engine/graph/error.h"
#include "engine/runtime/file_pages.h"
#include "engine/runtime/layout_copy.h"
#include "engine/runtime/state_entry.h"

namespace tandem {
namespace {

[[noreturn]] void fail(const std::string& name, std::string message, std::string expected = "",
                       std::string got = "") {
  Diagnostic d;
  d.message = std::move(message);
  d.path = name;
  d.expected = std::move(expected);
  d.got = std::move(got);
  throw Error(ErrorKind::usage, std::move(d));
}

const StateStore::Entry& existing(const StateStore& store, const std::string& name) {
  const StateStore::Entry* entry = store.find(name);
  if (entry == nullptr) fail(name, "no such state");
  return *entry;
}

std::size_t row_bytes(const TensorType& type, std::int64_t rows) {
  const std::int64_t all = row_count(type);
  return all > 0 ? type.bytes() / static_cast<std::size_t>(all) * static_cast<std::size_t>(rows)
                 : 0;
}

// The same rows as elements of another type.
HostTensor converted_rows(const TensorType& type, std::int64_t rows, const void* from, DType to) {
  Shape shape = type.shape;
  if (!shape.empty()) shape[0] = rows;
  return HostTensor(TensorType{type.dtype, shape}, const_cast<void*>(from), nullptr).converted(to);
}

constexpr std::size_t range_bytes = std::size_t{16} << 20;

}  // namespace

StateStore::StateStore() : turn_(std::make_unique<std::mutex>()) {}
StateStore::~StateStore() = default;
StateStore::StateStore(StateStore&&) noexcept = default;
StateStore& StateStore::operator=(StateStore&&) noexcept = default;

StateStore::Entry* StateStore::find(const std::string& name) const {
  for (const auto& entry : entries_) {
    if (entry->name == name) return entry.get();
  }
  return nullptr;
}

bool StateStore::has(const std::string& name) const { return find(name) != nullptr; }

std::vector<std::string> StateStore::names() const {
  std::vector<std::string> names;
  for (const auto& entry : entries_) {
    if (entry->mirror_of.empty()) names.push_back(entry->name);
  }
  return names;
}

const TensorType& StateStore::type(const std::string& name) const {
  return existing(*this, name).type;
}
StateKind StateStore::kind(const std::string& name) const { return existing(*this, name).kind; }

HostTensor StateStore::read(const std::string& name) const {
  const Entry& entry = existing(*this, name);
  HostTensor result(entry.type);
  if (!entry.memory) return result;
  entry.device->synchronize();
  const std::size_t bytes = buffer_bytes(entry.type, entry.layout);
  if (is_row_major(entry.layout, entry.type.shape)) {
    entry.device->to_host(result.data(), entry.memory->address(), bytes);
    return result;
  }
  HostTensor staging(TensorType{DType::uint8, {static_cast<std::int64_t>(bytes)}});
  entry.device->to_host(staging.data(), entry.memory->address(), bytes);
  from_layout(result.data(), staging.data(), entry.layout, entry.type);
  return result;
}

void StateStore::write(const std::string& name, const HostTensor& value) {
  const Entry& entry = existing(*this, name);
  if (!(value.type() == entry.type)) {
    fail(name, "a state cannot take this value", to_string(entry.type), to_string(value.type()));
  }
  for (const auto& mirror : entries_) {
    if (mirror->mirror_of != name) continue;
    const DType dtype = mirror->type.dtype;  // a weight may be of 16 bits
    write(mirror->name, dtype == value.dtype() ? value : value.converted(dtype));
  }
  write_memory(entry, value);
}

void StateStore::write_memory(const Entry& entry, const HostTensor& value) {
  if (!entry.memory) return;
  entry.device->synchronize();
  const std::size_t bytes = buffer_bytes(entry.type, entry.layout);
  if (is_row_major(entry.layout, entry.type.shape)) {
    // Pages of a mapped file are given back as they have been copied.
    const bool is_file = bytes > range_bytes && is_file_mapping(value.data(), bytes);
    const std::size_t step = is_file ? range_bytes : bytes;
    char* to = static_cast<char*>(entry.memory->address());
    const char* from = static_cast<const char*>(value.data());
    for (std::size_t at = 0; at < bytes; at += step) {
      const std::size_t count = std::min(step, bytes - at);
      entry.device->to_device(to + at, from + at, count);
      if (is_file) release_file_pages(from + at, count);
    }
    return;
  }
  HostTensor staging(TensorType{DType::uint8, {static_cast<std::int64_t>(bytes)}});
  to_layout(staging.data(), entry.layout, value.data(), entry.type);
  entry.device->to_device(entry.memory->address(), staging.data(), bytes);
}

bool StateStore::has_direct_rows(const std::string& name) const {
  const Entry& entry = existing(*this, name);
  return is_row_major(entry.layout, entry.type.shape);
}

void StateStore::read_rows(const std::string& name, std::int64_t first, std::int64_t rows,
                           void* to) const {
  const Entry& entry = existing(*this, name);
  assert(first >= 0 && rows >= 0 && first + rows <= row_count(entry.type));
  const std::size_t bytes = row_bytes(entry.type, rows), offset = row_bytes(entry.type, first);
  if (bytes == 0) return;
  std::unique_lock<std::mutex> lock(*turn_, std::defer_lock);
  if (entry.device->facts().kind != "cpu") lock.lock();
  if (!is_row_major(entry.layout, entry.type.shape)) {
    const HostTensor whole = read(name);
    std::memcpy(to, static_cast<const char*>(whole.data()) + offset, bytes);
    return;
  }
  entry.device->synchronize();
  entry.device->to_host(to, static_cast<const char*>(entry.memory->address()) + offset, bytes);
}

void StateStore::write_rows(const std::string& name, std::int64_t first, std::int64_t rows,
                            const void* from) {
  const Entry& entry = existing(*this, name);
  assert(first >= 0 && rows >= 0 && first + rows <= row_count(entry.type));
  const std::size_t bytes = row_bytes(entry.type, rows), offset = row_bytes(entry.type, first);
  if (bytes == 0) return;
  for (const auto& mirror : entries_) {
    if (mirror->mirror_of != name) continue;
    const DType dtype = mirror->type.dtype;
    write_rows(mirror->name, first, rows,
               dtype == entry.type.dtype
                   ? from
                   : converted_rows(entry.type, rows, from, dtype).data());
  }
  const bool direct = is_row_major(entry.layout, entry.type.shape);
  std::unique_lock<std::mutex> lock(*turn_, std::defer_lock);
  if (!direct || entry.device->facts().kind != "cpu") lock.lock();
  if (!direct) {
    HostTensor whole = read(name);
    std::memcpy(static_cast<char*>(whole.data()) + offset, from, bytes);
    write_memory(entry, whole);
    return;
  }
  entry.device->synchronize();
  entry.device->to_device(static_cast<char*>(entry.memory->address()) + offset, from, bytes);
}

StateStore::Entry& StateStore::create(const State& state, const StateLayout& layout,
                                      Device& device) {
  assert(!has(state.name));
  assert(layout.layout.is_strided() && layout.layout.offset == 0);
  auto entry = std::make_unique<Entry>();
  entry->name = state.name;
  entry->mirror_of = state.mirror_of;
  entry->kind = state.kind;
  entry->type = state.start.type();
  entry->layout = layout.layout;
  entry->device = &device;
  const std::size_t bytes = buffer_bytes(entry->type, entry->layout);
  if (bytes > 0) entry->memory = device.allocate(bytes);
  const bool holds_start = state.starts_at_zero && device.allocates_zeros(bytes);
  entries_.push_back(std::move(entry));
  if (holds_start) return *entries_.back();
  // A mirror that comes after its master has been trained or loaded shows what that holds now.
  const bool is_late = !state.mirror_of.empty() && has(state.mirror_of);
  write(state.name,
        is_late ? read(state.mirror_of).converted(entries_.back()->type.dtype) : state.start);
  return *entries_.back();
}

}  // namespace tandem

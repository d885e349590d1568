#include "engine/runtime/state_store.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <vector>

#include "engine/graph/error.h"
#include "engine/graph/split_float.h"
#include "engine/runtime/file_pages.h"
#include "engine/runtime/layout_copy.h"
#include "engine/runtime/named_memory.h"
#include "engine/runtime/state_entry.h"

namespace tandem {
namespace {

[[noreturn]] void fail(const std::string& name, std::string message, std::string expected = "",
                       std::string got = "") {
  throw Error(ErrorKind::usage, Diagnostic{.message = std::move(message),
                                           .path = name,
                                           .expected = std::move(expected),
                                           .got = std::move(got)});
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

// A master's rows in the type of its weight on another device or in another type.
HostTensor converted_rows(const StateStore::Entry& master, std::int64_t rows, const void* from,
                          DType to) {
  Shape shape = master.seen().shape;
  if (!shape.empty()) shape[0] = rows;
  if (master.tail != nullptr && to == master.type.dtype) {
    HostTensor tops(TensorType{to, std::move(shape)});
    split_floats(static_cast<const float*>(from), static_cast<std::uint16_t*>(tops.data()), nullptr,
                 tops.type().elements());
    return tops;
  }
  return HostTensor(TensorType{master.seen().dtype, shape}, const_cast<void*>(from), nullptr)
      .converted(to);
}

// How many rows of a split table are joined or split at a time.
std::int64_t rows_at_a_time(const TensorType& type) {
  constexpr std::size_t piece_bytes = std::size_t{64} << 10;
  return std::max<std::int64_t>(
      1, static_cast<std::int64_t>(piece_bytes / std::max<std::size_t>(row_bytes(type, 1), 1)));
}

constexpr std::size_t range_bytes = std::size_t{16} << 20;

MemoryPurpose purpose_of(const State& state) {
  MemoryPurpose purpose;
  purpose.path = state.name;
  purpose.what = to_string(state.start.type());
  const bool moment = state.kind == StateKind::optimizer && !state.parameter.empty();
  const std::string& owner = moment ? state.parameter : state.name;
  const Shape& shape = state.start.shape();
  const std::int64_t half = shape.empty() ? 0 : shape[0] / 2;
  purpose.fix = "give a table fewer rows, parameters.shape = [ { at = \"" + owner +
                "\", rows = " + std::to_string(std::max<std::int64_t>(half, 1)) + " } ]";
  if (moment)
    purpose.fix += ", its optimizer fewer states, optimizer.groups = [ { at = \"" + owner +
                   "\", kind = \"sgd\" } ]";
  purpose.fix += ", or have it elsewhere by a rule of the policy: { at = \"" + owner + "\", " +
                 (moment ? "state" : "on") + " = \"gpu\" }";
  return purpose;
}

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
    if (entry->derived.is_saved()) names.push_back(entry->name);
  }
  return names;
}

const TensorType& StateStore::type(const std::string& name) const {
  return existing(*this, name).seen();
}
StateKind StateStore::kind(const std::string& name) const { return existing(*this, name).kind; }
HeldBy StateStore::held_by(const std::string& name) const { return existing(*this, name).held_by; }

const StateShard* StateStore::shard(const std::string& name) const {
  const Entry& entry = existing(*this, name);
  return entry.shard ? &*entry.shard : nullptr;
}

HostTensor StateStore::read(const std::string& name) const {
  const Entry& entry = existing(*this, name);
  HostTensor result = entry.tail == nullptr ? read_memory(entry) : HostTensor(entry.whole);
  if (entry.tail != nullptr) load_rows(entry, 0, row_count(entry.type), result.data());
  read_cached(name, 0, row_count(entry.type), result.data());
  return result;
}

HostTensor StateStore::read_memory(const Entry& entry) {
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

void StateStore::forget_ahead(const Entry& written) {
  if (written.derived.is<PrefetchedRows>()) return;
  const std::lock_guard<std::mutex> lock(*turn_);
  const std::int64_t zero = 0;
  for (const auto& entry : entries_) {
    if (!entry->derived.is<PrefetchedRows>() || !entry->type.shape.empty()) continue;
    entry->device->to_device(entry->memory->address(), &zero, entry->type.bytes());
  }
}

void StateStore::write(const std::string& name, const HostTensor& value) {
  const Entry& entry = existing(*this, name);
  if (!(value.type() == entry.seen())) {
    fail(name, "a state cannot take this value", to_string(entry.seen()), to_string(value.type()));
  }
  if (entry.tail != nullptr) {
    const std::int64_t all = row_count(entry.whole);
    const std::int64_t most = static_cast<std::int64_t>(
        range_bytes / std::max<std::size_t>(row_bytes(entry.whole, 1), 1));
    const bool is_file = is_file_mapping(value.data(), value.bytes());
    for (std::int64_t first = 0, rows = 0; first < all; first += rows) {
      rows = std::min(std::max<std::int64_t>(most, 1), all - first);
      const char* from = static_cast<const char*>(value.data()) + row_bytes(entry.whole, first);
      write_rows(name, first, rows, from);
      if (is_file) release_file_pages(from, row_bytes(entry.whole, rows));
    }
    return;
  }
  for (const auto& mirror : entries_) {
    if (!mirror->derived.is_of<Mirror>(name)) continue;
    const DType dtype = mirror->type.dtype;  // a weight may be of 16 bits
    write(mirror->name, dtype == value.dtype() ? value : value.converted(dtype));
    mirror->shown = entry.writes;
  }
  write_cached(name, 0, row_count(entry.type), value.data());
  forget_ahead(entry);
  write_memory(entry, value);
}

void StateStore::write_memory(const Entry& entry, const HostTensor& value) {
  if (!entry.memory) return;
  entry.device->synchronize();
  const std::size_t bytes = buffer_bytes(entry.type, entry.layout);
  if (is_row_major(entry.layout, entry.type.shape)) {
    // Pages of a mapped file are given back as soon as they are copied.
    const bool is_file = bytes > least_mapped_bytes && is_file_mapping(value.data(), bytes);
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

void StateStore::load_memory(const Entry& entry, std::int64_t first, std::int64_t rows,
                             void* to) const {
  const std::size_t bytes = row_bytes(entry.type, rows), offset = row_bytes(entry.type, first);
  std::unique_lock<std::mutex> lock(*turn_, std::defer_lock);
  if (entry.device->facts().kind != "cpu") lock.lock();
  if (!is_row_major(entry.layout, entry.type.shape)) {
    const HostTensor whole = read_memory(entry);
    std::memcpy(to, static_cast<const char*>(whole.data()) + offset, bytes);
    return;
  }
  entry.device->synchronize();
  entry.device->to_host(to, static_cast<const char*>(entry.memory->address()) + offset, bytes);
}

void StateStore::store_memory(const Entry& entry, std::int64_t first, std::int64_t rows,
                              const void* from) {
  const std::size_t bytes = row_bytes(entry.type, rows), offset = row_bytes(entry.type, first);
  const bool direct = is_row_major(entry.layout, entry.type.shape);
  std::unique_lock<std::mutex> lock(*turn_, std::defer_lock);
  if (!direct || entry.device->facts().kind != "cpu") lock.lock();
  if (!direct) {
    HostTensor whole = read_memory(entry);
    std::memcpy(static_cast<char*>(whole.data()) + offset, from, bytes);
    write_memory(entry, whole);
    return;
  }
  entry.device->synchronize();
  entry.device->to_device(static_cast<char*>(entry.memory->address()) + offset, from, bytes);
}

void StateStore::load_rows(const Entry& entry, std::int64_t first, std::int64_t rows,
                           void* to) const {
  if (row_bytes(entry.type, rows) == 0) return;
  if (entry.tail == nullptr) return load_memory(entry, first, rows, to);
  const std::int64_t columns = entry.type.elements() / row_count(entry.type);
  const std::int64_t most = std::min(rows, rows_at_a_time(entry.whole));
  std::vector<std::uint16_t> tops(static_cast<std::size_t>(most * columns));
  std::vector<std::int16_t> tails(tops.size());
  for (std::int64_t at = 0; at < rows; at += most) {
    const std::int64_t count = std::min(most, rows - at);
    load_memory(entry, first + at, count, tops.data());
    load_memory(*entry.tail, first + at, count, tails.data());
    join_floats(tops.data(), tails.data(), static_cast<float*>(to) + at * columns, count * columns);
  }
}

void StateStore::store_rows(const Entry& entry, std::int64_t first, std::int64_t rows,
                            const void* from) {
  if (row_bytes(entry.type, rows) == 0) return;
  if (entry.tail == nullptr) return store_memory(entry, first, rows, from);
  const std::int64_t columns = entry.type.elements() / row_count(entry.type);
  const std::int64_t most = std::min(rows, rows_at_a_time(entry.whole));
  std::vector<std::uint16_t> tops(static_cast<std::size_t>(most * columns));
  std::vector<std::int16_t> tails(tops.size());
  for (std::int64_t at = 0; at < rows; at += most) {
    const std::int64_t count = std::min(most, rows - at);
    split_floats(static_cast<const float*>(from) + at * columns, tops.data(), tails.data(),
                 count * columns);
    store_memory(entry, first + at, count, tops.data());
    store_memory(*entry.tail, first + at, count, tails.data());
  }
}

void StateStore::read_rows(const std::string& name, std::int64_t first, std::int64_t rows,
                           void* to) const {
  const Entry& entry = existing(*this, name);
  assert(first >= 0 && rows >= 0 && first + rows <= row_count(entry.type));
  if (row_bytes(entry.type, rows) == 0) return;
  load_rows(entry, first, rows, to);
  read_cached(name, first, rows, to);
}

void StateStore::write_rows(const std::string& name, std::int64_t first, std::int64_t rows,
                            const void* from) {
  const Entry& entry = existing(*this, name);
  assert(first >= 0 && rows >= 0 && first + rows <= row_count(entry.type));
  if (row_bytes(entry.type, rows) == 0) return;
  forget_ahead(entry);
  for (const auto& mirror : entries_) {
    if (!mirror->derived.is_of<Mirror>(name)) continue;
    const DType dtype = mirror->type.dtype;
    write_rows(
        mirror->name, first, rows,
        dtype == entry.seen().dtype ? from : converted_rows(entry, rows, from, dtype).data());
  }
  write_cached(name, first, rows, from);
  store_rows(entry, first, rows, from);
}

void StateStore::Entry::follow(const Entry& master) {
  HostTensor now = read_memory(master);
  if (master.tail != nullptr) {
    const HostTensor tops = std::move(now), tails = read_memory(*master.tail);
    now = HostTensor(master.whole);
    join_floats(static_cast<const std::uint16_t*>(tops.data()), tails.as<std::int16_t>().data(),
                now.as<float>().data(), now.type().elements());
  }
  write_memory(*this, converted_rows(master, row_count(master.type), now.data(), type.dtype));
  shown = master.writes;
}

StateStore::Entry& StateStore::create(const State& state, const StateLayout& layout,
                                      Device& device) {
  assert(!has(state.name));
  assert(layout.layout.is_strided() && layout.layout.offset == 0);
  auto entry = std::make_unique<Entry>();
  entry->name = state.name;
  entry->derived = state.derived;
  entry->kind = state.kind;
  entry->held_by = state.held_by;
  entry->type = state.start.type();
  entry->shard = state.shard;
  entry->layout = layout.layout;
  entry->device = &device;
  const std::size_t bytes = buffer_bytes(entry->type, entry->layout);
  if (bytes > 0) entry->memory = allocate_for(purpose_of(state), device, bytes);
  const bool holds_start = state.starts_at_zero && device.allocates_zeros(bytes);
  Entry& made = *entries_.emplace_back(std::move(entry));
  if (const auto* cached = made.derived.as<CachedRows>(); cached && has(cached->of)) {
    fill_cache(made);
  } else if (const auto* low = made.derived.as<LowHalf>()) {
    if (!holds_start) write_memory(made, state.start);
    Entry& table = *find(low->of);
    table.whole = {DType::float32, table.type.shape};
    table.tail = &made;
    if (table.derived.is<CachedRows>()) fill_cache(table);
  } else if (holds_start) {
    return made;
  } else if (const auto* mirror = made.derived.as<Mirror>(); mirror && has(mirror->of)) {
    // A Mirror that is made after its master was trained or loaded gets the master's current value.
    Entry& master = *find(mirror->of);
    const HostTensor now = read(mirror->of);
    write(made.name, converted_rows(master, row_count(now.type()), now.data(), made.type.dtype));
    made.shown = master.writes;
  } else {
    write(made.name, state.start);
  }
  return made;
}

}  // namespace tandem

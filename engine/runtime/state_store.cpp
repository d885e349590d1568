// State between steps: entries by name, each in the layout that the first program chose.
#include <cassert>
#include <vector>

#include "engine/graph/error.h"
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

}  // namespace

StateStore::StateStore() = default;
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
  if (!entry.memory) return;
  entry.device->synchronize();
  const std::size_t bytes = buffer_bytes(entry.type, entry.layout);
  if (is_row_major(entry.layout, entry.type.shape)) {
    entry.device->to_device(entry.memory->address(), value.data(), bytes);
    return;
  }
  HostTensor staging(TensorType{DType::uint8, {static_cast<std::int64_t>(bytes)}});
  to_layout(staging.data(), entry.layout, value.data(), entry.type);
  entry.device->to_device(entry.memory->address(), staging.data(), bytes);
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
  entries_.push_back(std::move(entry));
  // A mirror that comes after its master has been trained or loaded shows what that holds now.
  const bool is_late = !state.mirror_of.empty() && has(state.mirror_of);
  write(state.name,
        is_late ? read(state.mirror_of).converted(entries_.back()->type.dtype) : state.start);
  return *entries_.back();
}

}  // namespace tandem

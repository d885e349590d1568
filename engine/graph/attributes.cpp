#include "engine/graph/attributes.h"

#include <algorithm>
#include <cassert>
#include <cstdio>

#include "engine/graph/text.h"

namespace tandem {
namespace {

std::string number_text(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", value);
  return text;
}

template <class T>
const T& get(const Attributes& attributes, std::string_view name) {
  const AttributeValue* value = attributes.find(name);
  assert(value != nullptr && "attribute not declared by its operator");
  assert(std::holds_alternative<T>(*value) && "attribute has another type");
  return std::get<T>(*value);
}

}  // namespace

std::string to_string(const AttributeValue& value) {
  struct Print {
    std::string operator()(std::int64_t v) const { return std::to_string(v); }
    std::string operator()(double v) const { return number_text(v); }
    std::string operator()(const std::string& v) const { return "\"" + v + "\""; }
    std::string operator()(const Ints& v) const { return to_string(Shape(v)); }
    std::string operator()(const Floats& v) const {
      return "[" + joined(v, ", ", number_text) + "]";
    }
  };
  return std::visit(Print{}, value);
}

Attributes::Attributes(std::initializer_list<Entry> entries) {
  for (const Entry& entry : entries) set(entry.first, entry.second);
}

void Attributes::set(std::string_view name, AttributeValue value) {
  auto at = std::lower_bound(entries_.begin(), entries_.end(), name,
                             [](const Entry& e, std::string_view n) { return e.first < n; });
  if (at != entries_.end() && at->first == name) {
    at->second = std::move(value);
  } else {
    entries_.insert(at, Entry{std::string(name), std::move(value)});
  }
}

const AttributeValue* Attributes::find(std::string_view name) const {
  for (const Entry& entry : entries_) {
    if (entry.first == name) return &entry.second;
  }
  return nullptr;
}

std::int64_t Attributes::integer(std::string_view name) const {
  return get<std::int64_t>(*this, name);
}
double Attributes::number(std::string_view name) const { return get<double>(*this, name); }
const std::string& Attributes::text(std::string_view name) const {
  return get<std::string>(*this, name);
}
const Ints& Attributes::integers(std::string_view name) const { return get<Ints>(*this, name); }

DType Attributes::dtype(std::string_view name) const {
  const auto dtype = dtype_from_name(text(name));
  assert(dtype && "not the name of an element type");
  return *dtype;
}

}  // namespace tandem

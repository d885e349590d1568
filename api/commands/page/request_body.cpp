#include "api/commands/page/request_body.h"

#include <algorithm>

namespace tandem::api {

void bad_request(const std::string& what) { throw PageError{400, "bad_request", what}; }

RequestBody::RequestBody(const PageJson& body, std::initializer_list<std::string_view> members)
    : body_(body) {
  if (!body.is_object()) bad_request("an object is expected");
  for (const auto& [key, value] : body.items()) {
    if (std::find(members.begin(), members.end(), key) == members.end())
      bad_request("unknown member: " + key);
  }
}

const PageJson& RequestBody::member(const char* key) const {
  const auto found = body_.find(key);
  if (found == body_.end()) bad_request(std::string("missing member: ") + key);
  return *found;
}

int RequestBody::integer(const char* key) const {
  const PageJson& value = member(key);
  if (!value.is_number_integer() || value.get<std::int64_t>() < -1'000'000'000 ||
      value.get<std::int64_t>() > 1'000'000'000)
    bad_request(std::string(key) + ": a whole number is expected");
  return value.get<int>();
}

std::string RequestBody::text(const char* key) const {
  const PageJson& value = member(key);
  if (!value.is_string()) bad_request(std::string(key) + ": a text is expected");
  return value.get<std::string>();
}

bool RequestBody::flag(const char* key) const {
  const PageJson& value = member(key);
  if (!value.is_boolean()) bad_request(std::string(key) + ": true or false is expected");
  return value.get<bool>();
}

const PageJson& RequestBody::object(const char* key) const {
  const PageJson& value = member(key);
  if (!value.is_object()) bad_request(std::string(key) + ": an object is expected");
  return value;
}

std::vector<int> RequestBody::integers(const char* key) const {
  const PageJson& list = member(key);
  std::vector<int> all;
  if (!list.is_array()) bad_request(std::string(key) + ": a list is expected");
  for (const PageJson& value : list) {
    if (!value.is_number_integer()) bad_request(std::string(key) + ": whole numbers are expected");
    const auto number = value.get<std::int64_t>();
    all.push_back(number < 0 || number > 1'000'000'000 ? -1 : static_cast<int>(number));
  }
  return all;
}

std::vector<std::string> RequestBody::texts(const char* key) const {
  const PageJson& list = member(key);
  std::vector<std::string> all;
  if (!list.is_array()) bad_request(std::string(key) + ": a list is expected");
  for (const PageJson& value : list) {
    if (!value.is_string()) bad_request(std::string(key) + ": texts are expected");
    all.push_back(value.get<std::string>());
  }
  return all;
}

std::vector<std::pair<std::string, std::optional<std::string>>> RequestBody::values(
    const char* key) const {
  std::vector<std::pair<std::string, std::optional<std::string>>> all;
  for (const auto& [name, value] : object(key).items()) {
    if (value.is_null())
      all.emplace_back(name, std::nullopt);
    else if (value.is_string())
      all.emplace_back(name, value.get<std::string>());
    else if (value.is_number_integer())
      all.emplace_back(name, std::to_string(value.get<std::int64_t>()));
    else
      bad_request(name + ": a text is expected");
  }
  return all;
}

}  // namespace tandem::api

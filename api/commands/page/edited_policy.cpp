#include "api/commands/page/edited_policy.h"

#include "api/commands/page/text_difference.h"
#include "api/output_file.h"
#include "engine/formats/files.h"
#include "engine/formats/sha256.h"
#include "placement/policy.h"

namespace tandem::api {
namespace {

constexpr std::size_t most_steps = 2000;

PolicyOnDisk read(const std::string& path) {
  PolicyOnDisk disk;
  disk.exists = path_exists(path);
  if (!disk.exists) return disk;
  disk.text = read_policy_text(path);
  disk.sha256 = sha256(disk.text.data(), disk.text.size());
  return disk;
}

}  // namespace

EditedPolicy::EditedPolicy(std::string path, const std::string& text)
    : path_(std::move(path)), saved_(read(path_)) {
  texts_.push_back({saved_.exists ? saved_.text : text, ""});
}

void EditedPolicy::check_revision(int seen) const {
  if (seen == revision_) return;
  throw PageError{409, "stale",
                  "another page has changed the policy: this one had revision " +
                      std::to_string(seen) + ", it is at " + std::to_string(revision_)};
}

void EditedPolicy::set(const std::string& text, const std::string& what) {
  if (text == this->text()) return;
  texts_.resize(at_ + 1);
  texts_.push_back({text, what});
  if (texts_.size() > most_steps) texts_.erase(texts_.begin());
  at_ = texts_.size() - 1;
  ++revision_;
}

void EditedPolicy::undo() {
  if (at_ == 0) throw PageError{422, "refused", "there is nothing to undo"};
  --at_;
  ++revision_;
}

void EditedPolicy::redo() {
  if (at_ + 1 == texts_.size()) throw PageError{422, "refused", "there is nothing to redo"};
  ++at_;
  ++revision_;
}

PolicyOnDisk EditedPolicy::on_disk() const { return read(path_); }

bool EditedPolicy::has_changed(const PolicyOnDisk& now) const {
  return now.exists != saved_.exists || now.sha256 != saved_.sha256;
}

void EditedPolicy::reload() {
  const PolicyOnDisk now = on_disk();
  if (!now.exists) throw PageError{422, "refused", path_ + ": there is no such file"};
  saved_ = now;
  set(now.text, "reloaded");
  ++revision_;  // what is saved is part of the state
}

void EditedPolicy::save(const std::string* over) {
  const PolicyOnDisk now = on_disk();
  if (has_changed(now) && (over == nullptr || *over != now.sha256)) {
    PageError error{409, "file_changed",
                    now.exists ? path_ + ": another program has written it since it was read"
                               : path_ + ": the file is not there any more"};
    error.more = {{"disk",
                   {{"exists", now.exists},
                    {"sha256", now.sha256},
                    {"text", now.text},
                    {"difference", difference_json(now.text, text())}}}};
    throw error;
  }
  if (!now.exists || now.text != text()) rewrite_file(path_, text());
  saved_ = {true, text(), sha256(text().data(), text().size())};
  ++revision_;
}

PageJson difference_json(const std::string& before, const std::string& after) {
  PageJson lines = PageJson::array();
  if (before == after) return lines;
  constexpr const char* kinds[] = {"same", "removed", "added"};
  const auto number = [](int line) { return line > 0 ? PageJson(line) : PageJson(); };
  for (const TextLine& line : text_difference(before, after)) {
    lines.push_back({{"kind", kinds[static_cast<int>(line.kind)]},
                     {"before", number(line.before)},
                     {"after", number(line.after)},
                     {"text", line.text}});
  }
  return lines;
}

}  // namespace tandem::api

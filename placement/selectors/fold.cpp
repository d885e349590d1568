#include "placement/selectors/fold.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <tuple>
#include <utility>

#include "placement/selectors/siblings.h"

namespace tandem {
namespace {

constexpr int mixed = -2;  // several labels

/// A node of the tree of names: "blocks", "blocks.0", "blocks.0:weight".
struct NamePart {
  std::string name;  // the last part
  char border = 0;   // before it
  int label = mixed;
  bool empty = true;  // no name below it has been seen
  std::vector<int> children;
  std::vector<int> items;  // names that end here
};

/// Names below a part that have one label; `at` leaves out the text of the part itself.
struct Piece {
  std::string at;
  int label = 0;
  std::vector<int> items;
};

class NameTree {
 public:
  NameTree(const std::vector<std::string>& names, const std::vector<int>& labels)
      : labels_(labels), parts_(1) {
    for (std::size_t i = 0; i < names.size(); ++i) add(names[i], static_cast<int>(i));
  }

  std::vector<Piece> pieces(int of, std::size_t prefix) const {
    const NamePart& part = parts_[of];
    std::vector<Piece> found;
    if (part.label != mixed) {
      if (part.label < 0) return {};
      Piece& whole = found.emplace_back();
      whole.at = of == root ? "**" : part.children.empty() ? "" : ".**";
      whole.label = part.label;
      collect(of, whole.items);
      return found;
    }
    for (const int item : part.items) {
      if (labels_[item] >= 0) found.push_back({"", labels_[item], {item}});
    }
    for (const Alike& alike : alike_children(part, prefix)) add_pieces(alike, prefix, found);
    return found;
  }

  static constexpr int root = 0;

 private:
  /// Children of one part whose names have the same labels.
  struct Alike {
    std::vector<int> children;
    std::vector<std::vector<Piece>> pieces;  // those of each child
  };

  void add(const std::string& name, int item) {
    int at = root;
    see(at, labels_[item]);
    char border = 0;
    for (std::size_t start = 0; start <= name.size();) {
      const std::size_t end = std::min(name.find_first_of(".:", start), name.size());
      at = child(at, border, name.substr(start, end - start));
      see(at, labels_[item]);
      border = end < name.size() ? name[end] : '\0';
      start = end + 1;
    }
    parts_[at].items.push_back(item);
  }

  void see(int at, int label) {
    NamePart& part = parts_[at];
    label = std::max(label, -1);
    part.label = part.empty || part.label == label ? label : mixed;
    part.empty = false;
  }

  int child(int of, char border, const std::string& name) {
    const auto [place, fresh] =
        known_.try_emplace({of, border, name}, static_cast<int>(parts_.size()));
    if (fresh) {
      NamePart& made = parts_.emplace_back();
      made.name = name;
      made.border = border;
      parts_[of].children.push_back(place->second);
    }
    return place->second;
  }

  void collect(int of, std::vector<int>& items) const {
    items.insert(items.end(), parts_[of].items.begin(), parts_[of].items.end());
    for (const int child : parts_[of].children) collect(child, items);
  }

  std::vector<Alike> alike_children(const NamePart& of, std::size_t prefix) const {
    std::vector<Alike> all;
    std::map<std::string, std::size_t> places;  // by text of the labels
    for (const int child : of.children) {
      const NamePart& part = parts_[child];
      std::vector<Piece> found = pieces(child, prefix + part.name.size() + 1);
      if (found.empty()) continue;
      std::string said(1, part.border);
      if (part.label == mixed) said += "mixed";
      for (const Piece& piece : found) {  // equal for whole modules and for single names
        if (part.label == mixed) said += piece.at;
        said += " " + std::to_string(piece.label) + "\n";
      }
      const auto [place, fresh] = places.try_emplace(said, all.size());
      if (fresh) all.emplace_back();
      all[place->second].children.push_back(child);
      all[place->second].pieces.push_back(std::move(found));
    }
    return all;
  }

  void add_pieces(const Alike& alike, std::size_t prefix, std::vector<Piece>& to) const {
    std::vector<std::string> names;
    for (const int child : alike.children) names.push_back(parts_[child].name);
    const char border = parts_[alike.children[0]].border;
    for (const PartSet& set : part_sets(names, prefix)) {
      std::string text = set.text;
      if (border != '\0') text.insert(text.begin(), border);
      for (std::size_t p = 0; p < alike.pieces[set.members[0]].size(); ++p) {
        Piece merged;
        for (const std::size_t member : set.members) {
          const Piece& piece = alike.pieces[member][p];
          merged.label = piece.label;
          merged.at = std::max(merged.at, piece.at);  // "" or ".**": the wider one
          merged.items.insert(merged.items.end(), piece.items.begin(), piece.items.end());
        }
        merged.at.insert(0, text);
        to.push_back(std::move(merged));
      }
    }
  }

  const std::vector<int>& labels_;
  std::vector<NamePart> parts_;  // [0] is the root
  std::map<std::tuple<int, char, std::string>, int> known_;
};

}  // namespace

std::vector<Folded> folded(const std::vector<std::string>& names, const std::vector<int>& labels) {
  assert(names.size() == labels.size());
  std::vector<Folded> result;
  if (names.empty()) return result;
  for (Piece& piece : NameTree(names, labels).pieces(NameTree::root, 0)) {
    if (piece.at.starts_with("re:")) piece.at[0] = '?';  // or it would be a regular expression
    std::sort(piece.items.begin(), piece.items.end());
    result.push_back({std::move(piece.at), piece.label, std::move(piece.items)});
  }
  std::stable_sort(result.begin(), result.end(), [](const Folded& a, const Folded& b) {
    return a.items.front() < b.items.front();
  });
  return result;
}

}  // namespace tandem

#include "engine/data/images/image_list.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "engine/data/shown_problems.h"
#include "engine/formats/delimited.h"
#include "engine/formats/files.h"
#include "engine/formats/images/image_file.h"
#include "engine/graph/text.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

constexpr int most_depth = 32;  // the system follows no more than 40 links
constexpr std::int64_t most_classes = 1'000'000;

[[noreturn]] void refuse_list(const std::string& file, std::string message, std::string expected,
                              std::string got, std::string fix) {
  throw Error(ErrorKind::data, Diagnostic{.message = std::move(message),
                                          .file = file,
                                          .expected = std::move(expected),
                                          .got = std::move(got),
                                          .fix = std::move(fix)});
}

/// Folder and name of each picture below a folder; the folder is relative to the first one.
using FoundImages = std::vector<std::pair<std::string, std::string>>;

struct Others {
  std::string first;
  std::int64_t count = 0;
};

void walk(const std::string& root, const std::string& folder, int depth, FoundImages& to,
          Others& others) {
  const std::string here = folder.empty() ? root : root + "/" + folder;
  if (depth > most_depth) {
    refuse_list(here, "folders lie in folders without an end", "at most 32 levels", "",
                "a link seems to lead back to a folder that it is in");
  }
  for (const std::string& name : list_directory(here)) {
    if (name.starts_with('.')) continue;
    if (names_image(name)) {
      to.emplace_back(folder, name);
    } else if (names_other_image(name)) {
      if (others.count++ == 0) others.first = here + "/" + name;
    } else if (is_directory(here + "/" + name)) {
      walk(root, folder.empty() ? name : folder + "/" + name, depth + 1, to, others);
    }
  }
}

/// Whether a label of the list is a whole number; one that begins with 0 is a name, such as "007".
bool is_whole_number(const std::string& text) {
  const std::string digits = text.substr(text.starts_with('-') ? 1 : 0);
  return !digits.empty() && digits.find_first_not_of("0123456789") == std::string::npos &&
         (digits.size() == 1 || digits[0] != '0');
}

/// The class that a whole number is; nothing where it is negative or too large for one.
std::optional<std::int64_t> class_of_number(const std::string& text) {
  if (text.starts_with('-') || text.size() > 9) return std::nullopt;
  const std::int64_t place = std::stoll(text);
  if (place >= most_classes) return std::nullopt;
  return place;
}

struct Labelled {
  std::string path, label;
  // Path of the list, with the line below; or the folder.
  std::string file;
  std::int64_t line = 0;
};

/// The pictures of one folder's list.
void read_list(const std::string& folder, const std::string& list, std::vector<Labelled>& to) {
  const std::string file = (fs::path(folder) / list).string();
  if (!path_exists(file)) {
    refuse_list(folder, "there is no list of labels in this folder", list, "",
                "leave data.labels out where sub-folders are classes");
  }
  const bool is_tsv = list.ends_with(".tsv");
  DelimitedReader reader(file, is_tsv ? '\t' : ',', !is_tsv);
  while (reader.next()) {
    const auto fields = reader.fields();
    const auto refuse = [&](std::string message, std::string expected, std::string got) {
      throw Error(ErrorKind::data, Diagnostic{.message = std::move(message),
                                              .file = file,
                                              .line = static_cast<int>(reader.line()),
                                              .expected = std::move(expected),
                                              .got = std::move(got)});
    };
    if (fields.size() != 2 || fields[0].empty() || fields[1].empty()) {
      refuse("not a picture and its label", "path,label",
             std::to_string(fields.size()) + " fields");
    }
    if (reader.line() == 1 && fields[0] == "path" && fields[1] == "label") continue;  // a header
    to.push_back({(fs::path(folder) / fs::path(fields[0])).string(), std::string(fields[1]), file,
                  reader.line()});
  }
}

void read_folders(const std::string& folder, bool may_be_empty, std::vector<Labelled>& to) {
  const std::vector<std::string> names = folders_in(folder);
  if (names.empty()) {
    refuse_list(folder, "there are no sub-folders", "one for each class", "",
                "data.labels = \"labels.csv\" names a list of pictures and labels instead");
  }
  for (const std::string& name : names) {
    const std::string below = folder + "/" + name;
    const std::vector<std::string> images = images_below(below);
    if (images.empty() && !may_be_empty) {
      refuse_list(below, "no picture of this class", "files that end in .jpg, .jpeg or .png", "",
                  "remove the folder, or begin its name with a point");
    }
    for (const std::string& image : images) to.push_back({below + "/" + image, name, folder, 0});
  }
}

/// Sorted names of all labels. Labels that are all whole numbers are the classes' numbers
/// themselves, and are reported where they are no class: as names they would get other numbers than
/// those in the list.
std::vector<std::string> classes_of(const std::vector<Labelled>& all, bool from_lists,
                                    std::vector<Diagnostic>& errors) {
  std::set<std::string> names;
  for (const Labelled& each : all) names.insert(each.label);
  const bool are_places = from_lists && std::all_of(names.begin(), names.end(), is_whole_number);
  if (!are_places) return {names.begin(), names.end()};
  const std::size_t before = errors.size();
  std::int64_t most = -1, bad = 0;
  for (const Labelled& each : all) {
    const std::optional<std::int64_t> place = class_of_number(each.label);
    most = std::max(most, place.value_or(-1));
    if (place || static_cast<std::size_t>(bad++) >= shown_problems) continue;
    errors.push_back({.message = "the label is no class",
                      .file = each.file,
                      .line = static_cast<int>(each.line),
                      .expected = "a whole number from 0 to " + std::to_string(most_classes - 1),
                      .got = each.label});
  }
  if (bad > 0) {
    tell_others(errors, before, bad, "lines");
    errors[before].fix =
        "labels that are all whole numbers are the classes themselves: count them from 0, take the "
        "line out of the list, or give the classes names";
    return {};
  }
  std::vector<std::string> places;
  for (std::int64_t i = 0; i <= most; ++i) places.push_back(std::to_string(i));
  return places;
}

void label_images(std::vector<Labelled> all, const std::vector<std::string>& classes, ImageList& to,
                  std::vector<Diagnostic>& errors) {
  std::map<std::string, std::int64_t, std::less<>> place;
  for (std::size_t i = 0; i < classes.size(); ++i)
    place.emplace(classes[i], static_cast<std::int64_t>(i));
  const std::size_t before = errors.size();
  std::set<std::string> unknown;
  for (Labelled& each : all) {
    const auto found = place.find(each.label);
    if (found != place.end()) {
      to.paths.push_back(std::move(each.path));
      to.labels.push_back(found->second);
      if (each.line == 0) continue;  // the folder is the class
      if (to.lists.empty() || to.lists.back() != each.file) to.lists.push_back(each.file);
      to.places.push_back({to.lists.size() - 1, each.line});
    } else if (unknown.insert(each.label).second && unknown.size() <= shown_problems) {
      errors.push_back({.message = "the training data has no class \"" + each.label + "\"",
                        .file = each.file,
                        .line = static_cast<int>(each.line),
                        .expected = "one of " + std::to_string(classes.size()) + " classes"});
    }
  }
  tell_others(errors, before, std::ssize(unknown), "such names");
}

}  // namespace

std::vector<std::string> folders_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const std::string& name : list_directory(folder)) {
    if (!name.starts_with('.') && is_directory(folder + "/" + name)) names.push_back(name);
  }
  return names;
}

std::vector<std::string> images_below(const std::string& folder) {
  FoundImages found;
  Others others;
  walk(folder, "", 0, found, others);
  if (others.count > 0) {
    refuse_list(others.first, "a picture of a format that is not read", "JPEG or PNG",
                others.count > 1 ? std::to_string(others.count) + " of them" : "",
                "convert it, or take it out of the folder");
  }
  std::sort(found.begin(), found.end());
  std::vector<std::string> paths;
  paths.reserve(found.size());
  for (const auto& [below, name] : found)
    paths.push_back(below.empty() ? name : below + "/" + name);
  return paths;
}

ImageList list_images(const ImageFiles& kind, const SplitConfig& split, bool with_labels,
                      std::vector<std::string>& classes, std::vector<Diagnostic>& errors) {
  ImageList list;
  std::vector<Labelled> labelled;
  const bool are_given = !classes.empty(), from_lists = !kind.labels.empty();
  for (const ArrayFiles& files : split.files) {
    for (const std::string& path : files.paths) {
      try {
        if (!path_exists(path)) refuse_list(path, "no such folder", "a folder of pictures", "", "");
        if (!is_directory(path) && with_labels)
          refuse_list(path, "this is no folder", "a folder of pictures", "", "");
        if (!is_directory(path)) {
          list.paths.push_back(path);
        } else if (!with_labels) {
          for (const std::string& image : images_below(path))
            list.paths.push_back(path + "/" + image);
        } else if (from_lists) {
          read_list(path, kind.labels, labelled);
        } else {
          read_folders(path, are_given, labelled);
        }
      } catch (const Error& error) {
        const auto& found = error.diagnostics();
        errors.insert(errors.end(), found.begin(), found.end());
      }
    }
  }
  if (!errors.empty()) return {};
  if (with_labels) {
    if (!are_given) classes = classes_of(labelled, from_lists, errors);
    if (!errors.empty()) return {};
    for (const std::string& name : classes) {
      if (name.find_first_of("\n\r") == std::string::npos) continue;
      errors.push_back({.message = "the name of a class has an end of line in it",
                        .file = labelled.empty() ? "" : labelled[0].file,
                        .got = name});
    }
    label_images(std::move(labelled), classes, list, errors);
  }
  if (list.paths.empty() && errors.empty()) {
    Diagnostic& d = errors.emplace_back();
    d.message = "there are no pictures";
    d.expected = "files that end in .jpg, .jpeg or .png";
    if (!split.files.empty() && !split.files[0].paths.empty()) d.file = split.files[0].paths[0];
  }
  return list;
}

}  // namespace tandem

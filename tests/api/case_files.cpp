#include "tests/api/case_files.h"

#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <stdexcept>

#include "engine/formats/arrays/npy.h"
#include "engine/formats/files.h"
#include "tests/api/small_model.h"
#include "tests/harness/folders.h"

namespace tandem::testing {
namespace {

std::vector<std::int64_t> shape_of(const std::string& text) {
  std::vector<std::int64_t> shape;
  if (text.empty()) return shape;
  for (const std::string& extent : parts_of(text, 'x')) shape.push_back(std::stoll(extent));
  return shape;
}

std::uint64_t element_type(const std::string& name) {
  return name == "int64" ? 7 : name == "int32" ? 6 : 1;
}

std::string model_of(const std::string& text) {
  SmallModel model;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string what, name, third, fourth, fifth, more;
    words >> what >> name >> third >> fourth >> fifth >> more;
    if (what == "input") {
      model.input(name, shape_of(third), element_type(fourth));
    } else if (what == "free_input") {
      model.free_input(name, parts_of(third, ','), element_type(fourth));
    } else if (what == "weight") {
      model.weight(name, shape_of(third), std::stof(fourth));
    } else if (what == "integer") {
      model.integer(name, std::stoll(third));
    } else if (what == "node") {
      std::vector<std::pair<std::string, std::uint64_t>> integers;
      if (const std::size_t is = more.find('='); is != std::string::npos)
        integers.emplace_back(more.substr(0, is), std::stoull(more.substr(is + 1)));
      model.node(name, third, parts_of(fourth, ','), fifth, integers);
    } else if (what == "output") {
      model.output(name, shape_of(third));
    } else if (what == "free_output") {
      model.free_output(name, parts_of(third, ','));
    } else {
      throw std::runtime_error("no line of a model: " + line);
    }
  }
  return model.bytes();
}

template <class T>
HostTensor round_of(const Shape& shape, int least, int most, int step) {
  HostTensor tensor(TensorType{tandem::dtype_of<T>::value, shape});
  int next = least;
  for (T& x : tensor.as<T>()) {
    x = static_cast<T>(next);
    next = next == most ? least : next + step;
  }
  return tensor;
}

std::vector<NamedTensor> arrays_of(const std::string& text) {
  std::vector<NamedTensor> arrays;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name, type, extents, range;
    int step = 1;
    words >> name >> type >> extents >> range >> step;
    const std::size_t dots = range.find("..");
    const int least = std::stoi(range), most = std::stoi(range.substr(dots + 2));
    if (step == 0) step = 1;
    const Shape shape = shape_of(extents);
    arrays.push_back({name, type == "int64"   ? round_of<std::int64_t>(shape, least, most, step)
                            : type == "int32" ? round_of<std::int32_t>(shape, least, most, step)
                            : type == "uint8" ? round_of<std::uint8_t>(shape, least, most, step)
                                              : round_of<float>(shape, least, most, step)});
  }
  return arrays;
}

}  // namespace

void write_case_file(const std::string& path, const std::string& text) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  if (text.starts_with("copy ")) {
    std::filesystem::copy(source_folder() + "/" + text.substr(5, text.find('\n') - 5), path,
                          std::filesystem::copy_options::overwrite_existing);
  } else if (path.ends_with(".onnx")) {
    write_file(path, model_of(text));
  } else if (path.ends_with(".npz")) {
    write_npz(path, arrays_of(text));
  } else {
    write_file(path, with_all(repeated(text), "SOURCE/", source_folder() + "/"));
  }
}

void write_files(const ExpectedCase& of, const std::string& folder) {
  for (const auto& [name, text] : of.texts) {
    if (!name.starts_with('_')) write_case_file(folder + "/" + name, text);
  }
}

}  // namespace tandem::testing

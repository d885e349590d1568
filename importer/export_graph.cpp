#include "importer/export_graph.h"

#include <fmt/format.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>
#include <deque>
#include <exception>
#include <iterator>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "engine/formats/files.h"
#include "engine/formats/new_file.h"
#include "importer/export/transformation.h"
#include "importer/file/adapter_nodes.h"
#include "importer/file/model_edits.h"
#include "importer/file/onnx_content.h"
#include "importer/file/random_edits.h"
#include "importer/file/tensor_data.h"
#include "importer/grown_tables.h"
#include "importer/tied_names.h"
#include "onnx/checker.h"

namespace tandem {
namespace importer {
namespace {

[[noreturn]] void fail_to_write(const std::filesystem::path& path, const std::string& why) {
  throw Error(ErrorKind::runtime,
              Diagnostic{.message = "cannot write the model", .file = path.string(), .got = why});
}

// The files of weights that an older export has left of the model which is replaced: NAME.data, or
// NAME.data.LETTERS where that was taken.
std::vector<std::filesystem::path> old_data(const std::filesystem::path& data,
                                            const std::filesystem::path& model) {
  std::vector<std::filesystem::path> old;
  for (const std::filesystem::path& own : external_files(model)) {
    if (own == data || is_unused_name(own.string(), data.string())) old.push_back(own);
  }
  return old;
}

// Large weights take the place of what the model that is replaced has for them, of nothing else.
void refuse_other_data(const std::filesystem::path& data,
                       const std::vector<std::filesystem::path>& old,
                       const std::filesystem::path& model) {
  if (std::find(old.begin(), old.end(), data) != old.end()) return;
  refuse(data, "", "the weights go into this file, and there is another one of this name",
         "no such file, or the weights of the " + model.filename().string() + " that is replaced",
         "", "export under another name, or remove the file");
}

// A file in the making; `commit` puts it into its place.
class PlacedFile {
 public:
  /// `before`: what it comes after, with the owner and permissions that it takes over.
  PlacedFile(std::filesystem::path to, const std::filesystem::path& before)
      : to_(std::move(to)),
        place_(to_.string(), before.string()),
        file_(made_after(place_, before)) {}

  void write(const void* data, std::size_t size) { file_.write(data, size); }
  void align(std::uint64_t unit) {
    const std::string zeros((unit - position() % unit) % unit, '\0');
    write(zeros.data(), zeros.size());
  }
  std::uint64_t position() const { return file_.bytes(); }
  const std::string& path() const { return file_.path(); }
  std::string name() const { return std::filesystem::path(path()).filename().string(); }

  void close() {
    file_.sync();
    file_.close();
  }
  void commit() { place_.finish(path()); }
  // Never throws.
  void undo() {
    try {
      remove_all(to_.string());
    } catch (const Error&) {  // the error that led to this is the one to report
    }
  }
  const std::filesystem::path& place() const { return to_; }

 private:
  static std::string made_after(NewFile& place, const std::filesystem::path& before) {
    place.come_after(before.string());
    return place.make();
  }

  std::filesystem::path to_;
  NewFile place_;
  OutputFile file_;
};

class MessageStream final : public google::protobuf::io::CopyingOutputStream {
 public:
  explicit MessageStream(OutputFile& file) : file_(file) {}
  // Protocol buffers write what they hold back in a destructor, also after a failure.
  bool Write(const void* data, int size) override {
    if (failure_) return false;
    try {
      file_.write(data, static_cast<std::size_t>(size));
    } catch (...) {
      failure_ = std::current_exception();
    }
    return !failure_;
  }
  void throw_failure() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  OutputFile& file_;
  std::exception_ptr failure_;
};

// Replaces what the file holds.
void write_message(const onnx::ModelProto& model, const std::string& path) {
  OutputFile file(path);
  MessageStream stream(file);
  google::protobuf::io::CopyingOutputStreamAdaptor buffered(&stream);
  const bool whole = model.SerializeToZeroCopyStream(&buffered) && buffered.Flush();
  stream.throw_failure();
  if (!whole) fail_to_write(path, "protocol buffers refuse it");
  file.sync();
  file.close();
}

class Export {
 public:
  Export(const OnnxFile& file, const OperatorSet& operators, const ExportOptions& options)
      : file_(file),
        content_(file.content()),
        operators_(operators),
        options_(options),
        model_(*content_.model) {}

  ExportResult run(const std::vector<std::pair<std::string, HostTensor>>& values,
                   const std::filesystem::path& to) {
    shared_ = shared_initializers(content_);
    grow_tables();
    if (!options_.import.resized.empty()) resize();
    for (const auto& [name, value] : values) add_value(name, value);
    for (const auto& [name, type] : tables_) {
      if (values_.count(name) == 0) zeros_.push_back(HostTensor(type));
      if (values_.count(name) == 0) values_[name] = &zeros_.back();
    }
    for (const auto& [other, name] : shared_) {
      first_of_.insert(name);
      if (values_.count(name) > 0) values_[other] = values_.at(name);
    }
    if (options_.all_states) expect_all_states();
    // With training_info the exported model is trained further: its graph is that of the step.
    const bool trains = model_.training_info_size() > 0;
    if (options_.free_batch && !trains) free_batch();
    if (!options_.outputs.empty()) cut_to_outputs(model_, options_.outputs, batch_name());
    if (options_.inference && !trains) {
      to_inference_form(model_);
      add_note(drop_randomness(model_, file_, operators_, options_.import));
    }
    if (!options_.adapters.empty())
      add_adapter_nodes(model_, options_.adapters, shared_, file_.path());
    if (model_.graph().name().empty()) model_.mutable_graph()->set_name("graph");
    inline_attributes();
    set_metadata();
    if (is_transformed()) transform(trains);
    write(to);
    return std::move(result_);
  }

 private:
  // Tables with more rows than the file's placeholders: wherever the model says their shape.
  void grow_tables() {
    const onnx::GraphProto& graph = content_.model->graph();
    std::vector<std::string> outputs;
    for (const auto& output : graph.output()) outputs.push_back(output.name());
    const std::vector<bool> needed = needed_nodes(graph, outputs);
    roles_ = initializer_roles(content_, needed);
    tables_ = grown_tables(content_, needed, roles_, shared_, options_.import.rows);
    const auto rows_of = [&](const std::string& name) -> std::int64_t {
      const auto first = shared_.find(name);
      const auto table = tables_.find(first == shared_.end() ? name : first->second);
      return table == tables_.end() ? -1 : table->second.shape[0];
    };
    const auto set_rows = [&](onnx::ValueInfoProto& info) {
      const std::int64_t rows = rows_of(info.name());
      if (rows < 0 || !info.type().tensor_type().has_shape()) return;
      auto* shape = info.mutable_type()->mutable_tensor_type()->mutable_shape();
      if (shape->dim_size() > 0) shape->mutable_dim(0)->set_dim_value(rows);
    };
    if (tables_.empty()) return;
    for (onnx::TensorProto& tensor : *model_.mutable_graph()->mutable_initializer()) {
      if (const std::int64_t rows = rows_of(tensor.name()); rows >= 0) tensor.set_dims(0, rows);
    }
    for (auto& info : *model_.mutable_graph()->mutable_input()) set_rows(info);
    for (auto& info : *model_.mutable_graph()->mutable_value_info()) set_rows(info);
  }

  // Parameters of other shapes, and what the outputs become by them. Shapes of values in between
  // serve only readers, who can infer them.
  void resize() {
    for (const auto& [name, type] : resized_parameters(content_, options_.import.resized)) {
      tables_[name] = type;
      for (onnx::TensorProto& tensor : *model_.mutable_graph()->mutable_initializer()) {
        if (tensor.name() != name) continue;
        for (int axis = 0; axis < tensor.dims_size(); ++axis)
          tensor.set_dims(axis, type.shape[static_cast<std::size_t>(axis)]);
      }
      for (auto& info : *model_.mutable_graph()->mutable_input()) {
        if (info.name() == name) set_extents(info, type.shape);
      }
    }
    model_.mutable_graph()->clear_value_info();
    ImportOptions import = options_.import;
    import.batch = 0;
    import.training = false;
    import.collect_problems = false;
    const ImportResult imported = import_graph(file_, operators_, import);
    for (auto& info : *model_.mutable_graph()->mutable_output()) {
      if (const NamedValue* output = imported.graph.find_output(info.name()))
        set_extents(info, imported.graph.type(output->value).shape);
    }
  }

  // Where the model says a number; names of free dimensions stay.
  static void set_extents(onnx::ValueInfoProto& info, const Shape& extents) {
    if (!info.type().tensor_type().has_shape()) return;
    auto* shape = info.mutable_type()->mutable_tensor_type()->mutable_shape();
    for (int axis = 0; axis < shape->dim_size(); ++axis) {
      const auto at = static_cast<std::size_t>(axis);
      if (at < extents.size() && shape->dim(axis).has_dim_value())
        shape->mutable_dim(axis)->set_dim_value(extents[at]);
    }
  }

  void add_value(const std::string& name, const HostTensor& value) {
    const auto original = content_.initializers.find(name);
    if (original == content_.initializers.end()) {
      refuse(file_.path(), name, "the model has no initializer of this name");
    }
    const auto table = tables_.find(name);
    const Shape& shape = table == tables_.end() ? original->second.shape() : table->second.shape;
    if (shape != value.shape()) {
      refuse(file_.path(), name, "shape of the new value", to_string(shape),
             to_string(value.shape()));
    }
    const DType type = original->second.dtype();
    if (is_float(type) != is_float(value.dtype())) {
      refuse(file_.path(), name, "type of the new value", to_string(original->second.type()),
             to_string(value.type()));
    }
    values_[name] = &value;
  }

  void expect_all_states() const {
    std::vector<Diagnostic> problems;
    for (const onnx::TensorProto& tensor : content_.model->graph().initializer()) {
      const std::string& name = tensor.name();
      const auto role = roles_.find(name);
      if (role == roles_.end() || !role->second.is_state || role->second.is_packed ||
          values_.count(name) > 0)
        continue;
      problems.push_back({.message = "there is no trained value of this initializer",
                          .file = file_.path().string(),
                          .path = name,
                          .fix = "export with the model file that was trained"});
    }
    if (!problems.empty()) throw Error(ErrorKind::usage, std::move(problems));
  }

  // What the model calls the first axis of what it is fed; "" where that is fixed.
  std::string batch_name() const {
    if (!options_.batch_outputs) return "";
    for (const auto& input : model_.graph().input()) {
      if (content_.initializers.count(input.name()) > 0) continue;
      const std::vector<std::string> names = dims(input);
      if (!names.empty() && !names[0].empty()) return names[0];
    }
    return "";
  }

  void free_batch() {
    ImportOptions import = options_.import;
    import.batch = 0;
    import.training = !options_.inference && import.training;
    import.collect_problems = false;
    std::erase_if(import.bind, [](const auto& bound) { return bound.first == "batch"; });
    try {
      const ImportResult same = import_graph(file_, operators_, import);
      result_.batch_is_free = same.file_batch == 0;
      if (same.file_batch == 0) return;
      import.batch = 2 * same.file_batch;
      const ImportResult other = import_graph(file_, operators_, import);
      for (const BatchRewrite& rewrite : other.rewrites) {
        if (rewrite.in_main_graph && rewrite.has_free_form) continue;
        result_.note = fmt::format(
            "the batch stays {}: '{}' is made {}", same.file_batch, rewrite.output,
            rewrite.in_main_graph ? "by an operator that holds it" : "inside a function");
        return;
      }
      importer::free_batch(model_, free_name(), same, other);
      result_.batch_is_free = true;
    } catch (const Error& error) {
      result_.note = fmt::format("the batch stays as it is: {}", error.what());
    }
  }

  // "batch", unless the file calls another axis so.
  std::string free_name() const {
    std::string name = "batch";
    for (const auto& input : model_.graph().input()) {
      for (const std::string& dim : dims(input)) {
        if (dim == name) name += "_size";
      }
    }
    return name;
  }
  static std::vector<std::string> dims(const onnx::ValueInfoProto& info) {
    std::vector<std::string> names;
    for (const auto& dim : info.type().tensor_type().shape().dim())
      names.push_back(dim.dim_param());
    return names;
  }

  template <class Nodes>
  void inline_tensors(Nodes& nodes) {
    for (onnx::NodeProto& node : nodes) {
      for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
        if (attribute.has_t()) inline_tensor(*attribute.mutable_t());
        for (onnx::TensorProto& tensor : *attribute.mutable_tensors()) inline_tensor(tensor);
        if (attribute.has_g()) inline_graph(*attribute.mutable_g());
        for (onnx::GraphProto& graph : *attribute.mutable_graphs()) inline_graph(graph);
      }
    }
  }
  void inline_graph(onnx::GraphProto& graph) {
    for (onnx::TensorProto& tensor : *graph.mutable_initializer()) inline_tensor(tensor);
    inline_tensors(*graph.mutable_node());
  }
  void inline_tensor(onnx::TensorProto& tensor) {
    if (tensor.data_location() != onnx::TensorProto::EXTERNAL) return;
    write_tensor(tensor, read_tensor(tensor, content_, tensor.name()));
  }
  // External data elsewhere than in the main graph's initializers is small; it moves into the
  // model.
  void inline_attributes() {
    inline_tensors(*model_.mutable_graph()->mutable_node());
    for (onnx::FunctionProto& function : *model_.mutable_functions())
      inline_tensors(*function.mutable_node());
    for (onnx::TrainingInfoProto& info : *model_.mutable_training_info()) {
      if (info.has_algorithm()) inline_graph(*info.mutable_algorithm());
      if (info.has_initialization()) inline_graph(*info.mutable_initialization());
    }
  }

  void set_metadata() {
    auto& entries = *model_.mutable_metadata_props();
    for (int i = entries.size() - 1; i >= 0; --i) {
      if (entries[i].key().starts_with(own_metadata)) entries.DeleteSubrange(i, 1);
    }
    for (const auto& [key, value] : options_.metadata) {
      onnx::StringStringEntryProto& entry = *entries.Add();
      entry.set_key(std::string(own_metadata) + key);
      entry.set_value(value);
    }
  }

  HostTensor value_of(const onnx::TensorProto& tensor) const {
    const auto given = values_.find(tensor.name());
    if (given != values_.end()) return narrowed(*given->second, tensor, content_);
    return written().initializers.at(tensor.name());
  }

  bool is_transformed() const {
    return std::any_of(export_transformations().begin(), export_transformations().end(),
                       [&](const Transformation& t) { return t.is_wanted(options_); });
  }

  // What the file to write is made of: the imported one, or what transformations have made of it.
  const OnnxFile::Content& written() const { return transformed_ ? *transformed_ : content_; }

  void transform(bool trains) {
    if (trains) {
      refuse(file_.path(), "", "a model with training_info keeps its graph", "", "",
             "leave --outputs, --fold-batch-norm, --fp16 and --opset out");
    }
    return_attribute_weights(model_, content_.attribute_weights,
                             [&](const onnx::TensorProto& tensor) { return value_of(tensor); });
    for (onnx::TensorProto& tensor : *model_.mutable_graph()->mutable_initializer()) {
      const bool is_external = tensor.data_location() == onnx::TensorProto::EXTERNAL;
      was_external_ = was_external_ || is_external;
      if (content_.initializers.count(tensor.name()) == 0) continue;
      if (is_external || values_.count(tensor.name()) > 0) write_tensor(tensor, value_of(tensor));
    }
    ExportedModel exported{model_, content_, {}};
    for (const Transformation& transformation : export_transformations()) {
      if (transformation.is_wanted(options_)) transformation.apply(exported, options_);
    }
    for (const std::string& note : exported.notes) add_note(note);
    // From here on the transformed model takes the place of the file.
    auto made = std::make_shared<OnnxFile::Content>();
    made->path = content_.path;
    made->limits = content_.limits;
    made->model = std::make_shared<onnx::ModelProto>(model_);
    for (const onnx::TensorProto& tensor : made->model->graph().initializer()) {
      if (dtype_from_onnx(tensor.data_type()))
        made->initializers.emplace(tensor.name(), read_tensor(tensor, *made, tensor.name()));
    }
    values_.clear();
    transformed_ = std::move(made);
    drop_untied();
  }

  // Initializers that are one no longer, or not there.
  void drop_untied() {
    const auto& now = written().initializers;
    const auto bytes_of = [](const HostTensor& tensor) {
      return std::string_view(static_cast<const char*>(tensor.data()), tensor.bytes());
    };
    first_of_.clear();
    for (auto at = shared_.begin(); at != shared_.end();) {
      const auto one = now.find(at->first), first = now.find(at->second);
      const bool same = one != now.end() && first != now.end() &&
                        one->second.type() == first->second.type() &&
                        bytes_of(one->second) == bytes_of(first->second);
      if (same) first_of_.insert(at->second);
      at = same ? std::next(at) : shared_.erase(at);
    }
  }

  void write(const std::filesystem::path& to) {
    return_attribute_weights(model_, written().attribute_weights,
                             [&](const onnx::TensorProto& tensor) { return value_of(tensor); });
    bool was_external = was_external_;
    std::uint64_t total = 0;
    for (const onnx::TensorProto& tensor : written().model->graph().initializer()) {
      was_external |= tensor.data_location() == onnx::TensorProto::EXTERNAL;
      const auto value = written().initializers.find(tensor.name());
      if (value == written().initializers.end()) continue;
      const auto given = values_.find(tensor.name());
      total += (given == values_.end() ? value->second : *given->second).bytes();
    }
    const bool external = was_external || total > options_.inline_bytes;
    const std::filesystem::path usual = to.parent_path() / (to.filename().string() + ".data");
    std::vector<std::filesystem::path> old;  // data files of the model that is replaced
    std::unique_ptr<PlacedFile> data;
    std::unordered_map<std::string, std::uint64_t> offsets;  // in the data file
    for (onnx::TensorProto& tensor : *model_.mutable_graph()->mutable_initializer()) {
      const bool is_ours = written().initializers.count(tensor.name()) > 0;
      if (!is_ours) {
        if (values_.count(tensor.name()) == 0 &&
            tensor.data_location() != onnx::TensorProto::EXTERNAL)
          continue;
        if (!dtype_from_onnx(tensor.data_type())) {
          refuse(file_.path(), tensor.name(), "element type is not supported", "",
                 onnx_type_name(tensor.data_type()));
        }
        continue;  // a target that free_batch added
      }
      const bool changes =
          values_.count(tensor.name()) > 0 || tensor.data_location() == onnx::TensorProto::EXTERNAL;
      const HostTensor value = in_type_of(tensor, value_of(tensor));
      const auto first = shared_.find(tensor.name());
      const bool tied = first != shared_.end() || first_of_.count(tensor.name()) > 0;
      if (!external || (value.bytes() < options_.external_from && !tied)) {
        if (changes) write_tensor(tensor, value);
        continue;
      }
      if (first != shared_.end() && offsets.count(first->second) > 0) {  // stays one tensor
        refer_to_data(tensor, data->name(), offsets.at(first->second), value.bytes());
        continue;
      }
      if (!data) {
        old = old_data(usual, to);
        data = placed_data(usual, old, to);
      }
      data->align(4096);
      const std::uint64_t offset = data->position();
      data->write(value.data(), value.bytes());
      refer_to_data(tensor, data->name(), offset, value.bytes());
      offsets[tensor.name()] = offset;
    }
    if (data) data->close();
    if (model_.ByteSizeLong() > content_.limits.file_bytes) {
      fail_to_write(to, "the model is larger than 2 GiB without external data");
    }
    NewFile place(to.string(), to.string());
    const std::string made = place.make();
    write_message(model_, made);
    check(made);
    if (data) {  // until here its name was that of the file being written
      for (onnx::TensorProto& tensor : *model_.mutable_graph()->mutable_initializer()) {
        for (onnx::StringStringEntryProto& entry : *tensor.mutable_external_data()) {
          if (entry.key() == "location" && entry.value() == data->name())
            entry.set_value(data->place().filename().string());
        }
      }
      write_message(model_, made);
      data->commit();
      result_.files.push_back(data->place());
    }
    try {
      place.finish(made);
    } catch (const Error&) {
      if (data) data->undo();
      throw;
    }
    sync_directory(to.has_parent_path() ? to.parent_path().string() : ".");
    result_.files.insert(result_.files.begin(), to);
    for (const std::filesystem::path& file : old) {
      if (file != data->place()) remove_old(file);
    }
  }

  // Until the new model is in its place the old one needs its weights: the new ones lie next to
  // them, under a name of their own, in case the export ends early.
  static std::unique_ptr<PlacedFile> placed_data(const std::filesystem::path& usual,
                                                 const std::vector<std::filesystem::path>& old,
                                                 const std::filesystem::path& model) {
    std::error_code ignored;
    const bool taken = std::filesystem::exists(std::filesystem::symlink_status(usual, ignored));
    if (taken) refuse_other_data(usual, old, model);
    return std::make_unique<PlacedFile>(
        taken ? std::filesystem::path(unused_name(usual.string())) : usual, usual);
  }

  // Nothing needs it any more; that it stays is no failure of the export.
  static void remove_old(const std::filesystem::path& file) {
    try {
      remove_all(file.string());
    } catch (const Error&) {
    }
  }

  void add_note(const std::string& note) {
    if (!note.empty()) result_.note += (result_.note.empty() ? "" : "\n") + note;
  }

  // What was wrong with the imported file already does not keep its weights from being written.
  void check(const std::string& made) {
    const auto complaint = [](const auto& model) -> std::string {
      try {
        onnx::checker::check_model(model);
      } catch (const std::exception& error) {
        return error.what();
      }
      return "";
    };
    const std::string now = complaint(made);
    if (now.empty()) return;
    const bool from_memory = file_.path().empty();
    if (now != (from_memory ? complaint(as_read()) : complaint(file_.path().string())))
      refuse(file_.path(), "", "the changed model does not pass ONNX's checker", "", now);
    add_note("ONNX's checker refuses the model, as it refuses the one it comes from: " + now);
  }

  // What a file from memory was.
  onnx::ModelProto as_read() const {
    onnx::ModelProto model = *content_.model;
    return_attribute_weights(
        model, content_.attribute_weights,
        [&](const onnx::TensorProto& tensor) { return content_.initializers.at(tensor.name()); });
    return model;
  }

  const OnnxFile& file_;
  const OnnxFile::Content& content_;
  const OperatorSet& operators_;
  const ExportOptions& options_;
  onnx::ModelProto model_;
  std::unordered_map<std::string, const HostTensor*> values_;
  std::unordered_map<std::string, Role> roles_;
  GrownTables tables_;                                    // without those that are another one
  std::deque<HostTensor> zeros_;                          // tables that were given no value
  std::unordered_map<std::string, std::string> shared_;   // initializers that are an earlier one
  std::unordered_set<std::string> first_of_;              // those earlier ones
  std::shared_ptr<const OnnxFile::Content> transformed_;  // null: nothing was
  bool was_external_ = false;                             // weights, before that
  ExportResult result_;
};

}  // namespace
}  // namespace importer

ExportResult export_graph(const OnnxFile& file, const OperatorSet& operators,
                          const std::vector<std::pair<std::string, HostTensor>>& values,
                          const std::filesystem::path& to, const ExportOptions& options) {
  // Where `to` is a link, the weights are put next to the file that it points to.
  std::error_code none;
  const bool is_link = std::filesystem::is_symlink(std::filesystem::symlink_status(to, none));
  const std::filesystem::path place =
      is_link ? std::filesystem::path(link_target(to.string())) : to;
  return importer::Export(file, operators, options).run(values, place);
}

}  // namespace tandem

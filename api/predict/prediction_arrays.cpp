// Writes predictions as .npy and .npz.
#include <algorithm>
#include <limits>

#include "api/predict/prediction_output.h"
#include "engine/formats/arrays/npy.h"
#include "engine/graph/text.h"

namespace tandem::api {
namespace {

/// The header of an array contains its length, so elements are kept in a temporary file until that
/// is known.
class ArrayFile final : public PredictionFile {
 public:
  explicit ArrayFile(const std::string& to)
      : to_(to), archive_(to.ends_with(".npz")), place_(to, to_option), whole_(place_.make()) {}

  void start(const std::vector<PredictedArray>& arrays) override {
    if (!archive_ && arrays.size() != 1) {
      const std::string names = joined(arrays, ", ", &PredictedArray::name);
      refuse_place(to_, "an .npy file holds one array, and these are " + names, "a file.npz",
                   "write an .npz file, or choose one: --as class");
    }
    arrays_ = arrays;
    for (std::size_t a = 0; a < arrays.size(); ++a)
      parts_.push_back(std::make_unique<OutputFile>(place_.make()));
  }
  void add(const std::vector<HostTensor>& values, std::int64_t first, std::int64_t count) override {
    for (std::size_t a = 0; a < values.size(); ++a) {
      const std::size_t bytes = arrays_[a].sample.bytes();
      parts_[a]->write(
          static_cast<const char*>(values[a].data()) + bytes * static_cast<std::size_t>(first),
          bytes * static_cast<std::size_t>(count));
    }
    rows_ += count;
  }
  void add_missing(std::int64_t rows) override {
    std::vector<HostTensor> values;
    for (const PredictedArray& array : arrays_) {
      TensorType type = array.sample;
      type.shape.insert(type.shape.begin(), 1);
      HostTensor value(type);
      if (type.dtype == DType::float32) {
        std::ranges::fill(value.as<float>(), std::numeric_limits<float>::quiet_NaN());
      } else if (type.dtype == DType::float64) {
        std::ranges::fill(value.as<double>(), std::numeric_limits<double>::quiet_NaN());
      } else {
        std::ranges::fill(value.as<std::int64_t>(), -1);
      }
      values.push_back(std::move(value));
    }
    for (std::int64_t row = 0; row < rows; ++row) add(values, 0, 1);
  }
  void start_batches(const std::vector<std::string>& names) override {
    batch_names_ = names;
    batch_names_.push_back("rows");
    for (std::size_t a = 0; a < batch_names_.size(); ++a)
      parts_.push_back(std::make_unique<OutputFile>(place_.make()));
    batches_.resize(batch_names_.size());
  }
  // Writes "NAME.NUMBER" for each batch, and "rows.NUMBER" with the rows that it was computed from.
  void add_batch(const PredictedBatch& batch) override {
    std::vector<HostTensor> values = batch.values;
    values.push_back(HostTensor::from({static_cast<std::int64_t>(batch.rows.size())}, batch.rows));
    for (std::size_t a = 0; a < values.size(); ++a) {
      parts_[a]->write(static_cast<const char*>(values[a].data()), values[a].bytes());
      batches_[a].emplace_back(batch.number, values[a].type());
    }
  }
  void finish() override {
    for (const auto& part : parts_) part->close();
    std::vector<NamedTensor> tensors;
    for (std::size_t a = 0; a < batch_names_.size(); ++a) {
      auto file = std::make_shared<MappedFile>(parts_[a]->path(), true);
      auto* at = static_cast<std::uint8_t*>(file->data());
      for (const auto& [number, type] : batches_[a]) {
        tensors.push_back({batch_names_[a] + "." + std::to_string(number),
                           HostTensor(type, type.bytes() > 0 ? at : nullptr, file)});
        at += type.bytes();
      }
    }
    for (std::size_t a = 0; a < arrays_.size(); ++a) {
      TensorType type = arrays_[a].sample;
      type.shape.insert(type.shape.begin(), rows_);
      auto file = std::make_shared<MappedFile>(parts_[a]->path(), true);
      tensors.push_back({arrays_[a].name, HostTensor(std::move(type), file->data(), file)});
    }
    if (archive_) {
      write_npz(whole_, tensors);
    } else {
      write_npy(whole_, tensors[0].tensor);
    }
    place_.finish(whole_);
  }

 private:
  std::string to_;
  bool archive_;
  NewFile place_;
  std::string whole_;  // the temporary file
  std::vector<PredictedArray> arrays_;
  std::vector<std::unique_ptr<OutputFile>> parts_;
  std::int64_t rows_ = 0;
  std::vector<std::string> batch_names_;
  std::vector<std::vector<std::pair<std::int64_t, TensorType>>> batches_;  // by name
};

}  // namespace

std::unique_ptr<PredictionFile> open_array_predictions(const std::string& to, bool /*header*/) {
  return std::make_unique<ArrayFile>(to);
}

}  // namespace tandem::api

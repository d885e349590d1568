// A function of a field's `as` or `augment` as a value: its kind (name, description, where it may
// be used) and its options, which know what it does to arrays and to the text of a column.
// log1p.cpp is the shortest example, hash.cpp one for text, random_crop.cpp one for arrays.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "engine/config/data_config.h"
#include "engine/data/functions/call.h"
#include "engine/data/random.h"
#include "engine/graph/host_tensor.h"

namespace tandem {

class FieldPlanner;     // engine/data/table_plan.h
struct VocabularyPlan;  // engine/data/table_plan.h

/// The key of the random numbers for one sample.
struct SampleKey {
  std::uint64_t seed = 0;
  std::int64_t epoch = 0;
  std::int64_t sample = 0;
};

/// A value that was to be converted to an integer type is not a whole number.
struct NotWhole : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

/// The array of one sample, and where its result goes.
struct SampleArray {
  const TensorType &type, &result_type;
  const void* values;
  void* result;
  const SampleKey& key;
  std::uint64_t place;  // index of the function in the list
  bool narrows_ids;     // whole numbers that do not fit a signed type become -1

  std::int64_t elements() const { return type.elements(); }
  template <class T>
  const T* as() const {
    return static_cast<const T*>(values);
  }
  template <class T>
  T* to() const {
    return static_cast<T*>(result);
  }
  RandomStream random() const {
    return RandomStream(mix(mix(mix(key.seed, static_cast<std::uint64_t>(key.epoch)),
                                static_cast<std::uint64_t>(key.sample)),
                            place));
  }
};

/// A struct with the options of one function. One sample is seen, without the batch axis.
class FieldFunction {
 public:
  virtual ~FieldFunction() = default;

  /// The type of the result. Throws std::invalid_argument (what is wrong) where the function does
  /// not fit.
  virtual TensorType type_of(const TensorType& from) const = 0;
  /// Every byte stays what it is: `run` is not called.
  virtual bool only_copies(const TensorType&) const { return false; }
  /// Every whole number stays what it is, in another type at most.
  virtual bool keeps_whole_numbers() const { return false; }
  /// Whether `run` may throw for a value of such an array.
  virtual bool may_refuse(const TensorType&) const { return false; }
  /// Arithmetic on single numbers, in double. Where several such functions follow each other, the
  /// values between them are float64 and only the last one rounds, to the type given by
  /// `result_type` of `run`.
  virtual bool computes_numbers() const { return false; }
  /// `run` may be given images of any height and width, whatever `type_of` was asked for.
  virtual bool takes_any_size() const { return false; }
  /// Thread safe. Throws std::invalid_argument where a value does not fit.
  virtual void run(const SampleArray&) const = 0;

  /// Says what a column's text becomes, and reports what does not fit. False: the function acts on
  /// the array that the functions before made of the text.
  virtual bool take_text(FieldPlanner&) const { return false; }
  /// Null where the function makes no ids of a vocabulary.
  virtual const VocabularyPlan* vocabulary() const { return nullptr; }
  /// The words that it numbers from 0 on; null where it numbers none that it knows.
  virtual const std::vector<std::string>* words() const { return nullptr; }

  // What a trained model depends on, as text; "" where nothing depends on the function. Numbers are
  // written alike however they were in the file: 1/4 as 0.25.
  /// Which ids the function makes, or which are made of its result.
  virtual std::string decides_ids() const { return ""; }
  /// Which values the text of a column holds.
  virtual std::string decides_values() const { return ""; }
};

struct FieldFunctionKind {
  std::string_view name;
  std::string_view form;        // as the page of keys shows it: "hash(n)"
  std::string_view words = {};  // other names, as "a|b": of functions whose name is an option
  std::shared_ptr<const FieldFunction> (*read)(Call&) = nullptr;
  bool of_text = false;         // takes only the columns of text tables
  bool gives_ids = false;       // by a formula, which `decides_ids` describes
  bool is_random = false;       // is for `augment`
  bool may_augment = false;     // may be in `augment`, too
  bool before_augment = false;  // acts before `augment` where `as` starts with it
};

/// The conversion to an element type.
Transform cast_to(DType dtype);

/// All kinds, in the order of the list all_functions.inl.
std::span<const FieldFunctionKind> all_field_functions();
/// What the page of keys says about the functions of `as`, or of `augment`.
std::string field_functions_help(bool augment);

/// Options that are read from a call: Function(Call&); or there are none.
template <class Function>
std::shared_ptr<const FieldFunction> read_call(Call& call) {
  if constexpr (std::is_constructible_v<Function, Call&>) {
    return std::make_shared<Function>(call);
  } else {
    call.count(0, 0, call.name());
    return std::make_shared<Function>();
  }
}

template <class T>
double number_at(T x) {
  if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>) {
    return static_cast<float>(x);
  } else {
    return static_cast<double>(x);
  }
}

/// A function that makes a number of a number: the same arithmetic for cells of text and arrays.
class NumberFunction : public FieldFunction {
 public:
  /// Type of the result: float32, or int64 for whole numbers, which fit into 32 bits because text
  /// tables store them so.
  virtual DType result() const { return DType::float32; }
  /// The result in double; the code that stores it rounds it to the type above, once, after the
  /// last function of numbers.
  virtual double of(double x) const = 0;

  TensorType type_of(const TensorType& from) const final { return {result(), from.shape}; }
  bool computes_numbers() const final { return true; }
  void run(const SampleArray& sample) const final;
  bool take_text(FieldPlanner& plan) const final;
};

/// A function of the text in a column.
class TextFunction : public FieldFunction {
 public:
  TensorType type_of(const TensorType&) const final {
    throw std::invalid_argument("acts on the columns of csv and tsv, not on arrays");
  }
  void run(const SampleArray&) const final {}
};

}  // namespace tandem

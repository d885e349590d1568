// Calls of the C library from tests: structs with their size, feeds, texts and results.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tandem/c.h"
#include "tandem/tensor.h"

namespace tandem::testing {

/// A struct with its size and zeros.
template <class T>
T sized() {
  T result{};
  result.struct_size = sizeof(T);
  return result;
}

#define EXPECT_OK(call) EXPECT_EQ(call, TANDEM_OK) << tandem_error_message()
#define ASSERT_OK(call) ASSERT_EQ(call, TANDEM_OK) << tandem_error_message()

/// Tensors as a C program feeds them; they refer to those that they are made from.
class CFeeds {
 public:
  explicit CFeeds(api::Tensors tensors) : tensors_(std::move(tensors)) {
    for (const auto& [name, tensor] : tensors_) {
      TandemTensor& fed = all_.emplace_back(sized<TandemTensor>());
      fed.name = name.c_str();
      fed.shape = tensor.shape().data();
      fed.data = tensor.bytes().data();
      fed.bytes = tensor.bytes().size();
      fed.dtype = static_cast<std::int32_t>(tensor.dtype());
      fed.rank = static_cast<std::int32_t>(tensor.shape().size());
    }
  }
  CFeeds(const CFeeds&) = delete;
  CFeeds& operator=(const CFeeds&) = delete;

  TandemTensor* data() { return all_.data(); }
  std::size_t size() const { return all_.size(); }
  TandemTensor& operator[](std::size_t index) { return all_[index]; }

 private:
  api::Tensors tensors_;
  std::vector<TandemTensor> all_;
};

/// A list of texts; `items` outlives it.
inline TandemTexts texts_in(const std::vector<const char*>& items) {
  return {items.data(), items.size()};
}

inline std::map<std::string, double> by_name(const TandemValues& values) {
  std::map<std::string, double> result;
  for (std::size_t i = 0; i < values.count; ++i)
    result[values.items[i].name] = values.items[i].value;
  return result;
}

/// Copies of the tensors that a call gave, which are closed.
inline api::Tensors taken(TandemTensors* tensors) {
  api::Tensors result;
  for (std::size_t i = 0; i < tandem_tensors_count(tensors); ++i) {
    auto tensor = sized<TandemTensor>();
    EXPECT_OK(tandem_tensors_at(tensors, i, &tensor));
    const std::span bytes(static_cast<const std::byte*>(tensor.data), tensor.bytes);
    result.emplace(tensor.name,
                   api::Tensor::copy_of_bytes(static_cast<DType>(tensor.dtype),
                                              {tensor.shape, tensor.shape + tensor.rank}, bytes));
  }
  tandem_tensors_close(&tensors);
  EXPECT_EQ(tensors, nullptr);
  return result;
}

}  // namespace tandem::testing

// What the lists of element-wise, network and update kernels are made of, and what their files
// share.
#pragma once

#include "engine/device/kernel.h"

namespace tandem {

void add_move_kernels(KernelList& list);                 // moves.cpp
void add_pad_kernels(KernelList& list);                  // pad.cpp
void add_gather_kernels(KernelList& list);               // gather.cpp
void add_index_kernels(KernelList& list);                // indices.cpp
void add_resize_kernels(KernelList& list);               // resize.cpp
void add_softmax_kernels(KernelList& list);              // softmax.cpp
void add_loss_kernels(KernelList& list);                 // losses.cpp
void add_layer_normalization_kernels(KernelList& list);  // layer_normalization.cpp
void add_batch_normalization_kernels(KernelList& list);  // batch_normalization.cpp
void add_dropout_kernels(KernelList& list);              // dropout.cpp
void add_attention_kernels(KernelList& list);            // attention.cpp

/// A reason where one of these inputs is there and not float32.
inline std::optional<std::string> refuse_but_float32(const KernelRequest& request,
                                                     std::initializer_list<std::size_t> inputs) {
  for (std::size_t i : inputs) {
    if (request.is_present(i) && request.inputs[i].type.dtype != DType::float32) {
      return "element type " + std::string(name_of(request.inputs[i].type.dtype));
    }
  }
  return std::nullopt;
}

}  // namespace tandem

// Values that no training produces: tables that somebody has computed.
#pragma once

#include "engine/graph/host_tensor.h"

namespace tandem::importer {

/// Rows (or columns) of sines and cosines of a position: each column turns at a rate of its own, or
/// its elements are in pairs on a circle.
bool is_sine_table(const HostTensor& tensor);
/// 1, r, r², … with r = base^(-1/n): the frequencies of rotary embeddings.
bool is_rotary_frequencies(const HostTensor& tensor);
/// A geometric series of at least four numbers, as slopes of ALiBi and bands of Fourier features.
bool is_geometric(const HostTensor& tensor);
/// At least eight evenly spaced numbers, as centres of radial functions or bins of a distribution.
bool is_arithmetic(const HostTensor& tensor);
/// c, c + 1, c + 2, … along one axis, with c = 0, 0.5 or 1, and the same along the others.
bool is_count(const HostTensor& tensor);
/// 0 and one number of at most -100 (-inf, the least float, -1e4), both of them.
bool is_additive_mask(const HostTensor& tensor);
/// Ones up to the diagonal of the last two axes and zeros beyond, or the other way round.
bool is_triangle(const HostTensor& tensor);
/// Only 0 and 1, both of them.
bool is_binary(const HostTensor& tensor);
/// All elements are the same number.
bool is_uniform_tensor(const HostTensor& tensor);
/// A convolution's weight: kernels of whole numbers (or eighths) each of which adds up to 0, as
/// Sobel, Laplace and their like have.
bool is_derivative_filter(const HostTensor& weight);
/// A convolution's weight: one symmetric kernel of positive numbers that add up to 1, for all
/// channels.
bool is_smoothing_filter(const HostTensor& weight);
/// Hann's or Hamming's window.
bool is_window(const HostTensor& tensor);

}  // namespace tandem::importer
